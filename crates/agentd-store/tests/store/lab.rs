//! A directory with a store, and an author that writes an agent's journal as a runtime does.

use agentd_core::event::{
    AgentCreated, BeginSource, Body, ConversationBegan, ConversationSealed, Direction, Grant,
    MessageAdded, MessageStatus, Mode, NewEvent, Origin, PointerMoved, Prompt, PromptMode,
    PromptQueued, PromptsTaken, Purpose, RequestEnded, RequestOutcome, RequestSent, ResultAdded,
    SealReason, StopReason, Summary, ToolEnded, ToolStarted, TurnEnded, TurnStarted, TurnStatus,
};
use agentd_core::event::{Compacted, Event, Position};
use agentd_core::id::{AgentId, CallId, ConversationId, Incarnation, PromptId, Seq, TryId, TurnId};
use agentd_core::message::{Arguments, Block, CallOutcome, ToolCall};
use agentd_core::time::Timestamp;
use agentd_core::usage::{MicroUsd, Usage};
use agentd_store::{Ack, Append, Fence, Options, ReadQuery, SqliteStore, Store as _};
use rusqlite::Connection;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Whether the long parts of tests run too.
pub fn long() -> bool {
    std::env::var_os("AGENTD_TEST_LONG").is_some_and(|value| value == "1")
}

/// Runs a test's future to its end.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(future)
}

/// Waits for something that must happen soon.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future)
        .await
        .expect("nothing came within a minute")
}

/// An id that is the same in every run: a version 7 one with `kind` and `n` in it.
fn id_bytes(kind: u8, n: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[0] = 1;
    bytes[1] = 0x90;
    // Ordered by `n`, as ids made one after the other are.
    bytes[2..6].copy_from_slice(&((n >> 16) as u32).to_be_bytes());
    bytes[6] = 0x70;
    bytes[7] = kind;
    bytes[8] = 0x80;
    bytes[14..].copy_from_slice(&(n as u16).to_be_bytes());
    bytes
}

pub fn agent_id(n: u64) -> AgentId {
    AgentId::from_bytes(id_bytes(1, n))
}

pub fn conversation_id(n: u64) -> ConversationId {
    ConversationId::from_bytes(id_bytes(2, n))
}

/// A directory of its own.
pub struct Lab {
    dir: TempDir,
}

impl Lab {
    pub fn new() -> Self {
        Self {
            dir: TempDir::new().unwrap(),
        }
    }

    pub fn dir(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub fn options(&self) -> Options {
        Options::new(self.dir())
    }

    pub fn open(&self) -> SqliteStore {
        SqliteStore::open(self.options()).unwrap()
    }

    /// A direct connection to the database, without the store.
    pub fn journal(&self) -> Connection {
        Connection::open(self.dir().join("journal.db")).unwrap()
    }

    pub fn derived(&self) -> Connection {
        Connection::open(self.dir().join("derived.db")).unwrap()
    }

    /// A copy of the files, as a crash at this moment would leave them.
    pub fn copy(&self) -> Self {
        let copy = Self::new();
        copy_dir(&self.dir(), &copy.dir());
        copy
    }
}

/// The databases and their logs, without the index of the log: that is memory, not disk.
///
/// Read through `cat`, because a process that opens and closes a database file by itself gives up
/// the locks that SQLite holds on it.
pub fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name.ends_with("-shm") {
            continue;
        }
        let out = std::fs::File::create(to.join(&name)).unwrap();
        let status = std::process::Command::new("cat")
            .arg(entry.path())
            .stdout(out)
            .status()
            .unwrap();
        assert!(status.success());
    }
}

/// Writes one agent's journal.
pub struct Author {
    pub agent: AgentId,
    pub fence: Fence,
    pub conversation: ConversationId,
    /// The one it began with.
    pub first: ConversationId,
    pub incarnation: Incarnation,
    /// The clock of its events; moves by a second at a time.
    pub at: i64,
    /// The last event, as far as the author knows.
    pub head: Seq,
    tries: u64,
    ids: u64,
    number: u64,
}

impl Author {
    /// Claims the agent and creates it.
    pub async fn create(store: &SqliteStore, number: u64, name: &str) -> Self {
        let mut author = Self::claim(store, number).await;
        let events = author.created(name);
        author.append(store, events).await;
        author
    }

