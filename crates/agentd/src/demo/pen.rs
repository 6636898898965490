//! The right to write one agent, and the counter that makes a repeated append harmless.

use crate::clock;
use crate::error::{Error, Exit};
use agentd_core::draft::{self, Reply};
use agentd_core::event::{After, Body, Event, NewEvent};
use agentd_core::id::{AgentId, CallId, ConversationId, Incarnation, Seq, TryId, TurnId};
use agentd_core::recover::{Facts, recover};
use agentd_store::{Ack, Append, Fence, Source, SqliteStore, Store as _};
use std::collections::BTreeMap;

pub struct Pen {
    pub store: SqliteStore,
    pub fence: Fence,
    incarnation: Incarnation,
    /// Appends of this incarnation so far.
    appends: u64,
}

/// What one append holds besides its events.
#[derive(Default)]
pub struct Terms {
    /// The draft that the events end.
    pub ends: Option<TryId>,
    /// The pointer must not have moved since.
    pub generation: Option<u64>,
}

/// What a new owner had to write down first.
pub struct Recovered {
    pub events: Vec<Event>,
    /// Calls whose processes still run.
    pub running: Vec<CallId>,
}

impl Pen {
    /// Takes an agent over: claims it, and writes down what became of all that was under way.
    pub async fn take_over(
        store: SqliteStore,
        agent: AgentId,
        after: After,
    ) -> Result<(Self, Recovered), Error> {
        let claim = store.claim(agent, "demo").await.map_err(failed)?;
        let loaded = store.load(agent).await.map_err(failed)?;
        let facts = Facts {
            incarnation: loaded.state.incarnation.next(),
            after,
            draft: read_draft(&store, agent).await?,
            // The demo's only tool runs inside its process, and has ended with it.
            calls: BTreeMap::new(),
            price: None,
        };
        let recovery = recover(&loaded.state, &loaded.window, &facts, clock::now());
        let mut pen = Self {
            store,
            fence: claim.fence,
            incarnation: facts.incarnation,
            appends: 0,
        };
        let terms = Terms {
            ends: recovery.ends,
            ..Terms::default()
        };
        let recovered = Recovered {
            events: pen.append(recovery.events, terms).await?,
            running: recovery.running,
        };
        Ok((pen, recovered))
    }

    /// The events with their places, once they are durable.
    pub async fn append(
        &mut self,
        events: Vec<NewEvent>,
        terms: Terms,
    ) -> Result<Vec<Event>, Error> {
        self.appends += 1;
        let append = Append {
            source: Some(Source {
                incarnation: self.incarnation,
                n: self.appends,
            }),
            expected_generation: terms.generation,
            ends: terms.ends,
            ..Append::new(self.fence, events.clone())
        };
        match self.store.append(append).await.map_err(failed)? {
            Ack::Committed { first, .. } => Ok(placed(events, self.fence.agent, first)),
            Ack::Repeated { .. } => Err(Error::new(
                Exit::Refused,
                "the store took an append of the demo for one that it had seen before",
            )),
        }
    }
}

fn placed(events: Vec<NewEvent>, agent: AgentId, first: Seq) -> Vec<Event> {
    let seqs = (first.0..).map(Seq);
    let events = events.into_iter().zip(seqs);
    events
        .map(|(event, seq)| event.placed(agent, seq))
        .collect()
}

/// What was kept of a reply that never ended.
pub async fn read_draft(store: &SqliteStore, agent: AgentId) -> Result<Reply, Error> {
    match store.draft(agent).await.map_err(failed)? {
        None => Ok(Reply::default()),
        Some(draft) => draft::decode(&draft.bytes).map_err(|damage| {
            Error::new(Exit::Failed, "the kept reply cannot be read").because(damage)
        }),
    }
}

/// Events of one conversation, as of now.
pub fn events(
    conversation: ConversationId,
    turn: Option<TurnId>,
    bodies: impl IntoIterator<Item = Body>,
) -> Vec<NewEvent> {
    let at = clock::now();
    let event = |body| NewEvent {
        at,
        conversation,
        turn,
        body,
    };
    bodies.into_iter().map(event).collect()
}

pub fn failed(error: agentd_store::Error) -> Error {
    Error::of_store("the demo's journal cannot be used", &error)
}
