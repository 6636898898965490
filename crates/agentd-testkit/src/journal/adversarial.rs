//! Events in an order that the turn machine never writes: what an import, a bug or a hostile file could contain. Folding
//! and repairing such a journal must work nevertheless.

mod odd;

use super::words::Source;
use super::{Journals, context};
use agentd_core::event::*;
use agentd_core::id::*;
use agentd_core::message::{
    Arguments, Block, CallOutcome, CutBlock, Signature, ToolCall, ToolResult, Wire,
};
use agentd_core::time::Timestamp;
use proptest::prelude::*;

/// One event to write. Numbers choose among the existing prompts, calls and events.
#[derive(Clone, Debug)]
pub enum Wild {
    Prompt(Vec<WildBlock>),
    /// Take the prompt at this distance from the newest one, or one that does not exist.
    Take(usize),
    Message(MessageStatus, Vec<WildBlock>),
    Result(&'static str, CallOutcome, Vec<WildBlock>),
    Notice {
        blank: bool,
    },
    /// A command of the user has ended.
    Command,
    /// Take the command at this distance from the newest one, or one that does not exist.
    TakeCommand(usize),
    Summary {
        back: u64,
    },
    Context(Wire, bool),
    /// A branch from the event at this distance from the end of the current conversation.
    Branch(u64),
    Reset,
    Pointer(Direction, usize),
    /// A structural event without a matching context.
    Odd(usize),
}

#[derive(Clone, Debug)]
pub enum WildBlock {
    Text,
    Blank,
    Thinking(Option<Wire>),
    EmptySignature(Wire),
    Image,
    Attachment,
    BadImage,
    Call(&'static str, &'static str),
    MalformedCall(&'static str),
    Result(&'static str),
    Notice,
    Native(Wire),
    Cut,
}

const IDS: [&str; 7] = [
    "a",
    "b",
    "c",
    "",
    "not valid!",
    "a-2",
    "a-call-id-that-is-far-longer-than-any-provider-would-ever-take-from-us",
];
const NAMES: [&str; 4] = ["shell", "9lives", "räuber tool", ""];

fn wire() -> impl Strategy<Value = Wire> {
    prop::sample::select(Wire::ALL.to_vec())
}

fn id() -> impl Strategy<Value = &'static str> {
    prop::sample::select(IDS.to_vec())
}

fn block() -> impl Strategy<Value = WildBlock> {
    prop_oneof![
        8 => Just(WildBlock::Text),
        2 => Just(WildBlock::Blank),
        2 => prop::option::of(wire()).prop_map(WildBlock::Thinking),
        1 => wire().prop_map(WildBlock::EmptySignature),
        1 => Just(WildBlock::Image),
        1 => Just(WildBlock::Attachment),
        1 => Just(WildBlock::BadImage),
        8 => (id(), prop::sample::select(NAMES.to_vec())).prop_map(|(i, n)| WildBlock::Call(i, n)),
        1 => id().prop_map(WildBlock::MalformedCall),
        1 => id().prop_map(WildBlock::Result),
        1 => Just(WildBlock::Notice),
        1 => wire().prop_map(WildBlock::Native),
        1 => Just(WildBlock::Cut),
    ]
}

fn blocks() -> impl Strategy<Value = Vec<WildBlock>> {
    prop::collection::vec(block(), 0..4)
}

fn status() -> impl Strategy<Value = MessageStatus> {
    prop::sample::select(vec![
        MessageStatus::Complete,
        MessageStatus::Complete,
        MessageStatus::Complete,
        MessageStatus::Interrupted,
        MessageStatus::Superseded,
    ])
}

fn outcome() -> impl Strategy<Value = CallOutcome> {
    prop::sample::select(vec![
        CallOutcome::Ok,
        CallOutcome::Error,
        CallOutcome::Unknown,
    ])
}

fn wild() -> impl Strategy<Value = Wild> {
    prop_oneof![
        6 => blocks().prop_map(Wild::Prompt),
        8 => (0..3usize).prop_map(Wild::Take),
        10 => (status(), blocks()).prop_map(|(status, blocks)| Wild::Message(status, blocks)),
        10 => (id(), outcome(), blocks()).prop_map(|(i, o, b)| Wild::Result(i, o, b)),
        2 => prop::bool::weighted(0.3).prop_map(|blank| Wild::Notice { blank }),
        2 => Just(Wild::Command),
        2 => (0..3usize).prop_map(Wild::TakeCommand),
        1 => (0..6u64).prop_map(|back| Wild::Summary { back }),
        1 => (wire(), any::<bool>()).prop_map(|(wire, tools)| Wild::Context(wire, tools)),
        1 => (0..8u64).prop_map(Wild::Branch),
        1 => Just(Wild::Reset),
        1 => (prop::sample::select(vec![Direction::Undo, Direction::Redo]), 0..3usize)
            .prop_map(|(direction, which)| Wild::Pointer(direction, which)),
        2 => (0..41usize).prop_map(Wild::Odd),
    ]
}

pub fn events(most: usize) -> impl Strategy<Value = Vec<Wild>> {
    prop::collection::vec(wild(), 1..most)
}

/// The journal of one agent that consists of these events.
pub fn journal(wild: &[Wild]) -> (AgentId, Journals) {
    let mut writer = Writer::new();
    for event in wild {
        writer.write(event);
    }
    let agent = writer.agent;
    let mut journals = Journals::default();
    journals.agents.insert(agent, writer.events);
    (agent, journals)
}

struct Writer {
    source: Source,
    agent: AgentId,
    current: ConversationId,
    all: Vec<ConversationId>,
    turn: TurnId,
    prompts: Vec<PromptId>,
    commands: Vec<CommandId>,
    events: Vec<Event>,
}

impl Writer {
    fn new() -> Self {
        let mut source = Source::default();
        let current = ConversationId::new(source.uuid());
        let mut writer = Self {
            agent: AgentId::new(source.uuid()),
            turn: TurnId::new(source.uuid()),
            source,
            current,
            all: vec![current],
            prompts: Vec::new(),
            commands: Vec::new(),
            events: Vec::new(),
        };
        writer.push(began(BeginSource::Import, None));
        writer
    }

