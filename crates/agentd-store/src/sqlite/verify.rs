//! Checks that everything is stored as it was written.

use super::fold::{self, Start};
use super::head::{self, Found};
use super::readers::Databases;
use super::row::{IdParam, agent_num, seq, sql_seq};
use super::{agents, row};
use crate::damage::{Damage, HeadState, Report, Unreadable};
use crate::error::{Disk, Error, Result};
use crate::rules::verify::Facts;
use agentd_core::id::{AgentId, Seq};
use agentd_core::state::AgentState;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::{BTreeMap, BTreeSet};

/// `head` must be read before the journal: another process may commit in between.
pub fn verify(databases: &Databases, head: &Found, agent: Option<AgentId>) -> Result<Report> {
    let journal = &databases.journal;
    let mut report = Report::default();
    let agents = match agent {
        Some(agent) => {
            let num = agent_num(journal, agent)?.ok_or(Error::NoSuchAgent { agent })?;
            BTreeMap::from([(num, agent)])
        }
        None => {
            let checked = file(journal, &mut report);
            or_finding(checked, "the file", &mut report)?;
            all_agents(journal, &mut report)?
        }
    };
    for (num, agent) in agents {
        report.agents += 1;
        let checked = one(databases, num, agent, &mut report);
        or_finding(checked, &format!("agent {agent}"), &mut report)?;
    }
    let checked = against_head(journal, head, agent, &mut report);
    or_finding(checked, "the end of the journal", &mut report)?;
    name_them(journal, &mut report);
    Ok(report)
}

/// The journal must have every event that the head lists as acknowledged.
fn against_head(
    journal: &Connection,
    head: &Found,
    agent: Option<AgentId>,
    report: &mut Report,
) -> Result<()> {
    report.head = match head {
        Found::Absent => HeadState::Absent,
        Found::Unreadable => HeadState::Unreadable,
        Found::Whole(_) => HeadState::Good,
    };
    let position = head::last_event(journal)?.map_or(0, |last| last.position);
    let mut missing = head::behind(journal, head, position).unwrap_or_default();
    if missing.and_maybe_more {
        let what = "agents that the head does not list may have lost events too".to_owned();
        report.file.push(what);
    }
    let is_known = |agent: AgentId, report: &Report| {
        let mut damaged = report.damaged.iter();
        damaged.any(|(known, _)| *known == agent)
    };
    for tip in head.tips().iter().filter(|tip| tip.position <= position) {
        if !is_known(tip.agent, report) && head::is_changed(journal, tip)? {
            let damage = Damage {
                from: tip.seq,
                through: tip.seq,
                reason: Unreadable::Missing,
            };
            missing.agents.push((tip.agent, damage));
        }
    }
    if let Some(agent) = agent {
        missing.agents.retain(|(hit, _)| *hit == agent);
    }
    if !missing.agents.is_empty() {
        report.head = HeadState::Ahead;
    }
    report.damaged.extend(missing.agents);
    Ok(())
}

/// The names of the agents with findings.
fn name_them(journal: &Connection, report: &mut Report) {
    let damaged = report.damaged.iter().map(|(agent, _)| *agent);
    let dangling = report.dangling.iter().map(|(agent, _)| *agent);
    let hit: BTreeSet<AgentId> = damaged.chain(dangling).collect();
    for agent in hit {
        let name: rusqlite::Result<String> = journal.query_row(
            "SELECT name FROM agent WHERE id = ?1",
            [IdParam(agent.as_bytes())],
            |row| row.get(0),
        );
        if let Ok(name) = name
            && !name.is_empty()
        {
            report.names.insert(agent, name);
        }
    }
}

/// An error of SQLite is reported as a finding, and the remaining checks still run.
fn or_finding<T>(checked: Result<T>, what: &str, report: &mut Report) -> Result<Option<T>> {
    match checked {
        Err(Error::Unavailable(Disk::Corrupt(error) | Disk::Other(error))) => {
            report.file.push(format!("{what}: {error}"));
            Ok(None)
        }
        checked => checked.map(Some),
    }
}

