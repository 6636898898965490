//! The link between an agent's process and the daemon that owns its journal: the messages, and what each side must
//! remember. Neither side performs IO here.
//!
//! The daemon is the only writer. A runtime numbers its appends (incarnation, n), so that one that is sent again
//! after a disconnect is applied once. Every committed event reaches the runtime in the order of the journal, no
//! matter who wrote it; events that were missed during a disconnect come first.

mod daemon;
mod lean;
mod own_kinds;
mod runtime;

pub use daemon::{Daemon, Greeting};
pub use lean::without_files;
pub use own_kinds::is_a_runtimes;
pub use runtime::{Did, Runtime};

use crate::digest::digest;
use crate::event::{Event, MAX_CALL_BYTES, NewEvent, SubagentOutcome};
use crate::hook::{HookInvocation, Verdict};
use crate::id::{AgentId, CallId, Incarnation, InvocationId, RuntimeId, Seq, TryId, TurnId};
use crate::mcp::CallProgress;
use crate::spec::McpServer;
use crate::state::AgentState;
use crate::window::Window;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The version that this build speaks. Version 6 renamed messages; version 8 has the progress of calls.
pub const VERSION: u32 = 8;
/// The oldest version that the daemon accepts from a runtime. The daemon refuses an older runtime and starts a new one in
/// its place. A runtime is sent every event of its agent: one that cannot read an event would reconnect for ever. So a new
/// event kind, and a new version of an event kind, raise both this and [`VERSION`].
pub const OLDEST_VERSION: u32 = 8;
/// The size limit of one message: an append with all of a tool's output, or an agent's window.
pub const MAX_FRAME: usize = 256 * 1024 * 1024;
// The rest is for the other events of the append.
const _: () = assert!(MAX_CALL_BYTES <= MAX_FRAME as u64 / 8 * 5);

/// A message from a runtime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum Up {
    Hello(Hello),
    Append(Append),
    Draft(Draft),
    Ask(Asked),
    /// Hooks should run for this.
    InvokeHooks(Box<HookInvocation>),
    /// The keys that the runtime uses, from any source. The daemon removes them from the output of hooks.
    Keys(Keys),
    /// How far a call is, for the clients that watch. It is not answered, and not sent again.
    Progress(CallProgress),
}

/// The values of keys. Never printed.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    pub values: Vec<String>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({} hidden)", self.values.len())
    }
}

impl Up {
    /// The name of the message.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hello(_) => "hello",
            Self::Append(_) => "append",
            Self::Draft(_) => "draft",
            Self::Ask(_) => "ask",
            Self::InvokeHooks(_) => "invoke-hooks",
            Self::Keys(_) => "keys",
            Self::Progress(_) => "progress",
        }
    }
}

/// The first message on every connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub v: u32,
    pub agent: AgentId,
    /// Identifies the process independently of its pid.
    pub runtime: RuntimeId,
    /// The secret that the daemon gave to this process when it started the process.
    #[serde(default)]
    pub secret: Secret,
    /// `None` before it has been given the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
    /// The environment from its welcome, for a new daemon that does not have it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Which of these came from the user's stored secrets. The daemon has its own copy of those, which may have
    /// changed.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub stored: BTreeSet<String>,
    /// See [`lent_digest`](crate::mcp::lent_digest): the servers from its welcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lent: Option<String>,
    /// Which build of the program it runs. Opaque: two processes of one machine have the same text if they run the
    /// same file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
}

impl Hello {
    /// Whether it runs another build than the processes that the daemon starts. Their build is `build`; if that is
    /// unknown, no process counts as outdated.
    pub fn is_outdated(&self, build: Option<&str>) -> bool {
        let Some(build) = build else { return false };
        match &self.build {
            Some(own) => own != build,
            None => self.v < VERSION,
        }
    }
}

/// A secret that proves that the daemon started this runtime. The daemon passes it through a pipe, and stores only its
/// digest.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn digest(&self) -> String {
        digest(&[self.0.as_bytes()])
    }

    /// Whether this secret has that digest. An empty secret has none.
    pub fn has_digest(&self, digest: &str) -> bool {
        !self.0.is_empty() && self.digest() == digest
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret")
    }
}

/// How far a runtime has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    pub incarnation: Incarnation,
    /// The last event that it has received.
    pub head: Seq,
}

