//! Search over everything that was said.

use super::{AgentRef, time};
use agentd_core::id::{ConversationId, Seq, TurnId};
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// `GET /v1/search`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    /// Words, `"phrases in quotes"` and `beginnings*` of words; all of them must occur.
    pub words: String,
    /// Only what was said to this agent and by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// From [`Found::next`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// What was found, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    pub hits: Vec<Hit>,
    /// Where the next page begins; none at the end.
    pub next: Option<String>,
    /// Not everything that was said before the search has been indexed yet: hits may be missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

/// A prompt, a message, a result or a notice that contains the words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    pub agent: AgentRef,
    pub conversation: ConversationId,
    /// The conversation's number; none if the agent no longer knows it.
    pub ordinal: Option<u32>,
    pub turn: Option<TurnId>,
    /// The turn's number in its conversation.
    pub number: Option<usize>,
    pub seq: Seq,
    #[serde(with = "time")]
    pub at: Timestamp,
    pub role: Role,
    /// The part of the text that has the words, on one line.
    pub snippet: String,
    /// Where the words are in the snippet, in characters.
    pub matches: Vec<Range<usize>>,
}

/// Who or what the text is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
    /// The result of a tool call.
    Tool,
    /// A message of agentd to the model.
    Notice,
    /// The summary that a compaction wrote.
    Summary,
    Hook,
    /// A remark for the user, such as the reason of a failure.
    Note,
}
