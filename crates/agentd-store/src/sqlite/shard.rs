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

/// Makes a shard unless it exists. The table comes first: a shard that is listed can be searched, also if another connection
/// looks in between or a crash comes in between.
pub fn make_shard(derived: &Connection, shard: i64) -> Result<()> {
    let exists: bool = derived
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM shard WHERE num = ?1)")?
        .query_row([shard], |row| row.get(0))?;
    if exists {
        return Ok(());
    }
    // The text is stored once, in the journal; the index has only positions.
    derived.execute_batch(&format!(
        "CREATE VIRTUAL TABLE IF NOT EXISTS words_{shard} USING fts5
             (text, content = '', columnsize = 0, tokenize = 'unicode61')"
    ))?;
    derived
        .prepare_cached("INSERT OR IGNORE INTO shard (num) VALUES (?1)")?
        .execute([shard])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A search that came between the two steps failed, and so did every search after a crash there.
    #[test]
    fn a_shard_is_listed_after_its_table_is_there() {
        let derived = Connection::open_in_memory().unwrap();
        derived
            .execute_batch("CREATE TABLE shard (num INTEGER PRIMARY KEY)")
            .unwrap();
        // The table cannot be made: nothing is listed.
        derived
            .execute_batch("CREATE TABLE words_1_data (x)")
            .unwrap();
        assert!(make_shard(&derived, 1).is_err());
        assert_eq!(shards(&derived).unwrap(), [0; 0]);
        // A crash came after the table.
        derived
            .execute_batch("CREATE VIRTUAL TABLE words_2 USING fts5 (text, content = '')")
            .unwrap();
        make_shard(&derived, 2).unwrap();
        make_shard(&derived, 2).unwrap();
        assert_eq!(shards(&derived).unwrap(), [2]);
        let sql = places_sql(2);
        let mut places = derived.prepare(&sql).unwrap();
        let found = places.query(rusqlite::params!["word", i64::MAX]).unwrap();
        drop(found);
    }
}
