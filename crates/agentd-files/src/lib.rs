//! Reads files.
//!
//! - [`foreign`]: files that other processes can write, such as those of a work tree. Each can be a link to a device, a
//!   pipe or a file without end.
//! - [`own`]: files that only agentd, its user or the kernel writes.
//!
//! It may **not** wait for another process, or read more than its caller allows.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod foreign;
pub mod own;
