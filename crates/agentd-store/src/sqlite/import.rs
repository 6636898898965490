//! Imports the agents of an export file, all of them or none.

use super::agents::{self, Line};
use super::entry::{self, Care, Entry};
use super::head::Tip;
use super::readers::Databases;
use super::row::{IdParam, agent_num, note_branch, seq, sql_seq};
use super::written::Written;
use super::{blobs, names};
use crate::chain::{self, Header};
use crate::error::{Error, Result};
use crate::export::{Checked, Item};
use crate::rechain::Rechain;
use crate::rules::import::{self as rules, Admission, Existing, Role, Target};
use crate::store::{Import, Imported};
use crate::stored::StoredEvent;
use agentd_core::event::{Body, NewEvent};
use agentd_core::id::AgentId;
use rusqlite::{Connection, OptionalExtension as _, params};

/// Runs on the writer's thread, in its own transaction.
pub fn import(
    databases: &Databases,
    file: Checked,
    order: Import,
    tips: &mut Vec<Tip>,
) -> Result<(Imported, Option<Written>)> {
    let journal = &databases.journal;
    if let Some(agent) = rules::made_before(databases, file.agent, &order)? {
        let imported = Imported {
            agent,
            events: 0,
            displaced: None,
        };
        return Ok((imported, None));
    }
    let (mut rechain, origin) = rules::copied(databases, &file, &order)?.unzip();
    let exported = rechain.as_ref().map_or(file.agent, |copy| copy.to);
    let events = file.events;
    let agents = write_items(journal, file, exported, rechain.as_mut())?;
    for agent in agents {
        let mut entry = readable(databases, agent)?;
        rules::check_origins(databases, &entry.state)?;
        if agent == exported {
            for event in rules::added(&entry.state, order, origin)? {
                append(journal, &mut entry, event)?;
            }
            tips.push(tip(journal, &entry)?);
            let written = Written::Event {
                num: entry.num,
                seq: entry.state.head,
                chain: entry.chain,
            };
            let displaced = list(journal, entry)?;
            let imported = Imported {
                agent,
                events,
                displaced,
            };
            return Ok((imported, Some(written)));
        }
        tips.push(tip(journal, &entry)?);
    }
    Err(Error::BadExport("an agent without events".to_owned()))
}

/// Writes everything that the file contains. Returns its agents, the exported one last.
fn write_items(
    journal: &Connection,
    file: Checked,
    exported: AgentId,
    mut rechain: Option<&mut Rechain>,
) -> Result<Vec<AgentId>> {
    let mut target: Option<Journal> = None;
    let (mut agents, mut texts) = (Vec::new(), Vec::new());
    let mut items = file.items()?;
    while let Some(item) = items.next()? {
        let item = match &mut rechain {
            Some(rechain) => rechain.item(item)?,
            None => item,
        };
        match item {
            Item::Journal(agent) => {
                let role = if agent == exported {
                    Role::Exported
                } else {
                    Role::Ancestor
                };
                target = Some(begin(journal, agent, role)?);
                agents.push(agent);
            }
            Item::Blob(hash, text) => {
                blobs::store(journal, &hash, &text)?;
                texts.push(hash);
            }
            Item::Event(row) => {
                let target = target
                    .as_ref()
                    .ok_or_else(|| Error::BadExport("an event outside a journal".to_owned()))?;
                put(journal, target, &row)?;
            }
        }
    }
    for hash in texts {
        // A blob is unused if its event already existed here and was purged.
        blobs::drop_unused(journal, &hash)?;
    }
    Ok(agents)
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

/// A journal that is being written.
struct Journal {
    num: i64,
    target: Target,
}

fn begin(journal: &Connection, agent: AgentId, role: Role) -> Result<Journal> {
    if let Some(num) = agent_num(journal, agent)? {
        let listed: i64 =
            journal.query_row("SELECT listed FROM agent WHERE num = ?1", [num], |row| {
                row.get(0)
            })?;
        let head: i64 = journal.query_row(
            "SELECT coalesce(max(seq), 0) FROM event WHERE agent = ?1",
            [num],
            |row| row.get(0),
        )?;
        let existing = Existing {
            is_listed: listed != 0,
            head: seq(head),
        };
        let target = Target::new(agent, role, Some(existing))?;
        return Ok(Journal { num, target });
    }
    journal.execute(
        "INSERT INTO agent (id, fence, owner) VALUES (?1, 0, 'import')",
        [IdParam(agent.as_bytes())],
    )?;
    Ok(Journal {
        num: journal.last_insert_rowid(),
        target: Target::new(agent, role, None)?,
    })
}

fn put(journal: &Connection, into: &Journal, event: &StoredEvent) -> Result<()> {
    let chain_here = || {
        let chain = journal.query_row(
            "SELECT chain FROM event WHERE agent = ?1 AND seq = ?2",
            params![into.num, sql_seq(event.seq)],
            |row| row.get(0),
        );
        Ok(chain.optional()?)
    };
    if into.target.admit(event, chain_here)? == Admission::Known {
        return Ok(());
    }
    journal
        .prepare_cached(
            "INSERT INTO event (agent, seq, at, conversation, turn, kind, version, body, apart,
                                salt, digest, chain)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            into.num,
            sql_seq(event.seq),
            event.at.as_millis(),
            IdParam(event.conversation.as_bytes()),
            event.turn.as_ref().map(|turn| IdParam(turn.as_bytes())),
            event.kind,
            event.version,
            event.body,
            event.apart,
            event.salt,
            event.digest,
            event.chain,
        ])?;
    let position = journal.last_insert_rowid();
    if let Some(apart) = &event.apart {
        blobs::refer(journal, position, apart)?;
    }
    if let Some(from) = rules::branch_of(event) {
        note_branch(journal, into.num, event.conversation, from)?;
    }
    Ok(())
}

fn readable(databases: &Databases, agent: AgentId) -> Result<Entry> {
    let entry = entry::read(databases, agent, Care::Tail)?;
    let entry = entry.ok_or(Error::NoSuchAgent { agent })?;
    rules::check_readable(agent, entry.damage.as_ref())?;
    Ok(entry)
}

/// Adds an event to the imported journal.
fn append(journal: &Connection, entry: &mut Entry, event: NewEvent) -> Result<()> {
    let kind = event.body.kind();
    let text = event.body.to_json().map_err(Error::Encode)?;
    let text = text.ok_or(Error::WithoutWords)?;
    let salt = chain::salt().map_err(Error::NoRandomness)?;
    let digest = chain::digest(&salt, &text, None);
    let event = event.placed(entry.state.id, entry.state.head.next());
    let header = Header {
        agent: event.agent,
        seq: event.seq,
        at: event.at,
        conversation: event.conversation,
        turn: event.turn,
        kind: kind.name(),
        version: kind.version(),
    };
    entry.chain = chain::link(&entry.chain, &header, &digest);
    journal
        .prepare_cached(
            "INSERT INTO event (agent, seq, at, conversation, kind, version, body, salt, digest, chain)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            entry.num,
            sql_seq(event.seq),
            event.at.as_millis(),
            IdParam(event.conversation.as_bytes()),
            kind.name(),
            kind.version(),
            text,
            salt,
            digest,
            entry.chain,
        ])?;
    entry.state.apply(&event);
    Ok(())
}

/// Gives the imported agent its row and its names. Returns the agent that had its name as an alias.
fn list(journal: &Connection, mut entry: Entry) -> Result<Option<AgentId>> {
    let mut displaced = None;
    rules::check_name(&entry.state)?;
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
