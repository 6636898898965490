//! An author who writes an agent's journal the way a runtime would, into any store.

use agentd_core::event::{
    AgentCreated, BeginSource, Body, ConversationBegan, ConversationSealed, Direction, Grant,
    MessageAdded, MessageStatus, Mode, NewEvent, Note, Origin, PointerMoved, Prompt, PromptMode,
    PromptQueued, PromptsTaken, Purpose, RequestEnded, RequestOutcome, RequestSent, ResultAdded,
    SealReason, StopReason, Summary, ToolEnded, ToolStarted, TurnEnded, TurnStarted, TurnStatus,
};
use agentd_core::event::{Compacted, Event, Position};
use agentd_core::id::{AgentId, CallId, ConversationId, Incarnation, PromptId, Seq, TryId, TurnId};
use agentd_core::message::{Arguments, Block, CallOutcome, ToolCall};
use agentd_core::time::Timestamp;
use agentd_core::usage::{MicroUsd, Usage};
use agentd_store::{Ack, Append, Fence, ReadQuery, Store};

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
    pub async fn create(store: &dyn Store, number: u64, name: &str) -> Self {
        let mut author = Self::claim(store, number).await;
        let events = author.created(name);
        author.append(store, events).await;
        author
    }

    pub async fn claim(store: &dyn Store, number: u64) -> Self {
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

    pub async fn append(&mut self, store: &dyn Store, events: Vec<NewEvent>) -> (Seq, Seq) {
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
            patched: Vec::new(),
            may_change_files: false,
        };
        events.push(self.event(turn, started));
        let outcome = CallOutcome::Ok;
        let result = ResultAdded {
            call: call.clone(),
            outcome,
            blocks: vec![Block::text(output)],
        };
        events.push(self.event(turn, ToolEnded::new(call, outcome)));
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

    /// Where this agent stands now, for a branch.
    pub fn here(&self) -> Origin {
        Origin {
            agent: self.agent,
            conversation: self.conversation,
            seq: self.head,
        }
    }
}

/// Everything there is of an agent.
pub async fn events_of(store: &dyn Store, agent: AgentId) -> Vec<Event> {
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

/// What an owner says; which one it was can be read off it.
pub fn said(fence: Fence, text: &str) -> NewEvent {
    NewEvent {
        at: Timestamp::from_millis(1_700_000_000_000),
        conversation: conversation_id(1000),
        turn: None,
        body: Body::from(Note {
            about: None,
            text: format!("{} {text}", fence.epoch),
        }),
    }
}
