//! The keys that the user stored with `agentd secret`: a file in the state directory, which no sandbox can see.
//!
//! The daemon is its only writer. It refuses a file that other users could have read or replaced. It does not fix the
//! permissions, because the content may not be what the user stored.

use crate::layout::Layout;
use agentd_client::api::Env;
use agentd_core::environment::{is_handed_on, is_name};
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The limits of one secret, and of the number of secrets. All secrets together fit into a runtime's hello.
pub const MAX_VALUE_BYTES: usize = 8 * 1024;
const MAX_SECRETS: usize = 64;
const MAX_NAME_BYTES: usize = 128;
/// More than the size of the file when all secrets have their maximum length.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// The stored secrets by name.
pub type Stored = BTreeMap<String, Secret>;

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret {
    pub value: String,
    pub set_at: Timestamp,
}

/// The secrets as environment variables.
pub fn values(stored: &Stored) -> Env {
    let pairs = stored.iter();
    pairs
        .map(|(name, secret)| (name.clone(), secret.value.clone()))
        .collect()
}

/// Does not show the value.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret(set at {})", self.set_at.as_millis())
    }
}

/// The file's content.
#[derive(Default, Serialize, Deserialize)]
struct Content {
    v: u32,
    secrets: Stored,
}

const VERSION: u32 = 1;

/// Why the stored secrets cannot be used, or one cannot be stored. Never contains a value.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{} belongs to another user", .0.display())]
    Foreign(PathBuf),
    #[error("{} is open to other users: its mode is {mode:o} and must be {wanted:o}", .path.display())]
    Open {
        path: PathBuf,
        mode: u32,
        wanted: u32,
    },
    #[error("{} is not a regular file", .0.display())]
    NoFile(PathBuf),
    #[error("{} does not have the format that agentd writes", .0.display())]
    Malformed(PathBuf),
    #[error("{} was written by a newer version of agentd", .0.display())]
    Newer(PathBuf),
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("`{0}` is not a valid variable name: use letters, digits and _, at most 128")]
    BadName(String),
    #[error("`{0}` is a variable that tools receive; a secret cannot have this name")]
    HandedOn(String),
    #[error("the value is empty")]
    Empty,
    #[error("the value has more than one line or contains control characters")]
    NotOneLine,
    #[error("the value has more than {MAX_VALUE_BYTES} bytes")]
    TooLong,
    #[error("{MAX_SECRETS} secrets are stored already, which is the limit")]
    TooMany,
}

/// Reads the stored secrets; there are none if there is no file.
pub fn read(layout: &Layout) -> Result<Stored, Error> {
    let path = layout.secrets();
    let io_error = |source| Error::Io {
        path: path.clone(),
        source,
    };
    let opened = OpenOptions::new()
        .read(true)
        // Opening a pipe does not block, and a symbolic link is not followed.
        .custom_flags((rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits() as i32)
        .open(&path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Stored::new()),
        Err(error) => return Err(io_error(error)),
    };
    let home = std::fs::metadata(layout.home()).map_err(io_error)?;
    check(layout.home(), &home, 0o700)?;
    let metadata = file.metadata().map_err(io_error)?;
    if !metadata.is_file() {
        return Err(Error::NoFile(path));
    }
    check(&path, &metadata, 0o600)?;
    let mut bytes = Vec::new();
    let mut file = file.take(MAX_FILE_BYTES + 1);
    file.read_to_end(&mut bytes).map_err(io_error)?;
    let content: Result<Content, _> = serde_json::from_slice(&bytes);
    match content {
        // The parser's error could quote a value.
        Err(_) => Err(Error::Malformed(path)),
        Ok(content) if content.v > VERSION => Err(Error::Newer(path)),
        Ok(content) => Ok(content.secrets),
    }
}

fn check(path: &Path, metadata: &Metadata, wanted: u32) -> Result<(), Error> {
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(Error::Foreign(path.to_owned()));
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(Error::Open {
            path: path.to_owned(),
            mode,
            wanted,
        });
    }
    Ok(())
}

/// Replaces the file atomically: a reader finds all old secrets or all new ones, also after a crash.
pub fn write(layout: &Layout, secrets: Stored) -> Result<(), Error> {
    let path = layout.secrets();
    replace(&path, secrets).map_err(|source| Error::Io { path, source })
}

fn replace(path: &Path, secrets: Stored) -> io::Result<()> {
    let content = Content {
        v: VERSION,
        secrets,
    };
    let bytes = serde_json::to_vec(&content)?;
    let unready = path.with_extension("json.new");
    // A file that a crash left behind may have another mode.
    match std::fs::remove_file(&unready) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unready)?;
    let written = file.write_all(&bytes).and_then(|()| file.sync_all());
    let replaced = written.and_then(|()| std::fs::rename(&unready, path));
    if let Err(error) = replaced {
        // A failed write leaves no file with secrets behind.
        let _gone = std::fs::remove_file(&unready);
        return Err(error);
    }
    match path.parent() {
        Some(dir) => File::open(dir)?.sync_all(),
        None => Ok(()),
    }
}

/// Adds a secret, or replaces the one with this name.
pub fn put(stored: &mut Stored, name: &str, value: &str, set_at: Timestamp) -> Result<(), Error> {
    check_name(name)?;
    // A key from a file or a program usually ends with a newline.
    let value = value.trim();
    if value.is_empty() {
        return Err(Error::Empty);
    }
    if value.len() > MAX_VALUE_BYTES {
        return Err(Error::TooLong);
    }
    if value.chars().any(char::is_control) {
        return Err(Error::NotOneLine);
    }
    if stored.len() >= MAX_SECRETS && !stored.contains_key(name) {
        return Err(Error::TooMany);
    }
    let value = value.to_owned();
    stored.insert(name.to_owned(), Secret { value, set_at });
    Ok(())
}

/// Whether a secret can have this name.
pub fn check_name(name: &str) -> Result<(), Error> {
    if !is_name(name) || name.len() > MAX_NAME_BYTES {
        return Err(Error::BadName(name.chars().take(MAX_NAME_BYTES).collect()));
    }
    match is_handed_on(name) {
        true => Err(Error::HandedOn(name.to_owned())),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
