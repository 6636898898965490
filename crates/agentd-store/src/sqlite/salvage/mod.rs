//! The readable rows of a damaged journal, sorted by the agents that they belong to.
//!
//! Rows are taken from every page that looks valid, anywhere in the file; the checksum chain decides which of
//! them are an agent's journal.
//!
//! - `image`, `record`: the pages and records of a database, read without SQLite.

mod image;
mod record;
mod survey;

pub use survey::survey;

use super::Options;
use super::head::Found;
use super::row::{COLUMNS, EventRow, seq, sql_seq};
use crate::chain::{GENESIS, Hash};
use crate::damage::{Damage, Unreadable};
use crate::error::{Error, Result};
use agentd_core::id::{AgentId, Seq};
use image::Image;
use record::{Record, Tree, Version, records};
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Rows as they were found, unchecked.
const TABLES: &str = "
    CREATE TABLE event (
        position INTEGER, agent INTEGER, seq INTEGER, at INTEGER, conversation BLOB, turn BLOB,
        kind TEXT, version INTEGER, body TEXT, apart TEXT, salt BLOB, digest BLOB, chain BLOB,
        source_incarnation INTEGER, source_n INTEGER, hidden INTEGER);
    CREATE INDEX event_place ON event (agent, seq);
    CREATE TABLE blob (hash BLOB PRIMARY KEY, size INTEGER, zstd BLOB);
    CREATE TABLE draft (agent INTEGER, incarnation INTEGER, try INTEGER, at INTEGER, bytes BLOB,
        PRIMARY KEY (agent, incarnation, try, at));
    CREATE TABLE aside (position INTEGER PRIMARY KEY);
    CREATE TABLE place (agent INTEGER, seq INTEGER, position INTEGER,
        PRIMARY KEY (agent, seq, position)) WITHOUT ROWID;
";

/// An agent's own row, as far as it was found.
#[derive(Clone, Debug)]
pub struct AgentLine {
    pub id: AgentId,
    pub fence: i64,
    pub owner: String,
    pub ended: (i64, i64),
    pub name: String,
    pub listed: i64,
}

pub struct Salvage {
    pub rows: Connection,
    pub lines: BTreeMap<i64, AgentLine>,
    /// Agents by their number, from the table and from its index.
    ids: BTreeMap<i64, AgentId>,
    /// Ids that are known from outside the journal: the head, directories.
    known: BTreeSet<AgentId>,
    /// The last event of each agent, according to the head.
    tips: BTreeMap<AgentId, Seq>,
    /// The last position that was assigned, according to the head.
    pub acknowledged: u64,
}

/// How far an agent's chain could be followed.
#[derive(Clone, Debug)]
pub struct Followed {
    pub num: i64,
    pub agent: AgentId,
    pub last: Seq,
    pub chain: Hash,
    pub damage: Option<Damage>,
}

impl Salvage {
    /// The rows of the journal in a directory. `rows` is an empty database that stores them.
    pub fn of_dir(options: &Options, from: &Path, head: &Found, rows: Connection) -> Result<Self> {
        let image = Image::open(&from.join("journal.db"), &from.join("journal.db-wal"));
        let image = image.map_err(Error::RepairIo)?;
        Self::of(rows, &image, head, options.agents_beside().collect())
    }

    fn of(rows: Connection, image: &Image, head: &Found, known: BTreeSet<AgentId>) -> Result<Self> {
        rows.execute_batch(TABLES)?;
        let tips = head.tips().iter().map(|tip| (tip.agent, tip.seq));
        let positions = head.tips().iter().map(|tip| tip.position);
        let acknowledged = positions.max().unwrap_or_default();
        let mut salvage = Self {
            rows,
            lines: BTreeMap::new(),
            ids: BTreeMap::new(),
            known,
            tips: tips.collect(),
            acknowledged,
        };
        salvage.known.extend(salvage.tips.keys());
        salvage.rows.execute_batch("BEGIN")?;
        for number in 1..=image.last_page() {
            let page = image.page(number).map_err(Error::RepairIo)?;
            for record in records(image, number, &page.unwrap_or_default(), Version::Committed) {
                salvage.take(record, None)?;
            }
        }
        // From frames that SQLite does not see, only acknowledged events may be taken; the head lists them.
        for hidden in image.hidden() {
            let (number, page) = hidden.map_err(Error::RepairIo)?;
            for record in records(image, number, &page, Version::Newest) {
                salvage.take(record, Some(acknowledged))?;
            }
        }
        salvage.rows.execute_batch("COMMIT")?;
        Ok(salvage)
    }

