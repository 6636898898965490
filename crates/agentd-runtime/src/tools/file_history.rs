//! What a file is before a call changes it, for the journal: see docs/design/025-file-history.md.

use super::context::{ToolContext, Within};
use super::failure::Failure;
use super::hash::{self, Hasher};
use super::replace::Target;
use agentd_core::event::{
    FileBefore, FileKept, KEPT_PART_BYTES, KeptBy, KeptContent, MAX_CALL_BYTES, MAX_KEPT_BYTES,
    NotKept,
};
use agentd_core::files::work::HASHED_BYTES;
use agentd_core::id::CallId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;

/// How much of a file is read at once.
const PIECE: usize = 64 * 1024;

/// A file as a call found it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Before {
    path: String,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    Absent,
    File {
        mode: u32,
        size: u64,
        hash: String,
        #[serde(with = "bytes_as_text")]
        bytes: Result<Vec<u8>, NotKept>,
    },
}

/// Bytes as a text, because a list of numbers would be several times as long.
mod bytes_as_text {
    use super::{NotKept, STANDARD};
    use base64::Engine as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
    use std::borrow::Cow;

    #[derive(Serialize, Deserialize)]
    enum Bytes<'a> {
        Text(Cow<'a, str>),
        Base64(String),
        None(NotKept),
    }

    pub fn serialize<S: Serializer>(
        bytes: &Result<Vec<u8>, NotKept>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let bytes = match bytes {
            Ok(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Bytes::Text(Cow::Borrowed(text)),
                Err(_) => Bytes::Base64(STANDARD.encode(bytes)),
            },
            Err(why) => Bytes::None(*why),
        };
        bytes.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Result<Vec<u8>, NotKept>, D::Error> {
        Ok(match Bytes::deserialize(from)? {
            Bytes::Text(text) => Ok(text.into_owned().into_bytes()),
            Bytes::Base64(text) => Ok(STANDARD.decode(text).map_err(de::Error::custom)?),
            Bytes::None(why) => Err(why),
        })
    }
}

/// The content of a file that was read once: its hash, and what is kept of it.
pub(super) struct Found {
    /// `None` if there is no file.
    pub hash: Option<String>,
    /// `None` if nothing is kept: the agent keeps no history, or the path cannot be written as text.
    pub before: Option<Before>,
}

/// Reads the file of a call that replaces its content.
pub(super) fn find(context: Within<'_>, target: &Target) -> Result<Found, Failure> {
    read(context, target).map_err(|error| target.cannot("read", &error))
}

fn read(context: Within<'_>, target: &Target) -> io::Result<Found> {
    let path = path_of(context, target);
    let Some(file) = hash::open(&target.path)? else {
        let state = State::Absent;
        return Ok(Found {
            hash: None,
            before: path.map(|path| Before { path, state }),
        });
    };
    let mode = file.metadata()?.permissions().mode() & 0o7777;
    // It may grow meanwhile.
    let mut file = file.take(HASHED_BYTES);
    let limit = path.as_ref().map_or(0, |_| limit(&context));
    let mut hasher = Hasher::default();
    let mut piece = vec![0; PIECE];
    let mut bytes = Ok(Vec::new());
    let mut size = 0;
    loop {
        let read = file.read(&mut piece)?;
        let Some(piece) = piece.get(..read).filter(|piece| !piece.is_empty()) else {
            break;
        };
        hasher.update(piece);
        size += piece.len() as u64;
        if size > limit {
            bytes = Err(NotKept::TooLarge);
        }
        if let Ok(bytes) = &mut bytes {
            bytes.extend_from_slice(piece);
        }
    }
    let hash = hasher.finish();
    let state = State::File {
        mode,
        size,
        hash: hash.clone(),
        bytes: bytes.and_then(|bytes| without_secret(&context, bytes)),
    };
    Ok(Found {
        hash: Some(hash),
        before: path.map(|path| Before { path, state }),
    })
}

/// The same for a content that the call has read already; `hash` is its hash.
pub(super) fn of_text(
    context: Within<'_>,
    target: &Target,
    text: String,
    hash: &str,
) -> Result<Option<Before>, Failure> {
    let Some(path) = path_of(context, target) else {
        return Ok(None);
    };
    let metadata = fs::metadata(&target.path);
    let metadata = metadata.map_err(|error| target.cannot("access", &error))?;
    let size = text.len() as u64;
    let state = State::File {
        mode: metadata.permissions().mode() & 0o7777,
        size,
        hash: hash.to_owned(),
        bytes: match size <= limit(&context) {
            true => without_secret(&context, text.into_bytes()),
            false => Err(NotKept::TooLarge),
        },
    };
    Ok(Some(Before { path, state }))
}

/// No event contains a secret of the agent.
fn without_secret(context: &ToolContext, bytes: Vec<u8>) -> Result<Vec<u8>, NotKept> {
    match context.secrets.are_in(&bytes) {
        true => Err(NotKept::Secret),
        false => Ok(bytes),
    }
}

/// The largest content that is kept.
fn limit(context: &ToolContext) -> u64 {
    context.file_history_bytes.min(MAX_KEPT_BYTES)
}

/// `None` if nothing about the file is kept.
fn path_of(context: Within<'_>, target: &Target) -> Option<String> {
    let path = target.path.to_str()?;
    // What no other process finds at its path is not part of the user's files.
    let is_kept = context.file_history_bytes > 0 && context.shares(&target.path);
    is_kept.then(|| path.to_owned())
}

/// How much one call may still keep: all of it is one append.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// As JSON.
    left: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            left: MAX_CALL_BYTES,
        }
    }
}

