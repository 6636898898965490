//! Imports the agents of an export file, all of them or none.

mod adopt;

use super::agents::{self, Line};
use super::entry::{self, Care, Entry};
use super::head::Tip;
use super::readers::Databases;
use super::row::{IdParam, agent_num, sql_seq};
use super::written::Written;
use super::{blobs, fold, names};
use crate::chain::{Hash, hex};
use crate::error::{Error, Result};
use crate::export::{Item, Parsed, Row};
use crate::rechain::rechain;
use crate::store::{Import, Imported};
use agentd_core::event::{AgentImported, Body, Kind};
use agentd_core::id::{AgentId, Seq};
use agentd_core::state::AgentState;
use rusqlite::{Connection, OptionalExtension as _, params};

/// The journal that is being written.
struct Target {
    agent: AgentId,
    num: i64,
    /// The last event that existed before: the file must agree with it.
    had: Seq,
    /// The agent may have an owner: no event is added to its journal.
    lives: bool,
}

/// Runs on the writer's thread, in its own transaction.
pub fn import(
    databases: &Databases,
    parsed: Parsed,
    order: Import,
    tips: &mut Vec<Tip>,
) -> Result<(Imported, Option<Written>)> {
    let journal = &databases.journal;
    if let Some(agent) = made_before(databases, parsed.agent, &order)? {
        let imported = Imported {
            agent,
            events: 0,
            displaced: None,
        };
        return Ok((imported, None));
    }
    let (parsed, origin) = match &order.under {
        Some(under) if is_listed(journal, parsed.agent)? => {
            let origin = origin(&parsed)?;
            (rechain(parsed, under.id)?, Some(origin))
        }
        _ => (parsed, None),
    };
    let mut target: Option<Target> = None;
    let mut agents = Vec::new();
    for item in &parsed.items {
        match item {
            Item::Journal(agent) => {
                target = Some(begin(journal, *agent, *agent == parsed.agent)?);
                agents.push(*agent);
            }
            Item::Blob(hash, text) => {
                blobs::store(journal, hash, text)?;
            }
            Item::Event(row) => {
                let target = target
                    .as_ref()
                    .ok_or_else(|| Error::BadExport("an event outside a journal".to_owned()))?;
                put(journal, target, row)?;
            }
        }
    }
    for item in &parsed.items {
        // The blob may belong to an event that existed here and was purged.
        if let Item::Blob(hash, _) = item {
            blobs::drop_unused(journal, hash)?;
        }
    }
    for agent in agents {
        let mut entry = readable(databases, agent)?;
        check_origins(databases, &entry.state)?;
        if agent == parsed.agent {
            adopt::adopt(journal, &mut entry, order, origin)?;
            tips.push(tip(journal, &entry)?);
            let written = Written::Event {
                num: entry.num,
                seq: entry.state.head,
                chain: entry.chain,
            };
            let displaced = list(journal, entry)?;
            let imported = Imported {
                agent,
                events: parsed.events,
                displaced,
            };
            return Ok((imported, Some(written)));
        }
        tips.push(tip(journal, &entry)?);
    }
    Err(Error::BadExport("an agent without events".to_owned()))
}

/// The agent that this op has already imported, under its own id or another one.
fn made_before(databases: &Databases, agent: AgentId, order: &Import) -> Result<Option<AgentId>> {
    let Some(operation) = &order.operation else {
        return Ok(None);
    };
    let copy = order.under.as_ref().map(|under| under.id);
    for agent in [Some(agent), copy].into_iter().flatten() {
        if !is_listed(&databases.journal, agent)? {
            continue;
        }
        let (state, _) = fold::state(databases, agent)?;
        match state.made(operation.op, operation.verb, &operation.digest) {
            Ok(Some(_)) => return Ok(Some(agent)),
            Ok(None) => {}
            Err(_) => {
                let op = Box::new(operation.op);
                return Err(Error::OtherOp { op });
            }
        }
    }
    Ok(None)
}

/// The last event of an agent, for the head.
fn tip(journal: &Connection, entry: &Entry) -> Result<Tip> {
    let position: i64 = journal.query_row(
        "SELECT position FROM event WHERE agent = ?1 AND seq = ?2",
        params![entry.num, sql_seq(entry.state.head)],
        |row| row.get(0),
    )?;
    Ok(Tip {
        agent: entry.state.id,
        seq: entry.state.head,
        position: position.unsigned_abs(),
        chain: entry.chain,
    })
}

/// The origin of a journal that gets another id.
fn origin(parsed: &Parsed) -> Result<AgentImported> {
    let last = parsed.items.iter().rev().find_map(|item| match item {
        Item::Event(row) => Some(row),
        _ => None,
    });
    let last = last.ok_or_else(|| Error::BadExport("an agent without events".to_owned()))?;
    Ok(AgentImported {
        agent: parsed.agent,
        seq: last.seq,
        chain: hex(&last.chain),
    })
}

/// Whether the agent itself is stored here, and not only as the ancestor of another agent.
pub fn is_listed(journal: &Connection, agent: AgentId) -> Result<bool> {
    let listed: Option<i64> = journal
        .query_row(
            "SELECT listed FROM agent WHERE id = ?1",
            [IdParam(agent.as_bytes())],
            |row| row.get(0),
        )
        .optional()?;
    Ok(listed.is_some_and(|listed| listed != 0))
}

