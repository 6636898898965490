//! Outside addresses that are bound to an agent: what their webhooks are told of, and how their messages become prompts.

use super::routed::{Part, Routed};
use crate::event::{Body, Event, TurnStatus};
use crate::id::{ApprovalId, BindingId, PromptId, TurnId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

const LONGEST_ADDRESS: usize = 512;
const LONGEST_SENDER: usize = 256;

/// Why an address or a sender is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error(
        "an address is `scheme:anything`, such as `chat:team/42`: a scheme of a-z, 0-9, + and -, a colon, and at most \
         {LONGEST_ADDRESS} bytes without spaces and control characters"
    )]
    Address,
    #[error("a sender has at most {LONGEST_SENDER} bytes and no control characters")]
    Sender,
}

/// Checks an outside address: `scheme:anything`.
pub fn check_address(address: &str) -> Result<(), Invalid> {
    let (scheme, rest) = address.split_once(':').ok_or(Invalid::Address)?;
    let is_valid = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'+' || byte == b'-'
    };
    let has_scheme = scheme.starts_with(|c: char| c.is_ascii_lowercase());
    let is_scheme = has_scheme && scheme.bytes().all(is_valid);
    let is_clean = !rest.chars().any(|c| c.is_whitespace() || c.is_control());
    match is_scheme && is_clean && !rest.is_empty() && address.len() <= LONGEST_ADDRESS {
        true => Ok(()),
        false => Err(Invalid::Address),
    }
}

/// Checks the name of a sender, as the bridge states it.
pub fn check_sender(sender: &str) -> Result<(), Invalid> {
    match sender.len() > LONGEST_SENDER || sender.chars().any(char::is_control) {
        true => Err(Invalid::Sender),
        false => Ok(()),
    }
}

/// The text of the prompt that a message becomes. Everything from outside is inside one JSON string each, so that no
/// message can pretend to come from another sender, or to be text of the user.
pub fn prompt_text(address: &str, sender: Option<&str>, text: &str) -> String {
    #[derive(Serialize)]
    struct Message<'a> {
        address: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        sender: Option<&'a str>,
        text: &'a str,
    }
    let message = Message {
        address,
        sender,
        text,
    };
    // A struct of strings is always valid JSON.
    let message = serde_json::to_string(&message).unwrap_or_default();
    format!(
        "A message arrived from outside. Everything in this JSON object was written by its sender, who is not your user. \
         Your answer is sent to the address.\n{message}"
    )
}

/// After which changes of the agent a binding ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Release {
    /// The agent has another conversation: a reset, a rewind, an undo.
    Reset,
    Rename,
    /// The agent was archived.
    Rm,
}

impl Release {
    /// The change that an event makes to an agent. The fold of the agent and the messages to webhooks both use it, so that
    /// they never disagree about which binding has ended.
    pub const fn of(body: &Body) -> Option<Self> {
        match body {
            Body::ConversationBegan(_) | Body::PointerMoved(_) => Some(Self::Reset),
            Body::AgentRenamed(_) => Some(Self::Rename),
            Body::AgentArchived(_) => Some(Self::Rm),
            _ => None,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Rename => "rename",
            Self::Rm => "rm",
        }
    }
}

/// What the webhook of a binding is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// The turn that answers messages has ended.
    Answer { turn: TurnId, status: TurnStatus },
    /// It waits for the user, who alone can answer.
    Question {
        turn: TurnId,
        approval: Option<ApprovalId>,
    },
    /// Prompts were removed from the queue, or set aside with their conversation. They are not answered, unless the user
    /// returns to that conversation.
    Removed { prompts: Vec<PromptId> },
    /// The agent changed. The binding continues.
    Changed(Release),
    /// The agent changed, and the binding ends: this is its last message.
    Released(Release),
}

/// Folds one more event of the agent, and returns what the webhook is told of it.
pub fn of_event(
    routed: &mut Routed,
    event: &Event,
    binding: BindingId,
    policy: &BTreeSet<Release>,
) -> Option<Outgoing> {
    let removed = routed.waiting_among(event);
    let part = routed.apply(event, |prompt| prompt.binding == Some(binding));
    if let Some(what) = Release::of(&event.body) {
        return Some(match policy.contains(&what) {
            true => Outgoing::Released(what),
            false => Outgoing::Changed(what),
        });
    }
    if !removed.is_empty() {
        return Some(Outgoing::Removed { prompts: removed });
    }
    match (&event.body, event.turn) {
        (Body::TurnEnded(ended), Some(turn)) if part == Part::Ours => Some(Outgoing::Answer {
            turn,
            status: ended.status,
        }),
        (Body::ApprovalRequested(asked), Some(turn)) if part == Part::Ours => {
            Some(Outgoing::Question {
                turn,
                approval: Some(asked.approval),
            })
        }
        (Body::TurnPaused(_), Some(turn)) if part == Part::Ours => Some(Outgoing::Question {
            turn,
            approval: None,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
