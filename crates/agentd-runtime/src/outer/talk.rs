//! What a child has said and what is not handled yet, in order.

use agentd_core::outer::{ChildEvent, Over};
use agentd_core::usage::{MicroUsd, Usage};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, mpsc};

/// How much text one turn may have. What exceeds it is dropped, and the answer says so.
const MOST_TEXT: usize = 8 * 1024 * 1024;
const CUT: &str = "\n[agentd: the rest of the answer was dropped, because it is too long]\n";

#[derive(Default)]
pub struct Talk {
    state: Mutex<State>,
    changed: Notify,
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
    /// The call that the turn waits for, by the child's id.
    call: Option<String>,
    /// The unanswered question about that call.
    question: Option<String>,
    spent: Option<(Usage, Option<MicroUsd>)>,
    /// Where the end of the child is reported.
    gone: Option<mpsc::UnboundedSender<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    Yes,
    No,
}

/// What comes next while a call runs.
pub enum Next {
    Ended(ChildEvent),
    /// The child's turn, or the child itself, has ended.
    Over,
    /// The child asks about this or another call: the user must be able to answer.
    Question,
}

impl Talk {
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
        *state = State {
            turn,
            in_turn: true,
            unwanted,
            gone,
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
    pub fn push(&self, said: ChildEvent) {
        let mut state = self.lock();
        if !state.in_turn {
            return;
        }
        match &said {
            ChildEvent::Text(text) | ChildEvent::Thinking(text) => {
                let was = state.text_bytes;
                state.text_bytes += text.len();
                if was > MOST_TEXT {
                    return;
                }
                let is_cut = state.text_bytes > MOST_TEXT;
                state.said.push_back(said);
                if is_cut {
                    state.said.push_back(ChildEvent::Text(CUT.to_owned()));
                }
            }
            ChildEvent::Spent { usage, cost } => {
                let (mut used, mut paid) = state.spent.unwrap_or_default();
                if *usage != Usage::default() {
                    used = *usage;
                }
                if let Some(cost) = cost {
                    paid = Some(paid.unwrap_or_default().saturating_add(*cost));
                }
                state.spent = Some((used, paid));
            }
            ChildEvent::Over(over) => {
                state.in_turn = false;
                if let (Over::Failed(why), Some(gone)) = (over, &state.gone) {
                    // The driver may have ended.
                    let _ended = gone.send(why.clone());
                }
                state.said.push_back(said);
            }
            _ => state.said.push_back(said),
        }
        drop(state);
        self.changed.notify_waiters();
    }

    pub fn is_in_turn(&self) -> bool {
        self.lock().in_turn
    }

    /// The turn is over, whatever the child says later.
    pub fn end_turn(&self) {
        self.push(ChildEvent::Over(Over::Interrupted));
    }

    pub fn report_end(&self, gone: mpsc::UnboundedSender<String>) {
        self.lock().gone = Some(gone);
    }

    /// What the child reported to have used in this turn; once.
    pub fn take_spent(&self) -> Option<(Usage, Option<MicroUsd>)> {
        self.lock().spent.take()
    }

    /// The turn waits for this call from now on.
    pub fn open_call(&self, call: &str, question: Option<String>) {
        let mut state = self.lock();
        state.call = Some(call.to_owned());
        state.question = question;
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

    /// Waits until it is known whether the child asks about the open call. Returns false if that is still unknown.
    pub async fn until_known(&self) -> bool {
        self.until(|state| {
            if state.question.is_some() {
                return Some(true);
            }
            let call = state.call.clone()?;
            let asked = state
                .said
                .iter()
                .position(|said| matches!(said, ChildEvent::Asks { id, .. } if *id == call));
            if let Some(asked) = asked
                && let Some(ChildEvent::Asks { question, .. }) = state.said.remove(asked)
            {
                state.question = Some(question);
                return Some(true);
            }
            let goes_on = state.said.iter().any(|said| {
                matches!(said, ChildEvent::CallBegan { id } | ChildEvent::CallEnded { id, .. } if *id == call)
            });
            (goes_on || !state.in_turn).then_some(false)
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
            let asks = |said: &ChildEvent| matches!(said, ChildEvent::Asks { .. });
            state.said.iter().any(asks).then_some(Next::Question)
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