    fn push(&mut self, body: impl Into<Body>) {
        let seq = Seq(self.events.len() as u64 + 1);
        let event = NewEvent {
            at: Timestamp::from_millis(0),
            conversation: self.current,
            turn: Some(self.turn),
            body: body.into(),
        };
        self.events.push(event.placed(self.agent, seq));
    }

    fn write(&mut self, wild: &Wild) {
        match wild {
            Wild::Prompt(blocks) => {
                let prompt = PromptId::new(self.source.uuid());
                self.prompts.push(prompt);
                let blocks = self.blocks(blocks);
                self.push(Prompt { prompt, blocks });
            }
            Wild::Take(back) => {
                let known = self.prompts.iter().rev().nth(*back).copied();
                let prompt = known.unwrap_or_else(|| PromptId::new(self.source.uuid()));
                let prompts = vec![prompt];
                self.push(PromptsTaken { prompts });
            }
            Wild::Message(status, blocks) => {
                let (request, status, stop) = (None, *status, None);
                let blocks = self.blocks(blocks);
                self.push(MessageAdded {
                    request,
                    status,
                    stop,
                    blocks,
                });
            }
            Wild::Result(id, outcome, blocks) => {
                let (call, outcome) = (CallId::new(*id), *outcome);
                let blocks = self.blocks(blocks);
                self.push(ResultAdded {
                    call,
                    outcome,
                    blocks,
                });
            }
            Wild::Notice { blank } => {
                let text = if *blank {
                    String::new()
                } else {
                    self.source.word()
                };
                let cause = NoticeCause::Hook;
                self.push(Notice { cause, text });
            }
            Wild::Command => {
                let command = CommandId::new(self.source.uuid());
                self.commands.push(command);
                let (exit, cut) = (TaskExit::Code { code: 1 }, None);
                let (line, output) = (self.source.word(), self.source.word());
                self.push(CommandOutput {
                    command,
                    line,
                    output,
                    end: CommandEnd { exit, cut },
                });
            }
            Wild::TakeCommand(back) => {
                let known = self.commands.iter().rev().nth(*back).copied();
                let command = known.unwrap_or_else(|| CommandId::new(self.source.uuid()));
                let commands = vec![command];
                self.push(CommandsTaken { commands });
            }
            Wild::Summary { back } => {
                let seq = Seq((self.events.len() as u64).saturating_sub(*back));
                let through = Position {
                    agent: self.agent,
                    seq,
                };
                let text = self.source.word();
                self.push(Summary { through, text });
            }
            Wild::Context(wire, tools) => {
                let mut context = context(*wire);
                if !tools {
                    context.tools.clear();
                }
                self.push(context);
            }
            Wild::Branch(back) => {
                let seq = Seq((self.events.len() as u64).saturating_sub(*back));
                let (agent, conversation) = (self.agent, self.current);
                let from = Origin {
                    agent,
                    conversation,
                    seq,
                };
                self.begin(BeginSource::Rewind, Some(from));
            }
            Wild::Reset => self.begin(BeginSource::Reset, None),
            Wild::Pointer(direction, which) => {
                let Some(to) = self.all.iter().rev().nth(*which).copied() else {
                    return;
                };
                let (direction, op) = (*direction, None);
                self.push(PointerMoved { to, direction, op });
            }
            Wild::Odd(which) => self.odd(*which),
        }
    }

