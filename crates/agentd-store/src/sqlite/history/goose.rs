//! The tables of goose.

use super::{RECORD_BYTES, json, object, pass_on};
use agentd_core::import_history::Record;
use rusqlite::Connection;
use serde_json::{Value, json};

pub(super) const TABLES: [&str; 2] = ["sessions", "messages"];
pub(super) const SESSIONS: &str = "SELECT id FROM sessions ORDER BY created_at, id";

pub(super) fn records(
    connection: &Connection,
    session: &str,
    each: &mut dyn FnMut(Record<'_>),
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("SELECT * FROM sessions WHERE id = ?1")?;
    let mut rows = statement.query([session])?;
    if let Some(row) = rows.next()? {
        let mut found = object(row)?;
        let config = found.remove("model_config_json");
        let config = json(config.as_ref().and_then(Value::as_str));
        found.insert("model_config".to_owned(), config);
        pass_on(&found.into(), each);
    }
    let mut statement = connection.prepare(
        "SELECT role, created_timestamp, length(content_json),
                CASE WHEN length(content_json) <= ?2 THEN content_json END AS content_json,
                metadata_json
         FROM messages WHERE session_id = ?1 ORDER BY id",
    )?;
    let mut rows = statement.query(rusqlite::params![session, RECORD_BYTES])?;
    while let Some(row) = rows.next()? {
        if row.get::<_, i64>(2)? > RECORD_BYTES {
            each(Record::TooLong);
            continue;
        }
        let content = row.get::<_, Option<String>>(3)?;
        match json(content.as_deref()) {
            Value::Null => each(Record::Text(b"damaged")),
            content => pass_on(
                &json!({
                    "role": row.get::<_, String>(0)?,
                    "created": row.get::<_, i64>(1)?,
                    "content": content,
                    "metadata": json(row.get::<_, Option<String>>(4)?.as_deref()),
                }),
                each,
            ),
        }
    }
    Ok(())
}
