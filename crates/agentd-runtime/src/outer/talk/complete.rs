//! A call is recorded when enough is known of it: programs report a call before its arguments are complete, and some ask
//! for permission only after they have said that it begins.

use super::{State, Talk, is_question};
use agentd_core::outer::ChildEvent;
use serde_json::{Map, Value};
use std::time::Duration;

/// How long to wait for a question about a call that has begun, or of which the child does not say whether it has.
const QUESTION: Duration = Duration::from_millis(300);

/// A call that the child has reported.
pub struct Reported {
    /// The child's own id.
    pub id: String,
    pub name: String,
    pub arguments: Map<String, Value>,
    /// The child says that it has not begun.
    pub is_pending: bool,
    /// The child's question whether it may run.
    pub question: Option<String>,
}

/// What to do with a reported call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completed {
    Record,
    /// It has not begun, and the child asks about another call first. It is put back.
    Later,
}

/// What the child has said about a call since it reported it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Asked,
    Begun,
    /// Nothing more will be known of it.
    Over,
    /// A question about another call, or to the user, waits.
    Blocked,
}

impl Talk {
    /// Waits until the call can be recorded, and completes it with everything that the child says about it meanwhile. A
    /// call that has not begun waits without a limit: it ends at the latest with the turn.
    pub async fn complete(&self, call: &mut Reported) -> Completed {
        let mut progress = Progress::Begun;
        if call.is_pending {
            progress = self.until(|state| state.progress(call)).await;
        }
        match progress {
            Progress::Blocked => {
                self.put_back(call);
                Completed::Later
            }
            Progress::Asked | Progress::Over => Completed::Record,
            Progress::Begun => {
                let known =
                    self.until(|state| state.progress(call).filter(|it| *it != Progress::Begun));
                let _still_unknown = tokio::time::timeout(QUESTION, known).await;
                Completed::Record
            }
        }
    }

    fn put_back(&self, call: &Reported) {
        let call = ChildEvent::Call {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            is_pending: call.is_pending,
        };
        self.lock().said.push(call);
    }
}

impl State {
    /// How far the call is. Moves what was said about it into the call.
    fn progress(&mut self, call: &mut Reported) -> Option<Progress> {
        let about = |said: &ChildEvent| match said {
            ChildEvent::CallChanged { id, .. } | ChildEvent::Asks { id, .. } => *id == call.id,
            _ => false,
        };
        while let Some(said) = self.said.take(about) {
            match said {
                ChildEvent::CallChanged {
                    name, arguments, ..
                } => (call.name, call.arguments) = (name, arguments),
                ChildEvent::Asks {
                    name,
                    arguments,
                    question,
                    ..
                } => {
                    // What the child asks about counts.
                    call.name = name;
                    call.arguments.extend(arguments);
                    call.question = Some(question);
                    return Some(Progress::Asked);
                }
                _ => {}
            }
        }
        let has = |what: &dyn Fn(&ChildEvent) -> bool| self.said.iter().any(what);
        let ended =
            |said: &ChildEvent| matches!(said, ChildEvent::CallEnded { id, .. } if *id == call.id);
        let began =
            |said: &ChildEvent| matches!(said, ChildEvent::CallBegan { id } if *id == call.id);
        if !self.in_turn || has(&ended) {
            return Some(Progress::Over);
        }
        if has(&is_question) {
            return Some(Progress::Blocked);
        }
        if self.said.is_full() {
            // No more of it is read before this call is recorded.
            return Some(Progress::Over);
        }
        has(&began).then_some(Progress::Begun)
    }
}
