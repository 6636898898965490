//! The process that runs the machine: it is started, carries out effects, and dies.

use super::{JournalDriver, Sent};
use crate::journal::context;
use crate::journal::ops::{FactOp, ReplyOp};
use agentd_core::event::*;
use agentd_core::mcp::{Known, Offer, Seen, Trouble};
use agentd_core::message::{Block, CallOutcome, Wire};
use agentd_core::recover::{CallFact, Facts, recover};
use agentd_core::state::AgentState;
use agentd_core::time::Timestamp;
use agentd_core::turn::{Effect, Finished, Hooks, Input, Machine, Moment, Policy};
use agentd_core::window::Window;
use std::collections::{BTreeMap, BTreeSet};

impl JournalDriver {
    pub(super) fn forget_live(&mut self) {
        self.in_flight = None;
        self.cancelled = None;
        self.preparing.clear();
        self.running.clear();
        self.backing_off = false;
    }

    /// A new process folds the journal, recovers, and continues.
    pub(super) fn take_over(&mut self, after: After, partial: ReplyOp, facts: &[FactOp]) {
        self.forget_live();
        let (state, window) = self.fold();
        let facts = self.facts(&state, after, &partial, facts);
        let at = Timestamp::from_millis(self.clock);
        let recovery = recover(&state, &window, &facts, at);
        for event in recovery.events {
            self.commit(event.conversation, event.turn, event.body);
        }
        let (state, window) = self.fold();
        self.running.clone_from(&recovery.running);
        let policy = policy(self.wire, self.model_window);
        self.machine = Machine::new(state, window, policy, recovery.running);
        let effects = self.with_moment(Machine::start);
        self.carry_out(effects);
    }

    pub fn fold(&self) -> (AgentState, Window) {
        let state = self
            .journals
            .state(self.agent, self.journals.of(self.agent).len());
        let window = match state.tree.current() {
            Some(current) => self
                .journals
                .window(self.agent, &state, current, state.head),
            None => Window::new(),
        };
        (state, window)
    }

    /// Facts about the calls that were started, in their order.
    pub fn facts(
        &mut self,
        state: &AgentState,
        after: After,
        partial: &ReplyOp,
        facts: &[FactOp],
    ) -> Facts {
        let mut calls = BTreeMap::new();
        let started = state.turn.iter().flat_map(|turn| turn.calls.keys());
        for (index, call) in started.enumerate() {
            let fact = match facts.get(index).copied().unwrap_or(FactOp::Unknown) {
                FactOp::Running => CallFact::Running,
                FactOp::Ended => {
                    let blocks = vec![self.source.text()];
                    CallFact::Ended(Finished::new(CallOutcome::Ok, blocks))
                }
                FactOp::NotStarted => CallFact::NotStarted,
                FactOp::Unknown => CallFact::Unknown,
                FactOp::NotListed => continue,
            };
            calls.insert(call.clone(), fact);
        }
        Facts {
            incarnation: state.incarnation.next(),
            after,
            draft: self.stream(partial),
            calls,
            price: None,
            full_access: false,
        }
    }

    pub(super) fn step(&mut self, input: Input) {
        let effects = self.with_moment(|machine, moment| machine.step(moment, input));
        self.carry_out(effects);
    }

    pub(super) fn with_moment<T>(
        &mut self,
        run: impl FnOnce(&mut Machine, &mut Moment<'_>) -> T,
    ) -> T {
        let at = Timestamp::from_millis(self.clock);
        let source = &mut self.source;
        let mut new_id = || source.uuid();
        let mut moment = Moment {
            at,
            new_id: &mut new_id,
        };
        run(&mut self.machine, &mut moment)
    }

    /// What the server offers depends on the length of the journal: nothing, an error, or one or two tools.
    fn mcp_seen(&self) -> Vec<Seen> {
        let length = self.journals.of(self.agent).len();
        let tools = |names: &[&str]| {
            let tools = names.iter().map(|name| McpTool {
                name: (*name).to_owned(),
                description: "A tool.".to_owned(),
                parameters: serde_json::json!({"type": "object", "properties": {}}),
            });
            Ok(Offer {
                life_cycle: McpLifeCycle::Stateless,
                tools: tools.collect(),
            })
        };
        let outcome = match length % 23 {
            0 => return Vec::new(),
            1 => Err(Trouble::Failed(
                "The MCP server `files` cannot be used.".to_owned(),
            )),
            2 => tools(&["read", "write"]),
            _ => tools(&["read"]),
        };
        vec![Seen {
            server: SERVER.to_owned(),
            settings: SETTINGS.to_owned(),
            outcome,
        }]
    }

    pub(super) fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Append { events, .. } => {
                    let events: Vec<Event> = events
                        .into_iter()
                        .map(|event| self.commit(event.conversation, event.turn, event.body))
                        .collect();
                    self.feed(events);
                    self.step(Input::Appended);
                }
                Effect::Send {
                    request_id,
                    request,
                } => {
                    self.in_flight = Some(request_id);
                    self.sent.push(Sent {
                        agent: self.agent,
                        conversation: self.current(),
                        at: self.journals.of(self.agent).len(),
                        request: *request,
                    });
                }
                Effect::CancelRequest { request } => {
                    self.in_flight = None;
                    self.cancelled = Some(request);
                    let texts = 1;
                    let partial = self.stream(&ReplyOp {
                        texts,
                        ..ReplyOp::default()
                    });
                    self.step(Input::RequestCancelled { request, partial });
                }
                Effect::PrepareTool { call, .. } => self.preparing.push_back(call.id),
                Effect::RunTool { call, .. } => self.running.push(call.id),
                Effect::CancelTool { call } => {
                    self.running.retain(|running| *running != call);
                    let blocks = vec![Block::text("cut")];
                    let finished = Finished::new(CallOutcome::Interrupted, blocks);
                    self.step(Input::ToolFinished { call, finished });
                }
                Effect::Backoff { .. } => self.backing_off = true,
                Effect::ScanFiles { turn, .. } => {
                    let found = self.scan();
                    self.step(Input::FilesScanned { turn, found });
                }
                Effect::ListMcp { look, .. } => {
                    let seen = self.mcp_seen();
                    self.step(Input::McpSeen { look, seen });
                }
                Effect::Stopped => self.end_incarnation(),
                // The next process takes over once the reset is through.
                Effect::Reload { .. }
                | Effect::AnswerTool { .. }
                | Effect::InvokeHooks { .. }
                | Effect::ReadInstructions { .. } => {}
            }
        }
    }
}

/// An MCP server whose list changes between turns.
const SERVER: &str = "files";
const SETTINGS: &str = "1";

pub(super) fn policy(wire: Wire, window: u64) -> Policy {
    Policy {
        context: context(wire),
        model_window: Some(window),
        price: None,
        mcp: vec![Known {
            name: SERVER.to_owned(),
            settings: SETTINGS.to_owned(),
            read_only: BTreeSet::new(),
        }],
        parallel: BTreeSet::from(["shell".to_owned()]),
        max_failures: 3,
        missing_key: None,
        lacking: Default::default(),
        hooks: Hooks::None,
    }
}
