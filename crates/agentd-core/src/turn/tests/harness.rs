//! A driver for tests: it numbers what the machine appends, feeds it back, and records every effect as a line. The
//! test supplies external events as [`Act`]s.
//!
//! It also checks what drivers rely on: one append at a time, no action before it is durable, no tool run twice, no
//! request that needed a repair, and folds that equal those of the journal.

use super::words;
use crate::draft::{Change, Delta, Reply};
use crate::event::*;
use crate::fixture::{self, Journal};
use crate::id::*;
use crate::message::{Block, CallOutcome, Wire};
use crate::recover::{CallFact, Facts, recover};
use crate::request::Request;
use crate::spec::AgentSpec;
use crate::turn::{Effect, Finished, Hooks, Input, Machine, Moment, Policy, Prepared};
use crate::usage::Usage;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use uuid::Uuid;

/// What happens outside the machine.
pub enum Act {
    Give(Input),
    /// About the request that was sent last.
    Replied {
        reply: Reply,
        stop: StopReason,
        usage: Option<Usage>,
    },
    Failed {
        class: FailureClass,
        retry_after_ms: Option<u64>,
        partial: Reply,
    },
    Cancelled {
        partial: Reply,
    },
}

/// A reply with this text.
pub fn text(text: &str) -> Reply {
    let mut reply = Reply::default();
    let text = text.to_owned();
    let change = Change::Text { text };
    reply.apply(Delta { part: 0, change });
    reply
}

/// A reply that calls these tools, with these arguments.
pub fn calling(calls: &[(&str, &str)]) -> Reply {
    let mut reply = Reply::default();
    for (part, (tool, arguments)) in calls.iter().enumerate() {
        let (id, name) = (CallId::new("theirs"), (*tool).to_owned());
        let change = Change::Call { id, name };
        reply.apply(Delta { part, change });
        let json = (*arguments).to_owned();
        let change = Change::Arguments { json };
        reply.apply(Delta { part, change });
    }
    reply
}

pub fn says(words: &str) -> Act {
    Act::Replied {
        reply: text(words),
        stop: StopReason::EndTurn,
        usage: Some(used(10, 5)),
    }
}

pub fn calls(tools: &[&str]) -> Act {
    let calls: Vec<(&str, &str)> = tools.iter().map(|tool| (*tool, "{}")).collect();
    Act::Replied {
        reply: calling(&calls),
        stop: StopReason::ToolUse,
        usage: Some(used(10, 5)),
    }
}

pub fn fails(class: FailureClass) -> Act {
    let (retry_after_ms, partial) = (None, Reply::default());
    Act::Failed {
        class,
        retry_after_ms,
        partial,
    }
}

pub const fn used(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage {
        input_tokens,
        output_tokens,
        cache_read_tokens: 0,
        cache_write_tokens: 0,
    }
}

pub fn allowed(call: &str) -> Act {
    let started = ToolStarted {
        call: CallId::new(call),
        tool: "shell".to_owned(),
        task: None,
        boot: None,
        change: None,
        patched: Vec::new(),
        may_change_files: false,
    };
    prepared(call, Prepared::Run(started, Vec::new()))
}

pub fn prepared(call: &str, prepared: Prepared) -> Act {
    let call = CallId::new(call);
    Act::Give(Input::Prepared { call, prepared })
}

pub fn finishes(call: &str, outcome: CallOutcome) -> Act {
    let (call, blocks) = (CallId::new(call), vec![Block::text("output")]);
    let finished = Finished::new(outcome, blocks);
    Act::Give(Input::ToolFinished { call, finished })
}

/// The effects of the machine, one line each.
pub struct Seen(pub Vec<String>);

impl Seen {
    #[track_caller]
    pub fn does<const N: usize>(self, expected: [&str; N]) {
        assert_eq!(self.0, expected, "\n\n{}\n", self.0.join("\n"));
    }

    /// The last effect ends the turn as completed.
    #[track_caller]
    pub fn completes(&self) {
        let last = self.0.last().map_or("nothing", String::as_str);
        assert!(
            last.contains("turn_ended completed, checkpoint_set"),
            "{last}"
        );
    }

    #[track_caller]
    pub fn ends_with(self, expected: &str) {
        let last = self.0.last().map(String::as_str);
        assert_eq!(last, Some(expected), "\n\n{}\n", self.0.join("\n"));
    }
}

