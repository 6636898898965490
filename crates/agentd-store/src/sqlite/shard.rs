//! The tables of the search index: one shard for each range of the order of commits.

use crate::error::Result;
use rusqlite::Connection;

/// Positions in one shard: small enough to be refilled quickly, large enough that there are few.
pub const SHARD: i64 = 16_384;

pub const fn shard_of(position: i64) -> i64 {
    position / SHARD
}

/// The existing shards, newest first.
pub fn shards(derived: &Connection) -> Result<Vec<i64>> {
    let mut statement = derived.prepare_cached("SELECT num FROM shard ORDER BY num DESC")?;
    let shards = statement.query_map([], |row| row.get(0))?;
    Ok(shards.collect::<rusqlite::Result<_>>()?)
}

/// The positions in a shard that match, newest first.
pub fn places_sql(shard: i64) -> String {
    format!(
        "SELECT rowid FROM words_{shard} WHERE words_{shard} MATCH ?1 AND rowid < ?2
         ORDER BY rowid DESC"
    )
}

pub fn make_shard(derived: &Connection, shard: i64) -> Result<()> {
    let made = derived
        .prepare_cached("INSERT OR IGNORE INTO shard (num) VALUES (?1)")?
        .execute([shard])?;
    if made > 0 {
        // The text is stored once, in the journal; the index has only positions.
        derived.execute_batch(&format!(
            "CREATE VIRTUAL TABLE words_{shard} USING fts5
                 (text, content = '', columnsize = 0, tokenize = 'unicode61')"
        ))?;
    }
    Ok(())
}
