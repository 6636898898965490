//! The export file: JSON lines, compressed with zstd. Every line is checked when it is read back.

mod journal_file;
mod limits;
mod names;

pub use journal_file::JournalFile;

use crate::chain::{self, GENESIS, Hash, content_hash, hex, unhex};
use crate::error::{Error, Result};
use crate::stored::StoredEvent;
use agentd_core::event::Body;
use agentd_core::id::{AgentId, ConversationId, Seq, TurnId};
use agentd_core::time::Timestamp;
use limits::{Limits, Metered};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Seek, Write};

/// The version of the format; a newer one is refused.
pub const FORMAT: u32 = 1;
const LEVEL: i32 = 6;

#[derive(Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
enum Line {
    /// The first line.
    Export {
        format: u32,
        agent: AgentId,
    },
    /// An agent's journal begins; the exported agent's own comes last.
    Journal {
        agent: AgentId,
    },
    /// A text that events after this line refer to.
    Blob {
        hash: String,
        text: String,
    },
    Event(Box<EventLine>),
    /// The last line; a file without it is truncated.
    End {
        events: u64,
    },
}

#[derive(Serialize, Deserialize)]
struct EventLine {
    seq: Seq,
    at: Timestamp,
    conversation: ConversationId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<TurnId>,
    kind: String,
    v: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    apart: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    salt: Option<String>,
    digest: String,
    chain: String,
}

/// One entry of the file.
pub enum Item {
    Journal(AgentId),
    Blob(Hash, String),
    Event(StoredEvent),
}

/// What an import reads: twice, first to check all of it, then to write it. So it is never in memory as a whole.
pub trait File: Read + Seek + Send {}

impl<T: Read + Seek + Send> File for T {}

/// A file that was read completely and is valid.
pub struct Checked {
    pub agent: AgentId,
    pub events: u64,
    /// The last event of the exported agent, and its checksum.
    pub last: (Seq, Hash),
    file: Box<dyn File>,
    checks: Checks,
}

impl Checked {
    /// Its entries from the beginning, checked again.
    pub fn items(self) -> Result<Items<Box<dyn File>>> {
        let mut file = self.file;
        file.rewind().map_err(Error::ExportIo)?;
        Items::open(file, self.checks.limits(), self.checks)
    }
}

pub struct Writer<W: Write> {
    out: zstd::stream::write::Encoder<'static, W>,
    events: u64,
    blobs: BTreeSet<Hash>,
}

impl<W: Write> Writer<W> {
    pub fn new(out: W, agent: AgentId) -> Result<Self> {
        let mut writer = Self {
            out: zstd::stream::write::Encoder::new(out, LEVEL).map_err(Error::ExportIo)?,
            events: 0,
            blobs: BTreeSet::new(),
        };
        let format = FORMAT;
        writer.line(&Line::Export { format, agent })?;
        Ok(writer)
    }

    pub fn journal(&mut self, agent: AgentId) -> Result<()> {
        self.line(&Line::Journal { agent })
    }

    /// Written once, however often it is referred to.
    pub fn blob(&mut self, hash: Hash, text: String) -> Result<()> {
        if !self.blobs.insert(hash) {
            return Ok(());
        }
        let hash = hex(&hash);
        self.line(&Line::Blob { hash, text })
    }

    pub fn event(&mut self, row: StoredEvent) -> Result<()> {
        self.events += 1;
        let body = row.body.map(RawValue::from_string).transpose();
        self.line(&Line::Event(Box::new(EventLine {
            seq: row.seq,
            at: row.at,
            conversation: row.conversation,
            turn: row.turn,
            kind: row.kind,
            v: row.version,
            body: body.map_err(Error::Encode)?,
            apart: row.apart,
            salt: row.salt.map(|salt| hex(&salt)),
            digest: hex(&row.digest),
            chain: hex(&row.chain),
        })))
    }

