//! Long strings of a body are stored separately, under the hash of their content.

use crate::chain::{self, Hash, hex, unhex};
use crate::error::{Error, Result};
use serde_json::Value;

/// Strings longer than this are moved out of the event's row.
pub const APART_BYTES: usize = 8 * 1024;
/// The maximum size of an event, including its long strings.
pub const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;
// A reply of the largest size becomes one event.
const _: () = assert!(agentd_core::draft::MAX_REPLY <= MAX_EVENT_BYTES / 16 * 15);

/// A string that was taken out of a body.
#[derive(Debug)]
pub struct Text {
    pub hash: Hash,
    pub text: String,
}

/// A body without its long strings.
#[derive(Debug)]
pub struct Split {
    pub body: String,
    /// Where the strings belong in the body, as JSON: `[[JSON pointer, hash], …]`.
    pub apart: Option<String>,
    /// Each string once.
    pub texts: Vec<Text>,
}

/// Moves long strings out of a body.
pub fn split(json: String) -> Result<Split> {
    if json.len() > MAX_EVENT_BYTES {
        return Err(Error::TooLarge {
            what: "an event",
            size: json.len(),
            unit: "bytes",
            limit: MAX_EVENT_BYTES,
        });
    }
    let whole = |body| Split {
        body,
        apart: None,
        texts: Vec::new(),
    };
    if json.len() <= APART_BYTES {
        return Ok(whole(json));
    }
    let mut value: Value = serde_json::from_str(&json).map_err(Error::Encode)?;
    let mut taken = Vec::new();
    take_long_strings(&mut value, String::new(), &mut taken);
    if taken.is_empty() {
        return Ok(whole(json));
    }
    let mut places = Vec::new();
    let mut texts: Vec<Text> = Vec::new();
    for (pointer, text) in taken {
        let hash = chain::content_hash(text.as_bytes());
        places.push((pointer, hex(&hash)));
        if !texts.iter().any(|known| known.hash == hash) {
            texts.push(Text { hash, text });
        }
    }
    Ok(Split {
        body: value.to_string(),
        apart: Some(serde_json::to_string(&places).map_err(Error::Encode)?),
        texts,
    })
}

fn take_long_strings(value: &mut Value, at: String, taken: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) if text.len() > APART_BYTES => {
            taken.push((at, std::mem::take(text)));
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                take_long_strings(item, format!("{at}/{index}"), taken);
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                take_long_strings(item, format!("{at}/{key}"), taken);
            }
        }
        _ => {}
    }
}

/// Puts the strings back; `find` looks one up. None if one is missing or changed.
pub fn put_back(
    json: &str,
    apart: &str,
    mut find: impl FnMut(&Hash) -> Result<Option<String>>,
) -> Result<Option<Value>> {
    let places = serde_json::from_str::<Vec<(String, String)>>(apart);
    let (Ok(mut value), Ok(places)) = (serde_json::from_str::<Value>(json), places) else {
        return Ok(None);
    };
    for (pointer, hash) in places {
        let Some(hash) = unhex(&hash) else {
            return Ok(None);
        };
        let (Some(text), Some(slot)) = (find(&hash)?, value.pointer_mut(&pointer)) else {
            return Ok(None);
        };
        *slot = Value::String(text);
    }
    Ok(Some(value))
}

/// The hashes that an event refers to. None if the list cannot be read.
pub fn hashes(apart: &str) -> Option<Vec<String>> {
    let places: Vec<(String, String)> = serde_json::from_str(apart).ok()?;
    Some(places.into_iter().map(|(_, hash)| hash).collect())
}
