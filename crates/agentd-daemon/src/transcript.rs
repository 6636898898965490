//! Transcripts: a conversation's events as JSON lines in a file, in the form that hooks read. The file is created when it is
//! first needed, and new events are added after they are committed. It is only a copy of what the journal has.

use crate::layout::Layout;
use crate::spawn::blocking;
use agentd_client::api::time::rfc3339;
use agentd_core::event::Event;
use agentd_core::id::{AgentId, ConversationId, Seq};
use agentd_core::transcript::Lines;
use agentd_failpoint as failpoint;
use agentd_store::{ReadQuery, Store};
use serde::Deserialize;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc};

const PAGE: usize = 500;
/// Bytes at the end of a file that are searched for the last line.
const TAIL: u64 = 64 * 1024 * 1024;

/// What is written of each transcript, by agent and conversation.
type Known = HashMap<AgentId, HashMap<ConversationId, Written>>;

/// What is written of a transcript.
#[derive(Clone, Default)]
struct Written {
    /// The last event.
    at: Seq,
    lines: Lines,
}

pub struct Transcripts {
    layout: Layout,
    store: Arc<dyn Store>,
    /// Locked while a transcript is written: one writer at a time.
    known: Mutex<Known>,
    /// Agents with new events, for [`Self::follow`].
    touched: mpsc::UnboundedSender<AgentId>,
}

impl Transcripts {
    /// The caller must run [`Self::follow`] with the receiver.
    pub fn new(layout: Layout, store: Arc<dyn Store>) -> (Self, mpsc::UnboundedReceiver<AgentId>) {
        let (touched, work) = mpsc::unbounded_channel();
        let known = Mutex::default();
        let transcripts = Self {
            layout,
            store,
            known,
            touched,
        };
        (transcripts, work)
    }

    /// Called when events of an agent were committed: [`Self::follow`] updates its transcripts.
    pub fn touched(&self, agent: AgentId) {
        let _ended = self.touched.send(agent);
    }

    /// Updates transcripts. The queue is shared, so that a restarted follower continues with it after a panic.
    pub async fn follow(&self, work: &Mutex<mpsc::UnboundedReceiver<AgentId>>) {
        let mut work = work.lock().await;
        while let Some(agent) = work.recv().await {
            let mut agents = vec![agent];
            while let Ok(more) = work.try_recv() {
                if !agents.contains(&more) {
                    agents.push(more);
                }
            }
            for agent in agents {
                if let Err(error) = self.keep_up(agent).await {
                    tracing::warn!(%agent, %error, "transcript not updated");
                }
            }
        }
    }

