//! An imported agent, until the user releases it. One predicate says whether it is held, and another one what may be
//! appended in the meantime: everything that makes an agent act must be appended first.

use super::{AgentState, Ops};
use crate::event::{AgentHeld, AgentReleased, Event, HeldPart, HoldReason, Kind, PausedBecause};
use crate::id::Seq;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    #[default]
    No,
    Held(Held),
    /// The user has released it. It starts when the turn that it came with has ended.
    Released,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    pub reason: HoldReason,
    pub since: Timestamp,
    /// The event that holds it. All events before it were imported.
    pub seq: Seq,
}

impl Hold {
    /// A stop cancels the start after a release. It does not release a held agent.
    pub(super) fn stop(&mut self) {
        if *self == Self::Released {
            *self = Self::No;
        }
    }
}

impl AgentState {
    pub const fn held(&self) -> Option<&Held> {
        match &self.hold {
            Hold::Held(held) => Some(held),
            Hold::No | Hold::Released => None,
        }
    }

    pub const fn is_held(&self) -> bool {
        self.held().is_some()
    }

    /// Whether events of these kinds may be appended together now. A held agent accepts its release and events that
    /// do not make it act. It does not accept an answer to an approval or the start of a turn, a tool, a hook or a
    /// reset. A prompt is queued until the release.
    pub fn accepts(&self, kinds: impl IntoIterator<Item = Kind>) -> bool {
        if !self.is_held() {
            return true;
        }
        let kinds = kinds.into_iter();
        let mut is_harmless = true;
        for kind in kinds {
            if kind == Kind::AgentReleased {
                return true;
            }
            is_harmless &= matches!(
                kind,
                Kind::SpecSet
                    | Kind::AgentRenamed
                    | Kind::AgentArchived
                    | Kind::AgentRestored
                    | Kind::AgentHeld
                    | Kind::CheckpointSet
                    | Kind::PromptQueued
                    | Kind::PromptRouted
                    | Kind::Prompt
                    | Kind::PromptEdited
                    | Kind::PromptMoved
                    | Kind::PromptsRemoved
                    | Kind::ScheduleMoved
                    | Kind::SchedulePaused
                    | Kind::SchedulePrompt
                    | Kind::ScheduleRemoved
                    | Kind::Operation
                    | Kind::Note
                    | Kind::Purged
                    | Kind::Quarantined
            );
        }
        is_harmless
    }

    pub(super) fn begin_hold(&mut self, event: &Event, body: &AgentHeld) -> bool {
        self.hold = Hold::Held(Held {
            reason: body.reason,
            since: event.at,
            seq: event.seq,
        });
        self.stopped = true;
        self.foreign_through = event.seq;
        // The agents, resets, compactions, hooks and restores that its journal names belong to the installation it comes from.
        self.parent_link = None;
        self.children.sever();
        self.resets.abandon();
        self.compactions.drop_asked();
        self.hooks.abandon();
        self.commands.abandon();
        self.files.abandon();
        // None of its schedules fires here before the user has resumed it.
        self.schedules.pause_all(PausedBecause::Imported);
        // The user's ops must not be answered by what an imported journal recorded under the same op.
        self.ops = Ops::default();
        true
    }

    pub(super) fn release(&mut self, body: &AgentReleased) -> bool {
        let Hold::Held(held) = self.hold else {
            return false;
        };
        self.hold = Hold::Released;
        if !body.kept.contains(&HeldPart::Queue) {
            self.inbox.drop_before(held.seq);
        }
        true
    }

    /// False for a held agent: a start does not release it.
    pub(super) fn start(&mut self) -> bool {
        if self.is_held() {
            return false;
        }
        self.stopped = false;
        self.failed = None;
        self.hold = Hold::No;
        true
    }
}
