//! The runtime: it wakes, drives the turn machine, and sends everything that must be written over the link.

use super::{AGENT, Sim, Task};
use crate::journal::context;
use agentd_core::draft::{self, Reply};
use agentd_core::event::{Event, IncarnationEnded, NewEvent};
use agentd_core::id::{CallId, TryId, TurnId};
use agentd_core::link::{Did, Down, Runtime, Secret, Welcome};
use agentd_core::message::{Block, CallOutcome, Wire};
use agentd_core::recover::{CallFact, Facts, recover};
use agentd_core::state::AgentState;
use agentd_core::turn::{Effect, Finished, Hooks, Input, Machine, Moment, Policy};
use agentd_core::window::Window;
use std::collections::{BTreeSet, VecDeque};

pub struct RuntimeProcess {
    pub link: Runtime,
    life: Life,
    /// What waits until an append is durable: the driver does one thing at a time.
    waiting: VecDeque<Input>,
    is_appending: bool,
    /// It has no work, and ends once that is on record.
    is_resting: bool,
    pub(super) streaming: Option<Streaming>,
    pub(super) preparing: VecDeque<CallId>,
    pub(super) is_backing_off: bool,
    /// The turn whose files are being scanned.
    pub(super) scanning: Option<TurnId>,
}

enum Life {
    /// It has not been given the agent yet.
    New,
    /// The results of recovery are on their way to the journal.
    Waking(Box<(AgentState, Window, Vec<CallId>)>),
    Awake(Box<Machine>),
}

pub(super) struct Streaming {
    pub request: TryId,
    pub reply: Reply,
    pub kept: u64,
    /// A chunk is on its way to the disk.
    pub is_drafting: bool,
}

impl RuntimeProcess {
    pub fn machine(&self) -> Option<&Machine> {
        match &self.life {
            Life::Awake(machine) => Some(machine),
            _ => None,
        }
    }
}

fn policy() -> Policy {
    Policy {
        context: context(Wire::AnthropicMessages),
        model_window: Some(100_000),
        price: None,
        mcp: Vec::new(),
        parallel: BTreeSet::from(["shell".to_owned()]),
        max_failures: 3,
        missing_key: None,
        lacking: Default::default(),
        hooks: Hooks::None,
    }
}

impl Sim {
    pub(super) fn start_runtime(&mut self) {
        if self.runtime.is_some() || self.daemon.is_none() {
            return;
        }
        let id = self.new_runtime();
        self.runtime = Some(RuntimeProcess {
            link: Runtime::new(AGENT, id, Secret::default(), None),
            life: Life::New,
            waiting: VecDeque::new(),
            is_appending: false,
            is_resting: false,
            streaming: None,
            preparing: VecDeque::new(),
            is_backing_off: false,
            scanning: None,
        });
    }

    pub(super) fn runtime_hears(&mut self, down: Down) {
        let Some(runtime) = &mut self.runtime else {
            return;
        };
        let did = runtime.link.received(down);
        self.runtime_did(did);
    }

    pub(super) fn runtime_did(&mut self, did: Vec<Did>) {
        for did in did {
            match did {
                Did::Send(up) => self.send_up(&up),
                Did::Woken(welcome) => self.wake(&welcome),
                Did::Arrived(events) => self.arrived(events),
                Did::Appended => self.appended(),
                Did::Drafted(_) => {
                    if let Some(streaming) = self.streaming() {
                        streaming.is_drafting = false;
                    }
                }
                Did::HooksAnswered(id, verdict) => self.input(Input::HooksAnswered { id, verdict }),
                Did::Told(order, turn) => self.input(Input::of_order(order, turn)),
                // Another process has the agent: this one ends itself.
                Did::Refused(_) => self.runtime_ends(),
                Did::Answered(..) => {}
                Did::Reconnect => self.cut(),
            }
        }
    }

    pub(super) fn runtime_ends(&mut self) {
        self.runtime = None;
        self.cut();
        self.reap();
    }

    fn wake(&mut self, welcome: &Welcome) {
        let window = welcome.window.clone();
        let state = welcome.state.clone();
        let started = state.turn.iter().flat_map(|turn| turn.calls.keys());
        let facts = started.map(|call| (call.clone(), self.fact(call)));
        let in_flight = state.turn.as_ref().and_then(|turn| turn.in_flight);
        let draft = welcome.draft.as_ref();
        let draft = draft.filter(|(of, _)| in_flight.is_some_and(|sent| sent.request == *of));
        let draft = draft.map(|(_, text)| draft::decode(text.as_bytes()).expect("a whole draft"));
        let facts = Facts {
            incarnation: welcome.incarnation,
            after: state.after(),
            draft: draft.unwrap_or_default(),
            calls: facts.collect(),
            price: None,
            full_access: false,
        };
        let recovery = recover(&state, &window, &facts, self.now());
        let running = recovery.running;
        if let Some(runtime) = &mut self.runtime {
            runtime.life = Life::Waking(Box::new((state, window, running)));
            runtime.is_appending = true;
            let did = runtime.link.append(recovery.events, recovery.ends);
            self.runtime_did(did);
        }
    }

    fn fact(&self, call: &CallId) -> CallFact {
        match self.tasks.get(call) {
            Some(Task::Running | Task::Cancelled) => CallFact::Running,
            Some(Task::Ended) => CallFact::Ended(done(call)),
            None => CallFact::NotStarted,
        }
    }

