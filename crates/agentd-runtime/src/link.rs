//! The link's client side: a journal that the daemon keeps.
//!
//! A task holds the connection, reconnects whenever it breaks, and sends again what was not acknowledged. An append
//! only takes a little longer.

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
use agentd_core::mcp::CallProgress;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Where the daemon is, and the identity of this runtime.
#[derive(Clone, Debug)]
pub struct Options {
    pub socket: PathBuf,
    pub agent: AgentId,
    pub runtime: RuntimeId,
    pub secret: Secret,
    /// Which build of the program this process runs.
    pub build: Option<String>,
    /// How long to continue without a daemon.
    pub orphan: Duration,
}

/// Why the runtime could not join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error("the daemon refused this process: {0}")]
    Refused(Refusal),
    #[error("{0}")]
    Gone(String),
}

/// Requests to the task that holds the connection.
enum Ask {
    Append(Vec<NewEvent>, Option<TryId>),
    Draft(Draft),
    Question(Question, oneshot::Sender<Answer>),
    InvokeHooks(Box<HookInvocation>, oneshot::Sender<Verdict>),
    Keys(Keys),
    Progress(CallProgress),
}

/// Its answers, in the journal's order.
enum Heard {
    Woken(Box<Welcome>),
    Arrived(Vec<Event>),
    Appended,
    Drafted(Option<String>),
    Told(Order, Option<TurnId>),
    Refused(Refusal),
    /// There is no daemon, and the task has given up.
    Gone(String),
}

/// Asks the daemon for the agent.
pub async fn join(
    options: Options,
) -> Result<(Welcome, LinkJournal, LinkHooks, Asking), JoinError> {
    let (asks, asked) = mpsc::unbounded_channel();
    // A weak sender: only the journal keeps the link alive.
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
