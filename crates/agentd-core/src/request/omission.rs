//! What is not sent.

use crate::attachment::Unfit;
use crate::message::{CutBlock, Wire};

/// A part of the window that is not sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Omission {
    /// The provider did not sign it and would not accept it back.
    UnsignedThinking { words: Vec<String> },
    /// Another provider's block or signed thinking.
    Foreign { wire: Wire, words: Vec<String> },
    /// It was still being written when the reply was cut off.
    CutOff { what: CutBlock, words: Vec<String> },
    /// Thinking that its provider accepts only after the messages that led to it, which have changed: by a
    /// compaction, or because another model is used.
    MovedThinking { words: Vec<String> },
    /// A provider's own block in a reply that was cut off. Its counterpart may be missing.
    CutNative { words: Vec<String> },
    /// The sources of an answer, without a text. Their provider does not accept them back.
    Sources { words: Vec<String> },
    /// A file that the model or its provider does not accept. A sentence with its name is sent instead.
    UnfitFile { name: Option<String>, why: Unfit },
}

impl Omission {
    pub fn words(&self) -> &[String] {
        match self {
            Self::UnsignedThinking { words }
            | Self::Foreign { words, .. }
            | Self::CutOff { words, .. }
            | Self::MovedThinking { words }
            | Self::CutNative { words }
            | Self::Sources { words } => words,
            Self::UnfitFile { .. } => &[],
        }
    }
}
