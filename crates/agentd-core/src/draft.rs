//! A reply while it streams: its deltas, the reply that they form, and how they are stored on disk.
//!
//! A delta is never a message. Deltas are flushed to the draft, and the draft ends as exactly one message.

mod pieces;

pub use pieces::{MAX_DRAFT, MAX_PIECE, MAX_REPLY, MOST_GROWTH, pieces, split};

use crate::id::{CallId, TryId};
use crate::message::{Arguments, Block, CutBlock, Signature, ToolCall, Wire};
use crate::repair::unique_call_id;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One step of a stream. `part` numbers the blocks of the reply from 0, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delta {
    pub part: usize,
    #[serde(flatten)]
    pub change: Change,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Change {
    Text {
        text: String,
    },
    Thinking {
        text: String,
    },
    Signature {
        signature: Signature,
    },
    Call {
        id: CallId,
        name: String,
    },
    Arguments {
        json: String,
    },
    /// The text of this part is complete, and the provider attached data to it.
    Annotated {
        wire: Wire,
        item: Value,
    },
    /// A block that arrived in one piece.
    Whole {
        block: Block,
    },
}

/// The draft contains data that agentd did not write.
#[derive(Debug, thiserror::Error)]
#[error("the draft is damaged at byte {offset}: {reason}")]
pub struct DamagedDraft {
    pub offset: usize,
    pub reason: String,
    /// The reply up to the damage.
    pub readable: Reply,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Thinking {
        text: String,
        signature: Option<Signature>,
    },
    Call {
        id: CallId,
        name: String,
        arguments: String,
        signature: Option<Signature>,
    },
    Annotated {
        text: String,
        wire: Wire,
        item: Value,
    },
    Whole(Block),
}

impl Part {
    /// A block that arrived in one piece is handled like one that arrived in many: a call that is cut off never runs.
    fn whole(block: Block) -> Self {
        match block {
            Block::Text { text } => Self::Text(text),
            Block::Thinking { text, signature } => Self::Thinking { text, signature },
            Block::ToolCall(call) => Self::Call {
                arguments: match call.arguments {
                    Arguments::Object(map) => Value::Object(map).to_string(),
                    Arguments::Malformed(raw) => raw,
                },
                id: call.id,
                name: call.name,
                signature: call.signature,
            },
            block => Self::Whole(block),
        }
    }
}

/// The part of a reply that has arrived so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    parts: Vec<Part>,
}

impl Reply {
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Applies one more delta. A change that does not fit its part begins a new one, so that no text is lost.
    pub fn apply(&mut self, delta: Delta) {
        let Delta { part, change } = delta;
        let known = self.parts.get_mut(part);
        match (known, change) {
            (Some(Part::Text(text)), Change::Text { text: more }) => text.push_str(&more),
            (Some(Part::Thinking { text, .. }), Change::Thinking { text: more }) => {
                text.push_str(&more);
            }
            (
                Some(Part::Thinking { signature, .. } | Part::Call { signature, .. }),
                Change::Signature { signature: new },
            ) => *signature = Some(new),
            (Some(Part::Call { arguments, .. }), Change::Arguments { json }) => {
                arguments.push_str(&json);
            }
            (Some(known @ Part::Text(_)), Change::Annotated { wire, item }) => {
                if let Part::Text(text) = known {
                    let text = std::mem::take(text);
                    *known = Part::Annotated { text, wire, item };
                }
            }
            (_, change) => self.parts.push(match change {
                Change::Text { text } => Part::Text(text),
                Change::Thinking { text } => Part::Thinking {
                    text,
                    signature: None,
                },
                Change::Signature { signature } => Part::Thinking {
                    text: String::new(),
                    signature: Some(signature),
                },
                Change::Call { id, name } => Part::Call {
                    id,
                    name,
                    arguments: String::new(),
                    signature: None,
                },
                Change::Arguments { json } => Part::Text(json),
                Change::Annotated { wire, item } => Part::Whole(Block::Native { wire, item }),
                Change::Whole { block } => Part::whole(block),
            }),
        }
    }

    /// How many bytes the model has written. An attempt without reported usage is charged for them.
    pub fn written_bytes(&self) -> usize {
        let bytes = |part: &Part| match part {
            Part::Text(text) | Part::Annotated { text, .. } | Part::Thinking { text, .. } => {
                text.len()
            }
            Part::Call {
                name, arguments, ..
            } => name.len() + arguments.len(),
            Part::Whole(block) => crate::request::estimate_bytes(block),
        };
        self.parts.iter().map(bytes).sum()
    }

