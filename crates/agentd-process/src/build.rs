//! Which build of a program a process runs.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Identifies the file that this process runs, even if it was replaced meanwhile. A process must say its own: the
/// kernel hides `/proc/PID/exe` of a process that is not dumpable from all others of the same user.
pub fn own_build() -> Option<String> {
    build_of(Path::new("/proc/self/exe"))
}

/// Identifies the file of a program, by device and inode. An upgrade replaces the file.
pub fn build_of(program: &Path) -> Option<String> {
    let found = std::fs::metadata(program).ok()?;
    Some(format!("{}:{}", found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_replaced_is_another_build() {
        let dir = tempfile::tempdir().unwrap();
        let (program, new) = (dir.path().join("program"), dir.path().join("new"));
        std::fs::write(&program, "1").unwrap();
        std::fs::write(&new, "1").unwrap();
        let before = build_of(&program);
        assert_eq!(before, build_of(&program));
        std::fs::rename(&new, &program).unwrap();
        assert!(before.is_some());
        assert_ne!(before, build_of(&program));
        assert_eq!(build_of(&new), None);
        assert_eq!(own_build(), build_of(&std::env::current_exe().unwrap()));
    }
}
