//! One append: checked, numbered, added to the checksum chain, and folded.

use super::failure::Failure;
use super::{Thread, draft};
use crate::chain::{self, Hash, Header, Salt};
use crate::error::{Error, Result};
use crate::rules::append::{check_generation, check_length, check_origin, check_source};
use crate::sqlite::blobs::{self, Split};
use crate::sqlite::entry::Entry;
use crate::sqlite::head::Tip;
use crate::sqlite::readers::Databases;
use crate::sqlite::row::{self, IdParam, sql_seq};
use crate::sqlite::written::Written;
use crate::sqlite::{agents, names};
use crate::store::*;
use agentd_core::event::{Body, Event, Kind, NewEvent};
use agentd_core::id::TryId;
use rusqlite::{CachedStatement, Connection, params};

/// An append that is prepared as far as possible without the writer's thread.
pub(super) struct Prepared {
    pub fence: Fence,
    source: Option<Source>,
    expected_generation: Option<u64>,
    ends: Option<TryId>,
    events: Vec<PreparedEvent>,
    /// Already written; returned to the sender, which frees the memory.
    written: Vec<(Event, Split)>,
}

impl Prepared {
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.events
            .iter()
            .map(|prepared| prepared.event.body.kind())
    }
}

struct PreparedEvent {
    event: NewEvent,
    split: Split,
    salt: Salt,
    digest: Hash,
}

/// Runs on the sender's thread.
pub(super) fn prepare(append: Append) -> Result<Prepared> {
    check_length(append.events.len())?;
    let events = append.events.into_iter().map(prepare_event);
    Ok(Prepared {
        fence: append.fence,
        source: append.source,
        expected_generation: append.expected_generation,
        ends: append.ends,
        events: events.collect::<Result<_>>()?,
        written: Vec::new(),
    })
}

fn prepare_event(event: NewEvent) -> Result<PreparedEvent> {
    let json = event.body.to_json().map_err(Error::Encode)?;
    let split = blobs::split(json.ok_or(Error::WithoutWords)?)?;
    let salt = chain::salt().map_err(Error::NoRandomness)?;
    let digest = chain::digest(&salt, &split.body, split.apart.as_deref());
    Ok(PreparedEvent {
        event,
        split,
        salt,
        digest,
    })
}

/// The statement that every append needs, prepared once for a group.
pub(super) fn statement(journal: &Connection) -> rusqlite::Result<CachedStatement<'_>> {
    journal.prepare_cached(
        "INSERT INTO event (agent, seq, at, conversation, turn, kind, version, body, apart,
                            salt, digest, chain, source_incarnation, source_n)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )
}

/// Runs on the writer's thread, inside a transaction. Nothing is written before every check has passed.
pub(super) fn apply(
    thread: &mut Thread,
    databases: &Databases,
    statement: &mut CachedStatement<'_>,
    prepared: &mut Prepared,
) -> Result<(Ack, Option<Written>), Failure> {
    let agent = prepared.fence.agent;
    let no_fence = thread.options.is_injected_bug("no_fence");
    let entry = thread.entry(databases, prepared.fence)?;
    if !no_fence && let Some(repeated) = check_source(agent, entry.source, prepared.source)? {
        return Ok((repeated, None));
    }
    check_generation(&entry.state, prepared.expected_generation)?;
    let journal = &databases.journal;
    for event in &prepared.events {
        check_origin(databases, &entry.state, &event.event.body)?;
    }
    let renames = names::check_names(
        journal,
        entry,
        prepared.events.iter().map(|e| &e.event.body),
    )?;

    let before = agents::Line::of(&entry.state);
    let first = entry.state.head.next();
    let mut position = 0;
    for event in std::mem::take(&mut prepared.events) {
        let (at, event, split) = insert(journal, statement, entry, prepared.source, event)?;
        position = at;
        prepared.written.push((event, split));
    }
    let last = entry.state.head;
    if let Some(source) = prepared.source {
        entry.source = Some((source, first, last));
    }
    if let Some(request) = prepared.ends {
        draft::end(journal, entry, request)?;
    }
    agents::update_line(journal, entry, &before)?;
    if renames {
        names::update_names(journal, entry)?;
    }
    let written = Written::Event {
        num: entry.num,
        seq: last,
        chain: entry.chain,
    };
    let tip = Tip {
        agent,
        seq: last,
        position: position.unsigned_abs(),
        chain: entry.chain,
    };
    thread.tips.push(tip);
    Ok((Ack::Committed { first, last }, Some(written)))
}

fn insert(
    journal: &Connection,
    statement: &mut CachedStatement<'_>,
    entry: &mut Entry,
    source: Option<Source>,
    prepared: PreparedEvent,
) -> Result<(i64, Event, Split), Failure> {
    let agent = entry.state.id;
    let PreparedEvent {
        event,
        split,
        salt,
        digest,
    } = prepared;
    let kind = event.body.kind();
    let event = event.placed(agent, entry.state.head.next());
    let header = Header {
        agent,
        seq: event.seq,
        at: event.at,
        conversation: event.conversation,
        turn: event.turn,
        kind: kind.name(),
        version: kind.version(),
    };
    entry.chain = chain::link(&entry.chain, &header, &digest);
    statement.execute(params![
        entry.num,
        sql_seq(event.seq),
        event.at.as_millis(),
        IdParam(event.conversation.as_bytes()),
        event.turn.as_ref().map(|turn| IdParam(turn.as_bytes())),
        kind.name(),
        kind.version(),
        split.body,
        split.apart,
        salt,
        digest,
        entry.chain,
        source.map(|source| source.incarnation.0 as i64),
        source.map(|source| source.n as i64),
    ])?;
    let position = journal.last_insert_rowid();
    if !split.blobs.is_empty() {
        blobs::keep(journal, position, &split.blobs)?;
    }
    if let Body::ConversationBegan(began) = &event.body
        && let Some(from) = began.from
    {
        row::note_branch(journal, entry.num, event.conversation, from)?;
    }
    entry.state.apply(&event);
    Ok((position, event, split))
}
