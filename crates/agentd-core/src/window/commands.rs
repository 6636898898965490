//! Commands that the user ran. Like a prompt, a command waits until the turn machine takes it.

use super::{Entry, Located, Window};
use crate::event::{CommandOutput, Event, Position};
use crate::id::CommandId;

impl Window {
    /// The commands that have ended and that the model does not see yet, in the order of their ends.
    pub fn waiting_commands(&self) -> impl Iterator<Item = CommandId> {
        self.commands.iter().map(|waiting| waiting.value.command)
    }

    pub(super) fn command_ended(&mut self, source: Position, body: &CommandOutput) {
        self.commands
            .retain(|waiting| waiting.value.command != body.command);
        let value = body.clone();
        self.commands.push(Located { source, value });
    }

    /// They are placed like notices, but they do not ask for an answer.
    pub(super) fn take_commands(&mut self, event: &Event, commands: &[CommandId]) {
        for command in commands {
            let mut waiting = self.commands.iter();
            let at = waiting.position(|waiting| waiting.value.command == *command);
            if let Some(at) = at {
                let taken = self.commands.remove(at);
                self.push(event, taken.source, Entry::Notice(taken.value.told()));
            }
        }
    }
}