/// All agents, from their table and from the index of their ids: one of them may be damaged.
fn all_agents(journal: &Connection, report: &mut Report) -> Result<BTreeMap<i64, AgentId>> {
    let mut agents = BTreeMap::new();
    for sql in [
        "SELECT num, id FROM agent NOT INDEXED ORDER BY num",
        "SELECT num, id FROM agent INDEXED BY sqlite_autoindex_agent_1",
    ] {
        let read = read_agents(journal, sql, &mut agents);
        or_finding(read, "the list of agents", report)?;
    }
    Ok(agents)
}

fn read_agents(journal: &Connection, sql: &str, agents: &mut BTreeMap<i64, AgentId>) -> Result<()> {
    let mut statement = journal.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        agents.insert(row.get(0)?, AgentId::from_bytes(row.get(1)?));
    }
    Ok(())
}

/// SQLite's own integrity check, and the constraints between tables.
fn file(journal: &Connection, report: &mut Report) -> Result<()> {
    let mut statement = journal.prepare("PRAGMA integrity_check(20)")?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    for line in lines {
        let line = line?;
        if line != "ok" {
            report.file.push(line);
        }
    }
    // A negative number belongs to an agent that had events quarantined.
    let orphans: i64 = journal.query_row(
        "SELECT count(*) FROM event WHERE abs(agent) NOT IN (SELECT num FROM agent)",
        [],
        |row| row.get(0),
    )?;
    if orphans > 0 {
        report
            .file
            .push(format!("{orphans} events belong to no agent"));
    }
    let unused: i64 = journal.query_row(
        "SELECT count(*) FROM blob WHERE hash IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM blob_use WHERE blob = blob.num)",
        [],
        |row| row.get(0),
    )?;
    if unused > 0 {
        let what = format!("{unused} stored texts are not used by any event");
        report.file.push(what);
    }
    let miscounted: bool = journal.query_row(
        "SELECT EXISTS (
             SELECT listed, mode, phase, count(*) FROM agent GROUP BY 1, 2, 3
             EXCEPT SELECT listed, mode, phase, agents FROM listing)
         OR (SELECT coalesce(sum(agents), 0) FROM listing) <> (SELECT count(*) FROM agent)",
        [],
        |row| row.get(0),
    )?;
    if miscounted {
        let what = "the list's agent counts do not match the agents".to_owned();
        report.file.push(what);
    }
    Ok(())
}

fn one(databases: &Databases, num: i64, agent: AgentId, report: &mut Report) -> Result<()> {
    let journal = &databases.journal;
    // Read before the transaction begins: the journal must then contain every event that a snapshot includes.
    let seen = seen_by_snapshots(databases, agent);
    let moment = journal.unchecked_transaction()?;
    let counted = count(journal, num);
    let (events, last, quarantined) = readable(counted, agent, report)?.unwrap_or_default();
    report.events += events.unsigned_abs();
    report.quarantined += quarantined.unsigned_abs();
    let mut facts = Facts::default();
    let folded = fold::fold_each(databases, agent, num, Start::Beginning, |event| {
        facts.note(event);
    });
    let damage = match folded {
        Ok((folded, _)) => {
            facts.check(&folded.state, report);
            let checked = branches(journal, num, &folded.state, report);
            readable(checked, agent, report)?;
            if folded.damage.is_none() {
                let checked = line(journal, num, &folded.state, report);
                readable(checked, agent, report)?;
            }
            let head = folded.state.head.max(facts.quarantined);
            if seen > head && folded.damage.is_none() {
                let what = format!("events {} to {seen} are missing", head.next());
                report.dangling.push((agent, what));
            }
            folded.damage
        }
        // A newer agentd wrote it: this version cannot check it.
        Err(Error::Damaged {
            seq: from, reason, ..
        }) => Some(Damage {
            from,
            through: seq(last),
            reason,
        }),
        Err(error) => return Err(error),
    };
    let checked = blob_uses(journal, num, agent, report);
    readable(checked, agent, report)?;
    // Nothing was written, and a commit would fail after a damaged page.
    drop(moment);
    report.damaged.extend(damage.map(|damage| (agent, damage)));
    Ok(())
}

