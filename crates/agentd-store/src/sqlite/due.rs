//! Which agents have an idle reset or a schedule that is due, and when. The writer keeps the columns with the agent's row.

use crate::error::Result;
use agentd_core::id::AgentId;
use agentd_core::time::Timestamp;
use rusqlite::Connection;

/// The agents whose idle reset is due next, the earliest first.
pub fn idle_resets(journal: &Connection, limit: usize) -> Result<Vec<(AgentId, Timestamp)>> {
    let sql = "SELECT id, idle_reset_at FROM agent WHERE idle_reset_at > ?1
               ORDER BY idle_reset_at LIMIT ?2";
    earliest(journal, sql, limit)
}

/// The agents whose schedules are due next, the earliest first.
pub fn schedules(journal: &Connection, limit: usize) -> Result<Vec<(AgentId, Timestamp)>> {
    let sql = "SELECT id, schedule_due_at FROM agent WHERE schedule_due_at > ?1
               ORDER BY schedule_due_at LIMIT ?2";
    earliest(journal, sql, limit)
}

fn earliest(journal: &Connection, sql: &str, limit: usize) -> Result<Vec<(AgentId, Timestamp)>> {
    let mut statement = journal.prepare_cached(sql)?;
    let rows = statement.query_map([i64::MIN, limit as i64], |row| {
        let at = Timestamp::from_millis(row.get(1)?);
        Ok((AgentId::from_bytes(row.get(0)?), at))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The agents that have schedules, archived ones too.
pub fn with_schedules(journal: &Connection) -> Result<Vec<AgentId>> {
    let mut statement = journal.prepare_cached("SELECT id FROM agent WHERE schedules > 0")?;
    let ids = statement.query_map([], |row| row.get(0).map(AgentId::from_bytes))?;
    Ok(ids.collect::<rusqlite::Result<_>>()?)
}