    fn begin(&mut self, source: BeginSource, from: Option<Origin>) {
        self.current = ConversationId::new(self.source.uuid());
        self.all.push(self.current);
        self.push(began(source, from));
    }

    fn blocks(&mut self, blocks: &[WildBlock]) -> Vec<Block> {
        blocks.iter().map(|block| self.block(block)).collect()
    }

    fn block(&mut self, block: &WildBlock) -> Block {
        let word = self.source.word();
        match block {
            WildBlock::Text => Block::text(word),
            WildBlock::Blank => Block::text(" \t"),
            WildBlock::Thinking(wire) => Block::Thinking {
                text: word,
                signature: wire.map(|wire| self.source.signature(wire)),
            },
            WildBlock::EmptySignature(wire) => Block::Thinking {
                text: word,
                signature: Some(Signature {
                    wire: *wire,
                    value: String::new(),
                    id: None,
                }),
            },
            WildBlock::Image => self.source.image(),
            WildBlock::Attachment => self.source.attachment(),
            WildBlock::BadImage => Block::Image {
                media_type: "image/tiff".into(),
                data: "!".into(),
            },
            WildBlock::Call(id, name) => {
                let mut call = self.source.call(id);
                call.name = (*name).to_owned();
                Block::ToolCall(call)
            }
            WildBlock::MalformedCall(id) => Block::ToolCall(ToolCall {
                id: CallId::new(*id),
                name: "shell".into(),
                arguments: Arguments::Malformed(word),
                signature: None,
            }),
            WildBlock::Result(id) => Block::ToolResult(ToolResult {
                call: CallId::new(*id),
                outcome: CallOutcome::Ok,
                blocks: vec![Block::text(word)],
            }),
            WildBlock::Notice => Block::Notice { text: word },
            WildBlock::Native(wire) => self.source.native(*wire),
            WildBlock::Cut => Block::Cut {
                what: CutBlock::ToolCall,
                text: word,
            },
        }
    }
}

fn began(source: BeginSource, from: Option<Origin>) -> Body {
    let (parent, op) = (None, None);
    ConversationBegan {
        source,
        parent,
        from,
        op,
    }
    .into()
}
