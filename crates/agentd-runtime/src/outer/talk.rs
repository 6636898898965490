//! What a child has said and what is not handled yet, in order.

mod bounds;
mod complete;
mod queue;
mod taken;

pub use bounds::Bounds;
pub use complete::{Completed, Reported};

use agentd_core::mcp::Question;
use agentd_core::outer::{ChildEvent, Over, bounded};
use agentd_core::usage::{MicroUsd, Usage};
use queue::Queue;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, mpsc};

/// What a child reports to have used, and its cost.
pub type Spent = (Usage, Option<MicroUsd>);

#[derive(Default)]
pub struct Talk {
    state: Mutex<State>,
    changed: Notify,
    bounds: Bounds,
}

#[derive(Default)]
struct State {
    said: Queue,
    /// The child's turn: they are numbered by the driver.
    turn: u64,
    /// Its prompt was delivered, and its end has not been said.
    in_turn: bool,
    /// This turn and those before it were cancelled.
    unwanted: u64,
    /// The bytes of JSON of its text that is recorded, and the bytes of all its text.
    recorded_text: usize,
    text: usize,
    /// The calls in this turn, the reports about them, and their bytes.
    calls: usize,
    reports: usize,
    reported: usize,
    /// The call that the turn waits for, by the child's id.
    call: Option<String>,
    /// The unanswered question about that call.
    question: Option<String>,
    /// What that call wants to know from the user, who was not asked yet.
    elicited: Option<Question>,
    /// What it reported for this turn.
    spent: Option<Spent>,
    /// What it reported for earlier turns of which no request was left to record it.
    owed: Option<Spent>,
    /// Where the end of the child is reported.
    gone: Option<mpsc::UnboundedSender<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    Yes,
    No,
}

/// Whether a child may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Pushed {
    Fits,
    /// It is not in a turn, or in another one: it was dropped.
    Dropped,
    /// It says more than a turn may have: it must be killed.
    TooMuch,
}

/// What comes next while a call runs.
pub enum Next {
    Ended(ChildEvent),
    /// The child's turn, or the child itself, has ended.
    Over,
    /// The child asks about this or another call, or wants to know something: the user must be able to answer.
    Question,
    /// The child has said so much meanwhile that it must be handled before more of it is read.
    Full,
}

fn sum(one: Option<Spent>, other: Option<Spent>) -> Option<Spent> {
    let (Some((mut used, paid)), Some((more, cost))) = (one, other) else {
        return one.or(other);
    };
    used += more;
    let paid = match (paid, cost) {
        (Some(paid), Some(cost)) => Some(paid.saturating_add(cost)),
        (paid, cost) => paid.or(cost),
    };
    Some((used, paid))
}

/// Whether the child waits for an answer.
fn is_question(said: &ChildEvent) -> bool {
    matches!(said, ChildEvent::Asks { .. } | ChildEvent::Elicits { .. })
}

impl Talk {
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            ..Self::default()
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The prompt of this turn is about to be delivered, unless the turn was cancelled. What was said before belongs to
    /// no turn.
    pub fn begin(&self, turn: u64) -> Begun {
        let mut state = self.lock();
        if turn <= state.unwanted {
            return Begun::No;
        }
        let (gone, unwanted) = (state.gone.take(), state.unwanted);
        let owed = sum(state.owed.take(), state.spent.take());
        *state = State {
            turn,
            in_turn: true,
            unwanted,
            gone,
            owed,
            ..State::default()
        };
        Begun::Yes
    }

    /// The turn is cancelled, if it has not begun. Returns whether the child is in it.
    pub fn give_up(&self, turn: u64) -> bool {
        let mut state = self.lock();
        state.unwanted = state.unwanted.max(turn);
        let is_in = state.in_turn && state.turn == turn;
        drop(state);
        // A child that waits for room does so no longer.
        self.changed.notify_waiters();
        is_in
    }

    /// Waits until what the child says next can be kept. The driver takes what is there, whatever it waits for itself.
    pub async fn until_room(&self) {
        self.until(|state| {
            let must_wait = state.in_turn && state.turn > state.unwanted && state.said.is_full();
            (!must_wait).then_some(())
        })
        .await;
    }

