//! Reads files.
//!
//! - [`foreign`]: files that other processes can write, such as those of a work tree. Each can be a link to a device, a
//!   pipe or a file without end.
//!
//! It may **not** wait for another process, or read more than its caller allows.

pub mod foreign;
