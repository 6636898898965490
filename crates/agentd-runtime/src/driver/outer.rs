//! The program of an outer agent: requests go to it, and its end is noticed.

mod tools;

use super::{Driver, Happening, Tools};
use crate::outer::Outer;
use crate::provider::Failure;
use agentd_core::event::FailureClass;
use agentd_core::id::TryId;
use agentd_core::outer::Wanted;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The calls of an outer agent's program, as the driver's tools.
pub fn outer_tools(outer: &Outer) -> Arc<dyn Tools> {
    Arc::new(tools::OuterTools::new(outer.clone()))
}

/// No failure of a program is tried again: the prompt may have arrived.
const fn failed(detail: String) -> Failure {
    Failure {
        class: FailureClass::ProgramFailed,
        status: None,
        retry_after_ms: None,
        detail,
    }
}

impl Driver {
    /// Gives the program what the machine wants it to have. `None` if the agent has no program.
    pub(super) fn send_outer(&self, id: TryId) -> Option<JoinHandle<()>> {
        let outer = self.provider.as_outer()?.clone();
        let wanted = self.machine.wanted()?;
        let turn = match &wanted {
            Wanted::Deliver(_) => outer.new_turn(),
            Wanted::Listen => outer.newest_turn(),
        };
        let happened = self.happened.clone();
        Some(tokio::spawn(async move {
            let deltas = happened.clone();
            let on_delta = move |delta, room| {
                let _gone = deltas.send(Happening::Delta(id, delta, room));
            };
            let streamed = outer.stream(turn, wanted, on_delta).await;
            if let Some((usage, cost)) = streamed.spent {
                let _gone = happened.send(Happening::Spent(usage, cost));
            }
            if let Some(limit) = streamed.limited {
                let _gone = happened.send(Happening::ChildLimited(limit));
            }
            let outcome = streamed.end.map_err(failed);
            let _gone = happened.send(Happening::Streamed(id, outcome));
        }))
    }

    /// Passes on that the program has ended, for a turn that waits for the user.
    pub(super) fn watch_child(&self) {
        let Some(outer) = self.provider.as_outer() else {
            return;
        };
        let (gone, mut ends) = mpsc::unbounded_channel();
        outer.report_end(gone);
        let happened = self.happened.clone();
        tokio::spawn(async move {
            while let Some(why) = ends.recv().await {
                let _gone = happened.send(Happening::ChildGone(why));
            }
        });
    }

    /// The turn has ended. If the program is still in it, it is told so; the next prompt waits until it has ended.
    pub(super) fn settle_child(&self) {
        if let Some(outer) = self.provider.as_outer().cloned() {
            let turn = outer.newest_turn();
            tokio::spawn(async move { outer.turn_recorded(turn).await });
        }
    }
}
