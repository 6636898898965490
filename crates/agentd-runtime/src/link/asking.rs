//! Questions to the daemon, asked beside everything else that is said.

use super::Ask;
use agentd_core::link::{Answer, Question};
use tokio::sync::{mpsc, oneshot};

/// A way to ask; there may be many.
#[derive(Clone, Debug)]
pub struct Asking(mpsc::WeakUnboundedSender<Ask>);

impl Asking {
    pub(super) const fn new(asks: mpsc::WeakUnboundedSender<Ask>) -> Self {
        Self(asks)
    }

    /// Waits for the answer, through every cut. None where there is no daemon and will be none. Let go of, it
    /// is not asked again.
    pub async fn ask(&self, question: Question) -> Option<Answer> {
        let (reply, answer) = oneshot::channel();
        self.0
            .upgrade()?
            .send(Ask::Question(question, reply))
            .ok()?;
        answer.await.ok()
    }
}
