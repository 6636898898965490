//! Damage to a journal, as `verify` and the start-up report it.

use crate::error::Unreadable;
use agentd_core::id::{AgentId, Seq};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub from: Seq,
    pub through: Seq,
    pub reason: Unreadable,
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
        match self.and_maybe_more {
            true => write!(out, ", and possibly of other agents"),
            false => Ok(()),
        }
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
    /// What SQLite reports about its own files.
    pub file: Vec<String>,
    /// Events that were set aside earlier, and are still kept.
    pub quarantined: u64,
    pub head: HeadState,
    /// The names of the agents with findings.
    pub names: BTreeMap<AgentId, String>,
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

impl Report {
    pub fn is_clean(&self) -> bool {
        self.damaged.is_empty() && self.dangling.is_empty() && self.file.is_empty()
    }
}
