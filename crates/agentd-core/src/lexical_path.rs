//! Paths by their text, without a look at the file system.

use std::path::{Component, Path, PathBuf};

/// The path without `.` and `..`. Tools, the rules for them and hooks must mean the same file, so `..` is removed from the
/// text, and no link is resolved.
pub fn normalised(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_removed_and_nothing_is_above_the_root() {
        for (given, expected) in [
            ("/a/b/c", "/a/b/c"),
            ("/a/./b//c/", "/a/b/c"),
            ("/a/../b", "/b"),
            ("/../../b", "/b"),
            ("/a/..", "/"),
        ] {
            assert_eq!(normalised(Path::new(given)), Path::new(expected), "{given}");
        }
    }
}
