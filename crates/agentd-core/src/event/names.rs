//! The names and labels in events. They are displayed on one line, wherever they come from.

use super::{Body, Kind, OpReceipt};

impl Kind {
    /// Whether [`Body::names`] of an event of this kind can contain anything.
    pub const fn has_names(self) -> bool {
        matches!(
            self,
            Self::AgentCreated
                | Self::AgentRenamed
                | Self::CheckpointSet
                | Self::SubagentStarted
                | Self::ResetEnded
                | Self::Operation
        )
    }
}

impl Body {
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::AgentCreated(body) => vec![&body.name],
            Self::AgentRenamed(body) => vec![&body.name],
            Self::CheckpointSet(body) => vec![&body.label],
            Self::SubagentStarted(body) => {
                let kind = body.kind.iter().map(String::as_str);
                kind.chain([body.name.as_str()]).collect()
            }
            Self::ResetEnded(body) => {
                let kept = body.kept_subagents.iter().map(String::as_str);
                kept.chain([body.name.as_str()]).collect()
            }
            Self::Operation(body) => match &body.receipt {
                OpReceipt::Checkpoint { label, .. } => vec![label],
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}
