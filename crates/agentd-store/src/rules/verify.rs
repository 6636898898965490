//! Checks of a whole journal, beyond the check of each event.

use crate::damage::Report;
use agentd_core::event::Body;
use agentd_core::event::Event;
use agentd_core::id::{ConversationId, Seq};
use agentd_core::state::AgentState;
use std::collections::BTreeSet;

/// Facts from the events, which are compared with the state that the events fold to.
#[derive(Default)]
pub struct Facts {
    /// Conversations with events that have lost their text.
    without_words: BTreeSet<ConversationId>,
    /// The last event that was quarantined.
    pub quarantined: Seq,
}

impl Facts {
    /// Collects the facts from the next event.
    pub fn note(&mut self, event: &Event) {
        match &event.body {
            Body::Gone(_) => drop(self.without_words.insert(event.conversation)),
            Body::Quarantined(body) => self.quarantined = self.quarantined.max(body.through),
            _ => {}
        }
    }

    /// Reports facts that contradict the state.
    pub fn check(&self, state: &AgentState, report: &mut Report) {
        if state.anomalies > 0 {
            let what = format!("{} events refer to unknown objects", state.anomalies);
            report.dangling.push((state.id, what));
        }
        for id in &self.without_words {
            if state.tree.get(*id).is_some_and(|known| !known.purged) {
                let what = format!("text of conversation {id} is missing, but it was not purged");
                report.dangling.push((state.id, what));
            }
        }
    }
}
