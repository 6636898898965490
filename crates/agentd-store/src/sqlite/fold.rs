//! Reads an agent's journal and folds it to the agent's state.

use super::blobs;
use super::readers::Databases;
use super::row::{COLUMNS, EventRow, existing_agent_num, seq, sql_seq};
use super::snapshot::{self, Snapshot};
use super::sql_error::is_corrupt;
use crate::damage::{Damage, Unreadable};
use crate::error::Result;
use crate::rules::fold::{Folded, Folding};
use agentd_core::event::Event;
use agentd_core::id::{AgentId, Seq};
use agentd_core::state::AgentState;
use rusqlite::{Connection, params};

/// Where a fold begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the newest snapshot, if there is one.
    Snapshot,
    /// At the first event; every event is checked.
    Beginning,
}

/// Folds an agent's journal up to its head, or to where it is damaged.
pub fn fold(databases: &Databases, agent: AgentId, num: i64) -> Result<Folded> {
    let (folded, _) = fold_each(databases, agent, num, Start::Snapshot, |_| {})?;
    Ok(folded)
}

/// The same. Passes each event after the snapshot to `also`, and returns the snapshot that the fold started from.
pub fn fold_each(
    databases: &Databases,
    agent: AgentId,
    num: i64,
    start: Start,
    mut also: impl FnMut(&Event),
) -> Result<(Folded, Option<Snapshot>)> {
    let snapshot = match start {
        Start::Snapshot => snapshot::newest(databases, agent, num)?,
        Start::Beginning => None,
    };
    let mut folding = Folding::from(match &snapshot {
        Some(known) => known.folded(),
        None => Folded::empty(agent),
    });
    let journal = &databases.journal;
    let sql = format!("SELECT {COLUMNS} FROM event WHERE agent = ?1 AND seq > ?2 ORDER BY seq");
    let mut statement = journal.prepare_cached(&sql)?;
    let mut rows = statement.query(params![num, sql_seq(folding.head())])?;
    loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => break,
            // Events after a damaged page cannot be reached from here.
            Err(error) if is_corrupt(&error) => {
                folding.cut_off(Unreadable::Page, last_seq(journal, num));
                break;
            }
            Err(error) => return Err(error.into()),
        };
        match EventRow::read(row)? {
            Ok(row) => {
                let find = |hash: &_| blobs::read(journal, hash);
                if let Some(event) = folding.next(row.event, row.source, find)? {
                    also(&event);
                }
            }
            Err(reason) => folding.next_is_unreadable(reason),
        }
    }
    Ok((folding.finish(), snapshot))
}

/// The last event of an agent, from the index alone.
fn last_seq(journal: &Connection, num: i64) -> Seq {
    let last: rusqlite::Result<Option<i64>> = journal.query_row(
        "SELECT max(seq) FROM event WHERE agent = ?1",
        [num],
        |row| row.get(0),
    );
    last.ok().flatten().map_or(Seq::ZERO, seq)
}

/// The agent's state, without its window, and the damage of the journal.
pub fn state(databases: &Databases, agent: AgentId) -> Result<(AgentState, Option<Damage>)> {
    let num = existing_agent_num(&databases.journal, agent)?;
    let folded = fold(databases, agent, num)?;
    match folded.emptiness(agent) {
        Some(error) => Err(error),
        None => Ok((folded.state, folded.damage)),
    }
}
