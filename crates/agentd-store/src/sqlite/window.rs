//! Loads the window of a conversation, from the newest usable skeleton or from the beginning.

use super::fold::{self, Start};
use super::readers::Databases;
use super::row::{COLUMNS, EventRow, IdParam, existing_agent_num, sql_seq};
use super::snapshot;
use super::sql_error::is_corrupt;
use crate::damage::Unreadable;
use crate::error::{Error, Result};
use crate::rules::lineage::{Part, lineage};
use agentd_core::event::{Event, Position};
use agentd_core::id::{AgentId, ConversationId, Seq};
use agentd_core::state::{AgentState, Segment};
use agentd_core::window::{Skeleton, Window};
use rusqlite::{Connection, params};
use std::collections::BTreeMap;

/// What the model saw of a conversation up to some event.
pub fn load(
    databases: &Databases,
    agent: AgentId,
    conversation: ConversationId,
    through: Seq,
) -> Result<Window> {
    let moment = databases.journal.unchecked_transaction()?;
    let (state, damage) = fold::state(databases, agent)?;
    if state.tree.get(conversation).is_none() {
        return Err(Error::NoSuchConversation {
            agent,
            conversation,
        });
    }
    if let Some(damage) = damage.filter(|damage| damage.from <= through) {
        return Err(Error::of_damage(agent, &damage));
    }
    let window = fold(databases, &state, conversation, through)?;
    // Nothing was written, and a commit would fail after a damaged page.
    drop(moment);
    Ok(window)
}

/// Folds the window of a conversation, from the newest usable snapshot on.
pub fn fold(
    databases: &Databases,
    state: &AgentState,
    conversation: ConversationId,
    through: Seq,
) -> Result<Window> {
    fold_from(databases, state, conversation, through, Start::Snapshot)
}

pub fn fold_from(
    databases: &Databases,
    state: &AgentState,
    conversation: ConversationId,
    through: Seq,
    from: Start,
) -> Result<Window> {
    let parts = lineage(databases, state, conversation, through.min(state.head))?;
    let mut window = Window::new();
    let mut start = 0;
    let mut after = Seq::ZERO;
    if from == Start::Snapshot {
        for (index, part) in parts.iter().enumerate().rev() {
            if let Some(found) = snapshot::of_conversation(databases, &part.segment)? {
                window = restore(&databases.journal, &found.skeleton)?;
                start = index;
                after = found.state.head;
                break;
            }
        }
    }
    for part in parts.get(start..).unwrap_or_default() {
        fold_part(&databases.journal, part, after, &mut window)?;
        after = Seq::ZERO;
    }
    Ok(window)
}

fn fold_part(journal: &Connection, part: &Part, after: Seq, window: &mut Window) -> Result<()> {
    let Segment {
        agent,
        conversation,
        through,
    } = part.segment;
    let num = existing_agent_num(journal, agent)?;
    let after = after.max(Seq(part.began.0.saturating_sub(1)));
    check_whole(journal, agent, num, after, through)?;
    let sql = format!(
        "SELECT {COLUMNS} FROM event WHERE agent = ?1 AND seq > ?2 AND seq <= ?3
             AND conversation = ?4 ORDER BY seq"
    );
    let mut statement = journal.prepare_cached(&sql)?;
    let mut rows = statement.query(params![
        num,
        sql_seq(after),
        sql_seq(through),
        IdParam(conversation.as_bytes()),
    ])?;
    let mut next = after.next();
    while let Some(row) = or_page(rows.next(), agent, next)? {
        let event = EventRow::read_of(row, agent)?.decode(journal, agent)?;
        next = event.seq.next();
        window.apply(&event);
    }
    Ok(())
}

/// An unreadable page is damage of the agent whose events it holds.
fn or_page<T>(read: rusqlite::Result<T>, agent: AgentId, seq: Seq) -> Result<T> {
    read.map_err(|error| match is_corrupt(&error) {
        true => Error::Damaged {
            agent,
            seq,
            reason: Unreadable::Page,
        },
        false => error.into(),
    })
}

/// An error if any event of the range is missing: a window must not lack a message unnoticed.
fn check_whole(
    journal: &Connection,
    agent: AgentId,
    num: i64,
    after: Seq,
    through: Seq,
) -> Result<()> {
    let count: i64 = journal
        .prepare_cached("SELECT count(*) FROM event WHERE agent = ?1 AND seq > ?2 AND seq <= ?3")?
        .query_row(params![num, sql_seq(after), sql_seq(through)], |row| {
            row.get(0)
        })?;
    if count.unsigned_abs() == through.0.saturating_sub(after.0) {
        return Ok(());
    }
    Err(Error::Damaged {
        agent,
        seq: through,
        reason: Unreadable::Gap,
    })
}

/// Puts the text back into a skeleton.
pub fn restore(journal: &Connection, skeleton: &Skeleton) -> Result<Window> {
    let sql = format!("SELECT {COLUMNS} FROM event WHERE agent = ?1 AND seq = ?2");
    let mut statement = journal.prepare_cached(&sql)?;
    let mut nums = BTreeMap::new();
    let mut events: BTreeMap<Position, Event> = BTreeMap::new();
    for at in skeleton.sources() {
        let num = match nums.get(&at.agent) {
            Some(num) => *num,
            None => {
                let num = existing_agent_num(journal, at.agent)?;
                nums.insert(at.agent, num);
                num
            }
        };
        let mut rows = statement.query(params![num, sql_seq(at.seq)])?;
        if let Some(row) = or_page(rows.next(), at.agent, at.seq)? {
            let stored = EventRow::read_of(row, at.agent)?;
            events.insert(at, stored.decode(journal, at.agent)?);
        }
    }
    Window::restore(skeleton, |at| events.get(&at)).map_err(|missing| Error::Damaged {
        agent: missing.0.agent,
        seq: missing.0.seq,
        reason: Unreadable::Gap,
    })
}
