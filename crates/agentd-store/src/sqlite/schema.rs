//! The tables, and the migrations from older files. Forward only.

use crate::error::{Disk, Error, Result};
use rusqlite::{Connection, TransactionBehavior};

/// One step from `user_version` n to n + 1.
pub type Migration = &'static str;

/// The journal: the only source of truth.
pub const JOURNAL: &[Migration] = &[
    // 1
    "
    CREATE TABLE agent (
        num INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        -- Ownership, and the newest try whose draft has ended.
        fence INTEGER NOT NULL,
        owner TEXT NOT NULL,
        ended_incarnation INTEGER NOT NULL DEFAULT 0,
        ended_try INTEGER NOT NULL DEFAULT 0,
        -- The line in the list: derived by the fold, written in the same commit when it changes
        -- (`updated_at` to the second), so that most appends touch the event table alone.
        name TEXT NOT NULL DEFAULT '',
        mode TEXT NOT NULL DEFAULT 'persistent',
        phase TEXT NOT NULL DEFAULT 'idle',
        -- listed: 0 nowhere (no event yet, or an imported ancestor), 1 living, 2 archived.
        listed INTEGER NOT NULL DEFAULT 0,
        created_at INTEGER NOT NULL DEFAULT 0,
        updated_at INTEGER NOT NULL DEFAULT 0,
        generation INTEGER NOT NULL DEFAULT 0,
        conversations INTEGER NOT NULL DEFAULT 0,
        spent TEXT NOT NULL DEFAULT '{}'
    ) STRICT;
    CREATE INDEX agent_recent ON agent (listed, updated_at, num);
    CREATE INDEX agent_name ON agent (listed, name, num);
    CREATE INDEX agent_mode_recent ON agent (listed, mode, updated_at, num);
    CREATE INDEX agent_phase_recent ON agent (listed, phase, updated_at, num);

    CREATE TABLE name (
        name TEXT PRIMARY KEY,
        agent INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX name_agent ON name (agent);

    -- Rows are added at the end and never deleted: SQLite moves rows about when their neighbours
    -- go, and what it moves it leaves a copy of, which no later purge would find. A purged row is
    -- blanked in place; so is one that was quarantined, under the negative of its agent's number.
    CREATE TABLE event (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        agent INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        at INTEGER NOT NULL,
        conversation BLOB NOT NULL,
        turn BLOB,
        kind TEXT NOT NULL,
        version INTEGER NOT NULL,
        body TEXT,
        -- Strings of the body that are kept apart: [[JSON pointer, blob hash], ...].
        apart TEXT,
        salt BLOB,
        digest BLOB NOT NULL,
        chain BLOB NOT NULL,
        -- The sender's counter, for exactly-once.
        source_incarnation INTEGER,
        source_n INTEGER,
        UNIQUE (agent, seq)
    ) STRICT;

    -- Never deleted either, only blanked: hash is null then.
    CREATE TABLE blob (
        num INTEGER PRIMARY KEY,
        hash BLOB UNIQUE,
        size INTEGER NOT NULL,
        zstd BLOB NOT NULL
    ) STRICT;
    CREATE TABLE blob_use (
        position INTEGER NOT NULL,
        blob INTEGER NOT NULL,
        PRIMARY KEY (position, blob)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX blob_use_blob ON blob_use (blob);

    CREATE TABLE draft (
        agent INTEGER NOT NULL,
        incarnation INTEGER NOT NULL,
        try INTEGER NOT NULL,
        at INTEGER NOT NULL,
        bytes BLOB NOT NULL,
        PRIMARY KEY (agent, incarnation, try, at)
    ) STRICT, WITHOUT ROWID;

    -- Branches that reach into another agent's journal, so that a purge finds who needs what.
    CREATE TABLE branch (
        agent INTEGER NOT NULL,
        conversation BLOB NOT NULL,
        from_agent BLOB NOT NULL,
        from_conversation BLOB NOT NULL,
        from_seq INTEGER NOT NULL,
        PRIMARY KEY (agent, conversation)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX branch_from ON branch (from_agent, from_conversation);

    -- Conversations whose `purged` is in the journal, and whose words are being deleted, bit by bit.
    CREATE TABLE purging (
        agent INTEGER NOT NULL,
        conversation BLOB NOT NULL,
        PRIMARY KEY (agent, conversation)
    ) STRICT, WITHOUT ROWID;

    -- Damaged tails, kept as they were found.
    CREATE TABLE quarantine (
        position INTEGER PRIMARY KEY,
        agent INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        at INTEGER NOT NULL,
        conversation BLOB NOT NULL,
        turn BLOB,
        kind TEXT NOT NULL,
        version INTEGER NOT NULL,
        body TEXT,
        apart TEXT,
        salt BLOB,
        digest BLOB NOT NULL,
        chain BLOB NOT NULL,
        source_incarnation INTEGER,
        source_n INTEGER
    ) STRICT;
    CREATE INDEX quarantine_agent ON quarantine (agent, seq);
    ",
    // 2: the number of agents is stored, not counted again for each page of the list.
    "
    CREATE TABLE listing (
        listed INTEGER NOT NULL,
        mode TEXT NOT NULL,
        phase TEXT NOT NULL,
        agents INTEGER NOT NULL,
        PRIMARY KEY (listed, mode, phase)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO listing SELECT listed, mode, phase, count(*) FROM agent GROUP BY 1, 2, 3;

    CREATE TRIGGER agent_added AFTER INSERT ON agent BEGIN
        INSERT INTO listing VALUES (new.listed, new.mode, new.phase, 1)
        ON CONFLICT DO UPDATE SET agents = agents + 1;
    END;
    CREATE TRIGGER agent_changed AFTER UPDATE OF listed, mode, phase ON agent
    WHEN (old.listed, old.mode, old.phase) IS NOT (new.listed, new.mode, new.phase) BEGIN
        UPDATE listing SET agents = agents - 1
        WHERE listed = old.listed AND mode = old.mode AND phase = old.phase;
        INSERT INTO listing VALUES (new.listed, new.mode, new.phase, 1)
        ON CONFLICT DO UPDATE SET agents = agents + 1;
    END;
    CREATE TRIGGER agent_removed AFTER DELETE ON agent BEGIN
        UPDATE listing SET agents = agents - 1
        WHERE listed = old.listed AND mode = old.mode AND phase = old.phase;
    END;
    ",
    // 3: indexes for the ends of turns and for the next idle reset.
    "
    CREATE INDEX event_turn_ended ON event (agent, conversation, seq) WHERE kind = 'turn_ended';
    CREATE INDEX event_turn ON event (agent, turn) WHERE kind = 'turn_ended';

    ALTER TABLE agent ADD COLUMN idle_reset_at INTEGER;
    CREATE INDEX agent_idle_reset ON agent (idle_reset_at) WHERE idle_reset_at IS NOT NULL;
    ",
    // 4: the parent of a subagent, and the number of background tasks.
    "
    ALTER TABLE agent ADD COLUMN parent BLOB;
    ALTER TABLE agent ADD COLUMN tasks INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX agent_tasks ON agent (tasks) WHERE tasks > 0;
    ",
    // 5: an index for what was spent, by model and day.
    "
    CREATE INDEX event_spending ON event (agent, seq)
    WHERE kind IN ('context', 'conversation_began', 'request_ended', 'spec_set');
    ",
    // 6: the number of schedules, and when one of them is due.
    "
    ALTER TABLE agent ADD COLUMN schedules INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE agent ADD COLUMN schedule_due_at INTEGER;
    CREATE INDEX agent_schedules ON agent (schedules) WHERE schedules > 0;
    CREATE INDEX agent_schedule_due ON agent (schedule_due_at) WHERE schedule_due_at IS NOT NULL;
    ",
];

/// Data derived from the journal; deleting the file only costs time.
pub const DERIVED: &[Migration] = &[
    // 1
    "
    CREATE TABLE follower (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        position INTEGER NOT NULL
    ) STRICT;
    INSERT INTO follower VALUES (1, 0);

    CREATE TABLE snapshot (
        agent BLOB NOT NULL,
        seq INTEGER NOT NULL,
        conversation BLOB NOT NULL,
        chain BLOB NOT NULL,
        fold INTEGER NOT NULL,
        state BLOB NOT NULL,
        skeleton BLOB NOT NULL,
        -- The newest append that had a counter, and where it is.
        source TEXT,
        -- Of state, skeleton and source: bytes that went bad must not pass for an agent.
        sum BLOB NOT NULL,
        PRIMARY KEY (agent, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX snapshot_conversation ON snapshot (agent, conversation, seq);

    -- The shards of the search index that there are; each is a table of its own (`words_0`, ...).
    CREATE TABLE shard (num INTEGER PRIMARY KEY) STRICT;
    -- Shards that were dropped for a purge, and what of them is to be filled again.
    CREATE TABLE refill (
        shard INTEGER PRIMARY KEY,
        position INTEGER NOT NULL,
        through INTEGER NOT NULL
    ) STRICT;
    ",
];

/// Refuses a file that a newer agentd wrote.
pub fn check(connection: &Connection, migrations: &[Migration]) -> Result<()> {
    let known = migrations.len() as u32;
    let found = version(connection)?;
    if found > known {
        return Err(Error::NewerSchema { found, known });
    }
    Ok(())
}

/// Whether no migration is needed.
pub fn is_current(connection: &Connection, migrations: &[Migration]) -> Result<bool> {
    Ok(version(connection)? == migrations.len() as u32)
}

/// Migrates a file. A newer one is refused and left alone.
pub fn migrate(connection: &mut Connection, migrations: &[Migration]) -> Result<()> {
    check(connection, migrations)?;
    if version(connection)? == migrations.len() as u32 {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated it in the meantime.
    check(&transaction, migrations)?;
    let found = version(&transaction)?;
    for (index, migration) in migrations.iter().enumerate().skip(found as usize) {
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "user_version", index as u32 + 1)?;
    }
    transaction
        .commit()
        .map_err(|error| Error::NotCommitted(Disk::from_sqlite(error)))
}

/// The version of the tables in a file.
pub fn version(connection: &Connection) -> Result<u32> {
    let version = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(version)
}
