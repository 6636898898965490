//! Long strings of a body are stored separately: compressed, deduplicated, and limited in size.

use super::sql_error::is_corrupt;
use crate::chain::{self, Hash, hex, unhex};
use crate::error::{Error, Result};
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::Value;

/// Strings longer than this are moved out of the event's row.
pub const APART_BYTES: usize = 8 * 1024;
/// The maximum size of an event in total.
pub const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;

const LEVEL: i32 = 3;

/// A string that was taken out of a body.
#[derive(Debug)]
pub struct Blob {
    pub hash: Hash,
    pub size: usize,
    pub zstd: Vec<u8>,
}

/// A body as it goes into its row.
#[derive(Debug)]
pub struct Split {
    pub body: String,
    /// Where the blobs belong in the body, as JSON.
    pub apart: Option<String>,
    pub blobs: Vec<Blob>,
}

/// Moves long strings out of a body. Runs on the sender's thread, not on the writer's.
pub fn split(json: String) -> Result<Split> {
    if json.len() > MAX_EVENT_BYTES {
        return Err(Error::TooLarge {
            what: "an event",
            size: json.len(),
            limit: MAX_EVENT_BYTES,
        });
    }
    let whole = |body| Split {
        body,
        apart: None,
        blobs: Vec::new(),
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
    let mut blobs: Vec<Blob> = Vec::new();
    for (pointer, text) in taken {
        let hash = chain::content_hash(text.as_bytes());
        places.push((pointer, hex(&hash)));
        if !blobs.iter().any(|blob| blob.hash == hash) {
            blobs.push(Blob {
                hash,
                size: text.len(),
                zstd: zstd::bulk::compress(text.as_bytes(), LEVEL).map_err(Error::ExportIo)?,
            });
        }
    }
    Ok(Split {
        body: value.to_string(),
        apart: Some(serde_json::to_string(&places).map_err(Error::Encode)?),
        blobs,
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

/// Puts the strings back. None if one is missing or changed.
pub fn put_back(connection: &Connection, json: &str, apart: &str) -> Result<Option<Value>> {
    let places = serde_json::from_str::<Vec<(String, String)>>(apart);
    let (Ok(mut value), Ok(places)) = (serde_json::from_str::<Value>(json), places) else {
        return Ok(None);
    };
    for (pointer, hash) in places {
        let Some(hash) = unhex(&hash) else {
            return Ok(None);
        };
        let (Some(text), Some(slot)) = (read(connection, &hash)?, value.pointer_mut(&pointer))
        else {
            return Ok(None);
        };
        *slot = Value::String(text);
    }
    Ok(Some(value))
}

pub fn read(connection: &Connection, hash: &Hash) -> Result<Option<String>> {
    let mut statement = connection.prepare_cached("SELECT size, zstd FROM blob WHERE hash = ?1")?;
    let found = statement
        .query_row([hash], |row| {
            Ok((row.get::<_, i64>(0)?.unsigned_abs() as usize, row.get(1)?))
        })
        .optional();
    let found: Option<(usize, Vec<u8>)> = match found {
        // A blob on a damaged page counts as missing, which affects only its own event.
        Err(error) if is_corrupt(&error) => None,
        found => found?,
    };
    let Some((size, packed)) = found else {
        return Ok(None);
    };
    let text = zstd::bulk::decompress(&packed, size.min(MAX_EVENT_BYTES))
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .filter(|text| chain::content_hash(text.as_bytes()) == *hash);
    Ok(text)
}

/// The hashes that an event refers to. None if the list cannot be read.
pub fn hashes(apart: &str) -> Option<Vec<String>> {
    let places: Vec<(String, String)> = serde_json::from_str(apart).ok()?;
    Some(places.into_iter().map(|(_, hash)| hash).collect())
}

/// Stores one string.
pub fn store(connection: &Connection, hash: &Hash, text: &str) -> Result<()> {
    let zstd = zstd::bulk::compress(text.as_bytes(), LEVEL).map_err(Error::ExportIo)?;
    connection
        .prepare_cached("INSERT OR IGNORE INTO blob (hash, size, zstd) VALUES (?1, ?2, ?3)")?
        .execute(params![hash, text.len() as i64, zstd])?;
    Ok(())
}

/// Blanks a string that no event uses.
pub fn drop_unused(connection: &Connection, hash: &Hash) -> Result<()> {
    connection
        .prepare_cached(
            "UPDATE blob SET hash = NULL, size = 0, zstd = x'' WHERE hash = ?1
             AND NOT EXISTS (SELECT 1 FROM blob_use WHERE blob = blob.num)",
        )?
        .execute([hash])?;
    Ok(())
}

/// Records which strings the event at `position` uses.
pub fn refer(connection: &Connection, position: i64, apart: &str) -> Result<()> {
    let damaged = || Error::BadExport("an unreadable list of blobs".to_owned());
    for hash in hashes(apart).ok_or_else(damaged)? {
        let hash: Hash = unhex(&hash).ok_or_else(damaged)?;
        let referred = connection
            .prepare_cached(REFER)?
            .execute(params![position, hash])?;
        if referred == 0 {
            return Err(Error::BadExport("a blob is missing".to_owned()));
        }
    }
    Ok(())
}

const REFER: &str = "INSERT OR REPLACE INTO blob_use (position, blob)
                     SELECT ?1, num FROM blob WHERE hash = ?2";

/// Stores the blobs of the event at `position`; content that exists already is only referenced.
pub fn keep(connection: &Connection, position: i64, blobs: &[Blob]) -> rusqlite::Result<()> {
    for blob in blobs {
        connection
            .prepare_cached("INSERT OR IGNORE INTO blob (hash, size, zstd) VALUES (?1, ?2, ?3)")?
            .execute(params![blob.hash, blob.size as i64, blob.zstd])?;
        connection
            .prepare_cached(REFER)?
            .execute(params![position, blob.hash])?;
    }
    Ok(())
}
