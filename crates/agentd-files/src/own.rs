//! Files that only agentd, its user or the kernel writes: the state directory, files that the user names in a command,
//! and `/proc`.
//!
//! These are the functions of the standard library under another name. `clippy.toml` forbids their own, so each caller
//! decides whether a tool can write the file.

use std::io;
use std::path::Path;

/// The content of a file.
#[expect(
    clippy::disallowed_methods,
    reason = "the caller vouches for the file: no tool can write it"
)]
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    std::fs::read(path)
}

/// The content of a file, as text.
#[expect(
    clippy::disallowed_methods,
    reason = "the caller vouches for the file: no tool can write it"
)]
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    std::fs::read_to_string(path)
}