pub struct Rig {
    pub journal: Journal,
    pub machine: Machine,
    pub policy: Policy,
    pub sent: Vec<(TryId, Request)>,
    /// The questions of calls whose replies were passed on.
    pub answered: Vec<ApprovalId>,
    /// Appends stay in progress until [`Rig::commit`].
    pub holding: bool,
    under_way: Option<Vec<NewEvent>>,
    ran: BTreeSet<CallId>,
    incarnation: Incarnation,
    ids: u128,
}

impl Rig {
    pub fn new() -> Self {
        let journal = Journal::new();
        let mut context = fixture::context(Wire::AnthropicMessages);
        context.tools.push(fixture::tool("read"));
        let policy = Policy {
            context,
            model_window: None,
            price: None,
            mcp: Vec::new(),
            parallel: BTreeSet::from(["read".to_owned()]),
            max_failures: 3,
            missing_key: None,
            lacking: Default::default(),
            hooks: Hooks::None,
        };
        let (state, window) = (journal.state(), journal.window());
        let mut rig = Self {
            machine: Machine::new(state, window, policy.clone(), []),
            journal,
            policy,
            sent: Vec::new(),
            answered: Vec::new(),
            holding: false,
            under_way: None,
            ran: BTreeSet::new(),
            incarnation: Incarnation(0),
            ids: 0,
        };
        rig.take_over(After::Start, |_| {}).does([]);
        rig
    }

    pub fn with(change: impl FnOnce(&mut AgentSpec, &mut Policy)) -> Self {
        let mut rig = Self::new();
        let mut spec = AgentSpec::default();
        change(&mut spec, &mut rig.policy);
        let spec = Box::new(spec);
        rig.journal.push(SpecSet { spec });
        rig.take_over(After::Restart, |_| {}).does([]);
        rig
    }

    /// A rig whose agent has a prompt and has sent a request.
    pub fn asked() -> Self {
        let mut rig = Self::new();
        rig.prompt("hi").ends_with("send 1.1");
        rig
    }

    /// A rig whose model has called these tools. They are being prepared as far as they may be.
    pub fn called(tools: &[&str]) -> Self {
        let mut rig = Self::asked();
        rig.on(calls(tools));
        rig
    }

    pub fn on(&mut self, act: Act) -> Seen {
        let request = self.sent.last().map(|(id, _)| *id);
        let request = move || request.expect("a request has left");
        match act {
            Act::Give(input) => self.give(input),
            Act::Replied { reply, stop, usage } => self.give(Input::Replied {
                request: request(),
                reply,
                stop,
                usage,
                provider_request: Some("req_1".to_owned()),
            }),
            Act::Failed {
                class,
                retry_after_ms,
                partial,
            } => self.give(Input::RequestFailed {
                request: request(),
                class,
                status: None,
                retry_after_ms,
                detail: "it broke".to_owned(),
                partial,
            }),
            Act::Cancelled { partial } => self.give(Input::RequestCancelled {
                request: request(),
                partial,
            }),
        }
    }

    pub fn give(&mut self, input: Input) -> Seen {
        let effects = self.step(input);
        self.carry_out(effects)
    }

    pub fn prompt(&mut self, words: &str) -> Seen {
        self.prompt_as(PromptMode::Queue, words)
    }

    pub fn prompt_as(&mut self, mode: PromptMode, words: &str) -> Seen {
        let prompt = PromptId::new(self.new_id());
        let (key, blocks) = (None, vec![Block::text(words)]);
        let queued = PromptQueued { prompt, key, mode };
        self.write(vec![queued.into(), Prompt { prompt, blocks }.into()])
    }

    /// Answers the pending approval.
    pub fn decide(&mut self, decision: Decision) -> Seen {
        let waiting = self.machine.agent().approvals.waiting().next();
        let (&approval, _) = waiting.expect("a question waits");
        self.write(vec![ApprovalAnswered::new(approval, decision).into()])
    }

    /// An append by another process. All of it is in the journal before the machine sees any of it.
    pub fn write(&mut self, bodies: Vec<Body>) -> Seen {
        self.journal.turn = self.machine.agent().turn.as_ref().map(|turn| turn.id);
        let events: Vec<Event> = bodies.into_iter().map(|b| self.journal.push(b)).collect();
        self.feed(events)
    }

    fn feed(&mut self, events: Vec<Event>) -> Seen {
        let mut effects = Vec::new();
        for event in events {
            effects.extend(self.step(Input::Event(event)));
        }
        self.carry_out(effects)
    }

    /// Keeps only the first events of the append in progress, as if a process had put the end of a turn into a
    /// separate commit.
    pub fn keep_first(&mut self, count: usize) {
        let events = self.under_way.as_mut().expect("an append is in progress");
        events.truncate(count);
    }

