//! One agent: the real turn machine on a journal in memory. What happens to it is a list of [`Op`]s. This driver gives
//! the machine exactly the guarantees that a real driver gives, and no others.

mod lifecycle;
mod model;
mod others;
mod process;

use super::Journals;
use super::ops::{Op, PrepareOp, ReplyOp};
use super::words::Source;
use agentd_core::event::*;
use agentd_core::id::*;
use agentd_core::message::{CallOutcome, Wire};
use agentd_core::request::Request;
use agentd_core::state::AgentState;
use agentd_core::time::Timestamp;
use agentd_core::turn::{Input, Machine};
use agentd_core::window::Window;
use process::policy;
use std::collections::VecDeque;

/// A request that was sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub agent: AgentId,
    pub conversation: ConversationId,
    /// The number of the agent's events when it was sent.
    pub at: usize,
    pub request: Request,
}

pub struct JournalDriver {
    pub journals: Journals,
    pub agent: AgentId,
    pub sent: Vec<Sent>,
    pub source: Source,
    machine: Machine,
    wire: Wire,
    model_window: u64,
    clock: i64,
    in_flight: Option<TryId>,
    cancelled: Option<TryId>,
    preparing: VecDeque<CallId>,
    running: Vec<CallId>,
    backing_off: bool,
}

impl Default for JournalDriver {
    fn default() -> Self {
        Self::new()
    }
}

impl JournalDriver {
    pub fn new() -> Self {
        let mut source = Source::default();
        let agent = AgentId::new(source.uuid());
        let conversation = ConversationId::new(source.uuid());
        let mut driver = Self {
            journals: Journals::default(),
            agent,
            sent: Vec::new(),
            source,
            machine: Machine::new(
                AgentState::new(agent),
                Window::new(),
                policy(Wire::Gemini, 0),
                [],
            ),
            wire: Wire::AnthropicMessages,
            model_window: 100_000,
            clock: 1_000,
            in_flight: None,
            cancelled: None,
            preparing: VecDeque::new(),
            running: Vec::new(),
            backing_off: false,
        };
        let created = [
            AgentCreated {
                name: "agent".to_owned(),
                mode: Mode::Persistent,
            }
            .into(),
            ConversationBegan {
                source: BeginSource::Create,
                parent: None,
                from: None,
                op: None,
            }
            .into(),
        ];
        driver.write(conversation, created);
        driver.take_over(After::Start, ReplyOp::default(), &[]);
        driver
    }

    pub fn run(ops: &[Op]) -> Self {
        let mut driver = Self::new();
        for op in ops {
            driver.apply(op);
        }
        driver
    }

    pub const fn machine(&self) -> &Machine {
        &self.machine
    }

    pub fn apply(&mut self, op: &Op) {
        self.clock += 1;
        match op {
            Op::Prompt { mode, image } => self.prompt(*mode, *image),
            Op::Reply(reply) => self.reply(reply),
            Op::Fail { class, partial } => self.fail(*class, partial),
            Op::Prepare(how) => self.prepare(*how),
            Op::Finish {
                which,
                outcome,
                empty,
            } => self.finish(*which, *outcome, *empty),
            Op::Background { which } => self.leave_running(*which),
            Op::EndTask => self.end_task(),
            Op::Approve { allow } => self.approve(*allow),
            Op::BackoffOver => {
                if std::mem::take(&mut self.backing_off) {
                    self.step(Input::BackoffOver);
                }
            }
            Op::Interrupt => self.step(Input::Interrupt),
            Op::Continue => {
                if self
                    .machine
                    .agent()
                    .turn
                    .as_ref()
                    .is_some_and(|t| t.paused.is_some())
                {
                    let current = self.current();
                    self.write_in_turn(current, [TurnContinued {}.into()]);
                } else {
                    self.step(Input::Continue);
                }
            }
            // There is nothing to kill where no process runs.
            Op::Crash { .. } | Op::Restart { .. } if self.is_at_rest() => {}
            Op::Crash { partial, facts } => {
                self.take_over(After::Crash, partial.clone(), facts);
            }
            Op::Restart { partial } => self.take_over(After::Restart, partial.clone(), &[]),
            Op::Sleep => self.step(Input::Stop),
            Op::StopAgent => self.stop_agent(),
            Op::StartAgent => self.start_agent(),
            Op::BeginReset { to, keep_queue } => self.begin_reset(*to, *keep_queue),
            Op::StepReset => self.step_reset(),
            Op::WithdrawReset => self.withdraw_reset(),
            Op::Reset { keep_queue } => self.reset(ResetTo::Fresh, *keep_queue),
            Op::Undo => self.reset(ResetTo::Undo, false),
            Op::Redo => self.reset(ResetTo::Redo, false),
            Op::Rewind { back } => self.rewind(*back),
            Op::Fork { back } => self.fork(*back),
            Op::Switch(wire) => {
                self.wire = *wire;
                self.take_over_if_awake();
            }
            Op::Window(tokens) => {
                self.model_window = *tokens;
                self.take_over_if_awake();
            }
        }
        self.supervise();
    }

