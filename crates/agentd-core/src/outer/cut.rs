//! What a child is told about a turn that another process of it could not finish.

use crate::event::MessageStatus;
use crate::message::{Arguments, Block, CallOutcome, ToolCall};
use crate::window::{Entry, Item};
use serde_json::Value;

/// How many calls are named.
const MOST: usize = 20;
/// How much of a call's text is shown.
const LONGEST: usize = 200;

/// A whole reply: the turn ends with it if the program was not cut off.
fn is_answer(item: &Item) -> bool {
    match &item.entry {
        Entry::Reply { status, blocks } => {
            *status == MessageStatus::Complete && !blocks.iter().any(|it| it.as_call().is_some())
        }
        _ => false,
    }
}

/// A notice that names the calls of the turn before whose outcome is unknown; `None` if there are none. `before` ends with
/// that turn.
pub fn unknown_calls(before: &[Item]) -> Option<String> {
    let turn = before.last()?.turn;
    let first = before.iter().rposition(|item| item.turn != turn);
    let items = &before[first.map_or(0, |first| first + 1)..];
    if items.last().is_some_and(is_answer) {
        // The program has ended its turn itself, and knows what became of its calls.
        return None;
    }
    let is_unknown = |call: &&ToolCall| {
        items.iter().any(|item| match &item.entry {
            Entry::Result(result) => {
                result.outcome == CallOutcome::Unknown && result.call == call.id
            }
            _ => false,
        })
    };
    let blocks = items.iter().flat_map(|item| match &item.entry {
        Entry::Reply { blocks, .. } => blocks.as_slice(),
        _ => &[],
    });
    let calls = blocks.filter_map(Block::as_call).filter(is_unknown);
    let named: Vec<String> = calls.take(MOST).map(named).collect();
    let named = named.join(", ");
    (!named.is_empty()).then(|| {
        format!(
            "The agent's program ended in the middle of the turn before. Whether these calls had an effect is unknown; \
             check before you repeat one: {named}."
        )
    })
}

/// The name of a call, with its command line or its title.
fn named(call: &ToolCall) -> String {
    let Arguments::Object(arguments) = &call.arguments else {
        return call.name.clone();
    };
    let known = ["command", "title"].map(|name| arguments.get(name).and_then(Value::as_str));
    match known.into_iter().flatten().next() {
        Some(text) => {
            let shown = &text[..text.floor_char_boundary(LONGEST)];
            format!("{} `{shown}`", call.name)
        }
        None => call.name.clone(),
    }
}
