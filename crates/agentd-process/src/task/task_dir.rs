//! A task's directory: the paths of its files, and how they are written.

use crate::error::{Error, Result};
use agentd_failpoint as failpoint;
use agentd_files::own;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

pub const EXIT: &str = "exit";
pub const RUNNING: &str = "running";

#[derive(Clone, Debug)]
pub struct TaskDir {
    path: PathBuf,
}

impl TaskDir {
    /// Creates the directory and its parent, with mode 0700, if they do not exist. The directories above must exist: a
    /// deleted state directory is not created again.
    pub fn make(dir: &Path) -> Result<Self> {
        let path = std::path::absolute(dir).map_err(|source| cannot(dir, source))?;
        for dir in path.parent().into_iter().chain([path.as_path()]) {
            match fs::DirBuilder::new().mode(0o700).create(dir) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made.map_err(|source| cannot(dir, source))?,
            }
        }
        Ok(Self { path })
    }

    /// Creates nothing: without the directory, its files cannot be written.
    pub fn existing(dir: &Path) -> Result<Self> {
        let path = std::path::absolute(dir).map_err(|source| cannot(dir, source))?;
        Ok(Self { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn claim(&self) -> PathBuf {
        self.path.join("claim")
    }

    pub fn running(&self) -> PathBuf {
        self.path.join(RUNNING)
    }

    pub fn output(&self) -> PathBuf {
        self.path.join("output")
    }

    pub fn errors(&self) -> PathBuf {
        self.path.join("errors")
    }

    pub fn exit(&self) -> PathBuf {
        self.path.join(EXIT)
    }
}

/// `None` if the file does not exist.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    match own::read(path) {
        Ok(text) => parse(path, &text).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(cannot(path, source)),
    }
}

pub fn parse<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T> {
    serde_json::from_slice(text).map_err(|source| bad(path, source))
}

/// Atomic: a reader sees either the whole new content or the old content.
pub fn write<T: Serialize>(path: &Path, what: &T) -> Result<()> {
    put(path, what, |_| Ok(()))
}

/// As [`write`], and durable when it returns.
pub fn write_for_good<T: Serialize>(path: &Path, what: &T) -> Result<()> {
    put(path, what, File::sync_all)?;
    let dir = path.parent().unwrap_or(path);
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(|source| cannot(dir, source))
}

fn put<T: Serialize>(path: &Path, what: &T, keep: fn(&File) -> io::Result<()>) -> Result<()> {
    let text = serde_json::to_vec(what).map_err(|source| bad(path, source))?;
    let unready = path.with_extension("tmp");
    let name = path.file_name().and_then(|name| name.to_str());
    let point = |when| failpoint::hit_of(when, "task", name.unwrap_or_default());
    point("before-write");
    create(&unready)
        .and_then(|mut file| {
            file.write_all(&text)?;
            keep(&file)?;
            point("before-rename");
            fs::rename(&unready, path)
        })
        .map_err(|source| cannot(path, source))?;
    point("after-rename");
    Ok(())
}

/// Creates a file with mode 0600, or empties an existing one.
pub fn create(path: &Path) -> io::Result<File> {
    File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
}

pub fn cannot(path: &Path, source: impl Into<io::Error>) -> Error {
    Error::CannotUse {
        path: path.to_owned(),
        source: source.into(),
    }
}

pub fn bad(path: &Path, source: serde_json::Error) -> Error {
    Error::BadRecord {
        path: path.to_owned(),
        source,
    }
}
