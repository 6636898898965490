//! The runtime's side: one append, one draft and any number of questions on the way, sent again after every
//! cut until they are answered.

use super::{
    Answer, Append, Asked, Down, Draft, Hello, Keys, Order, Question, Refusal, Secret, Seen, Up,
    VERSION, Welcome,
};
use crate::event::{Event, NewEvent, placed};
use crate::hook::{HookInvocation, Verdict};
use crate::id::{AgentId, Incarnation, InvocationId, RuntimeId, TryId, TurnId};
use std::collections::{BTreeMap, BTreeSet};

/// What comes of something that was said.
#[derive(Clone, Debug, PartialEq)]
pub enum Did {
    Send(Up),
    /// This is the agent.
    Woken(Box<Welcome>),
    /// These are in the journal, in this order.
    Arrived(Vec<Event>),
    /// The append that was asked for is durable; its events have arrived before this.
    Appended,
    Drafted,
    /// What hooks say.
    HooksAnswered(InvocationId, Verdict),
    /// Where it is about a turn, that turn alone is meant.
    Told(Order, Option<TurnId>),
    /// That question is answered.
    Answered(u64, Answer),
    /// It is over.
    Refused(Refusal),
    /// The other side makes no sense: let go of the connection and make a new one.
    Reconnect,
}

#[derive(Clone, Debug)]
pub struct Runtime {
    agent: AgentId,
    id: RuntimeId,
    secret: Secret,
    /// None until it has been given the agent.
    seen: Option<Seen>,
    env: BTreeMap<String, String>,
    stored: BTreeSet<String>,
    /// Said on every connection: another daemon does not know them.
    keys: Keys,
    appends: u64,
    appending: Option<Append>,
    drafting: Option<Draft>,
    asks: u64,
    asking: BTreeMap<u64, Question>,
    /// What hooks have not answered yet.
    invoked: BTreeMap<InvocationId, HookInvocation>,
    /// Hello was answered on the connection that there is.
    is_greeted: bool,
}

impl Runtime {
    pub const fn new(agent: AgentId, id: RuntimeId, secret: Secret) -> Self {
        Self {
            agent,
            id,
            secret,
            seen: None,
            env: BTreeMap::new(),
            stored: BTreeSet::new(),
            keys: Keys { values: Vec::new() },
            appends: 0,
            appending: None,
            drafting: None,
            asks: 0,
            asking: BTreeMap::new(),
            invoked: BTreeMap::new(),
            is_greeted: false,
        }
    }

    pub fn incarnation(&self) -> Option<Incarnation> {
        self.seen.map(|seen| seen.incarnation)
    }

    /// There is a new connection.
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
        }))]
    }

    /// There is none any more.
    pub const fn disconnected(&mut self) {
        self.is_greeted = false;
    }

    /// One at a time: the one before must have been answered.
    pub fn append(&mut self, events: Vec<NewEvent>, ends: Option<TryId>) -> Vec<Did> {
        let Some(Seen { incarnation, .. }) = self.seen else {
            // Nobody writes an agent that was not given to them.
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

    /// One at a time, too.
    pub fn draft(&mut self, draft: Draft) -> Vec<Did> {
        self.drafting = Some(draft.clone());
        self.say(Up::Draft(draft))
    }

    /// As many as there are; the number is the answer's.
    pub fn ask(&mut self, question: Question) -> (u64, Vec<Did>) {
        self.asks += 1;
        let n = self.asks;
        self.asking.insert(n, question.clone());
        let did = self.asked(n, question).map(|up| self.say(up));
        (n, did.unwrap_or_default())
    }

    /// Nobody waits for the answer any more.
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

    /// As many as there are at a time.
    pub fn invoke(&mut self, invocation: HookInvocation) -> Vec<Did> {
        self.invoked.insert(invocation.id, invocation.clone());
        self.say(Up::InvokeHooks(Box::new(invocation)))
    }

    /// The keys that are not to be seen in anything that hooks say.
    pub fn keys(&mut self, keys: Keys) -> Vec<Did> {
        self.keys = keys.clone();
        self.say(Up::Keys(keys))
    }

    /// What cannot be said now is said after the greeting.
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
                    // Before anything that hooks may hear of.
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
                did
            }
            Down::Appended { n, first } => {
                let Some(append) = self.appending.take_if(|append| append.n == n) else {
                    // Answered before: the question had been asked twice.
                    return Vec::new();
                };
                let events = placed(append.events.iter().cloned(), self.agent, first);
                let mut did = self.arrived(events);
                if did.contains(&Did::Reconnect) {
                    // Something before it was missed; the next greeting has all of it.
                    self.appending = Some(append);
                    return did;
                }
                did.push(Did::Appended);
                did
            }
            Down::Drafted { request, offset } => {
                let answers =
                    |draft: &mut Draft| draft.request == request && draft.offset == offset;
                match self.drafting.take_if(answers) {
                    Some(_) => vec![Did::Drafted],
                    None => Vec::new(),
                }
            }
            Down::HooksAnswered { id, verdict } => match self.invoked.remove(&id) {
                Some(_) => vec![Did::HooksAnswered(id, verdict)],
                None => Vec::new(),
            },
            Down::Events { events } => self.arrived(events),
            Down::Order { order, turn } => vec![Did::Told(order, turn)],
            Down::Answer { n, answer } => match self.asking.remove(&n) {
                Some(_) => vec![Did::Answered(n, answer)],
                // Answered before, or nobody waits for it.
                None => Vec::new(),
            },
            Down::Refused { why } => vec![Did::Refused(why)],
            Down::Welcome(_) | Down::Resumed { .. } => vec![Did::Reconnect],
        }
    }

    /// Nothing is taken in twice, and nothing out of order.
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
