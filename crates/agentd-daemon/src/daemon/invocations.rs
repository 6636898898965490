//! The invocations of hooks that are running, and what their handlers share.

use agentd_core::hook::Verdict;
use agentd_core::id::InvocationId;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, OnceLock};
use tokio::sync::watch;

/// The verdict of an invocation, once it is known.
pub type Heard = watch::Receiver<Option<Verdict>>;

#[derive(Default)]
pub struct Invocations {
    /// Running invocations: a second request with the same id waits for the same verdict. The invocation's task
    /// removes its entry.
    pub running: Mutex<HashMap<InvocationId, Heard>>,
    /// The hooks files that were logged as ignored, by path and digest, so that each is logged once.
    pub told: Mutex<HashSet<String>>,
    /// For handlers that are HTTP services; created with the first one.
    pub client: OnceLock<Option<reqwest::Client>>,
}
