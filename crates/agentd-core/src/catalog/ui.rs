//! The section of the user's file about the terminal.

use serde::{Deserialize, Serialize};

/// `[ui]`: how output looks. Only the command line reads it, and a project cannot set it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UiSettings {
    pub theme: Option<Theme>,
}

/// The colours of the output on a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Theme {
    /// The terminal's own colours, in a choice that is readable on most backgrounds.
    #[default]
    Auto,
    /// Bright colours, for a dark background.
    Dark,
    /// No yellow and no cyan, which are hard to read on a light background.
    Light,
    /// No colours and no emphasis.
    None,
}
