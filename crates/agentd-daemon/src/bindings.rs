//! The outside addresses that are bound to agents: a file of this home. A binding is not part of an agent's journal, so
//! an export, an import, a fork or a file of a project never contains one.

use crate::durable_file;
use crate::layout::Layout;
use agentd_core::id::{AgentId, BindingId, Seq};
use agentd_core::outbox::binding::Release;
use agentd_core::state::AgentState;
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use tokio::sync::{Mutex, watch};

const VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    pub id: BindingId,
    pub address: String,
    pub agent: AgentId,
    pub url: String,
    /// The name of the secret that messages are signed with.
    pub secret: String,
    pub release_on: BTreeSet<Release>,
    pub bound_at: Timestamp,
    /// The agent's last event when it was bound.
    pub since: Seq,
    /// The agent's last event when the user removed the binding. Messages that were accepted up to it are still answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbound: Option<Seq>,
    /// When the user removed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbound_at: Option<Timestamp>,
}

impl Binding {
    /// Whether it accepts no more messages. Decided by the event that its webhook is told of, so that it is true from the
    /// commit of the change on, also if the webhook cannot be told yet, and stays true if the change is reversed.
    pub fn is_released(&self, state: &AgentState) -> bool {
        let has_happened = |what: &Release| state.changes.last(*what) > self.since;
        self.unbound.is_some() || self.release_on.iter().any(has_happened)
    }
}

#[derive(Serialize, Deserialize)]
struct Content {
    v: u32,
    bindings: Vec<Binding>,
}

/// All bindings, the oldest first.
pub struct Bindings {
    path: PathBuf,
    /// None if the file cannot be used. It is never overwritten then.
    known: Mutex<Option<Vec<Binding>>>,
    /// Counts the changes, for the tasks that deliver messages.
    changes: watch::Sender<u64>,
}

/// The file of bindings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("{} cannot be read", .0.display())]
    Unreadable(PathBuf),
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl Bindings {
    pub fn read(layout: &Layout) -> Self {
        let path = layout.outbox().join("bindings.json");
        let known = match durable_file::read::<Content>(&path) {
            Ok(None) => Some(Vec::new()),
            Ok(Some(content)) if content.v <= VERSION => Some(content.bindings),
            Ok(Some(_)) => {
                tracing::error!("bindings not loaded: written by a newer version of agentd");
                None
            }
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "bindings not loaded");
                None
            }
        };
        Self {
            path,
            known: Mutex::new(known),
            changes: watch::channel(0).0,
        }
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub async fn all(&self) -> Result<Vec<Binding>, Unusable> {
        let known = self.known.lock().await;
        let known = known.clone();
        known.ok_or_else(|| Unusable::Unreadable(self.path.clone()))
    }

    pub async fn get(&self, id: BindingId) -> Option<Binding> {
        let all = self.all().await.unwrap_or_default();
        all.into_iter().find(|binding| binding.id == id)
    }

    /// The newest binding of an address.
    pub async fn of_address(&self, address: &str) -> Result<Option<Binding>, Unusable> {
        let all = self.all().await?;
        let mut newest_first = all.into_iter().rev();
        Ok(newest_first.find(|binding| binding.address == address))
    }

    /// Changes the list. It is on disk before any task sees the change.
    pub async fn change<T>(
        &self,
        layout: &Layout,
        make: impl FnOnce(&mut Vec<Binding>) -> T,
    ) -> Result<T, Unusable> {
        let mut known = self.known.lock().await;
        let Some(before) = known.as_ref() else {
            return Err(Unusable::Unreadable(self.path.clone()));
        };
        let mut bindings = before.clone();
        let made = make(&mut bindings);
        if bindings != *before {
            let content = Content {
                v: VERSION,
                bindings: bindings.clone(),
            };
            let written = durable_file::write(layout, &self.path, &content).await;
            written.map_err(|source| Unusable::Io {
                path: self.path.clone(),
                source,
            })?;
            *known = Some(bindings);
            self.changes.send_modify(|count| *count += 1);
        }
        Ok(made)
    }
}
