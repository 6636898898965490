//! Takes snapshots, and thins out the older ones.

use crate::error::Result;
use crate::sqlite::readers::Databases;
use crate::sqlite::row::{IdParam, existing_agent_num, sql_seq};
use crate::sqlite::snapshot::{self, Snapshot};
use crate::sqlite::{fold, window};
use agentd_core::id::{AgentId, ConversationId, Seq};
use rusqlite::{Connection, params};

/// At least this many of the newest snapshots of a conversation are all kept; older ones are thinned out.
const RECENT: u64 = 8;
/// Of the older ones, about one in this many is kept, for rewinds.
const OLDER: u64 = 8;

/// Takes a snapshot of an agent as it is now.
pub fn take(databases: &Databases, agent: AgentId) -> Result<()> {
    let journal = databases.journal.unchecked_transaction()?;
    let num = existing_agent_num(&journal, agent)?;
    let folded = fold::fold(databases, agent, num)?;
    let Some(current) = folded.state.tree.current() else {
        return Ok(());
    };
    let head = folded.state.head;
    let window = window::fold(databases, &folded.state, current, head)?;
    // Nothing was written to the journal, and a commit would fail after a damaged page.
    drop(journal);
    let derived = databases.derived.own()?;
    let taken = Snapshot {
        conversation: current,
        chain: folded.chain,
        skeleton: window.skeleton(),
        state: folded.state,
        source: folded.source,
    };
    snapshot::put(derived, agent, &taken)?;
    thin_out(derived, agent, current, head)
}

/// Keeps the newest snapshots of a conversation, and a few of the older ones.
fn thin_out(
    derived: &Connection,
    agent: AgentId,
    conversation: ConversationId,
    head: Seq,
) -> Result<()> {
    let mut statement = derived.prepare_cached(
        "SELECT seq FROM snapshot WHERE agent = ?1 AND conversation = ?2 AND seq <= ?3
         ORDER BY seq",
    )?;
    let parameters = params![
        IdParam(agent.as_bytes()),
        IdParam(conversation.as_bytes()),
        sql_seq(head),
    ];
    let seqs: Vec<i64> = statement
        .query_map(parameters, |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let old = seqs.len().saturating_sub((RECENT + OLDER) as usize);
    // Waits until a whole group is old. Then keeps the oldest snapshot and those that `is_kept` selects.
    if old < OLDER as usize {
        return Ok(());
    }
    for seq in seqs.iter().take(old).skip(1).filter(|seq| !is_kept(**seq)) {
        derived
            .prepare_cached("DELETE FROM snapshot WHERE agent = ?1 AND seq = ?2")?
            .execute(params![IdParam(agent.as_bytes()), seq])?;
    }
    Ok(())
}

/// Depends on `seq` alone, so that a snapshot that was kept once stays. 512 is the default of `snapshot_every`.
const fn is_kept(seq: i64) -> bool {
    (seq / 512) % OLDER as i64 == 0
}
