//! The link's client side: a journal that the daemon keeps.
//!
//! A task holds the connection, makes it again whenever it breaks, and says again what was not
//! answered; whoever appends only waits a little longer.

mod asking;
mod hooks;
mod journal;
mod wire;

pub use asking::Asking;
pub use hooks::LinkHooks;
pub use journal::LinkJournal;

use agentd_core::event::{Event, NewEvent};
use agentd_core::hook::{HookInvocation, Verdict};
use agentd_core::id::{AgentId, RuntimeId, TryId, TurnId};
use agentd_core::link::{Answer, Draft, Keys, Order, Question, Refusal, Secret, Welcome};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Where to find the daemon, and as whom.
#[derive(Clone, Debug)]
pub struct Options {
    pub socket: PathBuf,
    pub agent: AgentId,
    pub runtime: RuntimeId,
    pub secret: Secret,
    /// How long to go on without a daemon.
    pub orphan: Duration,
}

/// Why there is no agent to run.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error("the daemon does not want this process: {0}")]
    Refused(Refusal),
    #[error("{0}")]
    Gone(String),
}

/// What is said through the journal's hands.
enum Ask {
    Append(Vec<NewEvent>, Option<TryId>),
    Draft(Draft),
    Question(Question, oneshot::Sender<Answer>),
    InvokeHooks(Box<HookInvocation>, oneshot::Sender<Verdict>),
    Keys(Keys),
}

/// What comes of it, in the journal's order.
enum Heard {
    Woken(Box<Welcome>),
    Arrived(Vec<Event>),
    Appended,
    Drafted,
    Told(Order, Option<TurnId>),
    Refused(Refusal),
    /// There is no daemon, and will be none.
    Gone(String),
}

/// Asks the daemon for the agent.
pub async fn join(
    options: Options,
) -> Result<(Welcome, LinkJournal, LinkHooks, Asking), JoinError> {
    let (asks, asked) = mpsc::unbounded_channel();
    // Not one that keeps the link alive: that is for the journal.
    let asking = Asking::new(asks.downgrade());
    let (heard, mut hears) = mpsc::unbounded_channel();
    tokio::spawn(wire::run(options, asked, heard));
    loop {
        match hears.recv().await {
            Some(Heard::Woken(welcome)) => {
                let hooks = LinkHooks::new(asks.clone());
                let journal = LinkJournal::new(asks, hears);
                return Ok((*welcome, journal, hooks, asking));
            }
            Some(Heard::Refused(why)) => return Err(JoinError::Refused(why)),
            Some(Heard::Gone(why)) => return Err(JoinError::Gone(why)),
            Some(_) => {}
            None => return Err(JoinError::Gone("the link has ended".to_owned())),
        }
    }
}