fn begin(journal: &Connection, agent: AgentId, is_main: bool) -> Result<Target> {
    if let Some(num) = agent_num(journal, agent)? {
        let listed: i64 =
            journal.query_row("SELECT listed FROM agent WHERE num = ?1", [num], |row| {
                row.get(0)
            })?;
        // An agent that is only stored as an ancestor may be completed.
        if is_main && listed != 0 {
            return Err(Error::AgentExists { agent });
        }
        let head: i64 = journal.query_row(
            "SELECT coalesce(max(seq), 0) FROM event WHERE agent = ?1",
            [num],
            |row| row.get(0),
        )?;
        return Ok(Target {
            agent,
            num,
            had: super::row::seq(head),
            lives: listed != 0,
        });
    }
    journal.execute(
        "INSERT INTO agent (id, fence, owner) VALUES (?1, 0, 'import')",
        [IdParam(agent.as_bytes())],
    )?;
    Ok(Target {
        agent,
        num: journal.last_insert_rowid(),
        had: Seq::ZERO,
        lives: false,
    })
}

fn put(journal: &Connection, target: &Target, row: &Row) -> Result<()> {
    if row.seq <= target.had {
        let chain: Option<Hash> = journal
            .query_row(
                "SELECT chain FROM event WHERE agent = ?1 AND seq = ?2",
                params![target.num, sql_seq(row.seq)],
                |row| row.get(0),
            )
            .optional()?;
        if chain == Some(row.chain) {
            return Ok(());
        }
        return Err(Error::AgentExists {
            agent: target.agent,
        });
    }
    if target.lives {
        return Err(Error::AgentExists {
            agent: target.agent,
        });
    }
    // An unknown kind must not be imported silently.
    Kind::check(&row.kind, row.version).map_err(|error| Error::BadExport(error.to_string()))?;
    journal
        .prepare_cached(
            "INSERT INTO event (agent, seq, at, conversation, turn, kind, version, body, apart,
                                salt, digest, chain)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            target.num,
            sql_seq(row.seq),
            row.at.as_millis(),
            IdParam(row.conversation.as_bytes()),
            row.turn.as_ref().map(|turn| IdParam(turn.as_bytes())),
            row.kind,
            row.version,
            row.body,
            row.apart,
            row.salt,
            row.digest,
            row.chain,
        ])?;
    let position = journal.last_insert_rowid();
    if let Some(apart) = &row.apart {
        blobs::refer(journal, position, apart)?;
    }
    if let Some(body) = &row.body
        && row.kind == Kind::ConversationBegan.name()
        && let Ok(Body::ConversationBegan(began)) = Body::from_json(&row.kind, row.version, body)
        && let Some(from) = began.from
    {
        super::row::note_branch(journal, target.num, row.conversation, from)?;
    }
    Ok(())
}

/// The imported events must fold.
fn readable(databases: &Databases, agent: AgentId) -> Result<Entry> {
    let entry = entry::read(databases, agent, Care::Tail)?;
    let entry = entry.ok_or(Error::NoSuchAgent { agent })?;
    match &entry.damage {
        Some(damage) => Err(Error::BadExport(format!(
            "event {} of agent {agent} cannot be read: {}",
            damage.from, damage.reason
        ))),
        None => Ok(entry),
    }
}

/// The origins of branches must exist, including their text.
fn check_origins(databases: &Databases, state: &AgentState) -> Result<()> {
    let branches = state.tree.iter().filter(|branch| !branch.purged);
    for from in branches.filter_map(|branch| branch.from) {
        let origin = match from.agent == state.id {
            true => state.tree.get(from.conversation).map(|known| known.purged),
            false => {
                let (parent, _) = fold::state(databases, from.agent)?;
                let known = parent.tree.get(from.conversation);
                known
                    .map(|known| known.purged)
                    .filter(|_| parent.head >= from.seq)
            }
        };
        match origin {
            Some(false) => {}
            Some(true) => {
                return Err(Error::OriginPurged {
                    conversation: from.conversation,
                });
            }
            None => return Err(Error::BadExport("a branch without its origin".to_owned())),
        }
    }
    Ok(())
}

/// Gives the imported agent its row and its names. Returns the agent that had its name as an alias.
fn list(journal: &Connection, mut entry: Entry) -> Result<Option<AgentId>> {
    let mut displaced = None;
    if entry.state.name.parse::<AgentId>().is_ok() {
        // An id is always an id: a lookup of this name would find the wrong agent.
        let name = entry.state.name;
        return Err(Error::NameIsId { name });
    }
    // An archived agent has released its names.
    if !entry.state.archived {
        let names = Body::from(agentd_core::event::AgentRestored {});
        names::check_names(journal, &entry, std::iter::once(&names))?;
        displaced = names::find(journal, &entry.state.name)?;
        names::update_names(journal, &entry)?;
    }
    let nothing = Line::none();
    agents::update_line(journal, &mut entry, &nothing)?;
    Ok(displaced)
}
