//! Outside addresses that are bound to an agent: what their webhooks are told of, and how their messages become prompts.

use super::routed::{Part, Routed};
use crate::event::{Body, Event, TurnStatus};
use crate::id::{AgentId, ApprovalId, BindingId, PromptId, Seq, TurnId};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
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
    format!("{INTRODUCTION}{message}")
}

/// The text before a message.
const INTRODUCTION: &str = "A message arrived from outside. Everything in this JSON object was written by its sender, who \
     is not your user. Your answer is sent to the address.\n";

/// What a list shows of a prompt: the text of the message, if it was one, and the prompt's own text otherwise.
pub fn shown_text(prompt: &str) -> Cow<'_, str> {
    #[derive(Deserialize)]
    struct Message {
        text: String,
    }
    let message = prompt.strip_prefix(INTRODUCTION);
    let message = message.and_then(|json| serde_json::from_str::<Message>(json).ok());
    message.map_or(Cow::Borrowed(prompt), |message| Cow::Owned(message.text))
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
    /// The turn that answers these messages has ended.
    Answer {
        turn: TurnId,
        status: TurnStatus,
        prompts: Vec<PromptId>,
    },
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
}

/// A binding, as its messages need it.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    pub binding: BindingId,
    pub release_on: &'a BTreeSet<Release>,
    /// The agent's last event when the user removed the binding.
    pub unbound: Option<Seq>,
}

/// The change of the agent that ended a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Released {
    pub what: Release,
    pub seq: Seq,
    pub at: Timestamp,
}

/// How far a binding is from its end. A fold over structural events, which is stored with the position of its webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lifetime {
    /// The address accepts no message from this change on. Messages that were accepted before it are still answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub released: Option<Released>,
    /// The agent is archived: what waits in its queue is not answered.
    #[serde(skip_serializing_if = "is_false")]
    archived: bool,
}

/// For serde, which passes a reference.
const fn is_false(it: &bool) -> bool {
    !*it
}

impl Lifetime {
    fn apply(&mut self, event: &Event, terms: &Terms<'_>) {
        match &event.body {
            Body::AgentArchived(_) => self.archived = true,
            Body::AgentRestored(_) => self.archived = false,
            _ => {}
        }
        if let Some(what) = Release::of(&event.body)
            && terms.release_on.contains(&what)
            && !self.has_ended(event.seq, terms)
        {
            self.released = Some(Released {
                what,
                seq: event.seq,
                at: event.at,
            });
        }
    }

    /// Whether the address accepted no message any more when this event happened.
    fn has_ended(&self, seq: Seq, terms: &Terms<'_>) -> bool {
        let is_unbound = terms.unbound.is_some_and(|last| seq > last);
        self.released.is_some() || is_unbound
    }

    /// Whether each message that was accepted before the end has its answer, or will never have one.
    pub fn is_over(&self, routed: &Routed, agent: AgentId) -> bool {
        self.archived || !routed.is_open(agent)
    }
}

/// Folds one more event of the agent, and returns what the webhook is told of it.
pub fn of_event(
    (routed, lifetime): (&mut Routed, &mut Lifetime),
    event: &Event,
    terms: &Terms<'_>,
) -> Option<Outgoing> {
    let removed = routed.waiting_among(event);
    let prompts = routed.answered(event.agent);
    let part = routed.apply(event, |prompt| prompt.binding == Some(terms.binding));
    lifetime.apply(event, terms);
    if let Some(what) = Release::of(&event.body) {
        let is_over = lifetime.has_ended(event.seq, terms);
        return (!is_over).then_some(Outgoing::Changed(what));
    }
    if !removed.is_empty() {
        return Some(Outgoing::Removed { prompts: removed });
    }
    match (&event.body, event.turn) {
        (Body::TurnEnded(ended), Some(turn)) if part == Part::Ours => Some(Outgoing::Answer {
            turn,
            status: ended.status,
            prompts,
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
