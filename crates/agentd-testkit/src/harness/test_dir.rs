//! A root directory for one run of the program.

use super::program::Program;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A root with the state directory `home` and the working directory `work` in it.
#[derive(Debug)]
pub struct TestDir {
    root: PathBuf,
    /// Deletes the root when this is dropped; none if the caller keeps it.
    _temporary: Option<TempDir>,
}

impl TestDir {
    /// A temporary root. Its path is short, because the paths of sockets are limited.
    pub fn temporary() -> io::Result<Self> {
        Self::within(tempfile::Builder::new().prefix("ad").tempdir()?)
    }

    /// In this temporary directory.
    pub fn within(temporary: TempDir) -> io::Result<Self> {
        let root = temporary.path().to_owned();
        Self::make(root, Some(temporary))
    }

    /// In this directory, which exists and is kept.
    pub fn at(root: &Path) -> io::Result<Self> {
        Self::make(root.canonicalize()?, None)
    }

    fn make(root: PathBuf, temporary: Option<TempDir>) -> io::Result<Self> {
        let dir = Self {
            root,
            _temporary: temporary,
        };
        fs::create_dir_all(dir.home())?;
        fs::create_dir_all(dir.work())?;
        Ok(dir)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// The program at this path, in these directories.
    pub fn program(&self, path: impl Into<PathBuf>) -> Program {
        Program::new(path, self.home(), self.work())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_temporary_root_is_deleted() {
        let outer = tempfile::tempdir().unwrap();
        let kept = TestDir::at(outer.path()).unwrap();
        let work = kept.work();
        drop(kept);
        assert!(work.is_dir());
        let temporary = TestDir::within(outer).unwrap();
        drop(temporary);
        assert!(!work.exists());
    }
}
