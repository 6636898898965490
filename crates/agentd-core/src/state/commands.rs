//! Commands that the user runs in the sandbox of the agent's tools.

use crate::event::{CommandEnded, CommandStarted, Event};
use crate::id::{BootId, CommandId, ConversationId, Seq};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A command that has started and whose end is not recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningCommand {
    pub boot: BootId,
    pub conversation: ConversationId,
    /// The event that started it. Its text is in the next one.
    pub seq: Seq,
    pub time_limit_ms: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commands {
    running: BTreeMap<CommandId, RunningCommand>,
}

impl Commands {
    pub fn running(&self) -> impl ExactSizeIterator<Item = (&CommandId, &RunningCommand)> {
        self.running.iter()
    }

    pub fn get(&self, command: CommandId) -> Option<&RunningCommand> {
        self.running.get(&command)
    }

    pub(super) fn start(&mut self, event: &Event, body: &CommandStarted) -> bool {
        let running = RunningCommand {
            boot: body.boot,
            conversation: event.conversation,
            seq: event.seq,
            time_limit_ms: body.time_limit_ms,
        };
        self.running.insert(body.command, running).is_none()
    }

    pub(super) fn end(&mut self, body: &CommandEnded) -> bool {
        self.running.remove(&body.command).is_some()
    }

    /// The journal was imported: its commands belong to the installation it comes from.
    pub(super) fn abandon(&mut self) {
        self.running.clear();
    }
}
