//! The list of agents: one row per agent, kept by the writer and read one page at a time.

use super::cursor::PageEnd;
use super::entry::Entry;
use super::names::find;
use super::row::{IdParam, existing_agent_num};
use crate::damage::Unreadable;
use crate::error::{Error, Result};
use crate::store::*;
use agentd_core::event::Mode;
use agentd_core::id::{AgentId, Seq};
use agentd_core::state::{AgentState, Phase};
use agentd_core::time::Timestamp;
use agentd_core::usage::Spent;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, Row, params, params_from_iter};

/// The maximum number of rows on one page.
const MAX_PAGE: usize = 1000;
/// `updated_at` in the list is accurate to one second, so a busy agent's row is written once a second
/// and not with every event.
const LISTED_EVERY_MS: i64 = 1000;

/// The columns of an agent's row that must change together with its state.
#[derive(PartialEq)]
pub struct Line {
    phase: Phase,
    archived: bool,
    generation: u64,
    spent: Spent,
    name: String,
    conversations: usize,
    parent: Option<AgentId>,
    tasks: usize,
    idle_reset_at: Option<i64>,
}

impl Line {
    /// Differs from every row of an agent, so that [`update_line`] always writes the row.
    pub fn none() -> Self {
        Self {
            phase: Phase::Idle,
            archived: false,
            generation: u64::MAX,
            spent: Spent::default(),
            name: String::new(),
            conversations: 0,
            parent: None,
            tasks: 0,
            idle_reset_at: None,
        }
    }

    pub fn of(state: &AgentState) -> Self {
        Self {
            phase: state.phase(),
            archived: state.archived,
            generation: state.generation(),
            spent: state.spending.lifetime,
            name: state.name.clone(),
            conversations: state.tree.len(),
            parent: parent(state),
            tasks: state.tasks.running().len(),
            idle_reset_at: idle_reset_at(state),
        }
    }
}

fn parent(state: &AgentState) -> Option<AgentId> {
    state
        .parent_link
        .as_ref()
        .map(|parent_link| parent_link.parent)
}

fn idle_reset_at(state: &AgentState) -> Option<i64> {
    state.idle_reset_at().map(Timestamp::as_millis)
}

/// The value of the column `listed`: see the schema.
const fn listed(state: &AgentState) -> i64 {
    match state.archived {
        true => 2,
        false => 1,
    }
}

/// Writes the row if it has changed.
pub fn update_line(journal: &Connection, entry: &mut Entry, before: &Line) -> Result<()> {
    let state = &entry.state;
    let at = state.used_at.as_millis();
    let aged = (at - entry.listed_at).abs() >= LISTED_EVERY_MS;
    if !aged && Line::of(state) == *before {
        return Ok(());
    }
    journal
        .prepare_cached(
            "UPDATE agent SET name = ?2, mode = ?3, phase = ?4, listed = ?5, created_at = ?6,
                 updated_at = ?7, generation = ?8, conversations = ?9, spent = ?10,
                 parent = ?11, tasks = ?12, idle_reset_at = ?13
             WHERE num = ?1",
        )?
        .execute(params![
            entry.num,
            state.name,
            mode_name(state.mode),
            state.phase().name(),
            listed(state),
            state.created_at.as_millis(),
            at,
            state.generation() as i64,
            state.tree.len() as i64,
            serde_json::to_string(&state.spending.lifetime).map_err(Error::Encode)?,
            parent(state).map(|parent| *parent.as_bytes()),
            state.tasks.running().len() as i64,
            idle_reset_at(state),
        ])?;
    entry.listed_at = at;
    Ok(())
}

/// Whether the agent's row matches its journal and, unless it is archived, whether its name leads to it. True for an
/// agent that is not listed: it is only the ancestor of another one.
pub fn is_listed_as(journal: &Connection, num: i64, state: &AgentState) -> Result<bool> {
    let read = journal.query_row(
        &format!("SELECT {LINE} FROM agent WHERE num = ?1"),
        [num],
        |row| Ok(read_line(row)),
    )?;
    let row = match read {
        Ok((_, row)) => row,
        Err(Error::Damaged { .. }) => return Ok(false),
        Err(error) => return Err(error),
    };
    let at: i64 = journal.query_row("SELECT listed FROM agent WHERE num = ?1", [num], |row| {
        row.get(0)
    })?;
    if at == 0 {
        return Ok(true);
    }
    let same = row.name == state.name
        && row.mode == state.mode
        && row.phase == state.phase()
        && row.archived == state.archived
        && row.created_at == state.created_at
        && row.generation == state.generation()
        && row.conversations == state.tree.len() as u64
        && row.spent == state.spending.lifetime
        && row.parent == parent(state);
    Ok(same && (state.archived || find(journal, &state.name)? == Some(state.id)))
}

