//! The search index: for each word, the positions of the events that contain it, in the order of all commits.
//!
//! It is divided into shards, each for a range of positions. A purge drops all shards that contain its conversation,
//! and the follower fills them again from the remaining events. So no purged text remains in the index, and the other
//! shards do not change.

use crate::error::Result;
use crate::sqlite::purge;
use crate::sqlite::read::{self, Stretch};
use crate::sqlite::readers::Databases;
use crate::sqlite::row::{EventRow, IdParam, agent_num};
use crate::sqlite::shard::{SHARD, make_shard, shard_of};
use agentd_core::event::Kind;
use agentd_core::id::{AgentId, ConversationId};
use rusqlite::{Connection, OptionalExtension as _, params};

/// The last position that the follower has indexed.
fn position(derived: &Connection) -> Result<i64> {
    let position = derived
        .prepare_cached("SELECT position FROM follower")?
        .query_row([], |row| row.get(0))?;
    Ok(position)
}

/// Indexes the next range of the journal. Runs in a transaction.
pub fn advance(databases: &Databases, limit: usize) -> Result<Stretch> {
    let derived = databases.derived.own()?;
    let from = position(derived)?;
    let stretch = read::stretch(&databases.journal, from, i64::MAX, limit)?;
    if let Some(last) = stretch.last {
        add(databases, &stretch)?;
        derived
            .prepare_cached("UPDATE follower SET position = ?1")?
            .execute([last])?;
    }
    Ok(stretch)
}

/// Refills the next part of a dropped shard. False if there is none. Runs in a transaction.
pub fn refill(databases: &Databases, limit: usize) -> Result<bool> {
    let derived = databases.derived.own()?;
    let next: Option<(i64, i64, i64)> = derived
        .prepare_cached("SELECT shard, position, through FROM refill ORDER BY shard DESC LIMIT 1")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((shard, from, through)) = next else {
        return Ok(false);
    };
    let stretch = read::stretch(&databases.journal, from, through, limit)?;
    add(databases, &stretch)?;
    match stretch.last {
        Some(last) if stretch.is_cut => derived
            .prepare_cached("UPDATE refill SET position = ?2 WHERE shard = ?1")?
            .execute(params![shard, last])?,
        _ => derived
            .prepare_cached("DELETE FROM refill WHERE shard = ?1")?
            .execute([shard])?,
    };
    Ok(true)
}

fn add(databases: &Databases, stretch: &Stretch) -> Result<()> {
    let derived = databases.derived.own()?;
    // Text that is being purged must not be indexed again.
    let leaving = purge::unfinished(&databases.journal)?;
    for (agent, row) in &stretch.events {
        if leaving.contains(&(*agent, row.event.conversation)) {
            continue;
        }
        let Some(text) = words(databases, *agent, row)? else {
            continue;
        };
        let shard = shard_of(row.position);
        make_shard(derived, shard)?;
        derived
            .prepare_cached(&format!(
                "INSERT INTO words_{shard} (rowid, text) VALUES (?1, ?2)"
            ))?
            .execute(params![row.position, text])?;
    }
    Ok(())
}

/// The text of an event that goes into the index. None if there is none.
fn words(databases: &Databases, agent: AgentId, row: &EventRow) -> Result<Option<String>> {
    let is_content = Kind::parse(&row.event.kind).is_some_and(Kind::is_content);
    if !is_content || row.event.body.is_none() {
        return Ok(None);
    }
    // An unreadable event cannot be indexed; `verify` reports it.
    let Ok(event) = row.clone().try_decode(&databases.journal, agent)? else {
        return Ok(None);
    };
    let text = event.body.words().join("\n");
    Ok((!text.is_empty()).then_some(text))
}

/// Drops the shards that contain text of a conversation. Runs in a transaction.
pub fn forget(databases: &Databases, agent: AgentId, conversation: ConversationId) -> Result<()> {
    let Some(num) = agent_num(&databases.journal, agent)? else {
        return Ok(());
    };
    let derived = databases.derived.own()?;
    let through = position(derived)?;
    for shard in shards_with(&databases.journal, num, conversation)? {
        let there = derived.execute("DELETE FROM shard WHERE num = ?1", [shard])?;
        if there == 0 {
            continue;
        }
        derived.execute_batch(&format!("DROP TABLE words_{shard}"))?;
        make_shard(derived, shard)?;
        derived.execute(
            "INSERT OR REPLACE INTO refill (shard, position, through) VALUES (?1, ?2, ?3)",
            params![
                shard,
                shard * SHARD - 1,
                through.min((shard + 1) * SHARD - 1)
            ],
        )?;
    }
    Ok(())
}

/// The shards that contain events of a conversation, including events that were quarantined after they were indexed.
fn shards_with(journal: &Connection, num: i64, conversation: ConversationId) -> Result<Vec<i64>> {
    let mut statement = journal.prepare_cached(
        "SELECT position FROM event WHERE agent = ?1 AND seq > 0 AND conversation = ?2
         UNION ALL SELECT position FROM quarantine WHERE agent = ?1 AND conversation = ?2",
    )?;
    let parameters = params![num, IdParam(conversation.as_bytes())];
    let mut rows = statement.query(parameters)?;
    let mut shards = std::collections::BTreeSet::new();
    while let Some(row) = rows.next()? {
        shards.insert(shard_of(row.get(0)?));
    }
    Ok(shards.into_iter().collect())
}