    fn arrived(&mut self, events: Vec<Event>) {
        let Some(runtime) = &mut self.runtime else {
            return;
        };
        match &mut runtime.life {
            Life::New => {}
            Life::Waking(folds) => {
                for event in &events {
                    folds.0.apply(event);
                    folds.1.apply(event);
                }
            }
            Life::Awake(_) => {
                let mut effects = Vec::new();
                for event in events {
                    effects.extend(self.step(Input::Event(event)));
                }
                self.carry_out(effects);
            }
        }
    }

    fn appended(&mut self) {
        let Some(runtime) = &mut self.runtime else {
            return;
        };
        runtime.is_appending = false;
        if runtime.is_resting {
            self.rests += 1;
            return self.runtime_ends();
        }
        match std::mem::replace(&mut runtime.life, Life::New) {
            Life::Waking(folds) => {
                let (state, window, running) = *folds;
                let machine = Machine::new(state, window, policy(), running.clone());
                runtime.life = Life::Awake(Box::new(machine));
                // A call that waits for a task that has ended in the meantime gets the end immediately.
                for call in running {
                    if self.tasks.get(&call) == Some(&Task::Ended) {
                        let finished = done(&call);
                        runtime
                            .waiting
                            .push_back(Input::ToolFinished { call, finished });
                    }
                }
                let effects = self.moment(|machine, moment| machine.start(moment));
                self.carry_out(effects);
            }
            life => {
                runtime.life = life;
                let effects = self.step(Input::Appended);
                self.carry_out(effects);
            }
        }
        self.continue_turn();
    }

    /// Feeds what has waited, until something must be durable first again.
    fn continue_turn(&mut self) {
        while let Some(runtime) = &mut self.runtime
            && !runtime.is_appending
            && let Some(input) = runtime.waiting.pop_front()
        {
            let effects = self.step(input);
            self.carry_out(effects);
        }
    }

    pub(super) fn input(&mut self, input: Input) {
        if let Some(runtime) = &mut self.runtime
            && !matches!(runtime.life, Life::New)
        {
            runtime.waiting.push_back(input);
            self.continue_turn();
        }
    }

    fn step(&mut self, input: Input) -> Vec<Effect> {
        self.moment(|machine, moment| machine.step(moment, input))
    }

    fn moment(
        &mut self,
        run: impl FnOnce(&mut Machine, &mut Moment<'_>) -> Vec<Effect>,
    ) -> Vec<Effect> {
        let at = self.now();
        let ids = &mut self.ids;
        let mut new_id = || {
            *ids += 1;
            uuid::Uuid::from_u128(*ids)
        };
        let new_id = &mut new_id;
        match &mut self.runtime {
            Some(RuntimeProcess {
                life: Life::Awake(machine),
                ..
            }) => run(machine, &mut Moment { at, new_id }),
            _ => Vec::new(),
        }
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let Some(runtime) = &mut self.runtime else {
                return;
            };
            match effect {
                Effect::Append { events, ends } => {
                    assert!(!runtime.is_appending, "one append at a time");
                    runtime.is_appending = true;
                    let did = runtime.link.append(events, ends);
                    self.runtime_did(did);
                }
                Effect::Send {
                    request_id,
                    request,
                } => {
                    assert_eq!(request.repairs, [], "what we write needs no repair");
                    self.check_sent(&request);
                    let Some(runtime) = &mut self.runtime else {
                        return;
                    };
                    runtime.streaming = Some(Streaming {
                        request: request_id,
                        reply: Reply::default(),
                        kept: 0,
                        is_drafting: false,
                    });
                }
                Effect::CancelRequest { request } => {
                    let streaming = runtime.streaming.take();
                    let partial = streaming
                        .map(|streaming| streaming.reply)
                        .unwrap_or_default();
                    runtime
                        .waiting
                        .push_front(Input::RequestCancelled { request, partial });
                }
                Effect::PrepareTool { call, .. } => runtime.preparing.push_back(call.id),
                Effect::RunTool { call, .. } => {
                    *self.effects.entry(call.id.clone()).or_default() += 1;
                    self.tasks.insert(call.id, Task::Running);
                }
                Effect::CancelTool { call } => {
                    let task = self.tasks.get_mut(&call);
                    if let Some(task) = task.filter(|task| **task == Task::Running) {
                        *task = Task::Cancelled;
                    }
                }
                Effect::Backoff { .. } => runtime.is_backing_off = true,
                Effect::ScanFiles { turn, .. } => runtime.scanning = Some(turn),
                Effect::InvokeHooks { .. } => panic!("there are no hooks here"),
                Effect::ListMcp { .. } | Effect::AnswerTool { .. } => {
                    panic!("there are no MCP servers here")
                }
                Effect::ReadInstructions { .. } => panic!("there are no instruction files here"),
                Effect::Reload { .. } => panic!("the pointer moved under a process"),
                Effect::Stopped => self.end_incarnation(),
            }
        }
        self.continue_turn();
    }
}

impl Sim {
    /// The runtime says that it ends by itself.
    fn end_incarnation(&mut self) {
        let at = self.now();
        let Some(runtime) = &mut self.runtime else {
            return;
        };
        let Life::Awake(machine) = &runtime.life else {
            return;
        };
        let agent = machine.agent();
        let (incarnation, current) = (agent.incarnation, agent.tree.current());
        let ended = current.map(|conversation| NewEvent {
            at,
            conversation,
            turn: None,
            body: IncarnationEnded { incarnation }.into(),
        });
        (runtime.is_resting, runtime.is_appending) = (true, true);
        let did = runtime.link.append(ended.into_iter().collect(), None);
        self.runtime_did(did);
    }
}

pub(super) fn done(call: &CallId) -> Finished {
    let blocks = vec![Block::text(format!("{call} is done"))];
    Finished::new(CallOutcome::Ok, blocks)
}
