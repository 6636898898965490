//! What every kind of child can do.

use agentd_core::mcp::QuestionReply;
use agentd_core::outer::Delivery;
use async_trait::async_trait;

/// The answer to a child's question whether a call may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Allow,
    Deny,
}

/// The turn was cancelled while its program was being started.
pub const CANCELLED: &str = "the turn was cancelled before it was delivered";

/// A program that runs turns. What it says goes to the talk that it was made with.
#[async_trait]
pub trait Child: Send + Sync + 'static {
    /// Gives it the prompts of this turn, after it was started if it does not run; nothing if the talk is not in this turn
    /// any more. An error means that nothing was delivered, and is for users.
    async fn deliver(&self, turn: u64, delivery: Delivery) -> Result<(), String>;

    /// Tells it to end its turn. Does not wait.
    async fn interrupt(&self);

    /// It has confirmed the end of an interrupted turn: ends what agentd runs for that turn. Does not wait.
    async fn interrupted(&self, _turn: u64) {}

    /// Answers its question. A question of a child that has ended is not answered.
    async fn answer(&self, question: &str, answer: Answer);

    /// Answers what it wanted to know from the user, by the call that records it. A child that has ended gets no answer.
    async fn reply(&self, _call: &str, _reply: QuestionReply) {}

    /// The end of its turn is recorded, with what it reported to have used.
    async fn turn_recorded(&self) {}

    /// Kills it with all its processes. Returns when they have ended.
    async fn kill(&self);

    /// Ends it with all its processes: SIGTERM first, SIGKILL after the grace. Returns when they have ended.
    async fn close(&self);
}
