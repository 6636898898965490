//! What a child repeats of a session that is loaded: it is no part of an answer, and the next prompt waits for its end.

use super::locked;
use agentd_core::outer::ChildEvent;
use agentd_core::outer::acp::Replay;
use serde_json::Value;
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::Notify;

/// After this time without an update, a replay that does not seem to be complete counts as ended. A child repeats what it has
/// on its disk, without waiting for a model.
const QUIET: Duration = Duration::from_millis(300);
/// A child that never stops is given its prompt after this time.
const LONGEST: Duration = Duration::from_secs(10);

#[derive(Default)]
pub struct History {
    replay: Mutex<Replay>,
    /// An update was a repeated one.
    repeated: Notify,
}

impl History {
    /// The session of a conversation with these replies is loaded.
    pub fn load(&self, replies: &[String]) {
        *locked(&self.replay) = Replay::of(replies);
    }

    /// The session could not be loaded: another one begins.
    pub fn forget(&self) {
        *locked(&self.replay) = Replay::default();
    }

    /// Whether an update repeats history. See [`Replay::repeats`].
    pub fn repeats(&self, update: &Value, said: &[ChildEvent]) -> bool {
        let is_repeated = locked(&self.replay).repeats(update, said);
        if is_repeated {
            self.repeated.notify_one();
        }
        is_repeated
    }

    /// The child is given a prompt with this content.
    pub fn prompted(&self, content: &[Value]) {
        let texts = content.iter().filter_map(|part| part["text"].as_str());
        let text = texts.collect::<Vec<_>>().join("\n");
        locked(&self.replay).prompted(&text);
    }

    /// Waits until the child has repeated everything, or repeats nothing more.
    pub async fn until_quiet(&self) {
        let quiet = async {
            while !locked(&self.replay).is_complete() {
                let next = tokio::time::timeout(QUIET, self.repeated.notified());
                if next.await.is_err() {
                    return;
                }
            }
        };
        let _never_quiet = tokio::time::timeout(LONGEST, quiet).await;
    }
}
