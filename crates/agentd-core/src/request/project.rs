//! Selects what part of a window a provider is sent. Each omission follows a rule and is reported.

use super::files::Files;
use super::omission::Omission;
use crate::event::{Context, MessageStatus};
use crate::id::CallId;
use crate::message::{Block, Message, Signature, ToolResult, Wire};
use crate::window::{Entry, Window};

/// The window as messages for the model of this context, in order, before [`crate::repair`].
///
/// Items that arrived while calls were open come after the results of the calls. All results of one reply are one
/// message and everything else is a separate message, so that later items never change a message that was already
/// sent.
pub fn project(window: &Window, context: &Context) -> (Vec<Message>, Vec<Omission>) {
    let mut projection = Projection::default();
    let mut files = Files::new(context);
    for item in window.items() {
        match &item.entry {
            Entry::Prompt(blocks) => {
                let blocks = files.shown(blocks, &mut projection.omissions);
                projection.user(blocks);
            }
            Entry::Reply { status, blocks } => {
                let reply = ReplyStatus {
                    status: *status,
                    is_moved: item.is_moved,
                };
                projection.reply(blocks, reply, context.wire);
            }
            Entry::Result(result) => {
                let blocks = files.shown(&result.blocks, &mut projection.omissions);
                projection.result(result, blocks);
            }
            Entry::Notice(text) => projection.user(vec![Block::Notice { text: text.clone() }]),
            Entry::Summary(text) => projection.user(vec![Block::Notice {
                text: format!("Summary of the conversation up to here:\n{text}"),
            }]),
        }
    }
    projection.flush();
    (projection.messages, projection.omissions)
}

/// The circumstances of a reply.
#[derive(Clone, Copy)]
struct ReplyStatus {
    status: MessageStatus,
    /// The messages before it have changed since.
    is_moved: bool,
}

impl ReplyStatus {
    fn is_cut(self) -> bool {
        self.status == MessageStatus::Interrupted
    }
}

#[derive(Default)]
struct Projection {
    messages: Vec<Message>,
    omissions: Vec<Omission>,
    /// Calls of the newest reply that have no result yet.
    open: Vec<CallId>,
    results: Vec<Block>,
    /// Messages that arrived while calls were open.
    held_back: Vec<Message>,
}

impl Projection {
    fn user(&mut self, blocks: Vec<Block>) {
        let message = Message::user(blocks);
        if self.open.is_empty() {
            self.flush();
            self.push(message);
        } else {
            self.held_back.push(message);
        }
    }

    fn reply(&mut self, blocks: &[Block], said: ReplyStatus, wire: Wire) {
        self.flush();
        let omissions = &mut self.omissions;
        let answered = answered_at_provider(blocks);
        let sent = blocks.iter().filter_map(|block| {
            if is_unanswered_at_provider(block, &answered) {
                let mut words = Vec::new();
                block.words(&mut words);
                omissions.push(Omission::CutNative { words });
                return None;
            }
            sendable(block, said, wire, omissions)
        });
        // Nothing may be between a call and its result.
        let (calls, mut sent): (Vec<Block>, Vec<Block>) =
            sent.partition(|block| block.as_call().is_some());
        let ids = calls.iter().filter_map(Block::as_call);
        self.open = ids.map(|call| call.id.clone()).collect();
        sent.extend(calls);
        self.push(Message::assistant(sent));
    }

    fn result(&mut self, result: &ToolResult, blocks: Vec<Block>) {
        let (call, outcome) = (result.call.clone(), result.outcome);
        let shown = ToolResult {
            call,
            outcome,
            blocks,
        };
        self.results.push(Block::ToolResult(shown));
        if let Some(index) = self.open.iter().position(|id| *id == result.call) {
            self.open.remove(index);
        }
    }

    fn flush(&mut self) {
        self.open.clear();
        let results = std::mem::take(&mut self.results);
        self.push(Message::user(results));
        for message in std::mem::take(&mut self.held_back) {
            self.push(message);
        }
    }

    fn push(&mut self, message: Message) {
        if !message.blocks.is_empty() {
            self.messages.push(message);
        }
    }
}

/// The calls of server tools that have their result in the same reply.
fn answered_at_provider(blocks: &[Block]) -> Vec<&str> {
    let results = blocks.iter().filter_map(|block| match block {
        Block::Native { item, .. } => item.get("tool_use_id")?.as_str(),
        _ => None,
    });
    results.collect()
}

/// A call of a server tool without its result, which its provider does not accept back. A reply that was paused may end
/// with one.
fn is_unanswered_at_provider(block: &Block, answered: &[&str]) -> bool {
    let Block::Native { item, .. } = block else {
        return false;
    };
    let id = item.get("id").and_then(serde_json::Value::as_str);
    let is_call = item
        .get("type")
        .is_some_and(|kind| kind == "server_tool_use");
    is_call && id.is_some_and(|id| !answered.contains(&id))
}

/// Whether a provider accepts its own thinking back in this form.
fn takes_back(wire: Wire, text: &str, signature: &Signature) -> bool {
    let signed = !signature.value.trim().is_empty();
    match wire {
        Wire::AnthropicMessages => signed,
        Wire::OpenaiResponses => signed && signature.id.as_ref().is_some_and(|id| !id.is_empty()),
        // An empty part is refused, signed or not.
        Wire::Gemini => signed && !text.trim().is_empty(),
        // The format has no field for it.
        Wire::OpenaiChat => false,
    }
}

/// Whether a provider accepts thinking only in its original position. Claude does from 5.5 on; earlier models ignore
/// the thinking of earlier turns.
const fn binds_thinking(wire: Wire) -> bool {
    matches!(wire, Wire::AnthropicMessages)
}

/// Whether a block of Gemini has only the sources of an answer. A message of nothing else would be empty.
fn is_sources(item: &serde_json::Value) -> bool {
    let part = item.as_object();
    part.is_some_and(|part| part.len() == 1 && part.contains_key("groundingMetadata"))
}

/// The block in the form that this provider accepts, if it does.
fn sendable(
    block: &Block,
    said: ReplyStatus,
    wire: Wire,
    omissions: &mut Vec<Omission>,
) -> Option<Block> {
    let words = || {
        let mut words = Vec::new();
        block.words(&mut words);
        words
    };
    let omission = match block {
        Block::Thinking {
            signature: None, ..
        } => Omission::UnsignedThinking { words: words() },
        Block::Thinking {
            signature: Some(signature),
            ..
        } if signature.wire != wire => Omission::Foreign {
            wire: signature.wire,
            words: words(),
        },
        Block::Thinking {
            text,
            signature: Some(signature),
        } if !takes_back(wire, text, signature) => Omission::UnsignedThinking { words: words() },
        Block::Thinking { .. } if said.is_moved && binds_thinking(wire) => {
            Omission::MovedThinking { words: words() }
        }
        Block::Native { wire: of, .. } if *of != wire => Omission::Foreign {
            wire: *of,
            words: words(),
        },
        Block::Native { item, .. }
            if said.is_moved && binds_thinking(wire) && item["type"] == "redacted_thinking" =>
        {
            Omission::MovedThinking { words: words() }
        }
        Block::Native { item, .. } if is_sources(item) => Omission::Sources { words: words() },
        Block::Native { .. } if said.is_cut() => Omission::CutNative { words: words() },
        Block::Cut { what, .. } => Omission::CutOff {
            what: *what,
            words: words(),
        },
        Block::Annotated {
            text,
            wire: of,
            item,
        } if *of != wire || (said.is_cut() && item.get("citations").is_some()) => {
            return Some(Block::text(text.clone()));
        }
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
