//! How far a server is with a call, as it reports it.

use crate::id::CallId;
use serde::{Deserialize, Serialize};

/// A report of progress. It is shown to clients that watch, and is not kept: all of it is the server's word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallProgress {
    pub call: CallId,
    pub progress: f64,
    /// What `progress` is when the call is done, if the server knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl CallProgress {
    /// In one line, for users: `3/5, reading`.
    pub fn text(&self) -> String {
        let how_far = match self.total {
            Some(total) => format!("{}/{total}", self.progress),
            None => self.progress.to_string(),
        };
        match &self.message {
            Some(message) => format!("{how_far}, {message}"),
            None => how_far,
        }
    }
}