    pub async fn claim(store: &SqliteStore, number: u64) -> Self {
        let claim = store.claim(agent_id(number), "author").await.unwrap();
        Self::new(number, claim.fence)
    }

    pub fn new(number: u64, fence: Fence) -> Self {
        Self {
            agent: agent_id(number),
            fence,
            conversation: conversation_id(number * 1000),
            first: conversation_id(number * 1000),
            incarnation: Incarnation(1),
            at: 1_700_000_000_000,
            head: Seq::ZERO,
            tries: 0,
            ids: 0,
            number,
        }
    }

    pub async fn append(&mut self, store: &SqliteStore, events: Vec<NewEvent>) -> (Seq, Seq) {
        let ack = store.append(Append::new(self.fence, events)).await;
        match ack.unwrap() {
            Ack::Committed { first, last } => {
                self.head = last;
                (first, last)
            }
            repeated @ Ack::Repeated { .. } => panic!("{repeated:?} without a source"),
        }
    }

    fn next_id(&mut self, kind: u8) -> [u8; 16] {
        self.ids += 1;
        id_bytes(kind, self.number * 100_000 + self.ids)
    }

    pub fn turn_id(&mut self) -> TurnId {
        TurnId::from_bytes(self.next_id(3))
    }

    pub fn prompt_id(&mut self) -> PromptId {
        PromptId::from_bytes(self.next_id(4))
    }

    pub fn next_try(&mut self) -> TryId {
        self.tries += 1;
        TryId {
            incarnation: self.incarnation,
            n: self.tries,
        }
    }

    pub fn event(&mut self, turn: Option<TurnId>, body: impl Into<Body>) -> NewEvent {
        self.at += 1000;
        NewEvent {
            at: Timestamp::from_millis(self.at),
            conversation: self.conversation,
            turn,
            body: body.into(),
        }
    }

    pub fn created(&mut self, name: &str) -> Vec<NewEvent> {
        let created = AgentCreated {
            name: name.to_owned(),
            mode: Mode::Persistent,
        };
        let began = ConversationBegan {
            source: BeginSource::Create,
            parent: None,
            from: None,
            op: None,
        };
        vec![self.event(None, created), self.event(None, began)]
    }

    /// A prompt in the inbox.
    pub fn prompt(&mut self, words: &str) -> (PromptId, Vec<NewEvent>) {
        let prompt = self.prompt_id();
        let queued = PromptQueued {
            prompt,
            key: None,
            mode: PromptMode::Queue,
        };
        let said = Prompt {
            prompt,
            blocks: vec![Block::text(words)],
        };
        (
            prompt,
            vec![self.event(None, queued), self.event(None, said)],
        )
    }

    /// A whole turn: a prompt and its answer.
    pub fn turn(&mut self, words: &str, answer: &str) -> Vec<NewEvent> {
        let (prompt, mut events) = self.prompt(words);
        let turn = Some(self.turn_id());
        let prompts = vec![prompt];
        events.push(self.event(turn, TurnStarted::default()));
        events.push(self.event(turn, PromptsTaken { prompts }));
        events.extend(self.exchange(turn, vec![Block::text(answer)], StopReason::EndTurn));
        let ended = TurnEnded::with(TurnStatus::Completed);
        events.push(self.event(turn, ended));
        events
    }

