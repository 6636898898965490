//! A deterministic simulation: one agent, its runtime, the daemon, the link between them and the journal,
//! with everything that can be lost lost at any moment.
//!
//! The machines are the real ones (core's turn machine, recovery, both sides of the link); the network
//! is two queues that a cut empties, a process is a value that a kill drops, and the journal is a list
//! that outlives both. What is said goes through its JSON text. A schedule is a list of [`Op`]s, so a
//! failing one shrinks.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "where the simulation cannot go on, the test has failed"
)]

mod daemon;
mod journal;
mod runtime;
mod world;

pub use journal::Kept;

use agentd_core::event::{Event, PromptMode};
use agentd_core::id::{AgentId, CallId, ConversationId, RuntimeId, Seq};
use agentd_core::link::{Down, Up};
use agentd_core::time::Timestamp;
use daemon::DaemonProcess;
use proptest::prelude::*;
use runtime::RuntimeProcess;
use std::collections::{BTreeMap, VecDeque};
use uuid::Uuid;

/// One thing that happens. One that does not fit the moment does nothing.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// A client sends a prompt; one that was not acknowledged is sent again first, under its key.
    Prompt(PromptMode),
    Interrupt,
    /// One message arrives.
    Up,
    Down,
    /// The daemon reads what was said on a connection that is broken by now.
    Late,
    /// For a while all is well: what is missing is started, and so many messages arrive each way.
    Flow(u8),
    /// The connection breaks. What was on its way down is lost; what was on its way up may be read late.
    Cut,
    /// The runtime makes a new one.
    Connect,
    KillDaemon,
    StartDaemon,
    KillRuntime,
    StartRuntime,
    /// The model answers, with so many calls.
    Reply(u8),
    /// The model's stream has come so far.
    Stream,
    ModelFails,
    ToolPrepared,
    ToolEnds,
    BackoffOver,
}

pub fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => prop::sample::select(vec![PromptMode::Queue, PromptMode::Queue, PromptMode::Steer, PromptMode::Interrupt])
            .prop_map(Op::Prompt),
        1 => Just(Op::Interrupt),
        8 => Just(Op::Up),
        8 => Just(Op::Down),
        3 => Just(Op::Late),
        12 => (1..6_u8).prop_map(Op::Flow),
        3 => Just(Op::Cut),
        4 => Just(Op::Connect),
        2 => Just(Op::KillDaemon),
        3 => Just(Op::StartDaemon),
        3 => Just(Op::KillRuntime),
        4 => Just(Op::StartRuntime),
        5 => (0..3_u8).prop_map(Op::Reply),
        2 => Just(Op::Stream),
        1 => Just(Op::ModelFails),
        5 => Just(Op::ToolPrepared),
        4 => Just(Op::ToolEnds),
        1 => Just(Op::BackoffOver),
    ]
}

/// A prompt as its sender sees it.
#[derive(Clone, Debug)]
pub struct Sent {
    pub key: String,
    pub mode: PromptMode,
    pub is_acknowledged: bool,
}

/// What a tool's process has come to. It outlives the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    Running,
    Ended,
}

pub struct Sim {
    pub kept: Kept,
    pub prompts: Vec<Sent>,
    /// How often each call has had its effect.
    pub effects: BTreeMap<CallId, u32>,
    /// Kills of a runtime.
    pub kills: u32,
    tasks: BTreeMap<CallId, Task>,
    daemon: Option<DaemonProcess>,
    runtime: Option<RuntimeProcess>,
    /// What is on its way, as text. None where there is no connection.
    wire: Option<Wire>,
    /// What was said on connections that are broken, and the daemon has not read yet.
    late: VecDeque<String>,
    ids: u128,
    clock: i64,
}

#[derive(Default)]
struct Wire {
    up: VecDeque<String>,
    down: VecDeque<String>,
}

pub const AGENT: AgentId = AgentId::from_bytes([1; 16]);
pub const CONVERSATION: ConversationId = ConversationId::from_bytes([2; 16]);

impl Default for Sim {
    fn default() -> Self {
        Self::new()
    }
}

impl Sim {
    pub fn new() -> Self {
        Self {
            kept: Kept::new(),
            prompts: Vec::new(),
            effects: BTreeMap::new(),
            kills: 0,
            tasks: BTreeMap::new(),
            daemon: None,
            runtime: None,
            wire: None,
            late: VecDeque::new(),
            ids: 1000,
            clock: 1000,
        }
    }

