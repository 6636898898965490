//! Every call is answered in the next message, exactly once.

use super::Repair;
use crate::id::CallId;
use crate::message::{Block, CallOutcome, Message, Role, ToolResult};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const NO_RESULT: &str =
    "No result of this call was recorded. It may or may not have had an effect.";

/// A call that waits for its result while the history is read from the start.
struct Slot {
    /// The index of the message with the call.
    message: usize,
    new_id: CallId,
}

/// The results that belong after one message with calls.
#[derive(Default)]
struct Answers {
    /// Results that are already at the start of the next message, in order.
    in_place: Vec<ToolResult>,
    moved: Vec<ToolResult>,
}

pub(super) fn pair_calls_with_results(
    mut messages: Vec<Message>,
    repairs: &mut Vec<Repair>,
) -> Vec<Message> {
    let mut used = BTreeSet::new();
    let mut open: BTreeMap<CallId, VecDeque<Slot>> = BTreeMap::new();
    let mut answers: BTreeMap<usize, Answers> = BTreeMap::new();

    for (index, message) in messages.iter_mut().enumerate() {
        match message.role {
            Role::Assistant => open_slots(index, message, &mut used, &mut open, repairs),
            Role::User => take_results(index, message, &mut open, &mut answers, repairs),
        }
    }
    assemble(messages, answers, repairs)
}

/// Gives each call a unique id, and records that it waits for a result.
fn open_slots(
    index: usize,
    message: &mut Message,
    used: &mut BTreeSet<CallId>,
    open: &mut BTreeMap<CallId, VecDeque<Slot>>,
    repairs: &mut Vec<Repair>,
) {
    // From here on, a repeated id belongs to the newer call.
    for call in message.calls() {
        open.remove(&call.id);
    }
    for block in &mut message.blocks {
        let Block::ToolCall(call) = block else {
            continue;
        };
        let new_id = unique_call_id(&call.id, |id| used.contains(id));
        used.insert(new_id.clone());
        let old_id = std::mem::replace(&mut call.id, new_id.clone());
        if old_id != new_id {
            repairs.push(Repair::RenamedCall {
                from: old_id.clone(),
                to: new_id.clone(),
            });
        }
        open.entry(old_id).or_default().push_back(Slot {
            message: index,
            new_id,
        });
    }
}

/// Takes the results out of a message and assigns each to its call.
fn take_results(
    index: usize,
    message: &mut Message,
    open: &mut BTreeMap<CallId, VecDeque<Slot>>,
    answers: &mut BTreeMap<usize, Answers>,
    repairs: &mut Vec<Repair>,
) {
    let mut in_front = true;
    let mut rest = Vec::with_capacity(message.blocks.len());
    for block in std::mem::take(&mut message.blocks) {
        let Block::ToolResult(mut result) = block else {
            in_front = false;
            rest.push(block);
            continue;
        };
        match open.get_mut(&result.call).map(VecDeque::pop_front) {
            Some(Some(slot)) => {
                result.call = slot.new_id;
                let answers = answers.entry(slot.message).or_default();
                if in_front && slot.message + 1 == index {
                    answers.in_place.push(result);
                } else {
                    repairs.push(Repair::MovedResult {
                        call: result.call.clone(),
                    });
                    answers.moved.push(result);
                }
            }
            // The call is known and already has a result.
            Some(None) => {
                let mut words = Vec::new();
                for block in &result.blocks {
                    block.words(&mut words);
                }
                repairs.push(Repair::DroppedDuplicateResult {
                    call: result.call,
                    words,
                });
            }
            None => {
                in_front = false;
                repairs.push(Repair::QuotedOrphanResult {
                    call: result.call.clone(),
                });
                rest.push(Block::Notice {
                    text: format!(
                        "A result was recorded for the call `{}`, which is not in this \
                         conversation. It follows.",
                        result.call
                    ),
                });
                rest.extend(result.blocks);
            }
        }
    }
    message.blocks = rest;
}

/// Puts the results directly after their calls.
fn assemble(
    messages: Vec<Message>,
    mut answers: BTreeMap<usize, Answers>,
    repairs: &mut Vec<Repair>,
) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::with_capacity(messages.len());
    // Whether the results at the end of `out` may be followed, in the same message, by the blocks that shared their
    // message.
    let mut shared = false;
    for (index, message) in messages.into_iter().enumerate() {
        if message.role == Role::User && shared {
            shared = false;
            if let Some(results) = out.last_mut() {
                results.blocks.extend(message.blocks);
            }
            continue;
        }
        shared = false;
        let calls: Vec<CallId> = message.calls().map(|call| call.id.clone()).collect();
        let calls = match message.role {
            Role::Assistant => calls,
            Role::User => Vec::new(),
        };
        out.push(message);
        if calls.is_empty() {
            continue;
        }
        let Answers { in_place, moved } = answers.remove(&index).unwrap_or_default();
        shared = !in_place.is_empty();
        let mut results = in_place;
        results.extend(moved);
        for call in calls {
            if !results.iter().any(|result| result.call == call) {
                repairs.push(Repair::AnsweredCall { call: call.clone() });
                results.push(ToolResult {
                    call,
                    outcome: CallOutcome::Unknown,
                    blocks: vec![Block::text(NO_RESULT)],
                });
            }
        }
        out.push(Message::user(
            results.into_iter().map(Block::ToolResult).collect(),
        ));
    }
    out
}

/// Whether every provider accepts this as the id of a call.
pub fn valid_call_id(id: &str) -> bool {
    (1..=64).contains(&id.len())
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// `id` itself if it is valid and unused, otherwise the closest valid id.
pub fn unique_call_id(id: &CallId, taken: impl Fn(&CallId) -> bool) -> CallId {
    if valid_call_id(id.as_str()) && !taken(id) {
        return id.clone();
    }
    let clean = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => c,
        _ => '_',
    };
    let mut base: String = id.as_str().chars().take(48).map(clean).collect();
    if base.is_empty() {
        base.push_str("call");
    }
    let plain = CallId::new(base.clone());
    if !taken(&plain) {
        return plain;
    }
    let mut n: u64 = 2;
    loop {
        let candidate = CallId::new(format!("{base}-{n}"));
        if !taken(&candidate) {
            return candidate;
        }
        n += 1;
    }
}
