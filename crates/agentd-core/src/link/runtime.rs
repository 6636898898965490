//! The runtime's side: at most one append, one draft and any number of questions in progress. Each is sent again
//! after a disconnect until it is answered.

use super::{
    Answer, Append, Asked, Down, Draft, Hello, Keys, Order, Question, Refusal, Secret, Seen, Up,
    VERSION, Welcome,
};
use crate::event::{Event, NewEvent, placed};
use crate::hook::{HookInvocation, Verdict};
use crate::id::{AgentId, Incarnation, InvocationId, RuntimeId, TryId, TurnId};
use crate::mcp::{CallProgress, lent_digest};
use std::collections::{BTreeMap, BTreeSet};

/// What to do after a message or a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Did {
    Send(Up),
    /// The runtime now has the agent.
    Woken(Box<Welcome>),
    /// These events are in the journal, in this order.
    Arrived(Vec<Event>),
    /// The append is durable. Its events have arrived before this.
    Appended,
    /// The piece is durable, or was refused for this reason.
    Drafted(Option<String>),
    /// The verdict of the hooks.
    HooksAnswered(InvocationId, Verdict),
    /// An order from the daemon. If it names a turn, it applies to that turn only.
    Told(Order, Option<TurnId>),
    /// The answer to that question.
    Answered(u64, Answer),
    /// The daemon refused the runtime, which must exit.
    Refused(Refusal),
    /// The daemon's message makes no sense: close the connection and open a new one.
    Reconnect,
}

#[derive(Clone, Debug)]
pub struct Runtime {
    agent: AgentId,
    id: RuntimeId,
    secret: Secret,
    /// See [`Hello::build`].
    build: Option<String>,
    /// `None` until it has been given the agent.
    seen: Option<Seen>,
    env: BTreeMap<String, String>,
    stored: BTreeSet<String>,
    /// See [`Hello::lent`].
    lent: Option<String>,
    /// Sent on every connection, because a new daemon does not have them.
    keys: Keys,
    appends: u64,
    appending: Option<Append>,
    drafting: Option<Draft>,
    asks: u64,
    asking: BTreeMap<u64, Question>,
    /// Invocations without an answer so far.
    invoked: BTreeMap<InvocationId, HookInvocation>,
    /// The hello was answered on the current connection.
    is_greeted: bool,
    /// See [`Welcome::holds_turns`].
    holds_turns: bool,
}

impl Runtime {
    pub const fn new(agent: AgentId, id: RuntimeId, secret: Secret, build: Option<String>) -> Self {
        Self {
            agent,
            id,
            secret,
            build,
            seen: None,
            env: BTreeMap::new(),
            stored: BTreeSet::new(),
            lent: None,
            keys: Keys { values: Vec::new() },
            appends: 0,
            appending: None,
            drafting: None,
            asks: 0,
            asking: BTreeMap::new(),
            invoked: BTreeMap::new(),
            is_greeted: false,
            holds_turns: false,
        }
    }

    pub fn incarnation(&self) -> Option<Incarnation> {
        self.seen.map(|seen| seen.incarnation)
    }

    /// A new connection is open.
    pub fn connected(&mut self) -> Vec<Did> {
        self.is_greeted = false;
        vec![Did::Send(Up::Hello(Hello {
            v: VERSION,
            agent: self.agent,
            runtime: self.id,
            secret: self.secret.clone(),
            seen: self.seen,
            env: self.env.clone(),
            stored: self.stored.clone(),
            lent: self.lent.clone(),
            build: self.build.clone(),
        }))]
    }

    /// The connection is closed.
    pub const fn disconnected(&mut self) {
        self.is_greeted = false;
    }

    /// One at a time: the previous append must have been answered.
    pub fn append(&mut self, events: Vec<NewEvent>, ends: Option<TryId>) -> Vec<Did> {
        let Some(Seen { incarnation, .. }) = self.seen else {
            // A runtime cannot write before it has been given the agent.
            return vec![Did::Reconnect];
        };
        self.appends += 1;
        let append = Append {
            incarnation,
            n: self.appends,
            events,
            ends,
        };
        self.appending = Some(append.clone());
        self.say(Up::Append(append))
    }

    /// One at a time, like appends.
    pub fn draft(&mut self, draft: Draft) -> Vec<Did> {
        self.drafting = Some(draft.clone());
        self.say(Up::Draft(draft))
    }

    /// Any number at a time. The returned number identifies the answer.
    pub fn ask(&mut self, question: Question) -> (u64, Vec<Did>) {
        self.asks += 1;
        let n = self.asks;
        self.asking.insert(n, question.clone());
        let did = self.asked(n, question).map(|up| self.say(up));
        (n, did.unwrap_or_default())
    }

    /// The caller no longer waits for the answer.
    pub fn forget(&mut self, n: u64) {
        self.asking.remove(&n);
    }

