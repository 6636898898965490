//! The driver's journal, at the other end of a link.

use super::{Ask, Heard};
use crate::driver::{self, Journal, JournalError};
use agentd_core::event::{Event, NewEvent};
use agentd_core::id::TryId;
use agentd_core::link::Draft;
use agentd_core::mcp::CallProgress;
use agentd_failpoint as failpoint;
use async_trait::async_trait;
use std::collections::VecDeque;
use tokio::sync::mpsc;

pub struct LinkJournal {
    asks: mpsc::UnboundedSender<Ask>,
    hears: mpsc::UnboundedReceiver<Heard>,
    /// What arrived while the journal was waiting for something else.
    held: VecDeque<driver::Heard>,
}

impl LinkJournal {
    pub(super) const fn new(
        asks: mpsc::UnboundedSender<Ask>,
        hears: mpsc::UnboundedReceiver<Heard>,
    ) -> Self {
        let held = VecDeque::new();
        Self { asks, hears, held }
    }

    fn ask(&self, ask: Ask) -> Result<(), JournalError> {
        self.asks.send(ask).map_err(|_| gone("the link has ended"))
    }

    async fn hear(&mut self) -> Result<Heard, JournalError> {
        match self.hears.recv().await {
            Some(Heard::Refused(why)) => Err(JournalError::Superseded(why.to_string())),
            Some(Heard::Gone(why)) => Err(gone(&why)),
            Some(heard) => Ok(heard),
            None => Err(gone("the link has ended")),
        }
    }

    /// Events that arrived earlier and were not read yet, in order; orders stay in the queue.
    fn take_held(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        let mut orders = VecDeque::new();
        for held in self.held.drain(..) {
            match held {
                driver::Heard::Events(more) => events.extend(more),
                order => orders.push_back(order),
            }
        }
        self.held = orders;
        events
    }
}

fn gone(why: &str) -> JournalError {
    JournalError::Broken(why.to_owned())
}

#[async_trait]
impl Journal for LinkJournal {
    async fn append(
        &mut self,
        events: Vec<NewEvent>,
        ends: Option<TryId>,
    ) -> Result<Vec<Event>, JournalError> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        for event in &events {
            failpoint::hit("before", event.body.kind().name());
        }
        let own: Vec<_> = events.iter().map(|event| event.body.kind()).collect();
        self.ask(Ask::Append(events, ends))?;
        let mut placed = self.take_held();
        loop {
            match self.hear().await? {
                Heard::Arrived(events) => placed.extend(events),
                Heard::Appended => break,
                Heard::Told(order, turn) => {
                    self.held.push_back(driver::Heard::Order(order, turn));
                }
                _ => {}
            }
        }
        for kind in own {
            failpoint::hit("after", kind.name());
        }
        Ok(placed)
    }

    async fn write_draft(
        &mut self,
        request: TryId,
        offset: u64,
        bytes: Vec<u8>,
    ) -> Result<(), JournalError> {
        let text = String::from_utf8(bytes).map_err(|error| gone(&error.to_string()))?;
        failpoint::hit("before", "draft");
        self.ask(Ask::Draft(Draft {
            request,
            offset,
            text,
        }))?;
        loop {
            match self.hear().await? {
                Heard::Drafted(None) => break,
                Heard::Drafted(Some(why)) => return Err(JournalError::DraftRefused(why)),
                Heard::Arrived(events) => self.held.push_back(driver::Heard::Events(events)),
                Heard::Told(order, turn) => {
                    self.held.push_back(driver::Heard::Order(order, turn));
                }
                _ => {}
            }
        }
        failpoint::hit("after", "draft");
        Ok(())
    }

    fn show(&mut self, progress: CallProgress) {
        // If the link has ended, the next append says so.
        let _ended = self.asks.send(Ask::Progress(progress));
    }

    async fn heard(&mut self) -> Result<driver::Heard, JournalError> {
        if let Some(held) = self.held.pop_front() {
            return Ok(held);
        }
        loop {
            match self.hear().await? {
                Heard::Arrived(events) => return Ok(driver::Heard::Events(events)),
                Heard::Told(order, turn) => return Ok(driver::Heard::Order(order, turn)),
                _ => {}
            }
        }
    }
}
