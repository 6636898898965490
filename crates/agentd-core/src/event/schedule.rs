//! Schedules: prompts and resets that the daemon makes at due times. They belong to the agent, not to a conversation.

use crate::id::{OpId, PromptId, ScheduleId};
use crate::message::Block;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A schedule was added. If its action needs a prompt, its text is in the [`SchedulePrompt`] that follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleAdded {
    pub schedule: ScheduleId,
    /// Unique among the agent's schedules.
    pub name: String,
    pub rule: ScheduleRule,
    #[serde(default)]
    pub action: ScheduleAction,
    #[serde(default)]
    pub missed: MissedPolicy,
    #[serde(default)]
    pub overlap: OverlapPolicy,
    /// Its first due time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
}

/// When a schedule is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum ScheduleRule {
    /// A cron expression of five fields, on the wall clock of a zone of the time-zone database.
    Cron { expression: String, zone: String },
    /// Once. The zone is that of the user, for display.
    At { at: Timestamp, zone: String },
    /// After each interval, counted from an instant: no time zone changes it.
    Every { every_ms: u64, from: Timestamp },
}

/// What a firing does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleAction {
    /// Queues the prompt.
    #[default]
    Prompt,
    /// Begins a fresh conversation.
    Reset,
    /// Begins a fresh conversation and queues the prompt in it.
    Fresh,
}

impl ScheduleAction {
    pub const fn has_prompt(self) -> bool {
        matches!(self, Self::Prompt | Self::Fresh)
    }

    pub const fn resets(self) -> bool {
        matches!(self, Self::Reset | Self::Fresh)
    }
}

/// What happens to due times that passed while the daemon or the agent did not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissedPolicy {
    /// One firing for all of them.
    #[default]
    Once,
    /// None.
    Skip,
    /// One firing for each, at most 100.
    All,
}

/// What happens if the prompt of the firing before is not answered yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverlapPolicy {
    /// The due time is skipped.
    #[default]
    Skip,
    /// The prompt is queued.
    Queue,
}

/// The prompt of a schedule was recorded again, in another conversation, because a purge deletes the earlier record. Its
/// text is in the [`SchedulePrompt`] that follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleMoved {
    pub schedule: ScheduleId,
}

/// The text of a schedule's prompt. Right after the [`ScheduleAdded`] or [`ScheduleMoved`] that it belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchedulePrompt {
    pub schedule: ScheduleId,
    pub blocks: Vec<Block>,
}

/// The schedule does not fire until it is resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulePaused {
    pub schedule: ScheduleId,
    pub why: PausedBecause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PausedBecause {
    User,
    /// It came with an import. Only in the state: the event that holds the agent pauses its schedules.
    Imported,
    /// The agent was archived. Only in the state, like `imported`.
    Archived,
    /// Its due times cannot be computed, or its prompt cannot be read.
    CannotRun,
}

/// The schedule fires again. Due times during the pause are not missed ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleResumed {
    pub schedule: ScheduleId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleRemoved {
    pub schedule: ScheduleId,
}

/// A due time was handled: the firing was made or skipped. What the firing does is in the same commit, so no due time is
/// handled twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleFired {
    pub schedule: ScheduleId,
    /// `None` if the user ran the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    pub outcome: FiringOutcome,
    /// How many earlier due times were missed and are covered by this event.
    #[serde(default, skip_serializing_if = "super::files::is_zero")]
    pub missed: u64,
    /// The next due time. `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum FiringOutcome {
    Fired {
        /// The prompt that was queued.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<PromptId>,
        /// The reset that began.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        op: Option<OpId>,
    },
    Skipped {
        why: SkippedBecause,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkippedBecause {
    /// The due time had passed too long ago.
    Missed,
    /// The prompt of the firing before is not answered yet.
    Overlap,
}
