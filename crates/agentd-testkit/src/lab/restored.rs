//! The journals of a restored home, read from its database without the program, and recorded in the format of an export.

use super::testbed::{Result, Stuck, Testbed};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use uuid::Uuid;

/// Records the journals of all agents of a home that no daemon uses. `number` is the number of the restore.
pub fn record(testbed: &Testbed, home: &Path, number: usize) -> Result<()> {
    let file = home.join("journal.db");
    let journals = journals(&file)
        .map_err(|error| Stuck::Wrong(format!("{} cannot be read: {error}", file.display())))?;
    for (agent, lines) in journals {
        let mut text = String::new();
        for line in lines {
            let _fits = writeln!(text, "{line}");
        }
        let to = format!("restored/{number}.{agent}.jsonl");
        fs::write(testbed.record.dir().join(to), text)?;
    }
    Ok(())
}

/// The agents that have events, and the lines of their exports.
fn journals(path: &Path) -> rusqlite::Result<Vec<(String, Vec<Value>)>> {
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let mut statement = db.prepare("SELECT num, id FROM agent ORDER BY num")?;
    let agents = statement.query_map([], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, [u8; 16]>(1)?))
    })?;
    let mut journals = Vec::new();
    for agent in agents {
        let (num, id) = agent?;
        let events = events(&db, num)?;
        if events.is_empty() {
            continue;
        }
        let agent = text_of(id);
        let end = json!({"line": "end", "events": events.len()});
        let mut lines = vec![
            json!({"line": "export", "agent": agent}),
            json!({"line": "journal", "agent": agent}),
        ];
        lines.extend(blobs(&db, num)?);
        lines.extend(events);
        lines.push(end);
        journals.push((agent, lines));
    }
    Ok(journals)
}

fn text_of(id: [u8; 16]) -> String {
    Uuid::from_bytes(id).to_string()
}

fn events(db: &Connection, agent: i64) -> rusqlite::Result<Vec<Value>> {
    let mut statement = db.prepare(
        "SELECT seq, at, conversation, turn, kind, body, apart FROM event WHERE agent = ?1 ORDER BY seq",
    )?;
    let rows = statement.query_map([agent], |row| {
        // Null if it was purged.
        let body: Option<String> = row.get(5)?;
        let body = body.map(|text| {
            let read = serde_json::from_str::<Value>(&text);
            read.unwrap_or(Value::String(text))
        });
        Ok(json!({
            "line": "event",
            "seq": row.get::<_, i64>(0)?,
            "at": row.get::<_, i64>(1)?,
            "conversation": text_of(row.get(2)?),
            "turn": row.get::<_, Option<[u8; 16]>>(3)?.map(text_of),
            "kind": row.get::<_, String>(4)?,
            "body": body,
            "apart": row.get::<_, Option<String>>(6)?,
        }))
    })?;
    rows.collect()
}

/// The strings that are stored separately. One that cannot be unpacked is left out, and the checker misses it.
fn blobs(db: &Connection, agent: i64) -> rusqlite::Result<Vec<Value>> {
    let mut statement = db.prepare(
        "SELECT DISTINCT blob.hash, blob.size, blob.zstd FROM event
         JOIN blob_use ON blob_use.position = event.position
         JOIN blob ON blob.num = blob_use.blob
         WHERE event.agent = ?1 AND blob.hash IS NOT NULL",
    )?;
    let rows = statement.query_map([agent], |row| {
        let (hash, size): (Vec<u8>, i64) = (row.get(0)?, row.get(1)?);
        let packed: Vec<u8> = row.get(2)?;
        Ok(blob(&hash, size, &packed))
    })?;
    let mut lines = Vec::new();
    for line in rows {
        lines.extend(line?);
    }
    Ok(lines)
}

fn blob(hash: &[u8], size: i64, packed: &[u8]) -> Option<Value> {
    let size = usize::try_from(size).ok()?;
    let text = zstd::bulk::decompress(packed, size).ok()?;
    let text = String::from_utf8(text).ok()?;
    let mut hex = String::new();
    for byte in hash {
        let _fits = write!(hex, "{byte:02x}");
    }
    Some(json!({"line": "blob", "hash": hex, "text": text}))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: [u8; 16] = [1; 16];

    /// The columns that are read, as the store has them.
    fn database(path: &Path) {
        let db = Connection::open(path).unwrap();
        db.execute_batch(
            "CREATE TABLE agent (num INTEGER PRIMARY KEY, id BLOB NOT NULL);
             CREATE TABLE event (position INTEGER PRIMARY KEY, agent INTEGER, seq INTEGER, at INTEGER,
                                 conversation BLOB, turn BLOB, kind TEXT, body TEXT, apart TEXT);
             CREATE TABLE blob (num INTEGER PRIMARY KEY, hash BLOB, size INTEGER, zstd BLOB);
             CREATE TABLE blob_use (position INTEGER, blob INTEGER);",
        )
        .unwrap();
        let text = "long ".repeat(2000);
        let packed = zstd::bulk::compress(text.as_bytes(), 3).unwrap();
        let size = i64::try_from(text.len()).unwrap();
        db.execute(
            "INSERT INTO agent VALUES (1, ?1), (2, ?2)",
            (AGENT, [2_u8; 16]),
        )
        .unwrap();
        db.execute(
            "INSERT INTO blob VALUES (7, ?1, ?2, ?3)",
            ([0xab_u8, 0x01], size, packed),
        )
        .unwrap();
        db.execute_batch("INSERT INTO blob_use VALUES (11, 7)")
            .unwrap();
        let insert = "INSERT INTO event VALUES (?1, 1, ?2, 5, ?3, ?4, ?5, ?6, ?7)";
        let none = None::<[u8; 16]>;
        let apart = Some(r#"[["/text","ab01"]]"#);
        let body = Some(r#"{"text":""}"#);
        db.execute(insert, (11, 1, [3_u8; 16], none, "note", body, apart))
            .unwrap();
        let turn = Some([4_u8; 16]);
        let (body, apart) = (None::<&str>, None::<&str>);
        db.execute(insert, (12, 2, [3_u8; 16], turn, "message", body, apart))
            .unwrap();
    }

    #[test]
    fn a_journal_is_written_like_an_export() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.db");
        database(&path);
        let all = journals(&path).unwrap();
        // The second agent has no events.
        assert_eq!(all.len(), 1);
        let (agent, lines) = &all[0];
        assert_eq!(agent, "01010101-0101-0101-0101-010101010101");
        let kinds: Vec<&str> = lines.iter().filter_map(|it| it["line"].as_str()).collect();
        assert_eq!(
            kinds,
            ["export", "journal", "blob", "event", "event", "end"]
        );
        assert_eq!(lines[2]["hash"], "ab01");
        assert_eq!(lines[2]["text"], "long ".repeat(2000));
        assert_eq!(lines[3]["body"], json!({"text": ""}));
        assert_eq!(lines[3]["turn"], Value::Null);
        assert_eq!(lines[4]["body"], Value::Null);
        assert_eq!(lines[4]["turn"], "04040404-0404-0404-0404-040404040404");
        assert_eq!(lines[5]["events"], 2);
    }
}