    /// How many bytes the arguments of calls have more in the message than the model wrote: their numbers are written out,
    /// so `1e15` becomes `1000000000000000.0`. At most [`MOST_GROWTH`] times as many in all.
    pub fn growth(&self) -> usize {
        let growth = |part: &Part| match part {
            Part::Call { arguments, .. } => match Arguments::parse(arguments) {
                Arguments::Object(map) => {
                    let written = Value::Object(map).to_string().len();
                    written.saturating_sub(arguments.len())
                }
                Arguments::Malformed(_) => 0,
            },
            Part::Text(_) | Part::Annotated { .. } | Part::Thinking { .. } | Part::Whole(_) => 0,
        };
        self.parts.iter().map(growth).sum()
    }

    /// The blocks of the complete reply to `request`. Its calls get our own ids before any other code sees them: some
    /// providers give no ids or count again from the start in each reply, but a call id must be unique within an
    /// agent's journal.
    pub fn finish<'a>(
        self,
        request: TryId,
        taken: impl IntoIterator<Item = &'a CallId>,
    ) -> Vec<Block> {
        let mut used: Vec<CallId> = taken.into_iter().cloned().collect();
        let mut calls = 0;
        let blocks = self.parts.into_iter().map(|part| match part {
            Part::Text(text) => Block::Text { text },
            Part::Annotated { text, wire, item } => Block::Annotated { text, wire, item },
            Part::Thinking { text, signature } => Block::Thinking { text, signature },
            Part::Call {
                name,
                arguments,
                signature,
                ..
            } => {
                let (incarnation, n) = (request.incarnation, request.n);
                let id = CallId::new(format!("call_{incarnation}_{n}_{calls}"));
                calls += 1;
                // A fork would otherwise generate the same ids as its parent.
                let id = unique_call_id(&id, |id| used.contains(id));
                used.push(id.clone());
                Block::ToolCall(ToolCall {
                    id,
                    name,
                    arguments: Arguments::parse(&arguments),
                    signature,
                })
            }
            Part::Whole(block) => block,
        });
        drop_unsent(blocks.collect(), |block| {
            matches!(
                block,
                Block::Cut { .. }
                    | Block::Thinking {
                        signature: None,
                        ..
                    }
            )
        })
    }

    /// The blocks of a reply that was cut off. Its calls have not run and never will.
    pub fn cut(self) -> Vec<Block> {
        let blocks = self.parts.into_iter().map(|part| match part {
            Part::Text(text) => Block::Text { text },
            Part::Annotated { text, wire, item } => Block::Annotated { text, wire, item },
            Part::Thinking {
                text,
                signature: signature @ Some(_),
            } => Block::Thinking { text, signature },
            Part::Thinking {
                text,
                signature: None,
            } => Block::Cut {
                what: CutBlock::Thinking,
                text,
            },
            Part::Call {
                name, arguments, ..
            } => Block::Cut {
                what: CutBlock::ToolCall,
                text: format!("{name} {arguments}"),
            },
            Part::Whole(block) => block,
        });
        drop_unsent(blocks.collect(), |block| {
            matches!(block, Block::Cut { .. } | Block::Native { .. })
        })
    }
}

/// Drops blank text, and turns signed thinking that no sendable block follows into a cut block, which is never sent.
fn drop_unsent(mut blocks: Vec<Block>, is_unsent: impl Fn(&Block) -> bool) -> Vec<Block> {
    blocks.retain(|block| !block.is_blank());
    for block in blocks.iter_mut().rev() {
        if block.is_sealed_thinking() {
            let mut words = Vec::new();
            block.words(&mut words);
            *block = Block::Cut {
                what: CutBlock::Thinking,
                text: words.join("\n"),
            };
        } else if !is_unsent(block) {
            break;
        }
    }
    blocks
}

/// Deltas in the format of the draft: one JSON line each.
pub fn encode(deltas: &[Delta]) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::new();
    for delta in deltas {
        serde_json::to_writer(&mut bytes, delta)?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// The reply that a draft contains.
pub fn decode(draft: &[u8]) -> Result<Reply, DamagedDraft> {
    let mut reply = Reply::default();
    let mut offset = 0;
    for line in draft.split_inclusive(|byte| *byte == b'\n') {
        let delta = match serde_json::from_slice(line) {
            Ok(delta) => delta,
            Err(error) => {
                return Err(DamagedDraft {
                    offset,
                    reason: error.to_string(),
                    readable: reply,
                });
            }
        };
        reply.apply(delta);
        offset += line.len();
    }
    Ok(reply)
}

#[cfg(test)]
mod tests;