    pub fn finish(mut self) -> Result<u64> {
        let events = self.events;
        self.line(&Line::End { events })?;
        let mut out = self.out.finish().map_err(Error::ExportIo)?;
        out.flush().map_err(Error::ExportIo)?;
        Ok(events)
    }

    fn line(&mut self, line: &Line) -> Result<()> {
        serde_json::to_writer(&mut self.out, line).map_err(Error::Encode)?;
        self.out.write_all(b"\n").map_err(Error::ExportIo)
    }
}

fn bad(what: impl Into<String>) -> Error {
    Error::BadExport(what.into())
}

/// Whether a file is checked when it is read. Only the lab turns this off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checks {
    All,
    /// An injected bug: numbers and checksums that do not match are replaced instead of refused.
    None,
}

impl Checks {
    fn limits(self) -> Limits {
        match self {
            Self::All => Limits::default(),
            Self::None => Limits::NONE,
        }
    }
}

/// Reads a file and checks that it is complete and that every chain in it is intact.
pub fn read(mut file: Box<dyn File>, checks: Checks) -> Result<Checked> {
    let mut items = Items::open(&mut file, checks.limits(), checks)?;
    while items.next()?.is_some() {}
    let (agent, events) = (items.agent, items.events);
    let (_, seq, chain) = items
        .journal
        .ok_or_else(|| bad("an agent without events"))?;
    Ok(Checked {
        agent,
        events,
        last: (seq, chain),
        file,
        checks,
    })
}

/// The entries of a file, in order. Each is checked before it is returned.
pub struct Items<R: Read> {
    /// The exported agent.
    pub agent: AgentId,
    lines: Lines<BufReader<zstd::stream::read::Decoder<'static, BufReader<Metered<R>>>>>,
    /// The journal that is being read, and its last event.
    journal: Option<(AgentId, Seq, Hash)>,
    events: u64,
    limits: Limits,
    checks: Checks,
    is_ended: bool,
}

impl<R: Read> Items<R> {
    fn open(input: R, limits: Limits, checks: Checks) -> Result<Self> {
        let packed = Metered::new(input);
        let read = packed.count();
        let decoder = zstd::stream::read::Decoder::new(packed).map_err(Error::ExportIo)?;
        let mut lines = Lines {
            input: BufReader::new(decoder),
            number: 0,
            expanded: 0,
            packed: read,
            limits,
        };
        let agent = match lines.next()? {
            Some(Line::Export { format, agent }) if format <= FORMAT => agent,
            Some(Line::Export { format, .. }) => {
                let known = FORMAT;
                return Err(bad(format!(
                    "it has format {format}, this agentd reads up to {known}; upgrade agentd"
                )));
            }
            _ => return Err(bad("it does not start like an agentd export")),
        };
        Ok(Self {
            agent,
            lines,
            journal: None,
            events: 0,
            limits,
            checks,
            is_ended: false,
        })
    }

    /// None after the last one.
    pub fn next(&mut self) -> Result<Option<Item>> {
        if self.is_ended {
            return Ok(None);
        }
        let Some(line) = self.lines.next()? else {
            return Err(bad("it is truncated"));
        };
        let number = self.lines.number;
        match line {
            Line::Export { .. } => Err(bad(format!("line {number}: a second header"))),
            Line::Journal { agent } => {
                self.journal = Some((agent, Seq::ZERO, GENESIS));
                Ok(Some(Item::Journal(agent)))
            }
            Line::Blob { hash, text } => {
                self.limits.check_blob(&text)?;
                let is_whole = |hash: &Hash| {
                    self.checks == Checks::None || *hash == content_hash(text.as_bytes())
                };
                let hash = unhex(&hash).filter(is_whole);
                let hash = hash.ok_or_else(|| bad(format!("line {number}: blob hash mismatch")))?;
                Ok(Some(Item::Blob(hash, text)))
            }
            Line::Event(line) => self.event(*line).map(|row| Some(Item::Event(row))),
            Line::End { events } => self.end(events),
        }
    }

