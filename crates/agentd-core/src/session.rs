//! A conversation in one portable file: the content of `session-latest.json`.
//!
//! It is an export of the head: the agent's settings, and what the model sees of the current conversation. Its size
//! depends on the window, not on the history. If the journal exists, the journal is used; otherwise
//! [`Session::events`] begins a new one from this file.

use crate::event::{
    AgentCreated, BeginSource, Body, Compacted, Context, ConversationBegan, MessageAdded,
    MessageStatus, Mode, Notice, NoticeCause, Position, Prompt, PromptMode, PromptQueued,
    PromptsTaken, ResultAdded, SpecSet, Summary, TurnEnded, TurnStarted, TurnStatus,
};
use crate::id::{AgentId, ConversationId, PromptId, Seq, TurnId};
use crate::message::{Block, ToolResult};
use crate::spec::AgentSpec;
use crate::state::AgentState;
use crate::time::Timestamp;
use crate::usage::Spent;
use crate::window::{Entry, Window};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The version that this build writes, and the newest that it reads.
pub const VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    pub v: u32,
    pub saved_at: Timestamp,
    pub agent: AgentId,
    pub name: String,
    pub conversation: ConversationId,
    pub ordinal: u32,
    /// The last event of the journal that is included.
    pub head: Head,
    #[serde(deserialize_with = "crate::spec::read_stored")]
    pub spec: Box<AgentSpec>,
    /// How the last turn ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<LastTurn>,
    /// What the conversation has spent.
    pub spent: Spent,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    pub window: Vec<SessionItem>,
    /// Prompts that have not been answered yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Waiting>,
}

/// A position in the journal, with enough information to tell it from the same position in another journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub seq: Seq,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastTurn {
    pub id: TurnId,
    pub status: TurnStatus,
}

/// One item that the model sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionItem {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    #[serde(flatten)]
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    Prompt {
        blocks: Vec<Block>,
    },
    Reply {
        status: MessageStatus,
        blocks: Vec<Block>,
    },
    Result(ToolResult),
    Notice {
        text: String,
    },
    Summary {
        text: String,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    #[serde(default)]
    pub mode: PromptMode,
    pub blocks: Vec<Block>,
}

/// A file that this build cannot continue from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    #[error("it has version {found}, but this agentd reads up to {VERSION}")]
    Newer { found: u32 },
    #[error("it is not a session file: {reason}")]
    Unreadable { reason: String },
}

impl Session {
    /// The current state of the agent; `None` if it has no conversation.
    pub fn of(state: &AgentState, window: &Window, at: Timestamp) -> Option<Self> {
        let conversation = state.tree.current_conversation()?;
        let said = window.items().iter().map(|item| SessionItem {
            turn: item.turn,
            what: What::of(&item.entry),
        });
        let waiting = state.inbox.waiting().filter_map(|queued| {
            let blocks = window.pending(queued.prompt)?.to_vec();
            let mode = queued.mode;
            Some(Waiting { mode, blocks })
        });
        Some(Self {
            v: VERSION,
            saved_at: at,
            agent: state.id,
            name: state.name.clone(),
            conversation: conversation.id,
            ordinal: conversation.ordinal,
            head: Head {
                seq: state.head,
                at: state.updated_at,
            },
            spec: state.spec.clone(),
            last_turn: state.last_turn.as_ref().map(|turn| LastTurn {
                id: turn.id,
                status: turn.status,
            }),
            spent: conversation.spent,
            context: window.context().cloned(),
            window: said.collect(),
            waiting: waiting.collect(),
        })
    }

    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Self, SessionError> {
        #[derive(Deserialize)]
        struct Version {
            v: u32,
        }
        let unreadable = |error: serde_json::Error| SessionError::Unreadable {
            reason: error.to_string(),
        };
        // Checked first, because a newer version may have another structure.
        let Version { v: found } = serde_json::from_str(text).map_err(unreadable)?;
        if found > VERSION {
            return Err(SessionError::Newer { found });
        }
        serde_json::from_str(text).map_err(unreadable)
    }

    /// The events that begin a journal with this conversation, each with its turn. They go into the empty journal of
    /// [`Self::agent`] in one append.
    pub fn events(&self, new_id: &mut dyn FnMut() -> Uuid) -> Vec<(Option<TurnId>, Body)> {
        let (name, mode) = (self.name.clone(), Mode::Persistent);
        let (parent, from, op) = (None, None, None);
        let source = BeginSource::Import;
        let mut script = Script::default();
        script.push(AgentCreated { name, mode });
        let spec = self.spec.clone();
        script.push(SpecSet { spec });
        script.push(ConversationBegan {
            source,
            parent,
            from,
            op,
        });
        if let Some(context) = &self.context {
            script.push(context.clone());
        }
        for said in &self.window {
            script.enter(said.turn);
            self.say(&said.what, &mut script, new_id);
        }
        let status = self.last_turn.as_ref().map(|turn| turn.status);
        script.leave(status.unwrap_or(TurnStatus::Completed));
        for waiting in &self.waiting {
            let prompt = PromptId::new(new_id());
            let (key, mode) = (None, waiting.mode);
            let blocks = waiting.blocks.clone();
            script.push(PromptQueued { prompt, key, mode });
            script.push(Prompt { prompt, blocks });
        }
        script.events
    }

    fn say(&self, what: &What, script: &mut Script, new_id: &mut dyn FnMut() -> Uuid) {
        match what.clone() {
            What::Prompt { blocks } => {
                let prompt = PromptId::new(new_id());
                let (key, mode) = (None, PromptMode::Queue);
                script.push(PromptQueued { prompt, key, mode });
                script.push(Prompt { prompt, blocks });
                let prompts = vec![prompt];
                script.push(PromptsTaken { prompts });
            }
            What::Reply { status, blocks } => {
                let (request, stop) = (None, None);
                script.push(MessageAdded {
                    request,
                    status,
                    stop,
                    blocks,
                });
            }
            What::Result(result) => script.push(ResultAdded {
                call: result.call,
                outcome: result.outcome,
                blocks: result.blocks,
            }),
            What::Notice { text } => {
                let cause = NoticeCause::Restarted;
                script.push(Notice { cause, text });
            }
            What::Summary { text } => {
                let (agent, seq) = (self.agent, Seq(script.events.len() as u64));
                let through = Position { agent, seq };
                script.push(Compacted { through });
                script.push(Summary { through, text });
            }
        }
    }
}

impl What {
    fn of(entry: &Entry) -> Self {
        match entry.clone() {
            Entry::Prompt(blocks) => Self::Prompt { blocks },
            Entry::Reply { status, blocks } => Self::Reply { status, blocks },
            Entry::Result(result) => Self::Result(result),
            Entry::Notice(text) => Self::Notice { text },
            Entry::Summary(text) => Self::Summary { text },
        }
    }
}

/// Events in order, with the turn that they belong to.
#[derive(Default)]
struct Script {
    events: Vec<(Option<TurnId>, Body)>,
    turn: Option<TurnId>,
}

impl Script {
    fn push(&mut self, body: impl Into<Body>) {
        self.events.push((self.turn, body.into()));
    }

    fn enter(&mut self, turn: Option<TurnId>) {
        if turn == self.turn {
            return;
        }
        self.leave(TurnStatus::Completed);
        self.turn = turn;
        if turn.is_some() {
            self.push(TurnStarted::default());
        }
    }

    fn leave(&mut self, status: TurnStatus) {
        if self.turn.is_some() {
            self.push(TurnEnded::with(status));
        }
        self.turn = None;
    }
}

#[cfg(test)]
mod tests;
