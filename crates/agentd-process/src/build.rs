//! Which build of a program a process runs.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The file that this process runs. It stays readable when its path is gone.
const RUNNING: &str = "/proc/self/exe";

/// Identifies the file that this process runs, even if it was replaced meanwhile. A process must say its own: the
/// kernel hides `/proc/PID/exe` of a process that is not dumpable from all others of the same user.
pub fn own_build() -> Option<String> {
    build_of(Path::new(RUNNING))
}

/// Identifies the file of a program, by device and inode. An upgrade replaces the file.
pub fn build_of(program: &Path) -> Option<String> {
    let found = fs::metadata(program).ok()?;
    Some(format!("{}:{}", found.dev(), found.ino()))
}

/// The path of the file that this process runs, without symlinks, for a sandbox in which it runs once more. `None` if
/// another file is there now, or if the path is in one of these directories: those that a sandboxed process can change,
/// and those that a sandbox does not show. Then the sandbox needs a copy: see [`copy_own_program`].
pub fn own_program(changeable: &[PathBuf]) -> Option<PathBuf> {
    let program = fs::canonicalize(std::env::current_exe().ok()?).ok()?;
    let is_changeable = changeable.iter().any(|dir| {
        let real = fs::canonicalize(dir).unwrap_or_else(|_| dir.clone());
        real.is_absolute() && program.starts_with(real)
    });
    let own = own_build()?;
    (!is_changeable && build_of(&program) == Some(own)).then_some(program)
}

/// Copies the file that this process runs. A copy of an earlier process is replaced, also if it is running.
pub fn copy_own_program(to: &Path) -> io::Result<()> {
    let new = to.with_extension("new");
    fs::copy(RUNNING, &new)?;
    fs::rename(&new, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_replaced_is_another_build() {
        let dir = tempfile::tempdir().unwrap();
        let (program, new) = (dir.path().join("program"), dir.path().join("new"));
        fs::write(&program, "1").unwrap();
        fs::write(&new, "1").unwrap();
        let before = build_of(&program);
        assert_eq!(before, build_of(&program));
        fs::rename(&new, &program).unwrap();
        assert!(before.is_some());
        assert_ne!(before, build_of(&program));
        assert_eq!(build_of(&new), None);
        assert_eq!(own_build(), build_of(&std::env::current_exe().unwrap()));
    }

    #[test]
    fn the_own_program_is_copied_if_its_directory_can_be_changed() {
        let own = own_program(&[PathBuf::new(), PathBuf::from("/nowhere")]).unwrap();
        assert_eq!(build_of(&own), own_build());
        let dir = own.parent().unwrap().to_owned();
        assert_eq!(own_program(std::slice::from_ref(&dir)), None);
        let temporary = tempfile::tempdir().unwrap();
        let link = temporary.path().join("link");
        std::os::unix::fs::symlink(&dir, &link).unwrap();
        assert_eq!(own_program(&[link]), None);
        let copy = temporary.path().join("copy");
        for _ in 0..2 {
            copy_own_program(&copy).unwrap();
            let length = fs::metadata(&copy).unwrap().len();
            assert_eq!(length, fs::metadata(&own).unwrap().len());
        }
        assert_ne!(build_of(&copy), own_build());
    }
}
