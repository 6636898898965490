//! Checks that everything is as it was written.

use super::load::{self, Start};
use super::readers::Databases;
use super::row::{IdParam, agent_num, seq, sql_seq};
use super::{agents, row};
use crate::error::{Disk, Error, Result};
use crate::store::{Damage, Report};
use agentd_core::event::Body;
use agentd_core::id::{AgentId, ConversationId, Seq};
use agentd_core::state::AgentState;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::BTreeSet;

pub fn verify(databases: &Databases, agent: Option<AgentId>) -> Result<Report> {
    let journal = &databases.journal;
    let mut report = Report::default();
    let agents = match agent {
        Some(agent) => {
            let num = agent_num(journal, agent)?.ok_or(Error::NoSuchAgent { agent })?;
            vec![(num, agent)]
        }
        None => {
            let checked = file(journal, &mut report);
            or_finding(checked, "the file", &mut report)?;
            let agents = all_agents(journal);
            or_finding(agents, "the list of agents", &mut report)?.unwrap_or_default()
        }
    };
    for (num, agent) in agents {
        report.agents += 1;
        let checked = one(databases, num, agent, &mut report);
        or_finding(checked, &format!("agent {agent}"), &mut report)?;
    }
    Ok(report)
}

/// What SQLite cannot make sense of is a finding like any other, and the rest is still looked at.
fn or_finding<T>(checked: Result<T>, what: &str, report: &mut Report) -> Result<Option<T>> {
    match checked {
        Err(Error::Unavailable(Disk::Corrupt(error) | Disk::Other(error))) => {
            report.file.push(format!("{what}: {error}"));
            Ok(None)
        }
        checked => checked.map(Some),
    }
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
    // A negative number is that of an agent some of whose events were quarantined.
    let orphans: i64 = journal.query_row(
        "SELECT count(*) FROM event WHERE abs(agent) NOT IN (SELECT num FROM agent)",
        [],
        |row| row.get(0),
    )?;
    if orphans > 0 {
        report.file.push(format!("{orphans} events of no agent"));
    }
    let unused: i64 = journal.query_row(
        "SELECT count(*) FROM blob WHERE hash IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM blob_use WHERE blob = blob.num)",
        [],
        |row| row.get(0),
    )?;
    if unused > 0 {
        let what = format!("{unused} texts that no event refers to");
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
        let what = "the list counts other agents than there are".to_owned();
        report.file.push(what);
    }
    Ok(())
}

fn one(databases: &Databases, num: i64, agent: AgentId, report: &mut Report) -> Result<()> {
    let journal = &databases.journal;
    // Before the moment begins: what a snapshot has seen by now, the journal must hold.
    let seen = seen_by_snapshots(databases, agent);
    let moment = journal.unchecked_transaction()?;
    let (events, last): (i64, i64) = journal.query_row(
        "SELECT count(*), coalesce(max(seq), 0) FROM event WHERE agent = ?1",
        [num],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    report.events += events.unsigned_abs();
    report.quarantined += journal.query_row(
        "SELECT count(*) FROM quarantine WHERE agent = ?1",
        [num],
        |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()),
    )?;
    let mut told = Told::default();
    let folded = load::fold_each(databases, agent, num, Start::Beginning, |event| {
        told.hear(event.conversation, &event.body);
    });
    let damage = match folded {
        Ok(folded) => {
            told.check(&folded.state, report);
            branches(journal, num, &folded.state, report)?;
            if folded.damage.is_none() {
                line(journal, num, &folded.state, report)?;
            }
            let head = folded.state.head.max(told.quarantined);
            if seen > head && folded.damage.is_none() {
                let what = format!("events {} to {seen} are missing", head.next());
                report.dangling.push((agent, what));
            }
            folded.damage
        }
        // Written by a newer agentd: this one cannot tell whether it is good.
        Err(Error::Damaged {
            seq: from, reason, ..
        }) => Some(Damage {
            from,
            through: seq(last),
            reason,
        }),
        Err(error) => return Err(error),
    };
    blob_uses(journal, num, agent, report)?;
    moment.commit()?;
    report.damaged.extend(damage.map(|damage| (agent, damage)));
    Ok(())
}

/// What the events say that must be true of the whole.
#[derive(Default)]
struct Told {
    /// Conversations some of whose words are gone.
    without_words: BTreeSet<ConversationId>,
    /// How far the events reached that were set aside.
    quarantined: Seq,
}

impl Told {
    fn hear(&mut self, conversation: ConversationId, body: &Body) {
        match body {
            Body::Gone(_) => drop(self.without_words.insert(conversation)),
            Body::Quarantined(body) => self.quarantined = self.quarantined.max(body.through),
            _ => {}
        }
    }

    fn check(&self, state: &AgentState, report: &mut Report) {
        if state.anomalies > 0 {
            let what = format!("{} events refer to something unknown", state.anomalies);
            report.dangling.push((state.id, what));
        }
        for id in &self.without_words {
            if state.tree.get(*id).is_some_and(|known| !known.purged) {
                let what = format!("words of conversation {id} are gone, and it was not purged");
                report.dangling.push((state.id, what));
            }
        }
    }
}

/// Origins in other agents that are not there, or that a purge would not know of.
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
            let what = format!("conversation {} branches off nothing", conversation.id);
            report.dangling.push((state.id, what));
        }
        if !row::has_branch(journal, num, conversation.id, from)? {
            let what = format!("the branch {} is not noted down", conversation.id);
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

/// The list must say what the journal says.
fn line(journal: &Connection, num: i64, state: &AgentState, report: &mut Report) -> Result<()> {
    if !agents::is_listed_as(journal, num, state)? {
        let what = "the list shows it as something else than it is".to_owned();
        report.dangling.push((state.id, what));
    }
    Ok(())
}

/// A text that is not known to be used would go with the first purge that lets go of it.
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
        let what = format!("{unnoted} texts are used, and that is not noted down");
        report.dangling.push((agent, what));
    }
    Ok(())
}

/// A chain cannot tell that its end is missing; a snapshot that saw it can.
fn seen_by_snapshots(databases: &Databases, agent: AgentId) -> Seq {
    let seen: rusqlite::Result<Option<i64>> = databases.derived.query_row(
        "SELECT max(seq) FROM snapshot WHERE agent = ?1",
        [IdParam(agent.as_bytes())],
        |row| row.get(0),
    );
    // Without snapshots there is nobody to ask.
    seen.ok().flatten().map_or(Seq::ZERO, seq)
}
