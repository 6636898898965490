//! Small histories of other programs, written by hand after files that those programs made.

use agentd_core::import_history::Program;
use rusqlite::{Connection, params};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The records of a session with everything that its format can contain.
pub const fn text(program: Program) -> &'static str {
    match program {
        Program::ClaudeCode => include_str!("../fixtures/history/claude-code.jsonl"),
        Program::Codex => include_str!("../fixtures/history/codex.jsonl"),
        Program::Opencode => include_str!("../fixtures/history/opencode.jsonl"),
        Program::Goose => include_str!("../fixtures/history/goose.jsonl"),
    }
}

/// Why a history could not be written.
pub type Failed = Box<dyn std::error::Error>;

/// Writes the session as its program keeps it, with this working directory. Returns the file.
pub fn write(program: Program, dir: &Path, cwd: &Path) -> Result<PathBuf, Failed> {
    let text = text(program).replace("/work/project", &cwd.display().to_string());
    match program {
        Program::ClaudeCode | Program::Codex => {
            let name = match program {
                Program::Codex => "rollout-2026-11-17T12-13-00-01a1e96d.jsonl",
                _ => "6f1c2f0e-0000-4000-8000-00000000c0de.jsonl",
            };
            let path = dir.join(name);
            fs::write(&path, text)?;
            Ok(path)
        }
        Program::Goose => goose(&dir.join("sessions.db"), &text),
        Program::Opencode => opencode(&dir.join("opencode.db"), &text),
    }
}

fn records(text: &str) -> impl Iterator<Item = serde_json::Result<Value>> {
    text.lines().map(serde_json::from_str)
}

fn goose(path: &Path, text: &str) -> Result<PathBuf, Failed> {
    let database = Connection::open(path)?;
    database.execute_batch(
        "PRAGMA journal_mode = wal;
             CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, description TEXT,
                 session_type TEXT, working_dir TEXT, created_at TIMESTAMP, provider_name TEXT,
                 model_config_json TEXT);
             CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT,
                 role TEXT, content_json TEXT, created_timestamp INTEGER, metadata_json TEXT);",
    )?;
    let mut session = String::new();
    for record in records(text) {
        let record = record?;
        let own = |key: &str| record[key].as_str().map(str::to_owned);
        let written = match own("role") {
            None => {
                session = own("id").unwrap_or_default();
                database.execute(
                    "INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                    params![
                        session,
                        own("name"),
                        own("description"),
                        own("session_type"),
                        own("working_dir"),
                        own("created_at"),
                        own("provider_name"),
                        record["model_config"].to_string(),
                    ],
                )
            }
            Some(role) => database.execute(
                "INSERT INTO messages (session_id, role, content_json, created_timestamp,
                                       metadata_json) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    session,
                    role,
                    record["content"].to_string(),
                    record["created"].as_i64(),
                    record["metadata"].to_string(),
                ],
            ),
        };
        written?;
    }
    Ok(path.to_owned())
}

fn opencode(path: &Path, text: &str) -> Result<PathBuf, Failed> {
    let database = Connection::open(path)?;
    database.execute_batch(
        "PRAGMA journal_mode = wal;
             CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, title TEXT,
                 \"revert\" TEXT, time_created INTEGER);
             CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER,
                 data TEXT);
             CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, data TEXT);",
    )?;
    let mut session = String::new();
    for record in records(text) {
        let mut record = record?;
        let id = record["id"].as_str().unwrap_or_default().to_owned();
        let created = record["time"]["created"].as_i64();
        if record["role"].is_null() {
            session = id;
            let own = |key: &str| record[key].as_str().map(str::to_owned);
            database.execute(
                "INSERT INTO session VALUES (?1, NULL, ?2, ?3, ?4, ?5)",
                params![
                    session,
                    own("directory"),
                    own("title"),
                    record["revert"].to_string(),
                    created,
                ],
            )?;
            continue;
        }
        let parts = record["parts"].take();
        for (n, part) in parts.as_array().into_iter().flatten().enumerate() {
            database.execute(
                "INSERT INTO part VALUES (?1, ?2, ?3)",
                params![format!("prt_{id}_{n:03}"), id, part.to_string()],
            )?;
        }
        database.execute(
            "INSERT INTO message VALUES (?1, ?2, ?3, ?4)",
            params![id, session, created, record.to_string()],
        )?;
    }
    Ok(path.to_owned())
}
