//! How much a model thinks before it answers.

use serde::{Deserialize, Serialize};

/// How much a model thinks before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    Off,
    Low,
    Medium,
    High,
}
