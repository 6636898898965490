//! Histories of other programs as journals of new agents: records in, events out.
//!
//! A session is read twice. The first pass ([`Reading`]) finds out what it is, and which of its records belong to the
//! conversation. The second pass ([`Conversion`]) turns those into events, one record at a time: memory depends on the
//! longest message, not on the history. Nothing here fails: what cannot be used is left out and counted in the
//! [`Report`].

mod assemble;
mod bound;
mod claude_branch;
mod claude_code;
mod codex;
mod content;
mod fit;
mod goose;
mod opencode;
mod record;
mod reply;
mod report;

pub use report::{Left, Report, Skipped};

use crate::digest::uuid_of;
use crate::event::Event;
use crate::id::AgentId;
use crate::plain::only_plain;
use crate::spec::AgentSpec;
use crate::time::Timestamp;
use crate::title;
use assemble::Assembler;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// A program whose histories can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    ClaudeCode,
    Codex,
    Opencode,
    Goose,
}

impl Program {
    pub const ALL: [Self; 4] = [Self::ClaudeCode, Self::Codex, Self::Opencode, Self::Goose];

    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Goose => "goose",
        }
    }

    /// The program whose history begins with these lines, if they are typical of one.
    pub fn recognized(beginning: &str) -> Option<Self> {
        let records = beginning.lines().take(20);
        let mut records = records.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        records.find_map(|record| {
            let has = |key: &str| record.get(key).is_some();
            let id = record.get("id").and_then(Value::as_str);
            if record["type"] == "session_meta" && has("payload") {
                Some(Self::Codex)
            } else if has("sessionId") || has("leafUuid") {
                Some(Self::ClaudeCode)
            } else if has("working_dir") && id.is_some() {
                Some(Self::Goose)
            } else if id.is_some_and(|id| id.starts_with("ses_")) {
                Some(Self::Opencode)
            } else {
                None
            }
        })
    }

    fn format(self) -> Box<dyn Format + Send> {
        match self {
            Self::ClaudeCode => Box::new(claude_code::ClaudeCode::default()),
            Self::Codex => Box::new(codex::Codex::default()),
            Self::Opencode => Box::new(opencode::Opencode::default()),
            Self::Goose => Box::new(goose::Goose::default()),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Not the name of a program whose histories can be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not one of claude-code, codex, opencode, goose")]
pub struct NoProgram(String);

impl FromStr for Program {
    type Err = NoProgram;

    fn from_str(text: &str) -> Result<Self, NoProgram> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|program| program.name() == text);
        found.ok_or_else(|| NoProgram(text.to_owned()))
    }
}

/// One record of a session as its file has it.
#[derive(Clone, Copy, Debug)]
pub enum Record<'a> {
    /// JSON text, or what is there instead.
    Text(&'a [u8]),
    /// It was not read, because it is longer than any message.
    TooLong,
}

/// What the first pass found out about a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionInfo {
    /// The program's own id of the session.
    pub id: Option<String>,
    /// The title that the user or the program gave it.
    pub title: Option<String>,
    /// The first words of the first prompt.
    pub first_prompt: Option<String>,
    pub cwd: Option<String>,
    /// The provider and the model of the newest reply, as the program names them.
    pub provider: Option<String>,
    pub model: Option<String>,
    pub began: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    pub prompts: u64,
    pub replies: u64,
    /// It is the session of a subagent, or one that the program hides.
    pub is_subagent: bool,
}

impl SessionInfo {
    pub fn shown_title(&self) -> Option<&str> {
        self.title.as_deref().or(self.first_prompt.as_deref())
    }

    /// The provider of agentd's catalog with the same service, if there is one.
    pub fn known_provider(&self) -> Option<&'static str> {
        match self.provider.as_deref()? {
            "anthropic" => Some("anthropic"),
            "openai" => Some("openai"),
            "google" | "gemini" => Some("gemini"),
            "openrouter" => Some("openrouter"),
            _ => None,
        }
    }

    fn titled(&mut self, text: &str) {
        if let Some(title) = title::of_text(&only_plain(text)) {
            self.title = Some(title);
        }
    }

    fn prompted(&mut self, text: &str) {
        self.prompts += 1;
        if self.first_prompt.is_none() {
            self.first_prompt = title::of_text(&only_plain(text));
        }
    }

    fn seen_at(&mut self, at: Option<Timestamp>) {
        let Some(at) = at else { return };
        self.began.get_or_insert(at);
        self.ended = Some(at);
    }
}