    /// Adds what the child said. Outside a turn it is dropped.
    pub fn push(&self, said: ChildEvent) -> Pushed {
        self.push_to(None, said)
    }

    /// The same, for a child that was given this turn last: what it says after that turn belongs to no other one.
    pub fn push_in(&self, turn: u64, said: ChildEvent) -> Pushed {
        self.push_to(Some(turn), said)
    }

    fn push_to(&self, turn: Option<u64>, said: ChildEvent) -> Pushed {
        let mut state = self.lock();
        if !state.in_turn || turn.is_some_and(|turn| turn != state.turn) {
            return Pushed::Dropped;
        }
        let pushed = state.push(bounded(said), self.bounds);
        drop(state);
        self.changed.notify_waiters();
        pushed
    }

    /// Whether the child is in this turn.
    pub fn is_in(&self, turn: u64) -> bool {
        let state = self.lock();
        state.in_turn && state.turn == turn
    }

    /// Whether the child is in a turn.
    pub fn is_in_turn(&self) -> bool {
        self.lock().in_turn
    }

    /// The turn is over, whatever the child says later.
    pub fn end_turn(&self) {
        let _fits = self.push(ChildEvent::Over(Over::Interrupted));
    }

    pub fn report_end(&self, gone: mpsc::UnboundedSender<String>) {
        self.lock().gone = Some(gone);
    }

    /// What the child reported to have used in this turn, and in earlier ones that could not record it; once.
    pub fn take_spent(&self) -> Option<Spent> {
        let mut state = self.lock();
        sum(state.owed.take(), state.spent.take())
    }

    /// Whether the child has reported something that no request has recorded.
    pub fn owes(&self) -> bool {
        let state = self.lock();
        state.owed.is_some() || state.spent.is_some()
    }

    /// The turn waits for this call from now on.
    pub fn open_call(&self, call: &str, question: Option<String>) {
        let mut state = self.lock();
        state.call = Some(call.to_owned());
        state.question = question;
        state.elicited = None;
    }

    /// The same, for a call that records what the child wants to know from the user.
    pub fn open_elicitation(&self, call: &str, question: Question) {
        self.open_call(call, None);
        self.lock().elicited = Some(question);
    }

    /// What the open call wants to know from the user, and the call; once.
    pub fn take_elicited(&self) -> Option<(String, Question)> {
        let mut state = self.lock();
        let question = state.elicited.take()?;
        Some((state.call.clone()?, question))
    }

    /// Whether this is the call that the turn waits for, or has refused.
    pub fn is_open(&self, call: &str) -> bool {
        self.lock().call.as_deref() == Some(call)
    }

    /// The unanswered question about the open call; once.
    pub fn take_question(&self) -> Option<String> {
        self.lock().question.take()
    }

    pub async fn until_over(&self) {
        self.until(|state| (!state.in_turn).then_some(())).await;
    }

    /// What was said next; `None` if the turn is over and everything has been handled.
    pub async fn next(&self) -> Option<ChildEvent> {
        self.until(|state| match state.said.pop() {
            Some(said) => Some(Some(said)),
            None if !state.in_turn => Some(None),
            None => None,
        })
        .await
    }

    /// Whether a question about the open call waits.
    pub fn has_question(&self) -> bool {
        self.lock().question.is_some()
    }

    /// Waits for the end of the open call, or for something that must be handled first.
    pub async fn call_ended(&self) -> Next {
        self.until(|state| {
            let call = state.call.clone().unwrap_or_default();
            let ends =
                |said: &ChildEvent| matches!(said, ChildEvent::CallEnded { id, .. } if *id == call);
            if let Some(said) = state.said.take(ends) {
                state.call = None;
                return Some(Next::Ended(said));
            }
            if !state.in_turn {
                return Some(Next::Over);
            }
            if state.said.iter().any(is_question) {
                return Some(Next::Question);
            }
            state.said.is_full().then_some(Next::Full)
        })
        .await
    }

    async fn until<T>(&self, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that no change in between is missed.
            changed.as_mut().enable();
            let (found, is_less) = {
                let mut state = self.lock();
                let before = state.said.bytes();
                let found = look(&mut state);
                (found, state.said.bytes() < before)
            };
            if is_less {
                // The child may be read again.
                self.changed.notify_waiters();
            }
            if let Some(found) = found {
                return found;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests;
