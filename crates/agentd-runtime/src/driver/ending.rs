//! The end of a turn and of the process, as others see it.

use super::{Driver, JournalError, Observed};
use agentd_core::event::{IncarnationEnded, NewEvent};

impl Driver {
    /// Records that this process ends normally, so that the next process does not assume a crash.
    pub(super) async fn end_incarnation(&mut self) -> Result<(), JournalError> {
        let agent = self.machine.agent();
        let Some(conversation) = agent.tree.current() else {
            return Ok(());
        };
        let incarnation = agent.incarnation;
        let ended = NewEvent {
            at: (self.clock)(),
            conversation,
            turn: None,
            body: IncarnationEnded { incarnation }.into(),
        };
        self.append(vec![ended], None).await?;
        self.checkpoint();
        Ok(())
    }

    pub(super) fn checkpoint(&mut self) {
        let (agent, window) = (self.machine.agent(), self.machine.window());
        (self.observer)(Observed::Checkpoint(agent, window));
    }
}
