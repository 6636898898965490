//! What the tests of this crate share: ids by number, constructors of blocks, a journal in memory.

use crate::event::*;
use crate::id::*;
use crate::message::{Arguments, Block, CallOutcome, Signature, ToolCall, ToolResult, Wire};
use crate::state::AgentState;
use crate::time::Timestamp;
use crate::window::Window;
use serde_json::{Map, Value, json};
use uuid::Uuid;

pub fn agent(n: u128) -> AgentId {
    AgentId::new(Uuid::from_u128(0xA000 + n))
}

pub fn conversation(n: u128) -> ConversationId {
    ConversationId::new(Uuid::from_u128(0xC000 + n))
}

pub fn turn(n: u128) -> TurnId {
    TurnId::new(Uuid::from_u128(0x7000 + n))
}

pub fn prompt_id(n: u128) -> PromptId {
    PromptId::new(Uuid::from_u128(0xB000 + n))
}

pub fn approval(n: u128) -> ApprovalId {
    ApprovalId::new(Uuid::from_u128(0xE000 + n))
}

pub fn request(incarnation: u64, n: u64) -> TryId {
    let incarnation = Incarnation(incarnation);
    TryId { incarnation, n }
}

pub fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("no object: {other}"),
    }
}

pub fn call(id: &str) -> Block {
    call_of("shell", id)
}

pub fn call_of(tool: &str, id: &str) -> Block {
    Block::ToolCall(ToolCall {
        id: CallId::new(id),
        name: tool.to_owned(),
        arguments: Arguments::Object(object(json!({"command": format!("do {id}")}))),
        signature: None,
    })
}

pub fn result(id: &str, text: &str) -> Block {
    Block::ToolResult(ToolResult {
        call: CallId::new(id),
        outcome: CallOutcome::Ok,
        blocks: vec![Block::text(text)],
    })
}

pub fn notice(text: &str) -> Block {
    let text = text.to_owned();
    Block::Notice { text }
}

pub fn signature(wire: Wire) -> Signature {
    let (value, id) = ("c2lnbmVk".to_owned(), Some("rs_1".to_owned()));
    Signature { wire, value, id }
}

pub fn thinking(text: &str, wire: Wire) -> Block {
    let (text, signature) = (text.to_owned(), Some(signature(wire)));
    Block::Thinking { text, signature }
}

pub fn tool(name: &str) -> Tool {
    Tool {
        name: name.to_owned(),
        description: format!("The tool {name}."),
        parameters: json!({"type": "object", "properties": {"command": {"type": "string"}}}),
    }
}

pub fn context(wire: Wire) -> Context {
    Context {
        provider: "fake".to_owned(),
        wire,
        model: "some-model".to_owned(),
        system: "Be brief.".to_owned(),
        kept: None,
        tools: vec![tool("shell")],
        server_tools: Vec::new(),
        max_output_tokens: 1000,
        temperature: None,
        thinking_tokens: None,
        effort: None,
        verbosity: None,
        fast: false,
        omits: Vec::new(),
    }
}

/// One agent's journal. It numbers its events as the store does.
#[derive(Clone, Debug)]
pub struct Journal {
    pub agent: AgentId,
    pub events: Vec<Event>,
    pub conversation: ConversationId,
    pub turn: Option<TurnId>,
    pub at: Timestamp,
}

impl Journal {
    /// Without any event.
    pub fn empty() -> Self {
        Self {
            agent: agent(1),
            events: Vec::new(),
            conversation: conversation(1),
            turn: None,
            at: Timestamp::from_millis(1_000),
        }
    }

    /// An agent with one empty conversation.
    pub fn new() -> Self {
        let mut journal = Self::empty();
        let (name, mode) = ("agent".to_owned(), Mode::Persistent);
        journal.push(AgentCreated { name, mode });
        journal.begin(BeginSource::Create, None, None);
        journal
    }

    pub fn push(&mut self, body: impl Into<Body>) -> Event {
        let event = NewEvent {
            at: self.at,
            conversation: self.conversation,
            turn: self.turn,
            body: body.into(),
        };
        self.place(event)
    }

    pub fn place(&mut self, event: NewEvent) -> Event {
        let event = event.placed(self.agent, self.head().next());
        self.events.push(event.clone());
        event
    }

    pub fn head(&self) -> Seq {
        Seq(self.events.len() as u64)
    }

    pub fn begin(
        &mut self,
        source: BeginSource,
        parent: Option<ConversationId>,
        from: Option<Origin>,
    ) {
        let op = None;
        self.push(ConversationBegan {
            source,
            parent,
            from,
            op,
        });
    }

    pub fn queue(&mut self, prompt: PromptId, mode: PromptMode, text: &str) {
        let (key, blocks) = (None, vec![Block::text(text)]);
        self.push(PromptQueued { prompt, key, mode });
        self.push(Prompt { prompt, blocks });
    }

    /// A prompt that is in the window immediately.
    pub fn prompt(&mut self, n: u128, text: &str) {
        self.queue(prompt_id(n), PromptMode::Queue, text);
        let prompts = vec![prompt_id(n)];
        self.push(PromptsTaken { prompts });
    }

    pub fn start_turn(&mut self, n: u128) {
        self.turn = Some(turn(n));
        self.push(TurnStarted::default());
    }

    pub fn end_turn(&mut self, status: TurnStatus) {
        self.push(TurnEnded::with(status));
        self.turn = None;
    }

    /// A turn that leaves a background task running.
    pub fn leave_task(&mut self, n: u128) -> TaskId {
        self.start_turn(n);
        let task = TaskId::new(Uuid::from_u128(n));
        self.push(TaskStarted {
            task,
            call: CallId::new("a"),
            tool: "shell".to_owned(),
            boot: BootId::new(Uuid::from_u128(2)),
        });
        self.end_turn(TurnStatus::Completed);
        task
    }

    pub fn reply(&mut self, blocks: Vec<Block>) -> Event {
        self.message(MessageStatus::Complete, blocks)
    }

    pub fn message(&mut self, status: MessageStatus, blocks: Vec<Block>) -> Event {
        let (request, stop) = (None, None);
        self.push(MessageAdded {
            request,
            status,
            stop,
            blocks,
        })
    }

    pub fn result(&mut self, id: &str, text: &str) -> Event {
        let (outcome, blocks) = (CallOutcome::Ok, vec![Block::text(text)]);
        let call = CallId::new(id);
        self.push(ResultAdded {
            call,
            outcome,
            blocks,
        })
    }

    pub fn send(&mut self, request: TryId, purpose: Purpose) {
        let grant = Grant {
            input_tokens: 100,
            output_tokens: 50,
            cost: None,
        };
        self.push(RequestSent {
            request,
            purpose,
            grant,
        });
    }

    pub fn state(&self) -> AgentState {
        let mut state = AgentState::new(self.agent);
        for event in &self.events {
            state.apply(event);
        }
        state
    }

    /// The window of the current conversation, over its lineage within this journal.
    pub fn window(&self) -> Window {
        let mut window = Window::new();
        let state = self.state();
        let Some(current) = state.tree.current() else {
            return window;
        };
        for segment in state.tree.lineage(self.agent, current, state.head).segments {
            let own = self.events.iter().filter(|event| {
                event.conversation == segment.conversation && event.seq <= segment.through
            });
            own.for_each(|event| window.apply(event));
        }
        window
    }
}