    /// Stores a record if it has the format of a known table. `up_to` is for records that SQLite does not
    /// see: events after that position were never acknowledged.
    fn take(&mut self, record: Record, up_to: Option<u64>) -> Result<()> {
        use Value::{Blob, Integer, Null, Text};
        match (record.tree, record.values.as_slice()) {
            (Tree::Table, [Null, Integer(agent), Integer(_), ..]) if record.values.len() == 15 => {
                let position = record.row;
                if up_to.is_some_and(|last| position.unsigned_abs() > last) {
                    return Ok(());
                }
                if *agent < 0 {
                    let sql = "INSERT OR IGNORE INTO aside VALUES (?1)";
                    self.rows.prepare_cached(sql)?.execute([position])?;
                }
                let values = record.values.iter().skip(1).cloned();
                let hidden = Integer(i64::from(up_to.is_some()));
                let row = std::iter::once(Integer(position)).chain(values);
                let row = row.chain([hidden]);
                self.rows
                    .prepare_cached(
                        "INSERT INTO event VALUES
                         (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
                    )?
                    .execute(params_from_iter(row))?;
            }
            (
                Tree::Table,
                [
                    Null,
                    Blob(id),
                    Integer(fence),
                    Text(owner),
                    Integer(incarnation),
                    Integer(try_),
                    Text(name),
                    Text(_),
                    Text(_),
                    Integer(listed),
                    ..,
                ],
            ) => {
                if let Some(id) = agent_id(id) {
                    let line = AgentLine {
                        id,
                        fence: *fence,
                        owner: owner.clone(),
                        ended: (*incarnation, *try_),
                        name: name.clone(),
                        listed: *listed,
                    };
                    self.lines.insert(record.row, line);
                    self.ids.insert(record.row, id);
                }
            }
            (Tree::Table, [Null, Blob(hash), Integer(size), Blob(zstd)]) => {
                let sql = "INSERT OR IGNORE INTO blob VALUES (?1, ?2, ?3)";
                let mut statement = self.rows.prepare_cached(sql)?;
                statement.execute(params![hash, size, zstd])?;
            }
            (Tree::Index, [Blob(id), Integer(num)]) => {
                if let Some(id) = agent_id(id) {
                    self.ids.entry(*num).or_insert(id);
                }
            }
            // In the index of events, a position is never smaller than the event's number; in other indexes it can be.
            (Tree::Index, [Integer(agent), Integer(of), Integer(position)])
                if *agent > 0 && 0 < *of && of <= position && up_to.is_none() =>
            {
                let sql = "INSERT OR IGNORE INTO place VALUES (?1, ?2, ?3)";
                let mut statement = self.rows.prepare_cached(sql)?;
                statement.execute([agent, of, position])?;
            }
            (Tree::Index, [Integer(_), Integer(_), Integer(_), Integer(_), Blob(_)])
                if up_to.is_none() =>
            {
                let sql = "INSERT OR IGNORE INTO draft VALUES (?1, ?2, ?3, ?4, ?5)";
                let mut statement = self.rows.prepare_cached(sql)?;
                statement.execute(params_from_iter(&record.values))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Follows the chain of every agent of which a row was found, and passes each valid event to `good`.
    /// Also returns the number of events whose agent is unknown.
    pub fn follow_all(
        &self,
        mut good: impl FnMut(&Followed, &EventRow) -> Result<()>,
    ) -> Result<(Vec<Followed>, u64)> {
        let mut nums: BTreeSet<i64> = self.ids.keys().copied().collect();
        let mut statement = self
            .rows
            .prepare("SELECT DISTINCT agent FROM event WHERE agent > 0")?;
        let found = statement.query_map([], |row| row.get(0))?;
        nums.extend(found.collect::<rusqlite::Result<Vec<i64>>>()?);
        let (mut followed, mut nobodys) = (Vec::new(), 0);
        for num in nums {
            match self.id_of(num)? {
                Some(agent) => followed.push(self.follow(num, agent, &mut good)?),
                None => nobodys += self.count(num)?,
            }
        }
        for (agent, last) in &self.tips {
            if !followed.iter().any(|known| known.agent == *agent) {
                followed.push(Followed {
                    num: 0,
                    agent: *agent,
                    last: Seq::ZERO,
                    chain: GENESIS,
                    damage: Some(missing(Seq(1), *last)),
                });
            }
        }
        Ok((followed, nobodys))
    }

    fn count(&self, num: i64) -> Result<u64> {
        let sql = "SELECT count(DISTINCT seq) FROM event WHERE agent = ?1";
        let count: i64 = self.rows.query_row(sql, [num], |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }

    /// The agent of these events. The checksum of the first one includes the agent's id, so an id that was lost from
    /// the table can be determined among the ids that are known otherwise.
    fn id_of(&self, num: i64) -> Result<Option<AgentId>> {
        let noted = self.ids.get(&num).copied();
        for id in noted.iter().chain(&self.known) {
            if self.next(num, *id, Seq(1), &GENESIS)?.is_some() {
                return Ok(Some(*id));
            }
        }
        Ok(noted)
    }

    fn follow(
        &self,
        num: i64,
        agent: AgentId,
        good: &mut impl FnMut(&Followed, &EventRow) -> Result<()>,
    ) -> Result<Followed> {
        let mut followed = Followed {
            num,
            agent,
            last: Seq::ZERO,
            chain: GENESIS,
            damage: None,
        };
        while let Some(stored) = self.next(num, agent, followed.last.next(), &followed.chain)? {
            good(&followed, &stored)?;
            followed.last = stored.event.seq;
            followed.chain = stored.event.chain;
        }
        let end = self.end_of(num, agent)?;
        if end > followed.last {
            followed.damage = Some(missing(followed.last.next(), end));
        }
        Ok(followed)
    }

    /// The next event of the chain. Rows that were quarantined earlier are ignored, and of a purged event the
    /// version without text counts.
    fn next(&self, num: i64, agent: AgentId, at: Seq, prev: &Hash) -> Result<Option<EventRow>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM event WHERE agent = ?1 AND seq = ?2
                 AND position NOT IN (SELECT position FROM aside)
             ORDER BY hidden, body IS NOT NULL, position DESC"
        );
        let mut statement = self.rows.prepare_cached(&sql)?;
        let mut rows = statement.query(params![num, sql_seq(at)])?;
        while let Some(row) = rows.next()? {
            if let Ok(stored) = EventRow::read(row)?
                && stored.event.check(agent, at, prev).is_ok()
                && stored.event.is_unchanged()
            {
                return Ok(Some(stored));
            }
        }
        Ok(None)
    }

    /// The last event that the agent had, according to the rows, the index, or the head. Events that were quarantined
    /// earlier do not count: the index of the quarantine looks like the index of events.
    fn end_of(&self, num: i64, agent: AgentId) -> Result<Seq> {
        let last_in = |table: &str| -> Result<Seq> {
            let sql = format!(
                "SELECT max(seq) FROM {table} WHERE agent = ?1
                     AND position NOT IN (SELECT position FROM aside)"
            );
            let last: Option<i64> = self.rows.query_row(&sql, [num], |row| row.get(0))?;
            Ok(last.map_or(Seq::ZERO, seq))
        };
        let acknowledged = self.tips.get(&agent).copied().unwrap_or(Seq::ZERO);
        Ok(last_in("event")?.max(last_in("place")?).max(acknowledged))
    }
}

fn missing(from: Seq, through: Seq) -> Damage {
    Damage {
        from,
        through,
        reason: Unreadable::Missing,
    }
}

fn agent_id(bytes: &[u8]) -> Option<AgentId> {
    Some(AgentId::from_bytes(bytes.try_into().ok()?))
}
