//! Checks of a whole journal, beyond the check of each event.

use crate::damage::Report;
use agentd_core::event::{Body, Event, Kind};
use agentd_core::id::{ConversationId, Seq};
use agentd_core::state::AgentState;
use std::collections::{BTreeMap, BTreeSet};

/// Facts from the events, which are compared with the state that the events fold to.
#[derive(Default)]
pub struct Facts {
    /// Conversations with events that have lost their text.
    without_words: BTreeSet<ConversationId>,
    /// In each conversation, the last kept file that has lost its content.
    without_content: BTreeMap<ConversationId, Seq>,
    /// The last event that was quarantined.
    pub quarantined: Seq,
}

impl Facts {
    /// Collects the facts from the next event.
    pub fn note(&mut self, event: &Event) {
        match &event.body {
            Body::Gone(Kind::FileKept) => {
                self.without_content.insert(event.conversation, event.seq);
            }
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
        let purged = state.files.purged_through;
        let kept = self.without_content.iter();
        let kept = kept.filter(|(_, last)| **last > purged).map(|(id, _)| id);
        let missing: BTreeSet<_> = self.without_words.iter().chain(kept).collect();
        for id in missing {
            if state.tree.get(*id).is_some_and(|known| !known.purged) {
                let what = format!("text of conversation {id} is missing, but it was not purged");
                report.dangling.push((state.id, what));
            }
        }
    }
}
