//! Repairs between messages: the user is first and last, and the roles alternate.

use super::Repair;
use crate::message::{Block, Message, Role};

const OPENING: &str = "The conversation begins with a message of yours.";
const BRIDGE: &str = "You continued without a new message from the user.";
const CLOSING: &str = "Continue from here.";

fn notice(text: &str) -> Message {
    Message::user(vec![Block::Notice { text: text.into() }])
}

pub(super) fn drop_empty_messages(messages: &mut Vec<Message>, repairs: &mut Vec<Repair>) {
    messages.retain(|message| {
        let empty = message.blocks.is_empty();
        if empty {
            repairs.push(Repair::DroppedEmptyMessage);
        }
        !empty
    });
}

pub(super) fn open_with_user(messages: &mut Vec<Message>, repairs: &mut Vec<Repair>) {
    if messages.first().is_some_and(|m| m.role == Role::Assistant) {
        messages.insert(0, notice(OPENING));
        repairs.push(Repair::InsertedOpening);
    }
}

pub(super) fn bridge_replies(messages: Vec<Message>, repairs: &mut Vec<Repair>) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        let two_in_a_row = message.role == Role::Assistant
            && out.last().is_some_and(|m| m.role == Role::Assistant);
        if two_in_a_row {
            out.push(notice(BRIDGE));
            repairs.push(Repair::BridgedReplies);
        }
        out.push(message);
    }
    out
}

pub(super) fn close_with_user(messages: &mut Vec<Message>, repairs: &mut Vec<Repair>) {
    if messages.last().is_none_or(|m| m.role == Role::Assistant) {
        messages.push(notice(CLOSING));
        repairs.push(Repair::InsertedClosing);
    }
}