/// The agents that have background tasks, according to their journals.
pub fn with_tasks(journal: &Connection) -> Result<Vec<AgentId>> {
    let mut statement = journal.prepare_cached("SELECT id FROM agent WHERE tasks > 0")?;
    let ids = statement.query_map([], |row| row.get(0).map(AgentId::from_bytes))?;
    Ok(ids.collect::<rusqlite::Result<_>>()?)
}

pub fn list(journal: &Connection, query: &AgentQuery) -> Result<AgentPage> {
    let limit = query.limit.clamp(1, MAX_PAGE);
    let filter = Filter::of(query);
    // One transaction, so that the total and the page match.
    let moment = journal.unchecked_transaction()?;
    let total = filter.count(journal)?;
    let (sql, parameters) = filter.page(query, limit)?;
    let mut statement = journal.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(parameters))?;
    let mut agents: Vec<AgentRow> = Vec::new();
    let mut last_row = 0;
    let mut next = None;
    while let Some(row) = rows.next()? {
        let (num, agent) = read_line(row)?;
        if agents.len() == limit {
            let end = agents
                .last()
                .map(|last| page_end(query.sort, last, last_row));
            next = end.map(|end| end.to_cursor()).transpose()?;
            break;
        }
        last_row = num;
        agents.push(agent);
    }
    moment.commit()?;
    Ok(AgentPage {
        agents,
        total,
        next,
    })
}

fn page_end(sort: AgentSort, last: &AgentRow, row: i64) -> PageEnd {
    match sort {
        AgentSort::Recent => PageEnd::Recent {
            updated_at: last.updated_at.as_millis(),
            row,
        },
        AgentSort::Name => PageEnd::Name {
            name: last.name.clone(),
            row,
        },
    }
}

/// The conditions of a list, as SQL and its parameters.
struct Filter {
    conditions: Vec<&'static str>,
    parameters: Vec<Sql>,
}

impl Filter {
    fn of(query: &AgentQuery) -> Self {
        let mut filter = Self {
            conditions: vec!["listed = ?"],
            parameters: vec![Sql::Integer(if query.archived { 2 } else { 1 })],
        };
        if let Some(mode) = query.mode {
            filter.and("mode = ?", Sql::Text(mode_name(mode).to_owned()));
        }
        if let Some(phase) = query.phase {
            filter.and("phase = ?", Sql::Text(phase.name().to_owned()));
        }
        if let Some(prefix) = &query.name_prefix {
            // The plus keeps SQLite from using the index on names: it would then have to sort by time.
            let (from, to) = match query.sort {
                AgentSort::Name => ("name >= ?", "name < ?"),
                AgentSort::Recent => ("+name >= ?", "+name < ?"),
            };
            filter.and(from, Sql::Text(prefix.clone()));
            // The first string after all strings that begin with the prefix.
            filter.and(to, Sql::Text(format!("{prefix}\u{10ffff}")));
        }
        filter
    }

    fn and(&mut self, condition: &'static str, parameter: Sql) {
        self.conditions.push(condition);
        self.parameters.push(parameter);
    }

