//! How much a model writes in its answers.

use serde::{Deserialize, Serialize};

/// How much a model writes in its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verbosity {
    Low,
    Medium,
    High,
}

impl Verbosity {
    /// The preference as a request to the model, for models that have no parameter for it.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Low => {
                "Keep your answers short: say what is needed, without repetition or preamble."
            }
            Self::Medium => "Answer at a moderate length: as much detail as the question needs.",
            Self::High => {
                "Answer in detail: explain your reasoning, the alternatives and the consequences."
            }
        }
    }
}
