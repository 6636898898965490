//! A reply while it streams: deltas, what they add up to, and how they are kept on disk.
//!
//! A delta is never a message. Deltas are flushed to the draft; the draft ends as exactly one message.

use crate::id::{CallId, TryId};
use crate::message::{Arguments, Block, CutBlock, Signature, ToolCall, Wire};
use crate::repair::unique_call_id;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One step of a stream. `part` counts the blocks of the reply from 0, in order.
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
    /// The text of this part is done, and the provider put something beside it.
    Annotated {
        wire: Wire,
        item: Value,
    },
    /// A block that came in one piece.
    Whole {
        block: Block,
    },
}

/// The draft holds something that no agentd wrote.
#[derive(Debug, thiserror::Error)]
#[error("the draft is damaged at byte {offset}: {reason}")]
pub struct DamagedDraft {
    pub offset: usize,
    pub reason: String,
    /// What comes before the damage.
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
    /// A block in one piece ends like the same one in many: a call that is cut off never runs.
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

/// What has arrived of a reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    parts: Vec<Part>,
}

impl Reply {
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Takes one more delta. A change that does not fit its part begins a new one: nothing is lost.
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

    /// How many bytes the model has written: what a try without usage is charged for.
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

    /// The blocks of the reply to `request`, which came whole. Its calls get ids of ours before
    /// anybody sees them: some providers give none or begin to count anew with each reply, and within
    /// an agent's journal a call id means one call.
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
                // A fork counts like its parent did.
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

    /// The blocks of a reply that was cut off. Its calls never ran and never will.
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

/// Leaves out blank text, and seals off thinking that nothing sendable follows.
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

/// Deltas as the draft keeps them: one JSON line each.
pub fn encode(deltas: &[Delta]) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::new();
    for delta in deltas {
        serde_json::to_writer(&mut bytes, delta)?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// The reply that a draft adds up to.
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