    fn count(&self, journal: &Connection) -> Result<u64> {
        // The table `listing` has no names, so agents with a prefix are counted one by one.
        let from = match self.conditions.iter().any(|it| it.contains("name")) {
            true => "count(*) FROM agent",
            false => "coalesce(sum(agents), 0) FROM listing",
        };
        let sql = format!("SELECT {from} WHERE {}", self.conditions.join(" AND "));
        let count: i64 = journal
            .prepare_cached(&sql)?
            .query_row(params_from_iter(self.parameters.iter()), |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }

    /// One row more than the page, to see whether there is a next page.
    fn page(&self, query: &AgentQuery, limit: usize) -> Result<(String, Vec<Sql>)> {
        let mut conditions = self.conditions.clone();
        let mut parameters = self.parameters.clone();
        let after = query.after.as_ref().map(PageEnd::parse).transpose()?;
        match (after, query.sort) {
            (Some(PageEnd::Recent { updated_at, row }), AgentSort::Recent) => {
                conditions.push("(updated_at, num) < (?, ?)");
                parameters.extend([Sql::Integer(updated_at), Sql::Integer(row)]);
            }
            (Some(PageEnd::Name { name, row }), AgentSort::Name) => {
                conditions.push("(name, num) > (?, ?)");
                parameters.extend([Sql::Text(name), Sql::Integer(row)]);
            }
            (Some(_), _) => return Err(Error::WrongCursor),
            (None, _) => {}
        }
        let order = match query.sort {
            AgentSort::Recent => "updated_at DESC, num DESC",
            AgentSort::Name => "name, num",
        };
        let sql = format!(
            "SELECT {LINE} FROM agent WHERE {} ORDER BY {order} LIMIT {}",
            conditions.join(" AND "),
            limit + 1
        );
        Ok((sql, parameters))
    }
}

/// The agents whose idle reset is due next, the earliest first.
pub fn idle_resets(journal: &Connection, limit: usize) -> Result<Vec<(AgentId, Timestamp)>> {
    let mut statement = journal.prepare_cached(
        "SELECT id, idle_reset_at FROM agent WHERE idle_reset_at > ?1
         ORDER BY idle_reset_at LIMIT ?2",
    )?;
    let rows = statement.query_map([i64::MIN, limit as i64], |row| {
        let at = Timestamp::from_millis(row.get(1)?);
        Ok((AgentId::from_bytes(row.get(0)?), at))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The columns of a row, in the order that [`read_line`] expects.
const LINE: &str = "num, id, name, mode, phase, listed, created_at, updated_at, generation, \
                    conversations, spent, parent";

fn read_line(row: &Row<'_>) -> Result<(i64, AgentRow)> {
    let mode: String = row.get(3)?;
    let phase: String = row.get(4)?;
    let spent: String = row.get(10)?;
    let id = AgentId::from_bytes(row.get(1)?);
    let agent = AgentRow {
        id,
        name: row.get(2)?,
        mode: match mode.as_str() {
            "oneshot" => Mode::Oneshot,
            _ => Mode::Persistent,
        },
        phase: Phase::ALL
            .into_iter()
            .find(|known| known.name() == phase)
            .unwrap_or(Phase::Idle),
        archived: row.get::<_, i64>(5)? == 2,
        created_at: Timestamp::from_millis(row.get(6)?),
        updated_at: Timestamp::from_millis(row.get(7)?),
        generation: row.get::<_, i64>(8)?.unsigned_abs(),
        conversations: row.get::<_, i64>(9)?.unsigned_abs(),
        spent: read_spent(id, &spent)?,
        parent: row.get::<_, Option<[u8; 16]>>(11)?.map(AgentId::from_bytes),
    };
    Ok((row.get(0)?, agent))
}

/// Unreadable costs are an error: they must not count as zero.
fn read_spent(agent: AgentId, json: &str) -> Result<Spent> {
    serde_json::from_str(json).map_err(|_| Error::Damaged {
        agent,
        seq: Seq::ZERO,
        reason: Unreadable::Misshapen,
    })
}

pub const fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Persistent => "persistent",
        Mode::Oneshot => "oneshot",
    }
}

pub fn usage(journal: &Connection, agent: Option<AgentId>) -> Result<Spent> {
    let mut total = Spent::default();
    let mut add = |row: &Row<'_>| -> Result<()> {
        let id = AgentId::from_bytes(row.get(0)?);
        let json: String = row.get(1)?;
        total.merge(&read_spent(id, &json)?);
        Ok(())
    };
    match agent {
        Some(agent) => {
            existing_agent_num(journal, agent)?;
            let mut statement =
                journal.prepare_cached("SELECT id, spent FROM agent WHERE id = ?1")?;
            statement.query_row([IdParam(agent.as_bytes())], |row| Ok(add(row)))??;
        }
        None => {
            let mut statement =
                journal.prepare_cached("SELECT id, spent FROM agent WHERE listed IN (1, 2)")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                add(row)?;
            }
        }
    }
    Ok(total)
}