    /// A turn with one tool call in it, whose result says `output`.
    pub fn tool_turn(&mut self, words: &str, output: &str, answer: &str) -> Vec<NewEvent> {
        let (prompt, mut events) = self.prompt(words);
        let turn = Some(self.turn_id());
        let prompts = vec![prompt];
        events.push(self.event(turn, TurnStarted::default()));
        events.push(self.event(turn, PromptsTaken { prompts }));
        let call = CallId::new(format!("call-{}", self.ids));
        let asks = Block::ToolCall(ToolCall {
            id: call.clone(),
            name: "shell".to_owned(),
            arguments: Arguments::parse(r#"{"command":"true"}"#),
            signature: None,
        });
        events.extend(self.exchange(turn, vec![asks], StopReason::ToolUse));
        let started = ToolStarted {
            call: call.clone(),
            tool: "shell".to_owned(),
            task: None,
            boot: None,
            change: None,
        };
        events.push(self.event(turn, started));
        let outcome = CallOutcome::Ok;
        let result = ResultAdded {
            call: call.clone(),
            outcome,
            blocks: vec![Block::text(output)],
        };
        events.push(self.event(turn, ToolEnded { call, outcome }));
        events.push(self.event(turn, result));
        events.extend(self.exchange(turn, vec![Block::text(answer)], StopReason::EndTurn));
        let ended = TurnEnded::with(TurnStatus::Completed);
        events.push(self.event(turn, ended));
        events
    }

    /// A request and its reply.
    fn exchange(
        &mut self,
        turn: Option<TurnId>,
        blocks: Vec<Block>,
        stop: StopReason,
    ) -> Vec<NewEvent> {
        let request = self.next_try();
        let sent = RequestSent {
            request,
            purpose: Purpose::Answer,
            grant: Grant::default(),
        };
        let message = MessageAdded {
            request: Some(request),
            status: MessageStatus::Complete,
            stop: Some(stop),
            blocks,
        };
        let ended = RequestEnded {
            request,
            outcome: RequestOutcome::Completed,
            usage: Usage {
                input_tokens: 100,
                output_tokens: 10,
                ..Usage::default()
            },
            estimated: false,
            cost: Some(MicroUsd(42)),
            provider_request: None,
        };
        vec![
            self.event(turn, sent),
            self.event(turn, message),
            self.event(turn, ended),
        ]
    }

    /// Seals the conversation and begins another, from nothing or from a place in some conversation.
    pub fn begin(&mut self, source: BeginSource, from: Option<Origin>) -> Vec<NewEvent> {
        let old = self.conversation;
        let reason = match source {
            BeginSource::Rewind => SealReason::Rewind,
            _ => SealReason::Reset,
        };
        let sealed = ConversationSealed {
            reason,
            last_request: None,
            op: None,
        };
        let sealed = self.event(None, sealed);
        self.ids += 1;
        self.conversation = conversation_id(self.number * 1000 + self.ids);
        let began = ConversationBegan {
            source,
            parent: Some(old),
            from,
            op: None,
        };
        vec![sealed, self.event(None, began)]
    }

    pub fn reset(&mut self) -> Vec<NewEvent> {
        self.begin(BeginSource::Reset, None)
    }

    pub fn rewind(&mut self, conversation: ConversationId, seq: Seq) -> Vec<NewEvent> {
        let from = Origin {
            agent: self.agent,
            conversation,
            seq,
        };
        self.begin(BeginSource::Rewind, Some(from))
    }

    /// The first events of an agent that begins where another one was.
    pub fn forked(&mut self, name: &str, from: Origin) -> Vec<NewEvent> {
        let created = AgentCreated {
            name: name.to_owned(),
            mode: Mode::Persistent,
        };
        let began = ConversationBegan {
            source: BeginSource::Fork,
            parent: None,
            from: Some(from),
            op: None,
        };
        vec![self.event(None, created), self.event(None, began)]
    }

    /// Undo or redo.
    pub fn move_to(&mut self, to: ConversationId, direction: Direction) -> Vec<NewEvent> {
        let reason = match direction {
            Direction::Undo => SealReason::Undo,
            Direction::Redo => SealReason::Redo,
        };
        let sealed = ConversationSealed {
            reason,
            last_request: None,
            op: None,
        };
        let sealed = self.event(None, sealed);
        self.conversation = to;
        let op = None;
        vec![sealed, self.event(None, PointerMoved { to, direction, op })]
    }

    /// A summary of everything up to `through`.
    pub fn compact(&mut self, through: Seq, text: &str) -> Vec<NewEvent> {
        let through = Position {
            agent: self.agent,
            seq: through,
        };
        let summary = Summary {
            through,
            text: text.to_owned(),
        };
        vec![
            self.event(None, Compacted { through }),
            self.event(None, summary),
        ]
    }

    /// The current position of this agent, for a branch.
    pub fn here(&self) -> Origin {
        Origin {
            agent: self.agent,
            conversation: self.conversation,
            seq: self.head,
        }
    }
}

/// All events of an agent.
pub async fn events_of(store: &SqliteStore, agent: AgentId) -> Vec<Event> {
    let mut events = Vec::new();
    let mut after = Seq::ZERO;
    loop {
        let query = ReadQuery::all(agent, after, 1000);
        let page = store.read(query).await.unwrap();
        events.extend(page.events);
        match page.next {
            Some(next) => after = next,
            None => return events,
        }
    }
}
