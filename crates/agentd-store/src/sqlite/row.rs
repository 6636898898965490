//! A stored event as a row of its table.

use super::blobs;
use crate::chain::Hash;
use crate::damage::Unreadable;
use crate::error::{Error, Result};
use crate::store::Source;
use crate::stored::StoredEvent;
use agentd_core::event::{Event, Origin};
use agentd_core::id::{AgentId, ConversationId, Incarnation, Seq, TurnId};
use agentd_core::time::Timestamp;
use rusqlite::types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row, ToSql};

/// The columns of an event, in the order [`EventRow::read`] expects them.
pub const COLUMNS: &str = "event.position, seq, at, conversation, turn, kind, version, body, apart, \
                           salt, digest, chain, source_incarnation, source_n";
/// The index of the first column that is selected after [`COLUMNS`].
pub const BEHIND: usize = 14;

/// An event, its counter, and its position in the order of all commits.
#[derive(Clone, Debug)]
pub struct EventRow {
    pub position: i64,
    pub source: Option<Source>,
    pub event: StoredEvent,
}

/// Bytes of a fixed length; anything else in such a column is damage.
struct Bytes<const N: usize>([u8; N]);

impl<const N: usize> FromSql for Bytes<N> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        <[u8; N]>::column_result(value).map(Self)
    }
}

impl EventRow {
    /// The outer error is a disk error. The inner one concerns the row: a value of a wrong type or length is
    /// damage, like a wrong checksum.
    pub fn read(row: &Row<'_>) -> rusqlite::Result<Result<Self, Unreadable>> {
        use rusqlite::Error as Sql;
        match Self::read_columns(row) {
            Ok(stored) => Ok(Ok(stored)),
            Err(
                Sql::FromSqlConversionFailure(..)
                | Sql::InvalidColumnType(..)
                | Sql::IntegralValueOutOfRange(..)
                | Sql::Utf8Error(..),
            ) => Ok(Err(Unreadable::Misshapen)),
            Err(error) => Err(error),
        }
    }

    /// The same, with a damaged row as an ordinary error.
    pub fn read_of(row: &Row<'_>, agent: AgentId) -> Result<Self> {
        Self::read(row)?.map_err(|reason| Error::Damaged {
            agent,
            seq: row.get(1).map_or(Seq::ZERO, seq),
            reason,
        })
    }

    fn read_columns(row: &Row<'_>) -> rusqlite::Result<Self> {
        let incarnation: Option<i64> = row.get(12)?;
        let n: Option<i64> = row.get(13)?;
        let event = StoredEvent {
            seq: seq(row.get(1)?),
            at: Timestamp::from_millis(row.get(2)?),
            conversation: ConversationId::from_bytes(row.get::<_, Bytes<16>>(3)?.0),
            turn: row
                .get::<_, Option<Bytes<16>>>(4)?
                .map(|bytes| TurnId::from_bytes(bytes.0)),
            kind: row.get(5)?,
            version: row.get(6)?,
            body: row.get(7)?,
            apart: row.get(8)?,
            salt: row.get::<_, Option<Bytes<16>>>(9)?.map(|bytes| bytes.0),
            digest: row.get::<_, Bytes<32>>(10)?.0,
            chain: row.get::<_, Bytes<32>>(11)?.0,
        };
        Ok(Self {
            position: row.get(0)?,
            source: incarnation.zip(n).map(|(incarnation, n)| Source {
                incarnation: Incarnation(incarnation.unsigned_abs()),
                n: n.unsigned_abs(),
            }),
            event,
        })
    }

    /// The event, with its separately stored strings put back.
    pub fn decode(self, connection: &Connection, agent: AgentId) -> Result<Event> {
        let seq = self.event.seq;
        self.try_decode(connection, agent)?
            .map_err(|reason| Error::Damaged { agent, seq, reason })
    }

    /// The event without its separately stored strings, which are empty.
    pub fn decode_without_long(self, agent: AgentId) -> Result<Event> {
        let seq = self.event.seq;
        let empty = |_: &Hash| Ok(Some(String::new()));
        let decoded = self.event.decode(agent, empty)?;
        decoded.map_err(|reason| Error::Damaged { agent, seq, reason })
    }

    /// The outer error is a disk error, the inner one concerns the event.
    pub fn try_decode(
        self,
        connection: &Connection,
        agent: AgentId,
    ) -> Result<Result<Event, Unreadable>> {
        let find = |hash: &Hash| blobs::read(connection, hash);
        self.event.decode(agent, find)
    }
}

/// SQLite's integers are signed; sequence numbers stay far below the limit.
pub const fn seq(value: i64) -> Seq {
    Seq(value.unsigned_abs())
}

pub fn sql_seq(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}

/// The number of the agent's row, which its events refer to.
pub fn agent_num(connection: &Connection, agent: AgentId) -> Result<Option<i64>> {
    use rusqlite::OptionalExtension as _;
    let mut statement = connection.prepare_cached("SELECT num FROM agent WHERE id = ?1")?;
    let num = statement.query_row([IdParam(agent.as_bytes())], |row| row.get(0));
    Ok(num.optional()?)
}

pub fn existing_agent_num(connection: &Connection, agent: AgentId) -> Result<i64> {
    agent_num(connection, agent)?.ok_or(Error::NoSuchAgent { agent })
}

/// An id as a parameter of an SQL statement.
pub struct IdParam<'a>(pub &'a [u8; 16]);

impl ToSql for IdParam<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Blob(self.0)))
    }
}

/// Records that a conversation includes a part of another one, so that a purge of that part finds the branch.
pub fn note_branch(
    connection: &Connection,
    num: i64,
    conversation: ConversationId,
    from: Origin,
) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT OR REPLACE INTO branch (agent, conversation, from_agent, from_conversation,
                                        from_seq) VALUES (?1, ?2, ?3, ?4, ?5)",
        rusqlite::params![
            num,
            IdParam(conversation.as_bytes()),
            IdParam(from.agent.as_bytes()),
            IdParam(from.conversation.as_bytes()),
            sql_seq(from.seq),
        ],
    )?;
    Ok(())
}

/// Whether the branch is recorded.
pub fn has_branch(
    connection: &Connection,
    num: i64,
    conversation: ConversationId,
    from: Origin,
) -> rusqlite::Result<bool> {
    connection.query_row(
        "SELECT EXISTS (
             SELECT 1 FROM branch WHERE agent = ?1 AND conversation = ?2 AND from_agent = ?3
                 AND from_conversation = ?4 AND from_seq = ?5)",
        rusqlite::params![
            num,
            IdParam(conversation.as_bytes()),
            IdParam(from.agent.as_bytes()),
            IdParam(from.conversation.as_bytes()),
            sql_seq(from.seq),
        ],
        |row| row.get(0),
    )
}
