//! Questions to the daemon, asked beside everything else that is said.

use super::Ask;
use agentd_core::link::{Answer, Keys, Question};
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

    /// Tells the daemon which keys this process works with. They are never shown: hooks may have read them, too.
    pub fn tell_keys(&self, values: Vec<String>) {
        if let Some(asks) = self.0.upgrade() {
            // Where the link has ended, so does this process.
            let _ended = asks.send(Ask::Keys(Keys { values }));
        }
    }
}
