//! Turns any history into one that every provider accepts, and accounts for all text that it removes.
//!
//! Pure, total and idempotent; never written to the journal. It is an ordered list of small repairs, each with a
//! name, so that they can be counted, displayed and tested. For a history that our own machine wrote and
//! [`crate::recover`] closed, it changes nothing.

mod blocks;
mod ends;
mod pairs;

pub use pairs::{unique_call_id, valid_call_id};

use crate::id::CallId;
use crate::message::Message;

/// One change. `words` is the text that is no longer in the request.
#[derive(Clone, Debug, PartialEq)]
pub enum Repair {
    /// A block in a position where no provider accepts it (a call in a prompt, an image in a reply, …).
    DroppedUnsendable {
        what: &'static str,
        words: Vec<String>,
    },
    /// Empty text.
    DroppedBlank,
    /// Thinking at the end of a reply.
    DroppedTrailingThinking { words: Vec<String> },
    /// An empty result was filled with a note that it is empty.
    FilledEmptyResult { call: CallId },
    /// A tool name that no provider accepts.
    CleanedToolName { from: String, to: String },
    /// A call id that was used before, or that some provider refuses. Its result is renamed too.
    RenamedCall { from: CallId, to: CallId },
    /// A result that was not directly after its call.
    MovedResult { call: CallId },
    /// A call without a result.
    AnsweredCall { call: CallId },
    /// A second result of the same call.
    DroppedDuplicateResult { call: CallId, words: Vec<String> },
    /// A result without a call. Its text stays, as a notice.
    QuotedOrphanResult { call: CallId },
    /// A message that other repairs left empty.
    DroppedEmptyMessage,
    /// The first message was not the user's.
    InsertedOpening,
    /// Two replies in a row.
    BridgedReplies,
    /// The last message was the model's, and an answer is expected.
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

    /// The text that this repair removed from the request.
    pub fn words(&self) -> &[String] {
        match self {
            Self::DroppedUnsendable { words, .. }
            | Self::DroppedTrailingThinking { words }
            | Self::DroppedDuplicateResult { words, .. } => words,
            _ => &[],
        }
    }
}

/// The repaired messages, and the repairs in order.
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
