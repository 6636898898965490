//! `session-latest.json`: written atomically, and read only if it is complete.

use crate::error::{Error, Exit};
use agentd_core::session::Session;
use agentd_failpoint as failpoint;
use agentd_files::own;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

pub const FILE: &str = "session-latest.json";

/// The file: a session and its hash.
#[derive(Deserialize)]
struct Sealed<'a> {
    format: &'a str,
    sha256: String,
    #[serde(borrow)]
    session: &'a RawValue,
}

const FORMAT: &str = "agentd-session";

/// Writes the first session of a conversation: the file and its name are on disk afterwards.
pub fn write(state_dir: &Path, session: &Session) -> Result<(), Error> {
    let synced = put(state_dir, session).and_then(|()| File::open(state_dir)?.sync_all());
    synced.map_err(|error| cannot_write(state_dir, &error))
}

/// Replaces the session by a newer one of the same conversation, atomically. After a power failure the older one may be
/// back, which does no harm: a resume takes the missing events from the journal.
pub fn replace(state_dir: &Path, session: &Session) -> Result<(), Error> {
    put(state_dir, session).map_err(|error| cannot_write(state_dir, &error))
}

fn cannot_write(state_dir: &Path, error: &io::Error) -> Error {
    let what = format!("cannot write {}", state_dir.join(FILE).display());
    Error::new(Exit::Unavailable, what)
        .because(error)
        .next("check free space and permissions of the directory; the journal next to the file is complete")
}

fn put(state_dir: &Path, session: &Session) -> io::Result<()> {
    let sealed = sealed(&serde_json::to_string(session)?);
    let new = state_dir.join(format!("{FILE}.new"));
    let mut file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    let (first, second) = sealed.as_bytes().split_at(sealed.len() / 2);
    failpoint::hit_of("before", "write", "checkpoint");
    file.write_all(first)?;
    failpoint::hit_of("in", "write", "checkpoint");
    file.write_all(second)?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    failpoint::hit_of("before", "rename", "checkpoint");
    fs::rename(&new, state_dir.join(FILE))?;
    failpoint::hit_of("after", "rename", "checkpoint");
    Ok(())
}

/// The form in which [`Sealed`] is written. The session is long and already JSON: it is not parsed or copied again.
fn sealed(session: &str) -> String {
    let sha256 = sha256(session);
    format!(r#"{{"format":"{FORMAT}","sha256":"{sha256}","session":{session}}}"#)
}

/// Why a session file cannot be resumed.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("it is truncated or was modified: {0}")]
    Damaged(String),
    #[error(transparent)]
    Session(#[from] agentd_core::session::SessionError),
}

pub fn read(path: &Path) -> Result<Session, Unusable> {
    let text = String::from_utf8(own::read(path)?)
        .map_err(|error| Unusable::Damaged(error.utf8_error().to_string()))?;
    let damaged = |error: serde_json::Error| Unusable::Damaged(error.to_string());
    let sealed: Sealed<'_> = serde_json::from_str(&text).map_err(damaged)?;
    if sealed.format != FORMAT {
        return Err(Unusable::Damaged(format!("its format is not {FORMAT}")));
    }
    if sealed.sha256 != sha256(sealed.session.get()) {
        let text = "its checksum does not match its content";
        return Err(Unusable::Damaged(text.to_owned()));
    }
    Ok(Session::parse(sealed.session.get())?)
}

fn sha256(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
