//! The last events that may end a binding of the agent to an outside address.

use crate::event::Event;
use crate::id::Seq;
use crate::outbox::binding::Release;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// For each kind of change, the last event that made it. A later event that reverses the change does not remove it: a
/// binding that has ended does not begin again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Changes(BTreeMap<Release, Seq>);

impl Changes {
    pub(super) fn note(&mut self, event: &Event) {
        if let Some(change) = Release::of(&event.body) {
            self.0.insert(change, event.seq);
        }
    }

    /// The last event that made this change; zero if none did.
    pub fn last(&self, change: Release) -> Seq {
        self.0.get(&change).copied().unwrap_or(Seq::ZERO)
    }
}