/// How one program writes its history. The same value sees all records twice, in order, numbered from 1.
trait Format {
    fn scan(&mut self, number: u64, record: &Value, info: &mut SessionInfo);

    /// Called between the passes.
    fn plan(&mut self, _info: &mut SessionInfo) {}

    fn convert(&mut self, number: u64, record: &Value, out: &mut Assembler);
}

/// The first pass over a session.
pub struct Reading {
    program: Program,
    format: Box<dyn Format + Send>,
    info: SessionInfo,
    seed: Sha256,
    number: u64,
}

impl Reading {
    pub fn new(program: Program) -> Self {
        let provider = match program {
            Program::ClaudeCode => Some("anthropic".to_owned()),
            _ => None,
        };
        Self {
            program,
            format: program.format(),
            info: SessionInfo {
                provider,
                ..SessionInfo::default()
            },
            seed: Sha256::new(),
            number: 0,
        }
    }

    pub fn record(&mut self, record: Record<'_>) {
        self.number += 1;
        let Record::Text(text) = record else { return };
        self.seed.update((text.len() as u64).to_le_bytes());
        self.seed.update(text);
        if let Some(value) = parse(text) {
            self.format.scan(self.number, &value, &mut self.info);
        }
    }

    /// `name` identifies the session where its records do not: the name of its file.
    pub fn finish(mut self, name: &str) -> Found {
        self.format.plan(&mut self.info);
        let session = self.info.id.get_or_insert_with(|| name.to_owned()).clone();
        let parts: [&[u8]; 3] = [
            b"agentd import",
            self.program.name().as_bytes(),
            session.as_bytes(),
        ];
        Found {
            program: self.program,
            format: self.format,
            info: self.info,
            agent: AgentId::new(uuid_of(&parts)),
            seed: self.seed.finalize().into(),
        }
    }
}

/// A session after the first pass.
pub struct Found {
    pub program: Program,
    pub info: SessionInfo,
    /// The id of the agent that it becomes. It is derived from the session's id, so that a second import of the same
    /// session is noticed.
    pub agent: AgentId,
    /// A digest of all records.
    pub seed: [u8; 32],
    format: Box<dyn Format + Send>,
}

impl Found {
    /// Whether there is anything to continue.
    pub const fn is_empty(&self) -> bool {
        self.info.prompts == 0 && self.info.replies == 0
    }

    /// The name of the agent that it becomes, unless the user gives another one.
    pub fn name(&self) -> String {
        const LONGEST: usize = 40;
        let mut slug = String::new();
        for c in self.info.shown_title().unwrap_or_default().chars() {
            match c.to_ascii_lowercase() {
                c if c.is_ascii_alphanumeric() => slug.push(c),
                _ if slug.is_empty() || slug.ends_with('-') => {}
                _ => slug.push('-'),
            }
            if slug.len() >= LONGEST {
                break;
            }
        }
        let slug = match slug.trim_matches('-') {
            "" => self.program.name(),
            slug => slug,
        };
        let id = self.agent.uuid().simple().to_string();
        format!("{slug}-{}", id.get(..8).unwrap_or_default())
    }

    /// Begins the second pass. `at` is the time of the import, for records that have none.
    pub fn convert(self, name: &str, spec: &AgentSpec, at: Timestamp) -> Conversion {
        let mut out = Assembler::new(self.program, self.agent, self.info.began.unwrap_or(at));
        out.begin(name, spec, self.info.id.as_deref().unwrap_or_default());
        Conversion {
            format: self.format,
            out,
            number: 0,
        }
    }
}

/// The second pass over a session.
pub struct Conversion {
    format: Box<dyn Format + Send>,
    out: Assembler,
    number: u64,
}

impl Conversion {
    /// The events that this record completes. They follow those of the calls before.
    pub fn record(&mut self, record: Record<'_>) -> Vec<Event> {
        self.number += 1;
        match record {
            Record::TooLong => self.out.skip(Left::TooLong, self.number),
            Record::Text(text) if text.iter().all(u8::is_ascii_whitespace) => {}
            Record::Text(text) => match parse(text) {
                Some(value) => self.format.convert(self.number, &value, &mut self.out),
                None => self.out.skip(Left::BadLine, self.number),
            },
        }
        self.out.take()
    }

    /// The last events, and what was left out.
    pub fn finish(mut self) -> (Vec<Event>, Report) {
        let report = self.out.finish();
        (self.out.take(), report)
    }
}

fn parse(text: &[u8]) -> Option<Value> {
    let value: Value = serde_json::from_slice(text).ok()?;
    value.is_object().then_some(value)
}

#[cfg(test)]
mod tests;