    async fn keep_up(&self, agent: AgentId) -> io::Result<()> {
        let mut known = self.known.lock().await;
        if let Entry::Vacant(unknown) = known.entry(agent) {
            unknown.insert(self.found(agent).await?);
        }
        let of_agent = known.entry(agent).or_default();
        let all: Vec<ConversationId> = of_agent.keys().copied().collect();
        for conversation in all {
            let written = of_agent.entry(conversation).or_default();
            match self.write_on(agent, conversation, written).await {
                Ok(()) => {}
                // It was deleted: it is created again, with all its events, when it is next needed.
                Err(error) if is_deleted(&error, written.at) => {
                    of_agent.remove(&conversation);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Creates a transcript or brings it up to date.
    pub async fn need(&self, agent: AgentId, conversation: ConversationId) -> io::Result<PathBuf> {
        let mut known = self.known.lock().await;
        if let Entry::Vacant(unknown) = known.entry(agent) {
            unknown.insert(self.found(agent).await?);
        }
        let of_agent = known.entry(agent).or_default();
        let written = of_agent.entry(conversation).or_default();
        match self.write_on(agent, conversation, written).await {
            Err(error) if is_deleted(&error, written.at) => {
                *written = Written::default();
                self.write_on(agent, conversation, written).await?;
            }
            done => done?,
        }
        Ok(self.path(agent, conversation))
    }

    /// Deletes the transcript of a purged conversation.
    pub async fn forget(&self, agent: AgentId, conversation: ConversationId) -> io::Result<()> {
        let mut known = self.known.lock().await;
        if let Some(of_agent) = known.get_mut(&agent) {
            of_agent.remove(&conversation);
        }
        let path = self.path(agent, conversation);
        match blocking(move || std::fs::remove_file(path)).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn dir(&self, agent: AgentId) -> PathBuf {
        self.layout.agent_dir(agent).join("transcripts")
    }

    fn path(&self, agent: AgentId, conversation: ConversationId) -> PathBuf {
        self.dir(agent).join(format!("{conversation}.jsonl"))
    }

    /// The transcripts that exist on disk.
    async fn found(&self, agent: AgentId) -> io::Result<HashMap<ConversationId, Written>> {
        let dir = self.dir(agent);
        let found = blocking(move || found(&dir)).await?;
        let found = found.into_iter().map(|(conversation, at)| {
            let lines = Lines::after(agent, at);
            (conversation, Written { at, lines })
        });
        Ok(found.collect())
    }

    /// Adds the events that are not written yet. The file is created only with the first event: see [`is_deleted`].
    async fn write_on(
        &self,
        agent: AgentId,
        conversation: ConversationId,
        written: &mut Written,
    ) -> io::Result<()> {
        loop {
            let query = ReadQuery {
                conversation: Some(conversation),
                ..ReadQuery::all(agent, written.at, PAGE)
            };
            let page = self.store.read(query).await.map_err(io::Error::other)?;
            let mut next = written.clone();
            let mut text = Vec::new();
            for event in &page.events {
                if next.lines.lacks_prompt(event) {
                    self.recall(event, &mut next.lines).await?;
                }
                let line = next.lines.line(event, rfc3339(event.at))?;
                serde_json::to_writer(&mut text, &line)?;
                text.push(b'\n');
                next.at = event.seq;
            }
            let (layout, path) = (self.layout.clone(), self.path(agent, conversation));
            let last = written.at;
            blocking(move || add(&layout, &path, last, &text)).await?;
            *written = next;
            if page.next.is_none() {
                return Ok(());
            }
        }
    }

    /// Reads the prompts of a conversation whose lines an earlier daemon wrote, up to the event that takes them.
    async fn recall(&self, taken: &Event, lines: &mut Lines) -> io::Result<()> {
        let mut after = Seq::ZERO;
        loop {
            let query = ReadQuery {
                conversation: Some(taken.conversation),
                ..ReadQuery::all(taken.agent, after, PAGE)
            };
            let page = self.store.read(query).await.map_err(io::Error::other)?;
            for event in page.events.iter().filter(|event| event.seq < taken.seq) {
                lines.recall(event);
                after = event.seq;
            }
            let is_done = page
                .events
                .last()
                .is_none_or(|event| event.seq >= taken.seq);
            if is_done || page.next.is_none() {
                return Ok(());
            }
        }
    }
}

/// Whether a transcript with events up to `at` is gone. A new file would lack these events.
fn is_deleted(error: &io::Error, at: Seq) -> bool {
    error.kind() == io::ErrorKind::NotFound && at > Seq::ZERO
}

/// Adds lines to a transcript whose last event is `last`.
fn add(layout: &Layout, path: &Path, last: Seq, lines: &[u8]) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        layout.make_below(dir)?;
    }
    let mut file = OpenOptions::new()
        .create(last == Seq::ZERO)
        .append(true)
        .mode(0o600)
        .open(path)?;
    failpoint::hit_of("before", "write", "transcript");
    file.write_all(lines)?;
    failpoint::hit_of("after", "write", "transcript");
    Ok(())
}

fn found(dir: &Path) -> io::Result<HashMap<ConversationId, Seq>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashMap::new()),
        Err(error) => return Err(error),
    };
    let mut found = HashMap::new();
    for entry in entries {
        let path = entry?.path();
        let id = path
            .file_stem()
            .and_then(|stem| stem.to_str()?.parse().ok());
        if let Some(id) = id {
            found.insert(id, last_of(&path)?);
        }
    }
    Ok(found)
}

#[derive(Deserialize)]
struct Line {
    seq: Seq,
}

/// The last event in a file. A line that a crash cut off is removed.
fn last_of(path: &Path) -> io::Result<Seq> {
    let file = File::options().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    let begin = length.saturating_sub(TAIL);
    let mut reader = BufReader::new(&file);
    reader.seek(SeekFrom::Start(begin))?;
    let (mut last, mut whole) = (Seq::ZERO, begin);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            break;
        }
        whole += read as u64;
        if let Ok(Line { seq }) = serde_json::from_slice(&line) {
            last = seq;
        }
    }
    file.set_len(whole)?;
    Ok(last)
}
