//! The daemon: it writes, answers clients, and gives the agent to one runtime at a time.

use super::journal::Counted;
use super::{AGENT, Sent, Sim, Wire};
use agentd_core::begin::Line;
use agentd_core::event::{
    ApprovalAnswered, Body, Decision, Event, NewEvent, Prompt, PromptMode, PromptQueued,
};
use agentd_core::id::{PromptId, TurnId};
use agentd_core::link::{
    Daemon, Down, Greeting, Hello, Order, Refusal, Up, Welcome, is_a_runtimes,
};
use agentd_core::message::Block;

#[derive(Default)]
pub struct DaemonProcess {
    pub side: Daemon,
    /// The runtime was told to stop, on the current connection.
    pub told_to_stop: bool,
}

impl Sim {
    pub(super) fn start_daemon(&mut self) {
        if self.daemon.is_none() {
            self.daemon = Some(DaemonProcess::default());
        }
        self.reap();
    }

    /// The daemon determines, by process identity, that no process runs the agent.
    pub(super) fn reap(&mut self) {
        if let (Some(daemon), None) = (&mut self.daemon, &self.runtime) {
            daemon.side.gone();
        }
    }

    pub(super) fn prompt(&mut self, mode: PromptMode) {
        let key = format!("key-{}", self.prompts.len());
        self.prompts.push(Sent {
            key,
            mode,
            is_acknowledged: false,
        });
        for prompt in 0..self.prompts.len() {
            self.send_again(prompt);
        }
    }

    /// A client sends until it is acknowledged; the key makes that one prompt. The acknowledgement of
    /// the first attempt is always lost, so that every prompt is sent at least twice.
    pub(super) fn send_again(&mut self, index: usize) {
        let Some(sent) = self.prompts.get(index).cloned() else {
            return;
        };
        if self.daemon.is_none() || sent.is_acknowledged {
            return;
        }
        if self.kept.state().inbox.by_key(&sent.key).is_some() {
            if let Some(sent) = self.prompts.get_mut(index) {
                sent.is_acknowledged = true;
            }
            return;
        }
        let prompt = PromptId::new(self.new_id());
        let blocks = vec![Block::text(format!("please do {}", sent.key))];
        let (key, mode) = (Some(sent.key), sent.mode);
        let bodies = [
            PromptQueued { prompt, key, mode }.into(),
            Prompt { prompt, blocks }.into(),
        ];
        self.write(bodies);
    }

    pub(super) fn interrupt(&mut self) {
        self.order(Order::Interrupt);
    }

    /// False if no runtime is connected.
    pub(super) fn order(&mut self, order: Order) -> bool {
        let is_connected = |daemon: &super::DaemonProcess| daemon.side.is_connected();
        let is_connected = self.daemon.as_ref().is_some_and(is_connected);
        if is_connected {
            let turn = self.kept.state().turn.as_ref().map(|turn| turn.id);
            let turn = turn.filter(|_| order == Order::Interrupt);
            self.send_down(&Down::Order { order, turn });
        }
        is_connected
    }

    /// A user answers the question that waits.
    pub(super) fn answer(&mut self, decision: Decision) {
        let state = self.kept.state();
        let turn = state.turn.as_ref().map(|turn| turn.id);
        let waiting = state.approvals.waiting().next();
        let Some(approval) = waiting.map(|(approval, _)| *approval) else {
            return;
        };
        if self.daemon.is_some() {
            let answered = ApprovalAnswered::new(approval, decision).into();
            self.write_in(turn, [answered]);
        }
    }

    pub(super) fn write(&mut self, bodies: impl IntoIterator<Item = Body>) {
        self.write_in(None, bodies);
    }

    fn write_in(&mut self, turn: Option<TurnId>, bodies: impl IntoIterator<Item = Body>) {
        let current = self.kept.state().tree.current();
        let Some(conversation) = current else { return };
        let lines = bodies.into_iter().map(|body| (conversation, body));
        self.commit(turn, lines.collect());
    }