/// The number of events, the last one, and the number of quarantined ones.
fn count(journal: &Connection, num: i64) -> Result<(i64, i64, i64)> {
    let counted = journal.query_row(
        "SELECT count(*), coalesce(max(seq), 0),
                (SELECT count(*) FROM quarantine WHERE agent = ?1)
         FROM event WHERE agent = ?1",
        [num],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    Ok(counted)
}

/// An unreadable page is a finding about the agent that is being checked.
fn readable<T>(checked: Result<T>, agent: AgentId, report: &mut Report) -> Result<Option<T>> {
    or_finding(checked, &format!("agent {agent}"), report)
}

/// Reports a branch whose origin does not exist, and a branch that is not recorded: a purge would not find it.
fn branches(journal: &Connection, num: i64, state: &AgentState, report: &mut Report) -> Result<()> {
    for conversation in state.tree.iter() {
        let Some(from) = conversation.from else {
            continue;
        };
        let there = match agent_num(journal, from.agent)? {
            Some(num) => has_event(journal, num, from.seq)?,
            None => false,
        };
        if !there {
            let what = format!("the origin of conversation {} is missing", conversation.id);
            report.dangling.push((state.id, what));
        }
        if !row::has_branch(journal, num, conversation.id, from)? {
            let what = format!("the branch {} is not recorded", conversation.id);
            report.dangling.push((state.id, what));
        }
    }
    Ok(())
}

fn has_event(journal: &Connection, num: i64, seq: Seq) -> Result<bool> {
    let found: Option<i64> = journal
        .prepare_cached("SELECT seq FROM event WHERE agent = ?1 AND seq = ?2")?
        .query_row(params![num, sql_seq(seq)], |row| row.get(0))
        .optional()?;
    Ok(found.is_some())
}

/// The agent's row in the list must match its journal.
fn line(journal: &Connection, num: i64, state: &AgentState, report: &mut Report) -> Result<()> {
    if !agents::is_listed_as(journal, num, state)? {
        let what = "its row in the list of agents does not match its journal".to_owned();
        report.dangling.push((state.id, what));
    }
    Ok(())
}

/// Reports long texts whose use is not recorded: a purge of another conversation could delete them.
fn blob_uses(journal: &Connection, num: i64, agent: AgentId, report: &mut Report) -> Result<()> {
    let unnoted: i64 = journal.query_row(
        "SELECT count(*) FROM event, json_each(event.apart) AS place
         WHERE event.agent = ?1 AND event.apart IS NOT NULL AND json_valid(event.apart)
           AND NOT EXISTS (
               SELECT 1 FROM blob_use JOIN blob ON blob.num = blob_use.blob
               WHERE blob_use.position = event.position
                 AND blob.hash = unhex(json_extract(place.value, '$[1]')))",
        [num],
        |row| row.get(0),
    )?;
    if unnoted > 0 {
        let what = format!("the use of {unnoted} stored texts is not recorded");
        report.dangling.push((agent, what));
    }
    Ok(())
}

/// The last event that any snapshot includes. The chain alone does not show that its end is missing.
fn seen_by_snapshots(databases: &Databases, agent: AgentId) -> Seq {
    let Some(derived) = databases.derived.get() else {
        return Seq::ZERO;
    };
    let seen: rusqlite::Result<Option<i64>> = derived.query_row(
        "SELECT max(seq) FROM snapshot WHERE agent = ?1",
        [IdParam(agent.as_bytes())],
        |row| row.get(0),
    );
    // Without snapshots this cannot be checked.
    seen.ok().flatten().map_or(Seq::ZERO, seq)
}
