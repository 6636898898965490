//! Checks that everything is as it was written.

use super::readers::Databases;
use super::row::{COLUMNS, StoredEvent, agent_num};
use crate::chain::GENESIS;
use crate::error::{Error, Result};
use crate::store::{Damage, Report};
use agentd_core::id::{AgentId, Seq};
use agentd_core::state::AgentState;
use rusqlite::{Connection, OptionalExtension as _, params};

pub fn verify(databases: &Databases, agent: Option<AgentId>) -> Result<Report> {
    let journal = &databases.journal;
    let mut report = Report::default();
    let agents = match agent {
        Some(agent) => {
            let num = agent_num(journal, agent)?.ok_or(Error::NoSuchAgent { agent })?;
            vec![(num, agent)]
        }
        None => {
            file(journal, &mut report)?;
            all_agents(journal)?
        }
    };
    for (num, agent) in agents {
        report.agents += 1;
        one(databases, num, agent, &mut report)?;
    }
    let quarantined: i64 =
        journal.query_row("SELECT count(*) FROM quarantine", [], |row| row.get(0))?;
    report.quarantined = quarantined.unsigned_abs();
    Ok(report)
}

fn all_agents(journal: &Connection) -> Result<Vec<(i64, AgentId)>> {
    let mut statement = journal.prepare("SELECT num, id FROM agent ORDER BY num")?;
    let agents = statement.query_map([], |row| {
        Ok((row.get(0)?, AgentId::from_bytes(row.get(1)?)))
    })?;
    Ok(agents.collect::<rusqlite::Result<_>>()?)
}

/// SQLite's own opinion, and what must hold between tables.
fn file(journal: &Connection, report: &mut Report) -> Result<()> {
    let mut statement = journal.prepare("PRAGMA integrity_check(20)")?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    for line in lines {
        let line = line?;
        if line != "ok" {
            report.file.push(line);
        }
    }
    let orphans: i64 = journal.query_row(
        "SELECT count(*) FROM event WHERE agent NOT IN (SELECT num FROM agent)",
        [],
        |row| row.get(0),
    )?;
    if orphans > 0 {
        report.file.push(format!("{orphans} events of no agent"));
    }
    Ok(())
}

fn one(databases: &Databases, num: i64, agent: AgentId, report: &mut Report) -> Result<()> {
    let journal = &databases.journal;
    let sql = format!("SELECT {COLUMNS} FROM event WHERE agent = ?1 AND seq > 0 ORDER BY seq");
    let mut statement = journal.prepare_cached(&sql)?;
    let mut rows = statement.query([num])?;
    let mut state = AgentState::new(agent);
    let mut chain = GENESIS;
    let mut damage: Option<Damage> = None;
    while let Some(row) = rows.next()? {
        report.events += 1;
        let stored = match StoredEvent::read(row) {
            Ok(stored) => stored,
            Err(error) => {
                report
                    .dangling
                    .push((agent, format!("an unreadable row: {error}")));
                continue;
            }
        };
        let seq = stored.seq;
        if let Some(damage) = &mut damage {
            damage.through = seq;
            continue;
        }
        let link = stored.chain;
        let expected = state.head.next();
        let readable = match stored.check(agent, expected, &chain) {
            Ok(()) => stored.try_decode(journal, agent)?,
            Err(reason) => Err(reason),
        };
        match readable {
            Ok(event) => {
                state.apply(&event);
                chain = link;
            }
            Err(reason) => {
                damage = Some(Damage {
                    from: expected,
                    through: seq,
                    reason,
                });
            }
        }
    }
    references(databases, &state, report)?;
    missing_tail(databases, &state, damage.is_some(), report)?;
    report.damaged.extend(damage.map(|damage| (agent, damage)));
    Ok(())
}

/// What the fold stumbled over, and origins in other agents that are not there.
fn references(databases: &Databases, state: &AgentState, report: &mut Report) -> Result<()> {
    if state.anomalies > 0 {
        let what = format!("{} events refer to something unknown", state.anomalies);
        report.dangling.push((state.id, what));
    }
    for conversation in state.tree.iter() {
        let Some(from) = conversation.from else {
            continue;
        };
        let there = match agent_num(&databases.journal, from.agent)? {
            Some(num) => has_event(&databases.journal, num, from.seq)?,
            None => false,
        };
        if !there {
            let what = format!("conversation {} branches off nothing", conversation.id);
            report.dangling.push((state.id, what));
        }
    }
    Ok(())
}

fn has_event(journal: &Connection, num: i64, seq: Seq) -> Result<bool> {
    let found: Option<i64> = journal
        .query_row(
            "SELECT seq FROM event WHERE agent = ?1 AND seq = ?2",
            params![num, super::row::sql_seq(seq)],
            |row| row.get(0),
        )
        .optional()?;
    Ok(found.is_some())
}

/// A chain cannot tell that its end is missing; a snapshot that saw it can.
fn missing_tail(
    databases: &Databases,
    state: &AgentState,
    damaged: bool,
    report: &mut Report,
) -> Result<()> {
    let seen: Option<i64> = databases
        .derived
        .query_row(
            "SELECT max(seq) FROM snapshot WHERE agent = ?1",
            [super::row::IdParam(state.id.as_bytes())],
            |row| row.get(0),
        )
        .unwrap_or_default();
    let seen = seen.map_or(Seq::ZERO, super::row::seq);
    if seen > state.head && !damaged {
        let what = format!("events {} to {seen} are missing", state.head.next());
        report.dangling.push((state.id, what));
    }
    Ok(())
}
