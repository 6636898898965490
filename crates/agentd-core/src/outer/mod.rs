//! Outer agents: programs of others that run a turn by themselves, as the child of an agent's process. What they say is
//! mapped to what a model and tools would say, so that the turn machine and the journal are the same for all agents.
//!
//! - [`Wanted`]: what the child gets next.
//! - [`ChildEvent`]: one thing that the child says, whatever its protocol is.
//! - [`acp`]: the Agent Client Protocol.
//! - [`Lines`]: the protocol of commands: text, or JSON lines.

pub mod acp;
mod bounds;
mod cut;
mod history;
mod lines;
mod memory;
mod rules;

#[cfg(test)]
mod tests;

pub use bounds::{LONGEST_ID, NOT_RECORDED, bounded, has_too_many_values, json_bytes, size};
pub use history::{replies, so_far};
pub use lines::Lines;
pub use memory::ProgramMemory;
pub use rules::{only_command, ruled};

use lines::micro_usd;

use crate::event::LimitKind;
use crate::id::TurnId;
use crate::message::{Block, CallOutcome};
use crate::question::Question;
use crate::usage::{MicroUsd, Usage};
use crate::window::{Entry, Item, Window};
use serde_json::{Map, Value};

/// The only tool name of calls whose program gives none.
pub const UNNAMED: &str = "call";

/// What the child gets next.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// New prompts.
    Deliver(Delivery),
    /// Nothing: it is in the middle of its turn, and what it says next is wanted.
    Listen,
}

/// What a child is given at the beginning of its turn. It is given once: a delivery that may have arrived is never
/// repeated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delivery {
    /// Identifies the delivery. A program that repeats it with what it says cannot answer another one.
    pub id: String,
    /// What agentd has to say first: what a crash cut off, what hooks add.
    pub notices: Vec<String>,
    /// The turn before was interrupted or cut off. What the child keeps of it may be incomplete.
    pub is_after_cut: bool,
    /// The user's prompts, in order.
    pub prompts: Vec<Vec<Block>>,
    /// The conversation before this turn, for a child that does not know it: bounded, the newest last.
    pub so_far: Option<String>,
    /// The texts of its earlier replies, for a child that may repeat them: bounded, the newest last.
    pub replies: Vec<String>,
}

/// One thing that a child says.
#[derive(Clone, Debug, PartialEq)]
pub enum ChildEvent {
    Text(String),
    Thinking(String),
    /// A call of a tool of its own. It runs the call itself.
    Call {
        /// The child's own id.
        id: String,
        name: String,
        arguments: Map<String, Value>,
        /// It says that the call has not begun: what it says of the call may be incomplete.
        is_pending: bool,
    },
    /// More is known of a call that it has reported.
    CallChanged {
        id: String,
        name: String,
        arguments: Map<String, Value>,
    },
    /// The call has begun. Some programs ask only now whether it may run.
    CallBegan {
        id: String,
    },
    CallEnded {
        id: String,
        outcome: CallOutcome,
        blocks: Vec<Block>,
    },
    /// It asks whether the call may run, and waits for the answer.
    Asks {
        /// The call. The child may not have reported it before.
        id: String,
        name: String,
        arguments: Map<String, Value>,
        /// The child's own id of the question.
        question: String,
    },
    /// It wants to know something from the user, and waits for the answer.
    Elicits {
        /// The call that records it, which agentd has named.
        id: String,
        question: Question,
    },
    Spent {
        usage: Usage,
        cost: Option<MicroUsd>,
    },
    /// Its turn has ended.
    Over(Over),
}

/// How a child's turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    Answered,
    /// It ended because it was told to.
    Interrupted,
    /// A limit of its own ended it.
    Limited(LimitKind),
    /// It says that the turn failed, or it has ended: the text is for users.
    Failed(String),
}

/// What the child gets next in this turn. Pure: the same window gives the same answer.
pub fn wanted(window: &Window, turn: TurnId) -> Wanted {
    let items = window.items();
    let first = items.iter().position(|item| item.turn == Some(turn));
    let (before, now) = items.split_at(first.unwrap_or(items.len()));
    let is_reply = |item: &Item| matches!(item.entry, Entry::Reply { .. });
    let unanswered = match now.iter().rposition(is_reply) {
        Some(last) => &now[last + 1..],
        None => now,
    };
    let prompts: Vec<Vec<Block>> = unanswered.iter().filter_map(prompt).collect();
    let ran_a_call = |item: &Item| matches!(item.entry, Entry::Result(_));
    if prompts.is_empty() && unanswered.iter().any(ran_a_call) {
        return Wanted::Listen;
    }
    let is_first = unanswered.len() == now.len();
    let told_before = match is_first {
        true => before,
        false => &[],
    };
    // Hooks, and commands such as `files restore`, may have added notices since the turn before ended.
    let since = told_before.iter().rev().take_while(|item| is_notice(item));
    let (ended, since) = told_before.split_at(told_before.len() - since.count());
    let turn_before = ended.last().and_then(|item| item.turn);
    let ended_with_notice =
        turn_before.is_some() && since.iter().any(|item| item.turn == turn_before);
    let unknown = match ended_with_notice {
        true => None,
        false => cut::unknown_calls(ended),
    };
    let is_after_cut = ended_with_notice || unknown.is_some();
    let mut notices: Vec<String> = unknown.into_iter().collect();
    notices.extend(since.iter().filter_map(notice));
    let said: Vec<String> = unanswered.iter().filter_map(notice).collect();
    let prompts = match (prompts.is_empty(), said.is_empty()) {
        // A hook asks it to continue, or the user continues a turn that a limit ended.
        (true, false) => vec![vec![Block::text(said.join("\n\n"))]],
        (true, true) => vec![vec![Block::text("Continue.")]],
        (false, _) => {
            notices.extend(said);
            prompts
        }
    };
    Wanted::Deliver(Delivery {
        // A turn can have several deliveries: hooks may ask the child to go on.
        id: format!("{turn}-{}", now.len() - unanswered.len()),
        notices,
        is_after_cut,
        prompts,
        so_far: is_first.then(|| so_far(before)).flatten(),
        replies: match is_first {
            true => replies(before),
            false => replies(items),
        },
    })
}

fn is_notice(item: &Item) -> bool {
    matches!(item.entry, Entry::Notice(_))
}

fn notice(item: &Item) -> Option<String> {
    match &item.entry {
        Entry::Notice(text) => Some(text.clone()),
        _ => None,
    }
}

fn prompt(item: &Item) -> Option<Vec<Block>> {
    match &item.entry {
        Entry::Prompt(blocks) => Some(blocks.clone()),
        _ => None,
    }
}
