//! Contents of files that the journal keeps.

use crate::daemon::Daemon;
use crate::error::{Error, Kind, Result};
use crate::spawn::blocking;
use agentd_core::event::{Body, FileBefore, FileKept, KeptContent, Position};
use agentd_core::id::Seq;
use agentd_store::ReadQuery;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The bytes of one part.
pub fn bytes(content: &KeptContent) -> Option<Vec<u8>> {
    match content {
        KeptContent::Text { text } => Some(text.as_bytes().to_vec()),
        KeptContent::Base64 { base64 } => STANDARD.decode(base64).ok(),
        KeptContent::NotKept { .. } => None,
    }
}

/// One part of a kept file, and how many there are. None if it is no longer there.
async fn part(daemon: &Daemon, at: Position, number: u32) -> Result<Option<(Vec<u8>, u32)>> {
    let before = Seq((at.seq.0 + u64::from(number)).saturating_sub(1));
    let query = ReadQuery::all(at.agent, before, 1);
    let page = daemon.store.read(query).await?;
    let Some(Body::FileKept(kept)) = page.events.into_iter().next().map(|event| event.body) else {
        return Ok(None);
    };
    let bytes = part_of(&kept).filter(|_| kept.part == number);
    Ok(bytes.map(|bytes| (bytes, kept.parts)))
}

fn part_of(kept: &FileKept) -> Option<Vec<u8>> {
    match &kept.before {
        FileBefore::File { content, .. } => bytes(content),
        FileBefore::Absent => Some(Vec::new()),
        FileBefore::Symlink { target } => Some(target.as_bytes().to_vec()),
    }
}

/// The whole content; none if it is no longer there.
pub async fn load(daemon: &Daemon, at: Position) -> Result<Option<Vec<u8>>> {
    let mut whole = Vec::new();
    let mut number = 0;
    loop {
        let Some((bytes, parts)) = part(daemon, at, number).await? else {
            return Ok(None);
        };
        whole.extend(bytes);
        number += 1;
        if number >= parts {
            return Ok(Some(whole));
        }
    }
}

/// Writes the content to a new file, one part after the other. False if the content is no longer there.
pub async fn write(daemon: &Daemon, at: Position, to: &Path) -> Result<bool> {
    let mut number = 0;
    loop {
        let Some((bytes, parts)) = part(daemon, at, number).await? else {
            return Ok(false);
        };
        let to = to.to_owned();
        let written = blocking(move || append(to, number == 0, &bytes)).await;
        written.map_err(|error| unwritable(&error))?;
        number += 1;
        if number >= parts {
            return Ok(true);
        }
    }
}

fn append(to: PathBuf, is_first: bool, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600);
    match is_first {
        true => options.write(true).truncate(true),
        false => options.append(true),
    };
    options.open(to)?.write_all(bytes)
}

pub fn unwritable(error: &io::Error) -> Error {
    let what = "the contents to restore cannot be written to the state directory";
    Error::new(Kind::Unavailable, what).because(error)
}
