//! Writes a new journal from what was salvaged of a damaged one.

use crate::error::{Error, Result};
use crate::sqlite::agents::{self, Line};
use crate::sqlite::entry::{self, Care, Entry};
use crate::sqlite::readers::Databases;
use crate::sqlite::row::{COLUMNS, EventRow, IdParam, note_branch, sql_seq};
use crate::sqlite::salvage::{AgentLine, Followed, Salvage};
use crate::sqlite::{blobs, names, purge, purge_files};
use agentd_core::id::{AgentId, Seq};
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

/// The fence of an agent whose row was lost: higher than one that a process may still hold.
const LOST_FENCE: i64 = 1 << 32;

/// The contents of the new journal.
pub struct Rebuilt {
    pub agents: Vec<Followed>,
    pub events: u64,
    /// Events whose agent is unknown. They remain only in the damaged file.
    pub nobodys: u64,
}

/// Fills the empty journal of `databases`. Rows that belong to no chain go to quarantine. Those after the end of the
/// chain are also written, if they can be read, to one text file per agent in `damaged`.
pub fn rebuild(databases: &Databases, salvage: &Salvage, damaged: &Path) -> Result<Rebuilt> {
    let journal = &databases.journal;
    journal.execute_batch("BEGIN IMMEDIATE")?;
    put_blobs(journal, &salvage.rows)?;
    let mut events = 0;
    let (agents, nobodys) = salvage.follow_all(|followed, event| {
        events += 1;
        put_event(journal, followed.num, event)
    })?;
    for followed in agents.iter().filter(|followed| followed.num > 0) {
        put_agent(journal, followed, salvage.lines.get(&followed.num))?;
        set_aside(journal, salvage, followed, damaged)?;
    }
    put_marks(journal, &salvage.rows)?;
    skip_positions(journal, salvage)?;
    let listed = |followed: &&Followed| {
        let line = salvage.lines.get(&followed.num);
        followed.num > 0 && line.is_none_or(|line| line.listed != 0)
    };
    let mut entries = Vec::new();
    for followed in &agents {
        let entry = folded(databases, followed.agent)?;
        if let Some(entry) = entry {
            put_references(journal, &entry)?;
            put_draft(journal, &salvage.rows, &entry)?;
            entries.extend(listed(&followed).then_some(entry));
        }
    }
    // All names before all aliases: a name takes precedence.
    for entry in entries.iter().filter(|entry| !entry.state.archived) {
        let sql = "INSERT OR IGNORE INTO name (name, agent) VALUES (?1, ?2)";
        journal.execute(sql, params![entry.state.name, entry.num])?;
    }
    for entry in &mut entries {
        names::update_names(journal, entry)?;
        agents::update_line(journal, entry, &Line::none())?;
    }
    journal.execute(
        "DELETE FROM blob WHERE NOT EXISTS (SELECT 1 FROM blob_use WHERE blob = blob.num)",
        [],
    )?;
    journal.execute_batch("COMMIT")?;
    Ok(Rebuilt {
        agents,
        events,
        nobodys,
    })
}

