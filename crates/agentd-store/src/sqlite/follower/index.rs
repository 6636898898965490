//! The search index: the places of words, by the order of commits.

use super::Databases;
use crate::error::Result;
use crate::sqlite::row::{COLUMNS, IdParam, StoredEvent, agent_num};
use crate::store::Cursor;
use agentd_core::event::Kind;
use agentd_core::id::{AgentId, ConversationId};
use rusqlite::{Connection, params};

/// How far the follower has come.
pub fn position(derived: &Connection) -> Result<Cursor> {
    let position: i64 = derived
        .prepare_cached("SELECT position FROM follower")?
        .query_row([], |row| row.get(0))?;
    Ok(Cursor(position.unsigned_abs()))
}

pub fn add(databases: &Databases, rows: Vec<(AgentId, StoredEvent)>) -> Result<()> {
    let derived = databases.derived.unchecked_transaction()?;
    let mut last = None;
    {
        let mut insert =
            derived.prepare_cached("INSERT INTO words (rowid, text) VALUES (?1, ?2)")?;
        for (agent, row) in rows {
            let position = row.position;
            last = Some(position);
            if let Some(text) = words(databases, agent, row)? {
                insert.execute(params![position, text])?;
            }
        }
        derived
            .prepare_cached("UPDATE follower SET position = max(position, ?1)")?
            .execute([last])?;
    }
    derived.commit()?;
    Ok(())
}

/// What is indexed of an event. Taking it out again needs the very same text.
fn words(databases: &Databases, agent: AgentId, row: StoredEvent) -> Result<Option<String>> {
    let is_content = Kind::parse(&row.kind).is_some_and(Kind::is_content);
    if !is_content || row.body.is_none() {
        return Ok(None);
    }
    // What cannot be read cannot be found; `verify` reports it.
    let Ok(event) = row.try_decode(&databases.journal, agent)? else {
        return Ok(None);
    };
    let text = event.body.words().join("\n");
    Ok((!text.is_empty()).then_some(text))
}

/// Takes the words of a conversation out of the index.
pub fn forget(databases: &Databases, agent: AgentId, conversation: ConversationId) -> Result<()> {
    let Some(num) = agent_num(&databases.journal, agent)? else {
        return Ok(());
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM event WHERE agent = ?1 AND seq > 0 AND conversation = ?2
         ORDER BY seq"
    );
    let mut statement = databases.journal.prepare_cached(&sql)?;
    let mut rows = statement.query(params![num, IdParam(conversation.as_bytes())])?;
    let mut delete = databases
        .derived
        .prepare_cached("INSERT INTO words (words, rowid, text) VALUES ('delete', ?1, ?2)")?;
    while let Some(row) = rows.next()? {
        let row = StoredEvent::read(row)?;
        let position = row.position;
        if let Some(text) = words(databases, agent, row)? {
            delete.execute(params![position, text])?;
        }
    }
    Ok(())
}
