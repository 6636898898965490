//! Chooses what of a window a provider is shown. What is left out is left out by rule, and named.

use crate::event::MessageStatus;
use crate::message::{Block, CutBlock, Message, Signature, Wire};
use crate::window::{Entry, Window};

/// Something in the window that is not sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Omission {
    /// The provider did not sign it, so it would not take it back.
    UnsignedThinking { words: Vec<String> },
    /// Another provider's block or signed thinking.
    Foreign { wire: Wire, words: Vec<String> },
    /// It was still being written when the reply was cut off.
    CutOff { what: CutBlock, words: Vec<String> },
    /// A provider's own block in a reply that was cut off: its counterpart may be missing.
    CutNative { words: Vec<String> },
}

impl Omission {
    pub fn words(&self) -> &[String] {
        match self {
            Self::UnsignedThinking { words }
            | Self::Foreign { words, .. }
            | Self::CutOff { words, .. }
            | Self::CutNative { words } => words,
        }
    }
}

/// The window as messages for `wire`, in order, not yet checked by [`crate::repair`].
pub fn project(window: &Window, wire: Wire) -> (Vec<Message>, Vec<Omission>) {
    let mut messages: Vec<Message> = Vec::new();
    let mut omissions = Vec::new();
    let mut in_results = false;
    for item in window.items() {
        if let Entry::Result(result) = &item.entry {
            // All results of one reply stand in one message; everything else has its own, so that
            // nothing that comes later changes a message that was sent.
            let block = Block::ToolResult(result.clone());
            match messages.last_mut() {
                Some(message) if in_results => message.blocks.push(block),
                _ => messages.push(Message::user(vec![block])),
            }
            in_results = true;
            continue;
        }
        in_results = false;
        let message = match &item.entry {
            Entry::Prompt(blocks) => Message::user(blocks.clone()),
            Entry::Reply { status, blocks } => Message::assistant(
                blocks
                    .iter()
                    .filter_map(|block| sendable(block, *status, wire, &mut omissions))
                    .collect(),
            ),
            Entry::Notice(text) => Message::user(vec![Block::Notice { text: text.clone() }]),
            Entry::Summary(text) => Message::user(vec![Block::Notice {
                text: format!("Summary of the conversation up to here:\n{text}"),
            }]),
            Entry::Result(_) => continue,
        };
        if !message.blocks.is_empty() {
            messages.push(message);
        }
    }
    (messages, omissions)
}

/// Whether a provider takes its own thinking back in this form.
fn takes_back(wire: Wire, text: &str, signature: &Signature) -> bool {
    let signed = !signature.value.trim().is_empty();
    match wire {
        Wire::AnthropicMessages => signed,
        Wire::OpenaiResponses => signed && signature.id.as_ref().is_some_and(|id| !id.is_empty()),
        // An empty part is refused, signed or not.
        Wire::Gemini => signed && !text.trim().is_empty(),
        // The format has no place for it.
        Wire::OpenaiChat => false,
    }
}

/// The block as this provider may have it back.
fn sendable(
    block: &Block,
    status: MessageStatus,
    wire: Wire,
    omissions: &mut Vec<Omission>,
) -> Option<Block> {
    let mut words = Vec::new();
    block.words(&mut words);
    let omission = match block {
        Block::Thinking {
            signature: None, ..
        } => Omission::UnsignedThinking { words },
        Block::Thinking {
            signature: Some(signature),
            ..
        } if signature.wire != wire => Omission::Foreign {
            wire: signature.wire,
            words,
        },
        Block::Thinking {
            text,
            signature: Some(signature),
        } if !takes_back(wire, text, signature) => Omission::UnsignedThinking { words },
        Block::Native { wire: of, .. } if *of != wire => Omission::Foreign { wire: *of, words },
        Block::Native { .. } if status == MessageStatus::Interrupted => {
            Omission::CutNative { words }
        }
        Block::Cut { what, .. } => Omission::CutOff { what: *what, words },
        Block::ToolCall(call) => {
            let mut call = call.clone();
            call.signature.take_if(|signature| signature.wire != wire);
            return Some(Block::ToolCall(call));
        }
        _ => return Some(block.clone()),
    };
    omissions.push(omission);
    None
}
