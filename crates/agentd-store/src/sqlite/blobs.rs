//! The strings that are stored separately from their events: compressed, each once.

use super::sql_error::is_corrupt;
use crate::apart::{self, MAX_EVENT_BYTES, hashes};
use crate::chain::{self, Hash, unhex};
use crate::error::{Error, Result};
use rusqlite::{Connection, OptionalExtension as _, params};

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

/// Moves long strings out of a body, and compresses them. Runs on the sender's thread, not on the writer's.
pub fn split(json: String) -> Result<Split> {
    let apart::Split { body, apart, texts } = apart::split(json)?;
    let mut blobs = Vec::with_capacity(texts.len());
    for apart::Text { hash, text } in texts {
        blobs.push(Blob {
            hash,
            size: text.len(),
            zstd: zstd::bulk::compress(text.as_bytes(), LEVEL).map_err(Error::ExportIo)?,
        });
    }
    Ok(Split { body, apart, blobs })
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
