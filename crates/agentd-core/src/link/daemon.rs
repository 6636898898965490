//! The daemon's side, one per agent: which process runs the agent, and which events it has been sent.

use super::{Down, Hello, OLDEST_VERSION, Refusal, VERSION};
use crate::event::Event;
use crate::id::{Incarnation, RuntimeId, Seq};
use crate::state::AgentState;

/// The answer to a hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// The runtime gets the agent, under this incarnation.
    Welcome(Incarnation),
    /// The runtime gets every event after this one.
    Resume {
        after: Seq,
    },
    Refuse(Refusal),
}

#[derive(Clone, Debug, Default)]
pub struct Daemon {
    /// The process that runs the agent, as far as this daemon knows.
    current: Option<(RuntimeId, Incarnation)>,
    /// The newest incarnation that was assigned.
    issued: Incarnation,
    /// The last event that was sent on the current connection.
    told: Option<Seq>,
}

impl Daemon {
    /// A runtime has connected. `state` is the agent's current state.
    pub fn hello(&mut self, hello: &Hello, state: &AgentState) -> Greeting {
        if !(OLDEST_VERSION..=VERSION).contains(&hello.v) {
            return Greeting::Refuse(Refusal::Version);
        }
        if state.is_held() {
            return Greeting::Refuse(Refusal::Stale);
        }
        let Some(seen) = hello.seen else {
            return match self.current {
                // It did not receive its welcome, so it gets it again.
                Some((runtime, incarnation)) if runtime == hello.runtime => {
                    Greeting::Welcome(incarnation)
                }
                Some(_) => Greeting::Refuse(Refusal::Taken),
                None => {
                    let incarnation = self.issued.max(state.incarnation).next();
                    self.issued = incarnation;
                    self.current = Some((hello.runtime, incarnation));
                    Greeting::Welcome(incarnation)
                }
            };
        };
        let is_current = self.current == Some((hello.runtime, seen.incarnation));
        // A previous daemon started it.
        let is_adopted = self.current.is_none()
            && seen.incarnation >= state.incarnation
            && seen.incarnation > self.issued;
        if !(is_current || is_adopted) {
            return Greeting::Refuse(Refusal::Stale);
        }
        if seen.head > state.head {
            return Greeting::Refuse(Refusal::Confused);
        }
        self.issued = self.issued.max(seen.incarnation);
        self.current = Some((hello.runtime, seen.incarnation));
        Greeting::Resume { after: seen.head }
    }

    /// The greeting was sent, with everything up to `head`.
    pub const fn greeted(&mut self, head: Seq) {
        self.told = Some(head);
    }

    pub const fn disconnected(&mut self) {
        self.told = None;
    }

    /// The process is certainly dead, so another one may run the agent.
    pub const fn gone(&mut self) {
        self.current = None;
        self.told = None;
    }

    pub const fn is_connected(&self) -> bool {
        self.told.is_some()
    }

    /// The process that runs the agent.
    pub const fn current(&self) -> Option<(RuntimeId, Incarnation)> {
        self.current
    }

    /// Whether this incarnation runs the agent. Messages from any other incarnation are refused, however late they
    /// arrive.
    pub fn may_write(&self, incarnation: Incarnation) -> bool {
        self.current
            .is_some_and(|(_, current)| current == incarnation)
    }

    /// Events were committed. Returns the message for the runtime. `append` is the runtime's own number if the
    /// runtime wrote them.
    pub fn committed(&mut self, append: Option<u64>, events: &[Event]) -> Option<Down> {
        let told = self.told.as_mut()?;
        let (first, last) = (events.first()?.seq, events.last()?.seq);
        if last <= *told {
            // The greeting already contained them.
            return append.map(|n| Down::Appended { n, first });
        }
        *told = last;
        Some(match append {
            Some(n) => Down::Appended { n, first },
            None => Down::Events {
                events: events.to_vec(),
            },
        })
    }
}