    /// One append, whole or not at all.
    pub(super) fn commit(&mut self, turn: Option<TurnId>, lines: Vec<Line>) {
        let at = self.now();
        let event = |(conversation, body)| NewEvent {
            at,
            conversation,
            turn,
            body,
        };
        let events = self.kept.append(lines.into_iter().map(event).collect());
        self.tell(None, &events);
    }

    fn tell(&mut self, append: Option<u64>, events: &[Event]) {
        let daemon = self.daemon.as_mut();
        let down = daemon.and_then(|daemon| daemon.side.committed(append, events));
        if let Some(down) = down {
            self.send_down(&down);
        }
    }

    pub(super) fn connect(&mut self) {
        if self.wire.is_some() || self.daemon.is_none() {
            return;
        }
        let Some(runtime) = &mut self.runtime else {
            return;
        };
        self.wire = Some(Wire::default());
        let did = runtime.link.connected();
        self.runtime_did(did);
    }

    pub(super) fn daemon_hears(&mut self, up: Up) {
        let Some(daemon) = &self.daemon else {
            return;
        };
        let may_write = |incarnation| daemon.side.may_write(incarnation);
        match up {
            Up::InvokeHooks(_) => panic!("there are no hooks here"),
            Up::Hello(hello) => self.greet(&hello),
            Up::Append(append) if may_write(append.incarnation) => {
                let n = append.n;
                let mut kinds = append.events.iter().map(|event| event.body.kind());
                if let Some(kind) = kinds.find(|kind| !is_a_runtimes(*kind)) {
                    panic!("a runtime writes {}, and may not", kind.name());
                }
                match self.kept.append_counted(append) {
                    Counted::Committed(events) => self.tell(Some(n), &events),
                    Counted::Repeated(first) => self.send_down(&Down::Appended { n, first }),
                    // Its sender knows.
                    Counted::Old => {}
                    Counted::Refused => {
                        let why = Refusal::Confused;
                        self.send_down(&Down::Refused { why });
                    }
                }
            }
            Up::Draft(draft) if may_write(draft.request.incarnation) => {
                let (request, offset) = (draft.request, draft.offset);
                self.kept.write_draft(draft);
                self.send_down(&Down::Drafted {
                    request,
                    offset,
                    refused: None,
                });
            }
            // The sender is gone, or will be told when it reconnects.
            Up::Append(_) | Up::Draft(_) => {}
            // Its agents start no process.
            Up::Ask(_) | Up::Keys(_) | Up::Progress(_) => {}
        }
    }

    /// A message that arrives on an old connection is still valid: an append of the process that has the
    /// agent counts. A greeting does not, because it cannot be answered.
    pub(super) fn daemon_hears_late(&mut self, up: Up) {
        match up {
            Up::Hello(_) => {}
            up => self.daemon_hears(up),
        }
    }

    fn greet(&mut self, hello: &Hello) {
        assert_eq!(hello.agent, AGENT);
        let state = self.kept.state();
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        daemon.told_to_stop = false;
        let greeting = daemon.side.hello(hello, state);
        let down = match greeting {
            Greeting::Refuse(why) => Down::Refused { why },
            Greeting::Welcome(incarnation) => {
                daemon.side.greeted(state.head);
                let window = self.kept.window();
                Down::Welcome(Box::new(Welcome {
                    incarnation,
                    state: state.clone(),
                    window,
                    draft: self.kept.draft.clone(),
                    env: Default::default(),
                    stored: Default::default(),
                    lent: Default::default(),
                    holds_turns: false,
                }))
            }
            Greeting::Resume { after } => {
                daemon.side.greeted(state.head);
                let incarnation = hello.seen.map(|seen| seen.incarnation).unwrap_or_default();
                let missed = self.kept.events.iter().filter(|event| event.seq > after);
                Down::Resumed {
                    events: missed.cloned().collect(),
                    appended: self.kept.appended(incarnation),
                }
            }
        };
        self.send_down(&down);
    }
}