    fn asked(&self, n: u64, question: Question) -> Option<Up> {
        let incarnation = self.incarnation()?;
        Some(Up::Ask(Asked {
            incarnation,
            n,
            question,
        }))
    }

    /// Any number at a time.
    pub fn invoke(&mut self, invocation: HookInvocation) -> Vec<Did> {
        self.invoked.insert(invocation.id, invocation.clone());
        self.say(Up::InvokeHooks(Box::new(invocation)))
    }

    /// The keys to remove from the output of hooks.
    pub fn keys(&mut self, keys: Keys) -> Vec<Did> {
        self.keys = keys.clone();
        self.say(Up::Keys(keys))
    }

    /// Lost while there is no connection: a later report says more.
    pub fn progress(&self, progress: CallProgress) -> Vec<Did> {
        self.say(Up::Progress(progress))
    }

    /// Before the greeting nothing is sent; it is sent after it.
    fn say(&self, up: Up) -> Vec<Did> {
        match self.is_greeted {
            true => vec![Did::Send(up)],
            false => Vec::new(),
        }
    }

    pub fn received(&mut self, down: Down) -> Vec<Did> {
        match down {
            Down::Welcome(welcome) if self.seen.is_none() => {
                self.is_greeted = true;
                self.seen = Some(Seen {
                    incarnation: welcome.incarnation,
                    head: welcome.state.head,
                });
                self.env.clone_from(&welcome.env);
                self.stored.clone_from(&welcome.stored);
                self.lent = lent_digest(&welcome.lent);
                self.holds_turns = welcome.holds_turns;
                vec![Did::Woken(welcome)]
            }
            Down::Resumed { events, appended } if self.seen.is_some() => {
                self.is_greeted = true;
                let mut did = self.arrived(events);
                if did.contains(&Did::Reconnect) {
                    return did;
                }
                if let Some(append) = self.appending.take_if(|append| append.n == appended) {
                    // Its events were among those that were missed.
                    drop(append);
                    did.push(Did::Appended);
                }
                if !self.keys.values.is_empty() {
                    // Before any hook runs.
                    did.push(Did::Send(Up::Keys(self.keys.clone())));
                }
                let again = self.appending.clone().map(Up::Append);
                let draft = self.drafting.clone().map(Up::Draft);
                let invocations = self
                    .invoked
                    .values()
                    .cloned()
                    .map(Box::new)
                    .map(Up::InvokeHooks);
                did.extend(
                    again
                        .into_iter()
                        .chain(draft)
                        .chain(invocations)
                        .map(Did::Send),
                );
                let asking = self.asking.iter();
                let asking = asking.filter_map(|(n, question)| self.asked(*n, question.clone()));
                did.extend(asking.map(Did::Send));
                // Another daemon may have taken over, which does not know of it. It says no if it must.
                if std::mem::take(&mut self.holds_turns) {
                    did.push(Did::Told(Order::BeginTurns, None));
                }
                did
            }
            Down::Appended { n, first } => {
                let Some(append) = self.appending.take_if(|append| append.n == n) else {
                    // It was answered before: the append had been sent twice.
                    return Vec::new();
                };
                let events = placed(append.events.iter().cloned(), self.agent, first);
                let mut did = self.arrived(events);
                if did.contains(&Did::Reconnect) {
                    // An earlier event was missed. The next greeting contains all of them.
                    self.appending = Some(append);
                    return did;
                }
                did.push(Did::Appended);
                did
            }
            Down::Drafted {
                request,
                offset,
                refused,
            } => {
                let answers =
                    |draft: &mut Draft| draft.request == request && draft.offset == offset;
                match self.drafting.take_if(answers) {
                    Some(_) => vec![Did::Drafted(refused)],
                    None => Vec::new(),
                }
            }
            Down::HooksAnswered { id, verdict } => match self.invoked.remove(&id) {
                Some(_) => vec![Did::HooksAnswered(id, verdict)],
                None => Vec::new(),
            },
            Down::Events { events } => self.arrived(events),
            Down::Order { order, turn } => {
                self.holds_turns &= order != Order::BeginTurns;
                vec![Did::Told(order, turn)]
            }
            Down::Answer { n, answer } => match self.asking.remove(&n) {
                Some(_) => vec![Did::Answered(n, answer)],
                // It was answered before, or its caller no longer waits.
                None => Vec::new(),
            },
            Down::Refused { why } => vec![Did::Refused(why)],
            Down::Welcome(_) | Down::Resumed { .. } => vec![Did::Reconnect],
        }
    }

    /// No event is applied twice or out of order.
    fn arrived(&mut self, mut events: Vec<Event>) -> Vec<Did> {
        let Some(seen) = &mut self.seen else {
            return vec![Did::Reconnect];
        };
        events.retain(|event| event.seq > seen.head);
        for event in &events {
            if event.seq != seen.head.next() {
                return vec![Did::Reconnect];
            }
            seen.head = event.seq;
        }
        match events.is_empty() {
            true => Vec::new(),
            false => vec![Did::Arrived(events)],
        }
    }
}
