//! Commands that the user ran: the model sees them and their output before its next request.

use super::Machine;
use crate::event::CommandsTaken;

impl Machine {
    /// Places the commands that have ended, at a position where this does not separate a call from its result. They
    /// need no answer of their own. Returns whether there are any.
    pub(super) fn take_commands(&mut self) -> bool {
        let commands: Vec<_> = self.window.waiting_commands().collect();
        let any = !commands.is_empty();
        if any {
            let taken = CommandsTaken { commands };
            self.live.outbox.backlog.push(taken.into());
        }
        any
    }
}
