//! An agent as it is now: a snapshot and the tail after it. Costs the window, not the history.

use super::follower::snapshot::{self, Snapshot};
use super::readers::Databases;
use super::row::{COLUMNS, StoredEvent, existing_agent_num, sql_seq};
use crate::chain::{GENESIS, Hash};
use crate::error::{Error, Result, Unreadable};
use crate::store::{Damage, Loaded};
use agentd_core::event::{Event, Position};
use agentd_core::id::{AgentId, ConversationId, Seq};
use agentd_core::state::{AgentState, Segment};
use agentd_core::window::{Skeleton, Window};
use rusqlite::{Connection, params};
use std::collections::BTreeMap;

/// The first fold, and what is needed to go on with it.
pub struct Folded {
    pub state: AgentState,
    pub chain: Hash,
    pub damage: Option<Damage>,
    /// The snapshot it started from.
    start: Option<Snapshot>,
}

/// Folds an agent's journal up to its head, or to where it is damaged.
pub fn fold(databases: &Databases, agent: AgentId, num: i64) -> Result<Folded> {
    fold_each(databases, agent, num, |_| {})
}

/// The same, and shows each event behind the snapshot to `also`.
fn fold_each(
    databases: &Databases,
    agent: AgentId,
    num: i64,
    mut also: impl FnMut(&Event),
) -> Result<Folded> {
    let start = snapshot::newest(databases, agent, num)?;
    let mut folded = Folded {
        state: start
            .as_ref()
            .map_or_else(|| AgentState::new(agent), |start| start.state.clone()),
        chain: start.as_ref().map_or(GENESIS, |start| start.chain),
        damage: None,
        start,
    };
    let journal = &databases.journal;
    let sql = format!("SELECT {COLUMNS} FROM event WHERE agent = ?1 AND seq > ?2 ORDER BY seq");
    let mut statement = journal.prepare_cached(&sql)?;
    let mut rows = statement.query(params![num, sql_seq(folded.state.head)])?;
    let mut damaged: Option<(Seq, Unreadable)> = None;
    let mut last = folded.state.head;
    while let Some(row) = rows.next()? {
        let expected = folded.state.head.next();
        let stored = match StoredEvent::read(row) {
            Ok(stored) => stored,
            // A column of another type than ours: as damaged as a wrong checksum.
            Err(
                rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::IntegralValueOutOfRange(..),
            ) => {
                damaged.get_or_insert((expected, Unreadable::BodyChanged));
                last = Seq(last.0 + 1);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        last = stored.seq;
        if damaged.is_some() {
            continue;
        }
        let chain = stored.chain;
        let readable = match stored.check(agent, expected, &folded.chain) {
            Ok(()) => stored.try_decode(journal, agent)?,
            Err(reason) => Err(reason),
        };
        match readable {
            Ok(event) => {
                folded.state.apply(&event);
                folded.chain = chain;
                also(&event);
            }
            // Not damage: a newer agentd wrote it, and only a newer one may judge it.
            Err(reason @ Unreadable::Undecodable(_)) if is_newer(&reason) => {
                return Err(Error::Damaged {
                    agent,
                    seq: expected,
                    reason,
                });
            }
            Err(reason) => damaged = Some((expected, reason)),
        }
    }
    folded.damage = damaged.map(|(from, reason)| Damage {
        from,
        through: last,
        reason,
    });
    Ok(folded)
}

const fn is_newer(reason: &Unreadable) -> bool {
    use agentd_core::event::DecodeError as Why;
    matches!(
        reason,
        Unreadable::Undecodable(Why::UnknownKind { .. } | Why::NewerVersion { .. })
    )
}

/// The first fold alone, and what of the journal is damaged.
pub fn state(databases: &Databases, agent: AgentId) -> Result<(AgentState, Option<Damage>)> {
    let num = existing_agent_num(&databases.journal, agent)?;
    let folded = fold(databases, agent, num)?;
    if folded.state.head == Seq::ZERO {
        return Err(match folded.damage {
            Some(damage) => Error::Damaged {
                agent,
                seq: damage.from,
                reason: damage.reason,
            },
            // Claimed, and never written to.
            None => Error::NoSuchAgent { agent },
        });
    }
    Ok((folded.state, folded.damage))
}

pub fn agent(databases: &Databases, agent: AgentId) -> Result<Loaded> {
    let journal = &databases.journal;
    // One moment for all that is read.
    let moment = journal.unchecked_transaction()?;
    let num = existing_agent_num(journal, agent)?;
    let mut tail = Vec::new();
    let folded = fold_each(databases, agent, num, |event| {
        // What lies behind the newest snapshot is short; a journal without one is read again below.
        if tail.len() <= TAIL_KEPT {
            tail.push(event.clone());
        }
    })?;
    if folded.state.head == Seq::ZERO {
        state(databases, agent)?;
    }
    let Some(current) = folded.state.tree.current() else {
        return Err(Error::Damaged {
            agent,
            seq: folded.state.head.next(),
            reason: folded
                .damage
                .map_or(Unreadable::Gap, |damage| damage.reason),
        });
    };
    let window = match &folded.start {
        Some(start) if start.conversation == current && tail.len() <= TAIL_KEPT => {
            let mut window = restore(journal, &start.skeleton)?;
            let own = tail.iter().filter(|event| event.conversation == current);
            own.for_each(|event| window.apply(event));
            window
        }
        _ => fold_window(databases, &folded.state, current, folded.state.head)?,
    };
    moment.commit()?;
    Ok(Loaded {
        state: folded.state,
        window,
        damage: folded.damage,
    })
}

/// Events kept from the first fold for the second.
const TAIL_KEPT: usize = 4096;

pub fn window(
    databases: &Databases,
    agent: AgentId,
    conversation: ConversationId,
    through: Seq,
) -> Result<Window> {
    let moment = databases.journal.unchecked_transaction()?;
    let (state, _) = self::state(databases, agent)?;
    if state.tree.get(conversation).is_none() {
        return Err(Error::NoSuchConversation {
            agent,
            conversation,
        });
    }
    let window = fold_window(databases, &state, conversation, through)?;
    moment.commit()?;
    Ok(window)
}

/// The second fold: from the newest skeleton on the way, or from the beginning.
pub fn fold_window(
    databases: &Databases,
    state: &AgentState,
    conversation: ConversationId,
    through: Seq,
) -> Result<Window> {
    let lineage = lineage(databases, state, conversation, through)?;
    let mut window = Window::new();
    let mut start = 0;
    let mut after = Seq::ZERO;
    for (index, segment) in lineage.iter().enumerate().rev() {
        if let Some(found) = snapshot::of_conversation(databases, segment)? {
            window = restore(&databases.journal, &found.skeleton)?;
            start = index;
            after = found.state.head;
            break;
        }
    }
    for segment in lineage.get(start..).unwrap_or_default() {
        fold_segment(&databases.journal, segment, after, &mut window)?;
        after = Seq::ZERO;
    }
    Ok(window)
}

/// All segments, across agents, oldest first.
fn lineage(
    databases: &Databases,
    state: &AgentState,
    conversation: ConversationId,
    through: Seq,
) -> Result<Vec<Segment>> {
    let mut own = state.tree.lineage(state.id, conversation, through);
    let mut segments = own.segments;
    // A fork of a fork of a fork… each step is another agent; a circle cannot be written.
    let mut steps = 0;
    while let Some(origin) = own.beyond.take() {
        let (parent, _) = self::state(databases, origin.agent)?;
        own = parent
            .tree
            .lineage(origin.agent, origin.conversation, origin.seq);
        own.segments.extend(segments);
        segments = own.segments;
        steps += 1;
        if steps > 1000 {
            break;
        }
    }
    Ok(segments)
}

fn fold_segment(
    journal: &Connection,
    segment: &Segment,
    after: Seq,
    window: &mut Window,
) -> Result<()> {
    use super::row::IdParam;
    let num = existing_agent_num(journal, segment.agent)?;
    let sql = format!(
        "SELECT {COLUMNS} FROM event WHERE agent = ?1 AND seq > ?2 AND seq <= ?3
             AND conversation = ?4 ORDER BY seq"
    );
    let mut statement = journal.prepare_cached(&sql)?;
    let mut rows = statement.query(params![
        num,
        sql_seq(after),
        sql_seq(segment.through),
        IdParam(segment.conversation.as_bytes()),
    ])?;
    while let Some(row) = rows.next()? {
        window.apply(&StoredEvent::read(row)?.decode(journal, segment.agent)?);
    }
    Ok(())
}

/// Puts the words back into a skeleton.
fn restore(journal: &Connection, skeleton: &Skeleton) -> Result<Window> {
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
        if let Some(row) = rows.next()? {
            events.insert(at, StoredEvent::read(row)?.decode(journal, at.agent)?);
        }
    }
    Window::restore(skeleton, |at| events.get(&at)).map_err(|missing| Error::Damaged {
        agent: missing.0.agent,
        seq: missing.0.seq,
        reason: Unreadable::Gap,
    })
}
