//! Questions to the daemon, concurrent with the other traffic on the link.

use super::Ask;
use agentd_core::link::{Answer, Keys, Question};
use tokio::sync::{mpsc, oneshot};

/// A handle for asking questions. It can be cloned.
#[derive(Clone, Debug)]
pub struct Asking(mpsc::WeakUnboundedSender<Ask>);

impl Asking {
    pub(super) const fn new(asks: mpsc::WeakUnboundedSender<Ask>) -> Self {
        Self(asks)
    }

    /// Waits for the answer, across reconnections. `None` if the link has ended. If the future is dropped, the question
    /// is not sent again.
    pub async fn ask(&self, question: Question) -> Option<Answer> {
        let (reply, answer) = oneshot::channel();
        self.0
            .upgrade()?
            .send(Ask::Question(question, reply))
            .ok()?;
        answer.await.ok()
    }

    /// Sends the daemon the keys that this process uses, so that it redacts them: hooks may have read them too.
    pub fn tell_keys(&self, values: Vec<String>) {
        if let Some(asks) = self.0.upgrade() {
            // If the link has ended, this process ends too.
            let _ended = asks.send(Ask::Keys(Keys { values }));
        }
    }
}
