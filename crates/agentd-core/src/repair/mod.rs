//! Makes any history one that every provider accepts, without dropping a word in silence.
//!
//! Pure, total and idempotent; never written to the journal. An ordered list of small repairs, each
//! with a name, so that what was done can be counted, shown and tested. For a history that our own
//! machine wrote and [`crate::recover`] closed there is nothing to do.

mod blocks;
mod ends;
mod pairs;

pub use pairs::{unique_call_id, valid_call_id};

use crate::id::CallId;
use crate::message::Message;

/// One thing that was changed. `words` are those that are no longer in the request.
#[derive(Clone, Debug, PartialEq)]
pub enum Repair {
    /// A block where no provider takes it (a call in a prompt, an image in a reply, …).
    DroppedUnsendable {
        what: &'static str,
        words: Vec<String>,
    },
    /// Text with nothing in it.
    DroppedBlank,
    /// Thinking that nothing follows.
    DroppedTrailingThinking { words: Vec<String> },
    /// A result with nothing in it says so.
    FilledEmptyResult { call: CallId },
    /// A tool's name that no provider takes.
    CleanedToolName { from: String, to: String },
    /// A call id that was used before, or that some provider refuses; its result follows suit.
    RenamedCall { from: CallId, to: CallId },
    /// A result that did not stand right behind its call.
    MovedResult { call: CallId },
    /// A call without a result.
    AnsweredCall { call: CallId },
    /// A second result of the same call.
    DroppedDuplicateResult { call: CallId, words: Vec<String> },
    /// A result without a call: its words stay, as a notice.
    QuotedOrphanResult { call: CallId },
    /// A message that other repairs left empty.
    DroppedEmptyMessage,
    /// The first word was not the user's.
    InsertedOpening,
    /// Two replies in a row.
    BridgedReplies,
    /// The last word was the model's, and something awaits an answer.
    InsertedClosing,
}

impl Repair {
    pub const NAMES: [&'static str; 14] = [
        "dropped_unsendable",
        "dropped_blank",
        "dropped_trailing_thinking",
        "filled_empty_result",
        "cleaned_tool_name",
        "renamed_call",
        "moved_result",
        "answered_call",
        "dropped_duplicate_result",
        "quoted_orphan_result",
        "dropped_empty_message",
        "inserted_opening",
        "bridged_replies",
        "inserted_closing",
    ];

    pub const fn name(&self) -> &'static str {
        match self {
            Self::DroppedUnsendable { .. } => "dropped_unsendable",
            Self::DroppedBlank => "dropped_blank",
            Self::DroppedTrailingThinking { .. } => "dropped_trailing_thinking",
            Self::FilledEmptyResult { .. } => "filled_empty_result",
            Self::CleanedToolName { .. } => "cleaned_tool_name",
            Self::RenamedCall { .. } => "renamed_call",
            Self::MovedResult { .. } => "moved_result",
            Self::AnsweredCall { .. } => "answered_call",
            Self::DroppedDuplicateResult { .. } => "dropped_duplicate_result",
            Self::QuotedOrphanResult { .. } => "quoted_orphan_result",
            Self::DroppedEmptyMessage => "dropped_empty_message",
            Self::InsertedOpening => "inserted_opening",
            Self::BridgedReplies => "bridged_replies",
            Self::InsertedClosing => "inserted_closing",
        }
    }

    /// The words that this repair took out of the request.
    pub fn words(&self) -> &[String] {
        match self {
            Self::DroppedUnsendable { words, .. }
            | Self::DroppedTrailingThinking { words }
            | Self::DroppedDuplicateResult { words, .. } => words,
            _ => &[],
        }
    }
}

/// The repaired messages, and what was done to them, in order.
pub fn repair(mut messages: Vec<Message>) -> (Vec<Message>, Vec<Repair>) {
    let mut repairs = Vec::new();
    blocks::drop_unsendable(&mut messages, &mut repairs);
    blocks::drop_blank(&mut messages, &mut repairs);
    blocks::fill_empty_results(&mut messages, &mut repairs);
    blocks::clean_tool_names(&mut messages, &mut repairs);
    blocks::drop_trailing_thinking(&mut messages, &mut repairs);
    messages = pairs::pair_calls_with_results(messages, &mut repairs);
    ends::drop_empty_messages(&mut messages, &mut repairs);
    ends::open_with_user(&mut messages, &mut repairs);
    messages = ends::bridge_replies(messages, &mut repairs);
    ends::close_with_user(&mut messages, &mut repairs);
    (messages, repairs)
}

#[cfg(test)]
mod tests;
