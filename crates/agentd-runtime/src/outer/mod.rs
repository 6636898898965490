//! Outer agents: the program of the agent runs its turns, as a child of this process. It takes the place of the model
//! and of the tools.
//!
//! - [`Outer`]: one child, as the driver sees it. `talk` is what it has said and what is not handled yet.
//! - `start`: how a child is started, in the agent's sandbox and owned with its whole tree.
//! - [`acp`]: an agent that speaks the Agent Client Protocol.
//! - [`command`]: a program that reads prompts and writes text or JSON lines.

pub mod acp;
mod child;
pub mod command;
mod redact;
mod start;
mod stream;
mod talk;

pub use start::{ChildOptions, end_leftovers};
pub(crate) use stream::Room;
pub use talk::Bounds;
pub(crate) use talk::Next;

use agentd_core::mcp::QuestionReply;
use agentd_core::spec::{AgentSpec, ApprovalMode, Decision, Rule};
use child::{Answer, Child};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use talk::Talk;
use tokio::sync::{Semaphore, mpsc};

/// How much of the deltas that a child causes may wait for the driver. The driver writes them to disk.
const MOST_IN_FLIGHT: usize = 512 * 1024;
/// How long a child may take to end its turn when it is told to, before it is killed.
const INTERRUPT_GRACE: Duration = Duration::from_secs(3);

/// The child of one agent.
#[derive(Clone)]
pub struct Outer {
    child: Arc<dyn Child>,
    talk: Arc<Talk>,
    /// One cancellation at a time.
    cancelling: Arc<tokio::sync::Mutex<()>>,
    /// One delivery at a time: a child is started by one of them only.
    delivering: Arc<tokio::sync::Mutex<()>>,
    /// The number of the newest turn. A cancellation names its turn, so that a late one never ends the next turn.
    newest: Arc<AtomicU64>,
    permissions: Arc<Mutex<Permissions>>,
    /// The room for deltas that the driver has not handled yet, in bytes.
    in_flight: Arc<Semaphore>,
}

/// What decides about the child's questions.
#[derive(Clone, Debug)]
pub(crate) struct Permissions {
    pub rules: Vec<Rule>,
    pub approval: ApprovalMode,
}

impl Outer {
    fn new(child: Arc<dyn Child>, talk: Arc<Talk>, rules: &[Rule], approval: ApprovalMode) -> Self {
        Self {
            child,
            talk,
            cancelling: Arc::default(),
            delivering: Arc::default(),
            newest: Arc::default(),
            permissions: Arc::new(Mutex::new(Permissions {
                rules: rules.to_vec(),
                approval,
            })),
            in_flight: Arc::new(Semaphore::new(MOST_IN_FLIGHT)),
        }
    }

    pub(crate) fn permissions(&self) -> Permissions {
        self.locked_permissions().clone()
    }

    /// The settings may change in the middle of a turn, which ends in this process: new rules apply at once, and a rule that
    /// allows does not apply any more once it is removed. Any other rule that was removed applies until the next process,
    /// because it may be the project's.
    pub(crate) fn follow(&self, spec: &AgentSpec) {
        let mut permissions = self.locked_permissions();
        permissions.approval = spec.approval.unwrap_or_default();
        let is_left =
            |rule: &Rule| rule.decision != Decision::Allow || spec.permissions.contains(rule);
        permissions.rules.retain(is_left);
        for rule in &spec.permissions {
            if !permissions.rules.contains(rule) {
                permissions.rules.push(rule.clone());
            }
        }
    }

    fn locked_permissions(&self) -> MutexGuard<'_, Permissions> {
        let locked = self.permissions.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn talk(&self) -> &Talk {
        &self.talk
    }

    /// Answers the child's question about the open call, if there is one: the call may run.
    pub(crate) async fn allow(&self) {
        if let Some(question) = self.talk.take_question() {
            self.answer(&question, Answer::Allow).await;
        }
    }

    /// The number of a new turn.
    pub(crate) fn new_turn(&self) -> u64 {
        self.newest.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The number of the newest turn.
    pub(crate) fn newest_turn(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    /// Ends this turn of the child, if it is in it. Returns when the child has confirmed it, or is dead.
    pub(crate) async fn cancel(&self, turn: u64) {
        let _one_at_a_time = self.cancelling.lock().await;
        if !self.talk.give_up(turn) {
            return;
        }
        self.child.interrupt().await;
        let confirmed = tokio::time::timeout(INTERRUPT_GRACE, self.talk.until_over()).await;
        if confirmed.is_ok() {
            self.child.interrupted(turn).await;
        } else {
            tracing::warn!("the agent's program did not end its turn: it is killed");
            self.child.kill().await;
            self.talk.end_turn();
        }
    }

    /// Ends this turn of the child, whose end is recorded.
    pub(crate) async fn turn_recorded(&self, turn: u64) {
        self.cancel(turn).await;
        // What is owed is charged to a later turn.
        if !self.talk.owes() {
            self.child.turn_recorded().await;
        }
    }

    /// Ends the child and all its processes.
    pub async fn close(&self) {
        self.child.close().await;
        self.talk.end_turn();
    }

    /// Sends a text to `gone` when the child ends, for a turn that waits for the user.
    pub(crate) fn report_end(&self, gone: mpsc::UnboundedSender<String>) {
        self.talk.report_end(gone);
    }

    /// Answers the child's question about a call.
    async fn answer(&self, question: &str, answer: Answer) {
        self.child.answer(question, answer).await;
    }

    /// Gives the child the user's answer to what it wanted to know.
    pub(crate) async fn reply(&self, call: &str, reply: QuestionReply) {
        self.child.reply(call, reply).await;
    }
}

#[cfg(test)]
pub(crate) mod fixture;
