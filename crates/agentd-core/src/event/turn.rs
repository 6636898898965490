//! A turn, from its first prompt to its single terminal state.

use crate::id::{OpId, TryId, TurnId};
use crate::usage::{MicroUsd, Usage};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnStarted {
    /// The `limited` turn that this one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes: Option<TurnId>,
    /// It answers no prompt: it performs the compaction that was requested under this op.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacts: Option<OpId>,
}

/// A user requested a compaction. The instruction for the summary, if any, is in an [`super::Instruction`] of the
/// same append.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionAsked {
    pub op: OpId,
}

/// The turn waits until the user runs `continue`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnPaused {
    pub reason: PauseReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// The agent's `on_crash` setting says to wait.
    Crash,
    /// The provider's key is missing.
    MissingKey,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnContinued {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEnded {
    pub status: TurnStatus,
    /// Which limit, where the status is `limited`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitKind>,
    /// Which failure, where the status is `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureClass>,
    /// The turn performed a compaction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compacts: bool,
    /// The user removed its prompt while it was beginning: it did nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withdrawn: bool,
}

impl TurnEnded {
    pub const fn with(status: TurnStatus) -> Self {
        Self {
            status,
            limit: None,
            failure: None,
            compacts: false,
            withdrawn: false,
        }
    }
}

/// A turn ends as exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    Completed,
    Interrupted,
    Failed,
    Limited,
    Lost,
}

/// A limit that ended a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    Iterations,
    TurnTokens,
    TurnCost,
    TurnTime,
    ConversationTokens,
    ConversationCost,
    ConversationTime,
    DayTokens,
    DayCost,
    DayTime,
    SubtreeTokens,
    SubtreeCost,
    SubtreeTime,
}

/// The whole request is durable and may be sent now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSent {
    pub request: TryId,
    pub purpose: Purpose,
    pub grant: Grant,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    Answer,
    /// Its reply is a summary, not a message.
    Compact,
}

/// What a request may spend, reserved before it is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// `None` if the model's price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroUsd>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestEnded {
    pub request: TryId,
    pub outcome: RequestOutcome,
    pub usage: Usage,
    /// The provider reported no usage; this is what the attempt must have used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroUsd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_request: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum RequestOutcome {
    Completed,
    Failed {
        class: FailureClass,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
    /// Cancelled on purpose.
    Interrupted,
    /// Its process died.
    Lost,
}

impl RequestOutcome {
    /// Whether the request costs nothing: the provider refused it, or never got it. A gateway that got no answer (502,
    /// 504) does not know what the provider has done.
    pub const fn is_free(&self) -> bool {
        matches!(
            self,
            Self::Failed {
                status: Some(400..=499 | 500 | 503 | 529),
                ..
            } | Self::Failed {
                class: FailureClass::Unreachable,
                ..
            }
        )
    }
}

/// What went wrong with a request, as far as it determines the next step. A new class is a new version of [`RequestEnded`]
/// and [`TurnEnded`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// 408, 409, 5xx.
    Unavailable,
    /// 429.
    RateLimited,
    /// 529 and similar.
    Overloaded,
    /// No connection to the provider could be made: the request was not sent.
    Unreachable,
    /// The connection or the stream broke.
    Dropped,
    /// The stream contained data that does not follow the format.
    Malformed,
    /// The window is too small for the request.
    ContextOverflow,
    /// The turn's own prompts and the results that the model has not seen are too large for the window, and nothing
    /// else is left to summarize.
    TurnTooLarge,
    /// 401, 403.
    Unauthorized,
    /// 400 and similar: a retry cannot help.
    Rejected,
    /// The model declined to answer.
    Refused,
    /// A hook refused the prompt.
    Blocked,
    /// The program of an outer agent is missing, has ended, or reported a failure. Since version 3 of both.
    ProgramFailed,
}

impl FailureClass {
    /// Whether the same request may succeed later.
    pub const fn is_transient(self) -> bool {
        matches!(
            self,
            Self::Unavailable
                | Self::RateLimited
                | Self::Overloaded
                | Self::Unreachable
                | Self::Dropped
                | Self::Malformed
        )
    }
}