    fn event(&mut self, line: EventLine) -> Result<StoredEvent> {
        let number = self.lines.number;
        let Some((of, head, chain)) = &mut self.journal else {
            return Err(bad(format!("line {number}: an event outside a journal")));
        };
        self.limits.check_events(self.events + 1)?;
        let row = check(line, *of, head.next(), chain, self.checks)
            .map_err(|what| bad(format!("line {number}: {what}")))?;
        self.limits.check_event(&row)?;
        names::check(&row)?;
        (*head, *chain) = (row.seq, row.chain);
        self.events += 1;
        Ok(row)
    }

    fn end(&mut self, events: u64) -> Result<Option<Item>> {
        if events != self.events {
            return Err(bad("events are missing"));
        }
        let own = matches!(self.journal, Some((last, ..)) if last == self.agent);
        self.is_ended = true;
        match own {
            true => Ok(None),
            false => Err(bad("the exported agent's own journal is missing")),
        }
    }
}

fn check(
    line: EventLine,
    agent: AgentId,
    seq: Seq,
    prev: &Hash,
    checks: Checks,
) -> Result<StoredEvent, &'static str> {
    let salt = match &line.salt {
        Some(salt) => Some(unhex(salt).ok_or("a damaged salt")?),
        None => None,
    };
    let mut row = StoredEvent {
        seq: line.seq,
        at: line.at,
        conversation: line.conversation,
        turn: line.turn,
        kind: line.kind,
        version: line.v,
        body: line.body.map(|body| body.get().to_owned()),
        apart: line.apart,
        salt,
        digest: unhex(&line.digest).ok_or("a damaged digest")?,
        chain: unhex(&line.chain).ok_or("a damaged checksum")?,
    };
    if checks == Checks::None {
        row.seq = seq;
    }
    if row.seq != seq {
        return Err("events are missing or out of order");
    }
    match (&row.body, &row.salt) {
        (Some(body), Some(salt)) => {
            let digest = chain::digest(salt, body, row.apart.as_deref());
            if digest != row.digest && checks == Checks::All {
                return Err("body digest mismatch");
            }
            row.digest = digest;
        }
        (None, None) => {
            Body::purged(&row.kind, row.version).map_err(|_| "a body is missing")?;
        }
        _ => return Err("a body without a salt, or a salt without a body"),
    }
    let chain = chain::link(prev, &row.header(agent), &row.digest);
    if chain != row.chain && checks == Checks::All {
        return Err("the checksum chain is broken");
    }
    row.chain = chain;
    Ok(row)
}

/// An event's body must stay exactly the bytes that were hashed. A tagged enum does not preserve them, so the tag
/// is read first, separately.
fn parse(text: &[u8]) -> serde_json::Result<Line> {
    #[derive(Deserialize)]
    struct Tag<'a> {
        #[serde(borrow)]
        line: std::borrow::Cow<'a, str>,
    }
    let tag: Tag<'_> = serde_json::from_slice(text)?;
    match tag.line.as_ref() {
        "event" => serde_json::from_slice(text).map(|event| Line::Event(Box::new(event))),
        _ => serde_json::from_slice(text),
    }
}

struct Lines<R> {
    input: R,
    number: u64,
    /// Bytes of the lines so far.
    expanded: u64,
    /// Compressed bytes that the decompressor has read so far.
    packed: limits::Count,
    limits: Limits,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self) -> Result<Option<Line>> {
        let mut text = Vec::new();
        let most = self.limits.line + 1;
        let mut limited = (&mut self.input).take(most);
        let read = limited.read_until(b'\n', &mut text);
        self.number += 1;
        // The decompressor reports a truncated file as an error of its own.
        let read = read.map_err(|error| bad(error.to_string()))? as u64;
        if read == 0 {
            return Ok(None);
        }
        self.expanded += read;
        self.limits.check_line(read)?;
        self.limits.check_expanded(self.expanded, &self.packed)?;
        parse(&text)
            .map(Some)
            .map_err(|error| bad(format!("line {}: {error}", self.number)))
    }
}