/// The n-th append of an incarnation. It names the incarnation because it may be read late, from a broken connection,
/// when another process already runs the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Append {
    pub incarnation: Incarnation,
    pub n: u64,
    pub events: Vec<NewEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<TryId>,
}

/// A piece of a reply that is still streaming. Its offset identifies it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    pub request: TryId,
    pub offset: u64,
    pub text: String,
}

/// A question that may take long to answer. It can be asked any number of times, by any process of the agent, with
/// the same effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub incarnation: Incarnation,
    pub n: u64,
    pub question: Question,
}

/// About the subagent of a call in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Question {
    /// Start it, unless this call has already started one.
    Spawn {
        call: CallId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<String>,
        prompt: String,
        background: bool,
    },
    /// Wait until it ends.
    Await { call: CallId },
    /// Cancel it now, and wait until it ends.
    Cancel { call: CallId },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    Spawned {
        name: String,
    },
    /// The text is for the model.
    Refused {
        why: String,
    },
    Ended {
        name: String,
        outcome: SubagentOutcome,
        /// Its last message.
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// The call has not started a subagent.
    NotThere,
}

/// A message from the daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum Down {
    /// To a new runtime: the agent.
    Welcome(Box<Welcome>),
    /// To a runtime that was disconnected: the events that it missed, including its own appends.
    Resumed {
        events: Vec<Event>,
        /// The newest append of its incarnation that is in the journal; 0 if there is none.
        appended: u64,
    },
    /// The append is durable, at this position.
    Appended {
        n: u64,
        first: Seq,
    },
    /// The piece is durable, or no longer needed.
    Drafted {
        request: TryId,
        offset: u64,
        /// Why the piece can never be written: the request must end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<String>,
    },
    /// Events that others appended.
    Events {
        events: Vec<Event>,
    },
    Order {
        order: Order,
        /// The turn that is meant, because another turn may be running when the order arrives.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<TurnId>,
    },
    Answer {
        n: u64,
        answer: Answer,
    },
    /// The verdict of the hooks. The events that they caused were sent before it.
    HooksAnswered {
        id: InvocationId,
        verdict: Verdict,
    },
    Refused {
        why: Refusal,
    },
}

impl Down {
    /// Reads a frame. A welcome contains the agent's whole window, so it is deserialized directly, without the copy
    /// that looking for the tag first would need.
    pub fn read(frame: &[u8]) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Tag<'a> {
            #[serde(borrow)]
            say: Cow<'a, str>,
        }
        let Tag { say } = serde_json::from_slice(frame)?;
        match &*say {
            "welcome" => Ok(Self::Welcome(serde_json::from_slice(frame)?)),
            _ => serde_json::from_slice(frame),
        }
    }

    /// The name of the message.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Welcome(_) => "welcome",
            Self::Resumed { .. } => "resumed",
            Self::Appended { .. } => "appended",
            Self::Drafted { .. } => "drafted",
            Self::Events { .. } => "events",
            Self::Order { .. } => "order",
            Self::Answer { .. } => "answer",
            Self::HooksAnswered { .. } => "hooks-answered",
            Self::Refused { .. } => "refused",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    Interrupt,
    Continue,
    Stop,
    /// Stop, and do not wait for the model's reply.
    Leave,
    /// The end of [`Welcome::holds_turns`].
    BeginTurns,
}

/// Why the daemon refuses a runtime. The runtime then exits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    #[error("the daemon uses another version of the link")]
    Version,
    #[error("another process is running this agent")]
    Taken,
    #[error("a newer process has taken over this agent")]
    Stale,
    #[error("no such agent")]
    NoSuchAgent,
    #[error("the daemon did not start this process")]
    Unproven,
    #[error("the daemon could not understand a message")]
    Confused,
}

/// The agent as recorded in its journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    pub incarnation: Incarnation,
    pub state: AgentState,
    pub window: Window,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<(TryId, String)>,
    /// Keys and other environment variables of the caller that the agent uses; in memory only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Which of these come from the user's stored secrets.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub stored: BTreeSet<String>,
    /// The MCP servers that clients lend to the agent; in memory only, because their values may be secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lent: BTreeMap<String, McpServer>,
    /// No turn may begin before [`Order::BeginTurns`], because a limit of the home is reached. The ends of tasks are
    /// recorded meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub holds_turns: bool,
}

#[cfg(test)]
mod tests;
