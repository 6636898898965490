//! Outside addresses that are bound to agents.

use super::AgentRef;
use agentd_core::id::BindingId;
use agentd_core::outbox::binding::Release;
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// `POST /v1/agents/{name}/bindings`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bind {
    /// `scheme:anything`.
    pub address: String,
    /// Where answers are sent.
    pub webhook: String,
    /// The name of the stored secret that messages are signed with.
    pub secret: String,
    /// Which changes of the agent end the binding.
    #[serde(default = "by_default")]
    pub release_on: BTreeSet<Release>,
}

fn by_default() -> BTreeSet<Release> {
    BTreeSet::from([Release::Rm])
}

/// A binding, as `bind`, `unbind` and `bindings` show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    pub id: BindingId,
    pub address: String,
    pub agent: AgentRef,
    pub webhook: String,
    pub secret: String,
    pub release_on: BTreeSet<Release>,
    #[serde(with = "super::time")]
    pub bound_at: Timestamp,
    /// It accepts no more messages. It is listed until its last message was delivered.
    pub released: bool,
    /// The agent is archived, and accepts no message until it is restored.
    #[serde(default)]
    pub archived: bool,
    /// Failed attempts to deliver its next message, one after the other.
    pub failed_attempts: u32,
    /// Why the last of them failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// `GET /v1/bindings`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bindings {
    /// The oldest first.
    pub bindings: Vec<Binding>,
}

/// `POST /v1/bindings/{address}/unbind`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unbind {
    /// Messages that were not delivered are dropped, and no last message is sent.
    #[serde(default)]
    pub now: bool,
}

/// `POST /v1/bindings/{address}/messages`; the response is that of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BindingMessage {
    /// The sender's own id of the message: one that is posted twice is accepted once.
    pub id: String,
    /// Who wrote it, as the bridge knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    pub text: String,
}
