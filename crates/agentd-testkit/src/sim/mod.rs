//! A deterministic simulation: one agent, its runtime, the daemon, the link between them and the journal;
//! everything that can be lost is lost at any moment.
//!
//! The machines are the real ones (core's turn machine, recovery, both sides of the link). The network is two queues
//! that a broken connection empties, a process is a value that a kill drops, and the journal is a list that outlives
//! both. Messages are passed as JSON text. A schedule is a list of [`Op`]s, so a failing one shrinks.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "where the simulation cannot go on, the test has failed"
)]

mod by_itself;
mod check;
mod daemon;
mod fork;
mod journal;
mod lifecycle;
mod queue;
mod runtime;
mod schedule;
mod surroundings;

pub use by_itself::Auto;
pub use journal::Kept;
pub use lifecycle::{Asked, Wanted, Way};
pub use schedule::{Op, everything, op, trouble};

use agentd_core::event::{Decision, Event, PromptMode};
use agentd_core::id::{AgentId, CallId, ConversationId, OpId, RuntimeId, Seq};
use agentd_core::link::{Down, Up};
use agentd_core::request::Request;
use agentd_core::state::AgentState;
use agentd_core::time::Timestamp;
use daemon::DaemonProcess;
use runtime::RuntimeProcess;
use std::collections::{BTreeMap, VecDeque};
use uuid::Uuid;

/// Schedules that the tests try.
pub const SCHEDULES: u32 = 4_000;
/// And those of a long run.
pub const LONG_SCHEDULES: usize = SCHEDULES as usize * crate::LONG;

/// A prompt as its sender sees it.
#[derive(Clone, Debug)]
pub struct Sent {
    pub key: String,
    pub mode: PromptMode,
    pub is_acknowledged: bool,
}

/// The state of a tool's process. It outlives the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    Running,
    /// It was told to end, but has not ended yet.
    Cancelled,
    Ended,
}

impl Task {
    const fn is_alive(self) -> bool {
        matches!(self, Self::Running | Self::Cancelled)
    }
}

pub struct Sim {
    pub kept: Kept,
    pub prompts: Vec<Sent>,
    /// How often each call took effect.
    pub effects: BTreeMap<CallId, u32>,
    /// Kills of a runtime.
    pub kills: u32,
    /// Runtimes that ended by themselves, in order.
    pub rests: u32,
    pub resets: Vec<Asked>,
    /// Texts that the user replaced or removed before a turn took them.
    pub withdrawn: BTreeMap<String, Seq>,
    /// Compactions that were requested.
    pub compactions: Vec<OpId>,
    /// Forks, each checked when it was made.
    pub forks: u32,
    /// What was sent to the model, if a test records it.
    pub sent: Vec<Request>,
    pub is_recording: bool,
    /// The events that the runtime's machine should know.
    told: AgentState,
    tasks: BTreeMap<CallId, Task>,
    daemon: Option<DaemonProcess>,
    runtime: Option<RuntimeProcess>,
    /// Messages in transit, as text. None if there is no connection.
    wire: Option<Wire>,
    /// Messages on broken connections that the daemon has not read yet.
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
            rests: 0,
            resets: Vec::new(),
            withdrawn: BTreeMap::new(),
            compactions: Vec::new(),
            forks: 0,
            sent: Vec::new(),
            is_recording: false,
            told: AgentState::new(AGENT),
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
            Op::EditPrompt(which) => self.edit_prompt(which),
            Op::MovePrompt(which) => self.move_prompt(which),
            Op::RemovePrompt(which) => self.remove_prompt(which),
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
                for _ in 0..messages {
                    self.tick();
                    self.connect();
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
            Op::KillRuntime => self.kill_runtime(),
            Op::Tick => {
                self.tick();
            }
            Op::Reset(wanted) => self.ask_reset(wanted),
            Op::ResetAgain(which) => {
                let which = usize::from(which) % self.resets.len().max(1);
                self.ask_again(which);
            }
            Op::Fork(back) => self.fork(back),
            Op::Compact => self.ask_compaction(),
            Op::SetAuto(auto) => self.set_auto(auto),
            Op::ToolSchedules => self.tool_schedules(),
            Op::GraceOver => self.grace_over(),
            Op::StopAgent => self.stop_agent(),
            Op::StartAgent => self.start_agent(),
            Op::GiveUp => self.give_up(),
            Op::Sleep => self.sleep(),
            Op::Restart => {
                self.tell_to_stop();
            }
            Op::ToolAsks => self.tool_asks(),
            Op::Answer(decision) => self.answer(decision),
            Op::Reply(calls) => self.reply(calls),
            Op::Stream => self.stream(),
            Op::ModelFails => self.model_fails(),
            Op::ToolPrepared => self.tool_prepared(),
            Op::ToolEnds => self.tool_ends(),
            Op::BackoffOver => self.backoff_over(),
            Op::ScanEnds => self.scan_ends(),
        }
    }

    fn kill_runtime(&mut self) {
        self.kills += u32::from(self.runtime.take().is_some());
        self.cut();
        self.reap();
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

    /// Whether a process has the agent.
    pub const fn is_awake(&self) -> bool {
        self.runtime.is_some()
    }

    pub fn events(&self) -> &[Event] {
        &self.kept.events
    }

    /// Waits until all is idle: everything is started and connected, clients repeat their requests until they are
    /// answered, the model answers, tools end.
    pub fn run_until_idle(&mut self) {
        for _ in 0..4_000 {
            self.start_daemon();
            self.clients_ask_again();
            self.connect();
            let said = |wire: &Wire| !wire.up.is_empty() || !wire.down.is_empty();
            if self.wire.as_ref().is_some_and(said) {
                self.apply(Op::Up);
                self.apply(Op::Down);
            } else if self.kept.state().waits_for_user() {
                self.answer(Decision::Allow);
            } else if !self.let_work() && !self.tick() && !self.clients_ask_again() {
                return;
            }
        }
        panic!("it never comes to rest: {:#?}", self.kept.events.last());
    }

    /// Each client without an answer asks again. False if there is none.
    fn clients_ask_again(&mut self) -> bool {
        let mut any = false;
        for prompt in 0..self.prompts.len() {
            any |= self
                .prompts
                .get(prompt)
                .is_some_and(|sent| !sent.is_acknowledged);
            self.send_again(prompt);
        }
        for reset in 0..self.resets.len() {
            let asked = self.resets.get(reset);
            if asked.is_some_and(|asked| asked.answer.is_none()) {
                any = true;
                self.ask_again(reset);
            }
        }
        any
    }
}
