//! Reports what is at a path.

use super::Reports;
use super::state::{Seen, hash, look, mode, name_of};
use crate::held_dir::HeldDir;
use agentd_core::event::{FileState, KEPT_PART_BYTES, KeptContent, NotKept};
use agentd_core::files::work::{Found, Report};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

const TOO_LARGE: &str = "it is too large to be compared";

/// Up to which size a file is read.
pub struct Bounds {
    /// With its content in the report.
    pub largest: u64,
    /// For its hash.
    pub hashed: u64,
}

/// An error is one of the output. What is wrong with the path is reported.
pub fn report(path: &str, bounds: &Bounds, reports: &mut Reports<impl Write>) -> io::Result<()> {
    let found = match look_at(Path::new(path)) {
        Ok(Seen::File(file)) => of_file(file, bounds, reports)?,
        Ok(Seen::Absent) => known(FileState::Absent),
        Ok(Seen::Symlink(target)) => known(FileState::Symlink { target }),
        Ok(Seen::Other(what)) => Found::Other {
            what: what.to_owned(),
        },
        Ok(Seen::Blocked(what)) => Found::Blocked { what },
        Err(error) => failed(&error),
    };
    let path = path.to_owned();
    reports.say(&Report::Found { path, found })
}

fn known(state: FileState) -> Found {
    Found::Known {
        state,
        size: 0,
        not_kept: None,
    }
}

fn failed(error: &io::Error) -> Found {
    Found::Failed {
        why: error.to_string(),
        size: None,
    }
}

fn look_at(path: &Path) -> io::Result<Seen> {
    match HeldDir::of(path) {
        Ok(held_dir) => look(&held_dir, name_of(path)?),
        // Its directory does not exist.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Seen::Absent),
        Err(error) => above(path).map(Seen::Blocked).ok_or(error),
    }
}

/// What is above the path and is not a directory: `/srv/app is a symlink`.
fn above(path: &Path) -> Option<String> {
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    above.into_iter().find_map(|dir| {
        let metadata = fs::symlink_metadata(dir).ok()?;
        let what = match metadata.is_symlink() {
            _ if metadata.is_dir() => return None,
            true => "a symlink",
            false => "not a directory",
        };
        Some(format!("{} is {what}", dir.display()))
    })
}

/// The parts of the content come first: the hash is known at the end.
fn of_file(
    mut file: File,
    bounds: &Bounds,
    reports: &mut Reports<impl Write>,
) -> io::Result<Found> {
    let metadata = match (mode(&file), file.metadata()) {
        (Ok(mode), Ok(metadata)) => (mode, metadata.len()),
        (Err(error), _) | (_, Err(error)) => return Ok(failed(&error)),
    };
    let (mode, length) = metadata;
    if length > bounds.hashed {
        return Ok(Found::Failed {
            why: TOO_LARGE.to_owned(),
            size: Some(length),
        });
    }
    let is_kept = length <= bounds.largest;
    let mut part = Vec::new();
    let mut broken = Ok(());
    let mut left = bounds.hashed;
    let read = hash(&mut file, |piece| {
        // Something may append to it while it is read.
        left = left
            .checked_sub(piece.len() as u64)
            .ok_or_else(|| io::Error::other(TOO_LARGE))?;
        if !is_kept {
            return Ok(());
        }
        let mut piece = piece;
        while !piece.is_empty() {
            let room = KEPT_PART_BYTES - part.len();
            let (now, later) = piece.split_at(piece.len().min(room));
            part.extend_from_slice(now);
            piece = later;
            if part.len() == KEPT_PART_BYTES {
                let content = content(&part);
                broken = reports.say(&Report::Part { content });
                part.clear();
            }
        }
        Ok(())
    });
    broken?;
    let (hash, size) = match read {
        Ok(read) => read,
        Err(error) => return Ok(failed(&error)),
    };
    if is_kept && (!part.is_empty() || size == 0) {
        let content = content(&part);
        reports.say(&Report::Part { content })?;
    }
    Ok(Found::Known {
        state: FileState::File { mode, hash },
        size,
        not_kept: (!is_kept).then_some(NotKept::TooLarge),
    })
}

/// The content as the journal keeps it: as text, if it is plain text.
fn content(bytes: &[u8]) -> KeptContent {
    let is_plain = |text: &&str| {
        let mut controls = text.chars().filter(|c| c.is_control());
        controls.all(|c| matches!(c, '\t' | '\r' | '\n'))
    };
    match std::str::from_utf8(bytes).ok().filter(is_plain) {
        Some(text) => KeptContent::Text {
            text: text.to_owned(),
        },
        None => KeptContent::Base64 {
            base64: STANDARD.encode(bytes),
        },
    }
}