    fn take_over_if_awake(&mut self) {
        if !self.is_at_rest() {
            self.take_over(After::Restart, ReplyOp::default(), &[]);
        }
    }

    /// Lets everything in progress succeed, until the agent is idle.
    pub fn run_until_idle(&mut self) {
        for _ in 0..1000 {
            let paused = self
                .machine
                .agent()
                .turn
                .as_ref()
                .is_some_and(|t| t.paused.is_some());
            let agent = self.machine.agent();
            if agent.resets.under_way().is_some() {
                self.apply(&Op::StepReset);
            } else if agent.stopped {
                self.apply(&Op::StartAgent);
            } else if paused {
                self.apply(&Op::Continue);
            } else if self.backing_off {
                self.apply(&Op::BackoffOver);
            } else if self.in_flight.is_some() {
                let texts = 1;
                self.apply(&Op::Reply(ReplyOp {
                    texts,
                    ..ReplyOp::default()
                }));
            } else if !self.preparing.is_empty() {
                self.apply(&Op::Prepare(PrepareOp::Run));
            } else if !self.running.is_empty() {
                let (which, outcome, empty) = (0, CallOutcome::Ok, false);
                self.apply(&Op::Finish {
                    which,
                    outcome,
                    empty,
                });
            } else if self.machine.agent().approvals.waiting().next().is_some() {
                self.apply(&Op::Approve { allow: true });
            } else {
                return;
            }
        }
    }

    fn current(&self) -> ConversationId {
        let nil = ConversationId::from_bytes([0; 16]);
        self.machine.agent().tree.current().unwrap_or(nil)
    }

    fn write(&mut self, conversation: ConversationId, bodies: impl IntoIterator<Item = Body>) {
        self.write_as(conversation, None, bodies);
    }

    fn write_in_turn(
        &mut self,
        conversation: ConversationId,
        bodies: impl IntoIterator<Item = Body>,
    ) {
        let turn = self.machine.agent().turn.as_ref().map(|turn| turn.id);
        self.write_as(conversation, turn, bodies);
    }

    fn write_as(
        &mut self,
        conversation: ConversationId,
        turn: Option<TurnId>,
        bodies: impl IntoIterator<Item = Body>,
    ) {
        // One append: all of it is in the journal before the machine receives any of it.
        let bodies: Vec<Body> = bodies.into_iter().collect();
        let events: Vec<Event> = bodies
            .into_iter()
            .map(|body| self.commit(conversation, turn, body))
            .collect();
        self.feed(events);
    }

    fn feed(&mut self, events: Vec<Event>) {
        let mut effects = Vec::new();
        for event in events {
            let input = Input::Event(event);
            effects.extend(self.with_moment(|machine, moment| machine.step(moment, input)));
        }
        self.carry_out(effects);
    }

    /// Appends events without passing them to the machine: a new machine takes over directly afterwards.
    fn write_quietly(
        &mut self,
        conversation: ConversationId,
        bodies: impl IntoIterator<Item = Body>,
    ) {
        for body in bodies {
            self.commit(conversation, None, body);
        }
    }

    fn commit(&mut self, conversation: ConversationId, turn: Option<TurnId>, body: Body) -> Event {
        let at = Timestamp::from_millis(self.clock);
        let journal = self.journals.agents.entry(self.agent).or_default();
        let seq = Seq(journal.len() as u64 + 1);
        let event = NewEvent {
            at,
            conversation,
            turn,
            body,
        }
        .placed(self.agent, seq);
        journal.push(event.clone());
        event
    }
}