    pub fn run(ops: &[Op]) -> Self {
        let mut sim = Self::new();
        for op in ops {
            sim.apply(*op);
        }
        sim
    }

    pub fn apply(&mut self, op: Op) {
        self.clock += 7;
        match op {
            Op::Prompt(mode) => self.prompt(mode),
            Op::Interrupt => self.interrupt(),
            Op::Up => {
                let text = self.wire.as_mut().and_then(|wire| wire.up.pop_front());
                if let Some(text) = text {
                    let up: Up = serde_json::from_str(&text).expect("what was said can be read");
                    self.daemon_hears(up);
                }
            }
            Op::Down => {
                let text = self.wire.as_mut().and_then(|wire| wire.down.pop_front());
                if let Some(text) = text {
                    let down: Down =
                        serde_json::from_str(&text).expect("what was said can be read");
                    self.runtime_hears(down);
                }
            }
            Op::Late => {
                if let Some(text) = self.late.pop_front() {
                    let up: Up = serde_json::from_str(&text).expect("what was said can be read");
                    self.daemon_hears_late(up);
                }
            }
            Op::Flow(messages) => {
                self.start_daemon();
                self.start_runtime();
                self.connect();
                for _ in 0..messages {
                    self.apply(Op::Up);
                    self.apply(Op::Down);
                }
            }
            Op::Cut => self.cut(),
            Op::Connect => self.connect(),
            Op::KillDaemon => {
                self.daemon = None;
                self.cut();
                self.late.clear();
            }
            Op::StartDaemon => self.start_daemon(),
            Op::KillRuntime => {
                self.kills += u32::from(self.runtime.take().is_some());
                self.cut();
                self.reap();
            }
            Op::StartRuntime => self.start_runtime(),
            Op::Reply(calls) => self.reply(calls),
            Op::Stream => self.stream(),
            Op::ModelFails => self.model_fails(),
            Op::ToolPrepared => self.tool_prepared(),
            Op::ToolEnds => self.tool_ends(),
            Op::BackoffOver => self.backoff_over(),
        }
    }

    fn cut(&mut self) {
        if let Some(wire) = self.wire.take() {
            self.late.extend(wire.up);
        }
        if let Some(daemon) = &mut self.daemon {
            daemon.side.disconnected();
        }
        if let Some(runtime) = &mut self.runtime {
            runtime.link.disconnected();
        }
    }

    fn send_up(&mut self, up: &Up) {
        if let Some(wire) = &mut self.wire {
            let text = serde_json::to_string(up).expect("what is said can be written");
            wire.up.push_back(text);
        }
    }

    fn send_down(&mut self, down: &Down) {
        if let Some(wire) = &mut self.wire {
            let text = serde_json::to_string(down).expect("what is said can be written");
            wire.down.push_back(text);
        }
    }

    fn new_id(&mut self) -> Uuid {
        self.ids += 1;
        Uuid::from_u128(self.ids)
    }

    fn new_runtime(&mut self) -> RuntimeId {
        RuntimeId::new(self.new_id())
    }

    const fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.clock)
    }

    pub fn events(&self) -> &[Event] {
        &self.kept.events
    }

    /// Lets everything come to rest: all is started and connected, the model answers, tools end.
    pub fn settle(&mut self) {
        for _ in 0..10_000 {
            for prompt in 0..self.prompts.len() {
                self.send_again(prompt);
            }
            self.start_daemon();
            self.start_runtime();
            self.connect();
            let said = |wire: &Wire| !wire.up.is_empty() || !wire.down.is_empty();
            if self.wire.as_ref().is_some_and(said) {
                self.apply(Op::Up);
                self.apply(Op::Down);
            } else if !self.let_work() {
                return;
            }
        }
        panic!("it never comes to rest: {:#?}", self.kept.events.last());
    }

    /// What the runtime's machine has been told, as a prefix of the journal.
    pub fn check_prefix(&self) {
        let Some(machine) = self.runtime.as_ref().and_then(RuntimeProcess::machine) else {
            return;
        };
        let told = self.kept.state_at(machine.agent().head);
        assert_eq!(*machine.agent(), told, "the machine knows another journal");
        assert!(machine.agent().head <= Seq(self.kept.events.len() as u64));
    }
}
