//! Deletes the text of a conversation permanently; its events, checksums and costs stay.

use super::row::{IdParam, sql_seq};
use crate::error::Result;
use crate::rules::purge::streaming;
use agentd_core::event::Kind;
use agentd_core::id::{AgentId, ConversationId, Incarnation, Seq, TryId};
use agentd_core::state::AgentState;
use rusqlite::types::Value;
use rusqlite::{Connection, ToSql, params, params_from_iter};

/// The SQL condition for the events of a range of a conversation that have text to delete; [`which`] binds it.
pub fn with_words() -> String {
    let kinds = Kind::ALL.iter().filter(|kind| kind.is_content());
    let kinds: Vec<String> = kinds.map(|kind| format!("'{}'", kind.name())).collect();
    format!(
        "agent = ?1 AND seq BETWEEN ?2 AND ?3 AND conversation = ?4 AND body IS NOT NULL
         AND kind IN ({})",
        kinds.join(", ")
    )
}

pub fn which(num: i64, conversation: ConversationId, from: Seq, through: Seq) -> [Value; 4] {
    [
        Value::Integer(num),
        Value::Integer(sql_seq(from)),
        Value::Integer(sql_seq(through)),
        Value::Blob(conversation.as_bytes().to_vec()),
    ]
}

/// What was deleted.
#[derive(Clone, Copy, Default)]
pub struct Deleted {
    pub events: u64,
    pub blobs: u64,
}

/// Records that the text of a conversation must be deleted. If this process dies, the next one continues the deletion.
pub fn begin(journal: &Connection, num: i64, conversation: ConversationId) -> Result<()> {
    journal.execute(
        "INSERT OR IGNORE INTO purging (agent, conversation) VALUES (?1, ?2)",
        params![num, IdParam(conversation.as_bytes())],
    )?;
    Ok(())
}

/// The conversations whose text is still being deleted.
pub fn unfinished(journal: &Connection) -> Result<Vec<(AgentId, ConversationId)>> {
    let mut statement = journal.prepare_cached(
        "SELECT agent.id, purging.conversation FROM purging
         CROSS JOIN agent ON agent.num = purging.agent",
    )?;
    let rows = statement.query_map([], |row| {
        let agent = AgentId::from_bytes(row.get(0)?);
        Ok((agent, ConversationId::from_bytes(row.get(1)?)))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Deletes the text of a range of a conversation.
pub fn delete(
    journal: &Connection,
    num: i64,
    conversation: ConversationId,
    from: Seq,
    through: Seq,
) -> Result<Deleted> {
    let (words, which) = (with_words(), which(num, conversation, from, through));
    let parameters: Vec<&dyn ToSql> = which.iter().map(|value| value as &dyn ToSql).collect();
    delete_where(journal, &words, &parameters)
}

/// Deletes the text of the content events that a condition selects.
pub(super) fn delete_where(
    journal: &Connection,
    condition: &str,
    parameters: &[&dyn ToSql],
) -> Result<Deleted> {
    let positions = format!("SELECT position FROM event WHERE {condition}");
    let blobs = release_blobs(journal, &positions, parameters)?;
    let events = journal
        .prepare_cached(&format!(
            "UPDATE event SET body = NULL, apart = NULL, salt = NULL WHERE {condition}"
        ))?
        .execute(parameters)?;
    Ok(Deleted {
        events: events as u64,
        blobs,
    })
}

/// Deletes the quarantined events and the drafts, and records that the purge is complete.
pub fn finish(
    journal: &Connection,
    num: i64,
    state: &AgentState,
    conversation: ConversationId,
) -> Result<Deleted> {
    let blobs = delete_quarantined(journal, num, conversation)?;
    delete_drafts(journal, num, state)?;
    journal.execute(
        "DELETE FROM purging WHERE agent = ?1 AND conversation = ?2",
        params![num, IdParam(conversation.as_bytes())],
    )?;
    Ok(Deleted { events: 0, blobs })
}

fn delete_quarantined(journal: &Connection, num: i64, conversation: ConversationId) -> Result<u64> {
    let of_agent: i64 = journal.query_row(
        "SELECT count(*) FROM quarantine WHERE agent = ?1",
        [num],
        |row| row.get(0),
    )?;
    if of_agent == 0 {
        return Ok(0);
    }
    let parameters = params![num, IdParam(conversation.as_bytes())];
    let which = "agent = ?1 AND conversation = ?2";
    let positions = format!("SELECT position FROM quarantine WHERE {which}");
    let blobs = release_blobs(journal, &positions, parameters)?;
    keep_only(journal, "quarantine", &format!("NOT ({which})"), parameters)?;
    Ok(blobs)
}

fn delete_drafts(journal: &Connection, num: i64, state: &AgentState) -> Result<()> {
    // No try has the number zero: if none is streaming, no draft is kept.
    let TryId { incarnation, n } = streaming(state).unwrap_or(TryId {
        incarnation: Incarnation::default(),
        n: 0,
    });
    let parameters = params![num, incarnation.0 as i64, n as i64];
    keep_only(
        journal,
        "draft",
        "agent <> ?1 OR (incarnation, try) = (?2, ?3)",
        parameters,
    )
}

/// Rewrites a small table with the rows that stay. Deleting single rows is not enough: when SQLite moves a row, it may
/// leave a copy in the table's pages. Pages that are freed are overwritten completely.
fn keep_only(
    journal: &Connection,
    table: &str,
    which: &str,
    parameters: &[&dyn ToSql],
) -> Result<()> {
    let mut statement = journal.prepare(&format!("SELECT * FROM {table} WHERE {which}"))?;
    let columns = statement.column_count();
    let rows: Vec<Vec<Value>> = statement
        .query_map(parameters, |row| {
            (0..columns).map(|at| row.get(at)).collect()
        })?
        .collect::<rusqlite::Result<_>>()?;
    journal.execute(&format!("DELETE FROM {table}"), [])?;
    let places = vec!["?"; columns].join(", ");
    let mut put_back = journal.prepare(&format!("INSERT INTO {table} VALUES ({places})"))?;
    for row in rows {
        put_back.execute(params_from_iter(row))?;
    }
    Ok(())
}

/// Releases the blobs of some events, and blanks the ones that no other event uses.
fn release_blobs(journal: &Connection, positions: &str, parameters: &[&dyn ToSql]) -> Result<u64> {
    let mut statement = journal.prepare_cached(&format!(
        "SELECT DISTINCT blob FROM blob_use WHERE position IN ({positions})"
    ))?;
    let used: Vec<i64> = statement
        .query_map(parameters, |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    journal
        .prepare_cached(&format!(
            "DELETE FROM blob_use WHERE position IN ({positions})"
        ))?
        .execute(parameters)?;
    let mut blanked = 0;
    for blob in used {
        blanked += journal
            .prepare_cached(
                "UPDATE blob SET hash = NULL, size = 0, zstd = x'' WHERE num = ?1
                 AND NOT EXISTS (SELECT 1 FROM blob_use WHERE blob = ?1)",
            )?
            .execute([blob])?;
    }
    Ok(blanked as u64)
}
