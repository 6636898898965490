//! Tests of repair: histories that other programs could not repair or send, by public report, and each repair by
//! itself.

mod each;
mod holes;
mod poisoned;

use super::{Repair, repair};
use crate::fixture::{call, result};
use crate::message::{Block, Message, Role};
use std::collections::BTreeSet;

fn user(blocks: Vec<Block>) -> Message {
    Message::user(blocks)
}

fn says(text: &str) -> Message {
    Message::user(vec![Block::text(text)])
}

fn answers(text: &str) -> Message {
    Message::assistant(vec![Block::text(text)])
}

fn calls<const N: usize>(ids: [&str; N]) -> Message {
    Message::assistant(ids.map(call).to_vec())
}

fn results<const N: usize>(ids: [&str; N]) -> Message {
    let result = |id: &str| result(id, &format!("result of {id}"));
    Message::user(ids.map(result).to_vec())
}

/// Repairs a history, checks the invariants of every repaired history, and returns the messages and the names of the
/// repairs.
#[track_caller]
fn repaired(messages: Vec<Message>) -> (Vec<Message>, Vec<&'static str>) {
    let (messages, repairs) = repair(messages);
    let (again, more) = repair(messages.clone());
    assert_eq!(again, messages, "a second pass changes more");
    assert_eq!(more, [], "a second pass finds more");
    check(&messages);
    (messages, repairs.iter().map(Repair::name).collect())
}

/// The user is first and last; every call is answered in the next message, once; no result is an orphan.
#[track_caller]
fn check(messages: &[Message]) {
    assert_eq!(messages.first().map(|m| m.role), Some(Role::User));
    assert_eq!(messages.last().map(|m| m.role), Some(Role::User));
    let mut seen = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        assert!(!message.blocks.is_empty(), "an empty message");
        let called: Vec<_> = message.calls().map(|call| call.id.clone()).collect();
        for id in &called {
            assert!(seen.insert(id.clone()), "{id} is used twice");
        }
        let next = messages.get(index + 1).map(|m| m.blocks.as_slice());
        let answered: Vec<_> = next
            .unwrap_or_default()
            .iter()
            .filter_map(Block::as_result)
            .map(|result| result.call.clone())
            .collect();
        let (mut want, mut have) = (called, answered);
        want.sort();
        have.sort();
        assert_eq!(want, have, "behind message {index}");
    }
}

fn text_of(messages: &[Message]) -> String {
    let mut words = Vec::new();
    for block in messages.iter().flat_map(|m| &m.blocks) {
        block.words(&mut words);
    }
    words.join("\n")
}
