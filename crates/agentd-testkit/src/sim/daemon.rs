//! The daemon: it writes, it answers clients, it gives the agent to one runtime at a time.

use super::journal::Counted;
use super::{AGENT, CONVERSATION, Sent, Sim, Wire};
use agentd_core::event::{Body, Event, NewEvent, Prompt, PromptMode, PromptQueued};
use agentd_core::id::PromptId;
use agentd_core::link::{Daemon, Down, Greeting, Hello, Order, Refusal, Up, Welcome};
use agentd_core::message::Block;

#[derive(Default)]
pub struct DaemonProcess {
    pub side: Daemon,
}

impl Sim {
    pub(super) fn start_daemon(&mut self) {
        if self.daemon.is_none() {
            self.daemon = Some(DaemonProcess::default());
        }
        self.reap();
    }

    /// The daemon finds out, by identity, that nobody runs the agent.
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
    /// the first try is always lost, so that every prompt is sent at least twice.
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
        let is_connected = |daemon: &super::DaemonProcess| daemon.side.is_connected();
        if self.daemon.as_ref().is_some_and(is_connected) {
            let order = Order::Interrupt;
            self.send_down(&Down::Order { order });
        }
    }

    fn write(&mut self, bodies: impl IntoIterator<Item = Body>) {
        let at = self.now();
        let event = |body| NewEvent {
            at,
            conversation: CONVERSATION,
            turn: None,
            body,
        };
        let events = self.kept.append(bodies.into_iter().map(event).collect());
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
            Up::Hello(hello) => self.greet(&hello),
            Up::Append(append) if may_write(append.incarnation) => {
                let n = append.n;
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
                self.send_down(&Down::Drafted { request, offset });
            }
            // Whoever said it is gone, or will hear so when it comes back.
            Up::Append(_) | Up::Draft(_) => {}
        }
    }

    /// What comes on an old connection is still its sender's word: an append of the process that has the
    /// agent counts. A greeting does not; nobody is there to answer.
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
        let greeting = daemon.side.hello(hello, &state);
        let down = match greeting {
            Greeting::Refuse(why) => Down::Refused { why },
            Greeting::Welcome(incarnation) => {
                daemon.side.greeted(state.head);
                let window = self.kept.window();
                Down::Welcome(Box::new(Welcome {
                    incarnation,
                    state,
                    window,
                    draft: self.kept.draft.clone(),
                    env: Default::default(),
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
