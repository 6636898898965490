//! What a child has said and what is not handled yet, in order.

mod bounds;
mod complete;

pub use bounds::Bounds;
pub use complete::{Completed, Reported};

use agentd_core::mcp::Question;
use agentd_core::outer::{ChildEvent, Over, bounded, size};
use agentd_core::usage::{MicroUsd, Usage};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, mpsc};

/// How much text one turn may have. What exceeds it is dropped, and the answer says so.
const MOST_TEXT: usize = 8 * 1024 * 1024;
/// How many reports a call may have on average.
const REPORTS_PER_CALL: usize = 8;
/// How many reports of calls are recorded after the child has ended. Each takes several commits: thousands of them would hold
/// the turn, and the next prompt, for minutes.
const MOST_LATE: usize = 100;
const CUT: &str = "\n[agentd: the rest of the answer was dropped, because it is too long]\n";

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
    said: VecDeque<ChildEvent>,
    /// The child's turn: they are numbered by the driver.
    turn: u64,
    /// Its prompt was delivered, and its end has not been said.
    in_turn: bool,
    /// This turn and those before it were cancelled.
    unwanted: u64,
    text_bytes: usize,
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
}

impl State {
    fn push(&mut self, said: ChildEvent, bounds: Bounds) -> Pushed {
        match said {
            ChildEvent::Text(text) => self.grow(text, ChildEvent::Text),
            ChildEvent::Thinking(text) => self.grow(text, ChildEvent::Thinking),
            ChildEvent::Spent { usage, cost } => {
                let (mut used, mut paid) = self.spent.unwrap_or_default();
                if usage != Usage::default() {
                    used = usage;
                }
                if let Some(cost) = cost {
                    paid = Some(paid.unwrap_or_default().saturating_add(cost));
                }
                self.spent = Some((used, paid));
            }
            ChildEvent::Over(over) => {
                self.in_turn = false;
                if let (Over::Failed(why), Some(gone)) = (&over, &self.gone) {
                    // The driver may have ended.
                    let _ended = gone.send(why.clone());
                }
                if matches!(over, Over::Failed(_)) {
                    self.shorten();
                }
                self.said.push_back(ChildEvent::Over(over));
            }
            about_call => {
                self.reports += 1;
                self.calls += usize::from(is_call(&about_call));
                self.reported += size(&about_call);
                let is_too_often = self.reports > bounds.calls.saturating_mul(REPORTS_PER_CALL);
                if is_too_often || self.calls > bounds.calls || self.exceeds(bounds) {
                    return Pushed::TooMuch;
                }
                if let Some(last) = self.said.back_mut()
                    && is_newer(last, &about_call)
                {
                    *last = about_call;
                } else {
                    self.said.push_back(about_call);
                }
            }
        }
        match self.exceeds(bounds) {
            true => Pushed::TooMuch,
            false => Pushed::Fits,
        }
    }

    fn exceeds(&self, bounds: Bounds) -> bool {
        self.reported + self.text_bytes.min(MOST_TEXT) > bounds.bytes
    }

    /// The child has ended: of the reports that were not handled yet, only the first ones are recorded, and what ends the call
    /// that the turn waits for.
    fn shorten(&mut self) {
        let (mut reports, mut dropped) = (0, 0);
        let call = self.call.clone();
        self.said.retain(|said| {
            let ends_call =
                matches!(said, ChildEvent::CallEnded { id, .. } if Some(id) == call.as_ref());
            let is_text = matches!(said, ChildEvent::Text(_) | ChildEvent::Thinking(_));
            reports += usize::from(!is_text && !ends_call);
            let is_kept = is_text || ends_call || reports <= MOST_LATE;
            dropped += usize::from(!is_kept);
            is_kept
        });
        if dropped > 0 {
            let text = format!(
                "\n[agentd: {dropped} reports of calls were not recorded, because the program ended before]\n"
            );
            self.said.push_back(ChildEvent::Text(text));
        }
    }

    /// Adds text, as much as fits into the turn.
    fn grow(&mut self, mut text: String, kind: impl Fn(String) -> ChildEvent) {
        let room = MOST_TEXT.saturating_sub(self.text_bytes);
        if self.text_bytes > MOST_TEXT || text.is_empty() {
            return;
        }
        let is_cut = text.len() > room;
        self.text_bytes += text.len();
        text.truncate(text.floor_char_boundary(room));
        // Small pieces that wait together are one: a flood of them costs no more than their text.
        match (self.said.back_mut(), kind(text)) {
            (Some(ChildEvent::Text(last)), ChildEvent::Text(more))
            | (Some(ChildEvent::Thinking(last)), ChildEvent::Thinking(more)) => {
                last.push_str(&more)
            }
            (_, said) => self.said.push_back(said),
        }
        if is_cut {
            self.said.push_back(ChildEvent::Text(CUT.to_owned()));
        }
    }
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

/// Whether a report may be the first one of a call.
fn is_call(said: &ChildEvent) -> bool {
    matches!(said, ChildEvent::Call { .. }) || is_question(said)
}

/// Whether the child waits for an answer.
fn is_question(said: &ChildEvent) -> bool {
    matches!(said, ChildEvent::Asks { .. } | ChildEvent::Elicits { .. })
}

/// Whether the second event says everything that the first one says.
fn is_newer(first: &ChildEvent, second: &ChildEvent) -> bool {
    match (first, second) {
        (ChildEvent::CallBegan { id: first }, ChildEvent::CallBegan { id: second })
        | (ChildEvent::CallChanged { id: first, .. }, ChildEvent::CallChanged { id: second, .. }) => {
            first == second
        }
        _ => false,
    }
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
        state.in_turn && state.turn == turn
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
        self.until(|state| match state.said.pop_front() {
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
            let ended = state
                .said
                .iter()
                .position(|said| matches!(said, ChildEvent::CallEnded { id, .. } if *id == call));
            if let Some(ended) = ended
                && let Some(said) = state.said.remove(ended)
            {
                state.call = None;
                return Some(Next::Ended(said));
            }
            if !state.in_turn {
                return Some(Next::Over);
            }
            state.said.iter().any(is_question).then_some(Next::Question)
        })
        .await
    }

    async fn until<T>(&self, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that no change in between is missed.
            changed.as_mut().enable();
            if let Some(found) = look(&mut self.lock()) {
                return found;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests;
