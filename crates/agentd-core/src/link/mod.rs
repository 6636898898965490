//! The link between an agent's process and the daemon that owns its journal: what is said, and what each
//! side has to remember. Neither side does any IO here.
//!
//! The daemon is the only writer. What a runtime appends is counted (incarnation, n), so that sending
//! it again after a cut does nothing twice. Everything that is committed comes down in the journal's
//! order, whoever wrote it; what was missed during a cut comes first thing after it.

mod daemon;
mod own_kinds;
mod runtime;

pub use daemon::{Daemon, Greeting};
pub use own_kinds::is_a_runtimes;
pub use runtime::{Did, Runtime};

use crate::event::{Event, NewEvent, SubagentOutcome};
use crate::hook::{HookInvocation, Verdict, digest};
use crate::id::{AgentId, CallId, Incarnation, InvocationId, RuntimeId, Seq, TryId, TurnId};
use crate::state::AgentState;
use crate::window::Window;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The version that this build speaks. Version 6 renamed messages.
pub const VERSION: u32 = 6;
/// The oldest version that the daemon accepts from a runtime. From version 6 on this is the previous one. The daemon
/// refuses an older runtime and starts a new one in its place.
pub const OLDEST_VERSION: u32 = 6;
/// What one thing that is said may hold: an append with all of a tool's output in it, or an agent's window.
pub const MAX_FRAME: usize = 256 * 1024 * 1024;

/// What a runtime says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum Up {
    Hello(Hello),
    Append(Append),
    Draft(Draft),
    Ask(Asked),
    /// Something that hooks are to hear of.
    InvokeHooks(Box<HookInvocation>),
    /// The keys that it works with, wherever they came from: the daemon takes them out of what hooks say.
    Keys(Keys),
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
    /// What it is, in one word.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hello(_) => "hello",
            Self::Append(_) => "append",
            Self::Draft(_) => "draft",
            Self::Ask(_) => "ask",
            Self::InvokeHooks(_) => "invoke-hooks",
            Self::Keys(_) => "keys",
        }
    }
}

/// The first thing on every connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub v: u32,
    pub agent: AgentId,
    /// The process, whatever its pid.
    pub runtime: RuntimeId,
    /// The secret that the daemon gave to this process when it started the process.
    #[serde(default)]
    pub secret: Secret,
    /// None where it has not been given the agent yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
    /// What it was given in its welcome: a daemon that comes anew does not have it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Which of them came from the user's stored secrets: the daemon has those itself, and they may have changed.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub stored: BTreeSet<String>,
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

    /// Whether this is the one with that digest. Nothing has none.
    pub fn has_digest(&self, digest: &str) -> bool {
        !self.0.is_empty() && self.digest() == digest
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret")
    }
}

/// How far a runtime has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    pub incarnation: Incarnation,
    /// The last event that it has been told of.
    pub head: Seq,
}

/// The n-th append of an incarnation. It says whose it is: it may be read late, on a connection that is
/// broken by then, when somebody else has the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Append {
    pub incarnation: Incarnation,
    pub n: u64,
    pub events: Vec<NewEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<TryId>,
}

/// A piece of a reply that still streams. Which it is says where it begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    pub request: TryId,
    pub offset: u64,
    pub text: String,
}

/// A question whose answer may take its time. It means the same however often it is asked, by whichever
/// process of the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub incarnation: Incarnation,
    pub n: u64,
    pub question: Question,
}

/// About the subagent of a call that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Question {
    /// Start it, unless this call has started one.
    Spawn {
        call: CallId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<String>,
        prompt: String,
        background: bool,
    },
    /// How does it end?
    Await { call: CallId },
    /// It is to end now. How does it?
    Cancel { call: CallId },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    Spawned {
        name: String,
    },
    /// In words for the model.
    Refused {
        why: String,
    },
    Ended {
        name: String,
        outcome: SubagentOutcome,
        /// What it said last.
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// The call has started none.
    NotThere,
}

/// What the daemon says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum Down {
    /// To a new runtime: the agent.
    Welcome(Box<Welcome>),
    /// To one that was cut off: what it missed, its own appends included.
    Resumed {
        events: Vec<Event>,
        /// The newest append of its incarnation that is in the journal; 0 where there is none.
        appended: u64,
    },
    /// That append is durable, from here on.
    Appended {
        n: u64,
        first: Seq,
    },
    /// That piece is durable, or nobody needs it any more.
    Drafted {
        request: TryId,
        offset: u64,
    },
    /// What others have appended.
    Events {
        events: Vec<Event>,
    },
    Order {
        order: Order,
        /// The turn that is meant: by the time it is heard, another may be under way.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<TurnId>,
    },
    Answer {
        n: u64,
        answer: Answer,
    },
    /// What hooks say. What they had written to the journal has come before.
    HooksAnswered {
        id: InvocationId,
        verdict: Verdict,
    },
    Refused {
        why: Refusal,
    },
}

impl Down {
    /// Reads a frame. A welcome holds the agent's whole window: it is read in place, without the copy that
    /// finding the tag first takes.
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

    /// What it is, in one word.
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
    /// Stop, and do not wait for the model.
    Leave,
}

/// Why a runtime is not wanted; it ends itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    #[error("the daemon speaks another version of the link")]
    Version,
    #[error("another process runs this agent")]
    Taken,
    #[error("a newer process has taken this agent over")]
    Stale,
    #[error("there is no such agent")]
    NoSuchAgent,
    #[error("the daemon did not start this process")]
    Unproven,
    #[error("the daemon cannot make sense of what was said")]
    Confused,
}

/// The agent as its journal has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    pub incarnation: Incarnation,
    pub state: AgentState,
    pub window: Window,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<(TryId, String)>,
    /// Keys and what else of the caller's surroundings the agent works with; in memory only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Which of them come from the user's stored secrets.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub stored: BTreeSet<String>,
}

#[cfg(test)]
mod tests;
