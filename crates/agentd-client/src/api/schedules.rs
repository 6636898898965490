//! Schedules: prompts and resets at due times.

use super::{AgentRef, time};
use agentd_core::event::{
    FiringOutcome, MissedPolicy, OverlapPolicy, PausedBecause, ScheduleAction,
};
use agentd_core::id::ScheduleId;
use agentd_core::state::ScheduleWaits;
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// `GET /v1/schedules` and `GET /v1/agents/{name}/schedules`, and the answer to a removal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedules {
    /// By agent, and then in the order in which they were added.
    pub schedules: Vec<Schedule>,
}

/// One schedule: the answer to the changes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    pub agent: AgentRef,
    pub id: ScheduleId,
    /// Unique among the schedules of the agent.
    pub name: String,
    pub when: When,
    pub action: ScheduleAction,
    /// The text of the prompt. None if it is a reset only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    pub missed: MissedPolicy,
    pub overlap: OverlapPolicy,
    #[serde(with = "time")]
    pub added_at: Timestamp,
    /// Why it does not fire before it is resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<PausedBecause>,
    /// Why it does not fire at its due time, but later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<ScheduleWaits>,
    /// The next due times, at most five. Empty if it is paused, or never due again.
    pub next: Vec<DueTime>,
    /// The due time that was handled last, or the last run by the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastFiring>,
}

/// An instant as a JSON string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DueTime(#[serde(with = "time")] pub Timestamp);

/// When a schedule is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type", deny_unknown_fields)]
pub enum When {
    /// A cron expression of five fields, on the wall clock of the zone.
    Cron { expression: String, zone: String },
    /// Once.
    At {
        #[serde(with = "time")]
        at: Timestamp,
        zone: String,
    },
    /// After each interval, from the time when it was added.
    Every { every_ms: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastFiring {
    /// None if the user ran it.
    #[serde(
        with = "time::option",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub due: Option<Timestamp>,
    #[serde(with = "time")]
    pub at: Timestamp,
    pub outcome: FiringOutcome,
}

/// `POST /v1/agents/{name}/schedules`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddSchedule {
    /// Generated if it is omitted: `s1`, `s2`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub when: When,
    #[serde(default)]
    pub action: ScheduleAction,
    /// The text of the prompt, unless the action is `reset`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    #[serde(default)]
    pub missed: MissedPolicy,
    /// `skip` if it is omitted; `queue` if all missed due times are caught up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<OverlapPolicy>,
}
