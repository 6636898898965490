//! `notify` of an agent file: what the user is notified of, and through which of the user's own destinations.

use super::path::Path;
use super::problem::Problem;
use serde::{Deserialize, Serialize};

/// It never contains an address: these are in the user's config.toml, so no agent file can send anything elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Notify {
    /// Which topics. Default: `on` of `[notify]` in config.toml.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<Topic>>,
    /// `desktop`, and names of webhooks in config.toml. Default: `to` of `[notify]` in config.toml.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Vec<String>>,
}

impl Notify {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What a user can be notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// A turn was completed.
    Completed,
    /// A turn failed, or the agent's process cannot be kept running.
    Failed,
    /// A turn reached a limit.
    Limited,
    /// A turn was given up after several crashes.
    Lost,
    /// A turn was interrupted. The user usually did it, so this is told only by choice.
    Interrupted,
    /// A tool call waits for approval, or a turn waits for the user.
    Approval,
    /// 80 % of a budget is used.
    Budget,
    /// The daemon ended unexpectedly, or an agent's journal was damaged.
    Trouble,
}

impl Topic {
    pub const ALL: [Self; 8] = [
        Self::Completed,
        Self::Failed,
        Self::Limited,
        Self::Lost,
        Self::Interrupted,
        Self::Approval,
        Self::Budget,
        Self::Trouble,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Limited => "limited",
            Self::Lost => "lost",
            Self::Interrupted => "interrupted",
            Self::Approval => "approval",
            Self::Budget => "budget",
            Self::Trouble => "trouble",
        }
    }
}

/// Whether it can be the name of a destination.
pub(crate) fn is_destination(name: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.len() <= 64 && name.bytes().all(is_valid)
}

pub(super) fn check(notify: &Notify) -> Result<(), Problem> {
    let named = notify.to.iter().flatten();
    for (n, name) in named.enumerate() {
        if !is_destination(name) {
            let reason = "expected `desktop` or the name of a webhook in config.toml; an agent file contains no address";
            return Err(Problem::new(Path::key("notify").then("to").at(n), reason));
        }
    }
    Ok(())
}
