//! Damage to a journal: what counts as damage, and how `verify` and the start-up report it.

use agentd_core::event::{DecodeError, NewEvent, Quarantined};
use agentd_core::id::{AgentId, Seq};
use agentd_core::state::AgentState;
use serde::Serialize;
use std::collections::BTreeMap;

/// Why a stored event is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("it or an event before it is missing")]
    Gap,
    #[error("a part of it does not have the expected format")]
    Misshapen,
    #[error("its checksum does not follow from the event before it")]
    BrokenChain,
    #[error("its body does not match its checksum")]
    BodyChanged,
    #[error("a part of it that is stored separately is missing or changed")]
    BlobMissing,
    /// The agent cannot be claimed until the file is repaired, because nothing can be written near that page.
    #[error("the database page that holds it is damaged; run `agentd verify --repair`")]
    Page,
    #[error("it was acknowledged, but is not in the journal")]
    Missing,
    #[error(transparent)]
    Undecodable(DecodeError),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub from: Seq,
    pub through: Seq,
    pub reason: Unreadable,
}

impl Damage {
    /// The event that records in an agent's journal what it has lost. None if the agent has no conversation: it cannot
    /// continue then, and a user must decide.
    pub(crate) fn note(&self, state: &AgentState) -> Option<NewEvent> {
        Some(NewEvent {
            at: state.updated_at,
            conversation: state.tree.current()?,
            turn: None,
            body: Quarantined {
                from: self.from,
                through: self.through,
            }
            .into(),
        })
    }
}

/// Events that were acknowledged and are not in the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    pub agents: Vec<(AgentId, Damage)>,
    /// The head lists as many agents as it can hold: others may have lost events too.
    pub and_maybe_more: bool,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, (agent, damage)) in self.agents.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(
                out,
                "{comma}events {} to {} of agent {agent}",
                damage.from, damage.through
            )?;
        }
        if self.and_maybe_more {
            write!(out, ", and possibly of other agents")?;
        }
        Ok(())
    }
}

/// What `verify` found. The journal is clean if the lists are empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    pub agents: u64,
    pub events: u64,
    pub damaged: Vec<(AgentId, Damage)>,
    /// References to objects that do not exist.
    pub dangling: Vec<(AgentId, String)>,
    /// What the backend reports about its own files.
    pub file: Vec<String>,
    /// Events that were quarantined earlier, and are still kept.
    pub quarantined: u64,
    pub head: HeadState,
    /// The names of the agents with findings.
    pub names: BTreeMap<AgentId, String>,
}

/// What a check within a limit of time found. Damage is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// There is no journal, and no trace of one.
    Absent,
    /// The backend finds its file intact.
    Sound,
    /// The time was over before the end of the file, and no damage was found until then.
    SoFar,
}

/// The state of the journal's head, which is stored in a separate file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HeadState {
    /// The journal has every event that the head names.
    #[default]
    Good,
    /// The journal ends before its head.
    Ahead,
    /// There is none: an older agentd wrote the journal, or the file was deleted. The next start creates it.
    Absent,
    /// Neither slot is intact. The next start writes a new head.
    Unreadable,
}

impl Unreadable {
    /// Whether a newer agentd wrote the event. That is not damage, but this version cannot check the event.
    pub(crate) const fn is_newer(&self) -> bool {
        matches!(
            self,
            Self::Undecodable(DecodeError::UnknownKind { .. } | DecodeError::NewerVersion { .. })
        )
    }
}

impl Report {
    pub fn is_clean(&self) -> bool {
        self.damaged.is_empty() && self.dangling.is_empty() && self.file.is_empty()
    }
}