impl Budget {
    /// Names a file without its content if there is no room for it.
    pub fn fit(&mut self, mut before: Before) -> Before {
        if let State::File { bytes, .. } = &mut before.state
            && let Ok(content) = bytes
        {
            match self.left.checked_sub(encoded_bytes(content)) {
                Some(left) => self.left = left,
                None => *bytes = Err(NotKept::TooLarge),
            }
        }
        before
    }
}

/// An upper bound of what a content needs as JSON, in either form.
fn encoded_bytes(bytes: &[u8]) -> u64 {
    let is_escaped = |byte: &&u8| matches!(byte, b'"' | b'\\' | b'\t' | b'\r' | b'\n');
    let escaped = bytes.iter().filter(is_escaped).count();
    let base64 = bytes.len().div_ceil(3).saturating_mul(4);
    base64.max(bytes.len().saturating_add(escaped)) as u64
}

impl Before {
    /// How much it counts towards `limits.file_history_bytes`.
    pub const fn counted_bytes(&self) -> u64 {
        match &self.state {
            State::File {
                size, bytes: Ok(_), ..
            } => *size,
            _ => 0,
        }
    }

    /// The events that keep it.
    pub fn kept(self, call: &CallId) -> Vec<FileKept> {
        let befores = match self.state {
            State::Absent => vec![FileBefore::Absent],
            State::File {
                mode,
                size,
                hash,
                bytes,
            } => {
                let contents = match bytes {
                    Ok(bytes) => contents(bytes),
                    Err(why) => vec![KeptContent::NotKept { why }],
                };
                let before = |content| FileBefore::File {
                    mode,
                    size,
                    hash: hash.clone(),
                    content,
                };
                contents.into_iter().map(before).collect()
            }
        };
        let by = KeptBy::Call { call: call.clone() };
        FileKept::in_parts(&by, &self.path, befores)
    }
}

/// A content in parts: as text if it is one, otherwise in Base64.
fn contents(bytes: Vec<u8>) -> Vec<KeptContent> {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) if text.chars().all(is_plain) => return texts(text),
        Ok(text) => text.into_bytes(),
        Err(not_text) => not_text.into_bytes(),
    };
    let parts = bytes.chunks(KEPT_PART_BYTES);
    let parts = parts.map(|part| KeptContent::Base64 {
        base64: STANDARD.encode(part),
    });
    parts.collect()
}

fn is_plain(character: char) -> bool {
    !character.is_control() || matches!(character, '\t' | '\r' | '\n')
}

fn texts(text: String) -> Vec<KeptContent> {
    if text.len() <= KEPT_PART_BYTES {
        return vec![KeptContent::Text { text }];
    }
    let mut parts = Vec::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let end = rest.floor_char_boundary(KEPT_PART_BYTES);
        let (part, after) = rest.split_at(end);
        parts.push(KeptContent::Text {
            text: part.to_owned(),
        });
        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests;
