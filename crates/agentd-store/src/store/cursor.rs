//! Cursors: positions that a store hands out and accepts again. Only the store knows what their text means.

use serde::{Deserialize, Serialize};

/// A position in the order of all commits.
///
/// Only the store knows what the text means. It is valid for as long as the store exists, across restarts and repairs.
/// Callers may only keep it, send it and compare it for equality. The default is the position before the first event,
/// in every store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(String);

/// Where a page of the list of agents ends, in the order of the query. Only the store knows what the text means.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentCursor(String);

macro_rules! token {
    ($name:ident) => {
        impl $name {
            /// A text that came from outside. The store checks it when it is used.
            pub fn from_text(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(&self.0)
            }
        }
    };
}

token!(Cursor);
token!(AgentCursor);