    /// The append in progress is committed.
    pub fn commit(&mut self) -> Seen {
        let events = self.under_way.take().expect("an append is in progress");
        let events: Vec<Event> = events.into_iter().map(|e| self.journal.place(e)).collect();
        let mut effects = Vec::new();
        for event in events {
            effects.extend(self.step(Input::Event(event)));
        }
        effects.extend(self.step(Input::Appended));
        self.carry_out(effects)
    }

    /// The process has died, and its state is lost. An append in progress is lost too; commit it first if it should
    /// survive.
    pub fn take_over(&mut self, after: After, find_out: impl FnOnce(&mut Facts)) -> Seen {
        self.under_way = None;
        self.incarnation = self.incarnation.next();
        let mut facts = Facts {
            incarnation: self.incarnation,
            after,
            draft: Reply::default(),
            calls: BTreeMap::new(),
            price: self.policy.price,
            full_access: false,
        };
        find_out(&mut facts);
        let (state, window) = (self.journal.state(), self.journal.window());
        let recovery = recover(&state, &window, &facts, self.journal.at);
        let mut seen = vec![words::append(&recovery.events, recovery.ends)];
        for event in recovery.events {
            self.journal.place(event);
        }
        let (state, window) = (self.journal.state(), self.journal.window());
        self.machine = Machine::new(state, window, self.policy.clone(), recovery.running);
        let effects = self.moment(|machine, moment| machine.start(moment));
        seen.extend(self.carry_out(effects).0);
        // The first line of every start is always the same.
        if seen[0] == "append incarnation_began" {
            seen.remove(0);
        }
        Seen(seen)
    }

    pub fn crash(&mut self) -> Seen {
        self.take_over(After::Crash, |_| {})
    }

    pub fn crash_in_call(&mut self, call: &str, fact: CallFact) -> Seen {
        let call = CallId::new(call);
        self.take_over(After::Crash, |facts| {
            facts.calls.insert(call, fact);
        })
    }

    fn new_id(&mut self) -> Uuid {
        self.ids += 1;
        Uuid::from_u128(self.ids)
    }

    fn moment<T>(&mut self, run: impl FnOnce(&mut Machine, &mut Moment<'_>) -> T) -> T {
        let ids = &mut self.ids;
        let mut new_id = || {
            *ids += 1;
            Uuid::from_u128(*ids)
        };
        let mut moment = Moment {
            at: self.journal.at,
            new_id: &mut new_id,
        };
        run(&mut self.machine, &mut moment)
    }

    fn step(&mut self, input: Input) -> Vec<Effect> {
        self.moment(|machine, moment| machine.step(moment, input))
    }

    fn carry_out(&mut self, effects: Vec<Effect>) -> Seen {
        let mut seen = Vec::new();
        let mut todo = VecDeque::from(effects);
        while let Some(effect) = todo.pop_front() {
            seen.push(words::effect(&effect));
            match effect {
                Effect::Append { events, .. } => {
                    assert!(self.under_way.is_none(), "two appends at a time");
                    self.under_way = Some(events);
                    if !self.holding {
                        seen.extend(self.commit().0);
                    }
                }
                Effect::Send {
                    request_id,
                    request,
                } => {
                    let on_record = |body: &Body| matches!(body, Body::RequestSent(sent) if sent.request == request_id);
                    assert!(self.recorded(on_record), "sent before it was durable");
                    assert_eq!(request.repairs, [], "what we write needs no repair");
                    self.sent.push((request_id, *request));
                }
                Effect::RunTool { call, .. } => {
                    let on_record = |body: &Body| matches!(body, Body::ToolStarted(started) if started.call == call.id);
                    assert!(self.recorded(on_record), "run before it was durable");
                    assert!(self.ran.insert(call.id), "run twice");
                }
                Effect::AnswerTool { approval, .. } => self.answered.push(approval),
                _ => {}
            }
        }
        self.check();
        Seen(seen)
    }

    fn recorded(&self, is_it: impl Fn(&Body) -> bool) -> bool {
        self.journal.events.iter().any(|event| is_it(&event.body))
    }

    fn check(&self) {
        let state = self.journal.state();
        assert_eq!(state.anomalies, 0);
        assert_eq!(*self.machine.agent(), state, "folded as it went");
        let moved = state.tree.current() != Some(self.journal.conversation);
        if !moved && state.tree.len() == 1 {
            assert_eq!(*self.machine.window(), self.journal.window());
        }
    }
}