/// None if there is no first event, or none that this build understands.
fn folded(databases: &Databases, agent: AgentId) -> Result<Option<Entry>> {
    match entry::read(databases, agent, Care::Tail) {
        Ok(entry) => Ok(entry.filter(|entry| entry.state.head.0 > 0)),
        Err(Error::Damaged { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The blobs whose content matches their hash.
fn put_blobs(journal: &Connection, rows: &Connection) -> Result<()> {
    let mut statement = rows.prepare("SELECT hash FROM blob")?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        if let Ok(hash) = row.get(0)
            && let Some(text) = blobs::read(rows, &hash)?
        {
            blobs::store(journal, &hash, &text)?;
        }
    }
    Ok(())
}

const EVENT: &str =
    "(position, agent, seq, at, conversation, turn, kind, version, body, apart, salt,
                      digest, chain, source_incarnation, source_n)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";

fn put_event(journal: &Connection, num: i64, row: &EventRow) -> Result<()> {
    let event = &row.event;
    let put = |position: Option<i64>| {
        let sql = format!("INSERT OR IGNORE INTO event {EVENT}");
        let source = row.source;
        journal.prepare_cached(&sql)?.execute(params![
            position,
            num,
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
            source.map(|source| source.incarnation.0 as i64),
            source.map(|source| source.n as i64),
        ])
    };
    // It keeps its position in the order of all commits, unless that position is already in use.
    let mut position = row.position;
    if put(Some(position))? == 0 {
        put(None)?;
        position = journal.last_insert_rowid();
    }
    refer(journal, position, event.apart.as_deref())
}

/// Records the long texts of an event. A missing one is no error here: it is detected when the event is read.
fn refer(journal: &Connection, position: i64, apart: Option<&str>) -> Result<()> {
    match apart.map(|apart| blobs::refer(journal, position, apart)) {
        None | Some(Err(Error::BadExport(_))) => Ok(()),
        Some(referred) => referred,
    }
}

fn put_agent(journal: &Connection, followed: &Followed, line: Option<&AgentLine>) -> Result<()> {
    let line = line.filter(|line| line.id == followed.agent);
    let (ended_incarnation, ended_try) = line.map_or((0, 0), |line| line.ended);
    journal.execute(
        "INSERT OR IGNORE INTO agent (num, id, fence, owner, ended_incarnation, ended_try)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            followed.num,
            IdParam(followed.agent.as_bytes()),
            line.map_or(LOST_FENCE, |line| line.fence),
            line.map_or("repair", |line| line.owner.as_str()),
            ended_incarnation,
            ended_try,
        ],
    )?;
    Ok(())
}

/// Moves the rows of an agent that are not in its chain to quarantine.
fn set_aside(
    journal: &Connection,
    salvage: &Salvage,
    followed: &Followed,
    damaged: &Path,
) -> Result<()> {
    let sql = format!("SELECT {COLUMNS} FROM event WHERE agent = ?1 ORDER BY seq, hidden");
    let mut statement = salvage.rows.prepare(&sql)?;
    let mut rows = statement.query([followed.num])?;
    let mut text = None;
    while let Some(row) = rows.next()? {
        let mut values: Vec<Value> = Vec::new();
        for column in 0..14 {
            values.push(row.get(column)?);
        }
        values.insert(1, Value::Integer(followed.num));
        let position: i64 = row.get(0)?;
        let is_there: bool = journal.query_row(
            "SELECT EXISTS (SELECT 1 FROM event WHERE position = ?1 AND agent = ?2)",
            [position, followed.num],
            |row| row.get(0),
        )?;
        if is_there {
            continue;
        }
        let sql = format!("INSERT OR IGNORE INTO quarantine {EVENT}");
        let mut insert = journal.prepare_cached(&sql)?;
        // A row whose values have the wrong types stays only in the damaged file.
        if insert.execute(params_from_iter(values)).unwrap_or_default() == 0 {
            continue;
        }
        let Ok(stored) = EventRow::read(row)? else {
            continue;
        };
        refer(journal, position, stored.event.apart.as_deref())?;
        if stored.event.seq > followed.last {
            let out = match &mut text {
                Some(out) => out,
                None => text.insert(lines_of(damaged, followed.agent)?),
            };
            write_line(out, &salvage.rows, followed.agent, stored)?;
        }
    }
    match text {
        Some(mut out) => out.flush().map_err(Error::RepairIo),
        None => Ok(()),
    }
}

fn lines_of(damaged: &Path, agent: AgentId) -> Result<BufWriter<File>> {
    let file = File::create(damaged.join(format!("{agent}.jsonl")));
    Ok(BufWriter::new(file.map_err(Error::RepairIo)?))
}

/// One event as `agentd replay --json` would show it, if its text matches its checksum.
fn write_line(
    out: &mut BufWriter<File>,
    rows: &Connection,
    agent: AgentId,
    stored: EventRow,
) -> Result<()> {
    let Ok(event) = stored.try_decode(rows, agent)? else {
        return Ok(());
    };
    let line = serde_json::to_string(&event).map_err(Error::Encode)?;
    writeln!(out, "{line}").map_err(Error::RepairIo)
}

/// The rows that stand for events that were quarantined earlier: see the schema.
fn put_marks(journal: &Connection, rows: &Connection) -> Result<()> {
    let sql = format!("SELECT {COLUMNS}, agent FROM event WHERE agent < 0");
    let mut statement = rows.prepare(&sql)?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        let mut values: Vec<Value> = Vec::new();
        for column in 0..14 {
            values.push(row.get(column)?);
        }
        values.insert(1, row.get(14)?);
        let sql = format!("INSERT OR IGNORE INTO event {EVENT}");
        // A row that cannot be inserted is skipped: it carries no content.
        let _damaged = journal
            .prepare_cached(&sql)?
            .execute(params_from_iter(values));
    }
    Ok(())
}

/// No position is assigned twice, even if its event was lost.
fn skip_positions(journal: &Connection, salvage: &Salvage) -> Result<()> {
    let sql = "SELECT max(position) FROM event";
    let found: Option<i64> = salvage.rows.query_row(sql, [], |row| row.get(0))?;
    let last = found.unwrap_or_default().max(salvage.acknowledged as i64);
    journal.execute(
        "DELETE FROM sqlite_sequence WHERE name = 'event' AND seq < ?1",
        [last],
    )?;
    journal.execute(
        "INSERT INTO sqlite_sequence (name, seq) SELECT 'event', ?1
         WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'event')",
        [last],
    )?;
    Ok(())
}

/// Records the branches, and the purges again: a repair must not bring back text that was to be deleted.
fn put_references(journal: &Connection, entry: &Entry) -> Result<()> {
    for conversation in entry.state.tree.iter() {
        if let Some(from) = conversation.from {
            note_branch(journal, entry.num, conversation.id, from)?;
        }
        if conversation.purged {
            purge::begin(journal, entry.num, conversation.id)?;
        }
    }
    if entry.state.files.purged_through > Seq::ZERO {
        purge_files::delete(journal, entry.num, entry.state.files.purged_through)?;
    }
    Ok(())
}

/// The stored part of a reply that had not ended.
fn put_draft(journal: &Connection, rows: &Connection, entry: &Entry) -> Result<()> {
    let sql = "SELECT agent, incarnation, try, at, bytes FROM draft
               WHERE agent = ?1 AND (incarnation, try) > (?2, ?3)";
    let ended = entry.ended;
    let mut statement = rows.prepare_cached(sql)?;
    let mut found = statement.query(params![
        entry.num,
        ended.incarnation.0 as i64,
        ended.n as i64
    ])?;
    while let Some(row) = found.next()? {
        let mut values: Vec<Value> = Vec::new();
        for column in 0..5 {
            values.push(row.get(column)?);
        }
        let sql = "INSERT OR IGNORE INTO draft VALUES (?1, ?2, ?3, ?4, ?5)";
        journal
            .prepare_cached(sql)?
            .execute(params_from_iter(values))?;
    }
    Ok(())
}
