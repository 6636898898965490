//! One request to a child: it is given prompts, or it continues, until it calls a tool of its own or ends its turn.

use super::child::{Answer, CANCELLED};
use super::talk::{Begun, Completed, Reported, Spent};
use super::{MOST_IN_FLIGHT, Outer};
use agentd_core::draft::{Change, Delta};
use agentd_core::event::{LimitKind, StopReason};
use agentd_core::id::CallId;
use agentd_core::mcp::QuestionReply;
use agentd_core::message::Block;
use agentd_core::outer::acp::{ELICITATION_CALL, question_arguments};
use agentd_core::outer::{ChildEvent, Over, UNNAMED, Wanted, size};
use agentd_core::wire::stream::End;
use agentd_failpoint as failpoint;
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// The part of a reply that text belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

/// The room that a delta takes until the driver has handled it.
pub(crate) type Room = Option<OwnedSemaphorePermit>;

/// How one request to a child ended.
pub(crate) struct Streamed {
    /// An error is for users.
    pub end: Result<End, String>,
    /// What the turn has used, if it is over and the child said so.
    pub spent: Option<Spent>,
    /// The limit of its own that ended the child's turn.
    pub limited: Option<LimitKind>,
}

impl Streamed {
    const fn failed(why: String) -> Self {
        Self {
            end: Err(why),
            spent: None,
            limited: None,
        }
    }
}

enum Heard {
    Stopped(StopReason),
    Limited(LimitKind),
}

const fn end(stop: StopReason) -> End {
    End {
        stop,
        usage: None,
        provider_request: None,
    }
}

impl Outer {
    /// Streams what the child says. The same prompt is not delivered again.
    pub(crate) async fn stream(
        &self,
        turn: u64,
        wanted: Wanted,
        on_delta: impl Fn(Delta, Room) + Send,
    ) -> Streamed {
        match wanted {
            Wanted::Deliver(delivery) => {
                // A turn that was given up may still be running.
                self.cancel(turn.saturating_sub(1)).await;
                if self.talk.begin(turn) == Begun::No {
                    return Streamed::failed(CANCELLED.to_owned());
                }
                failpoint::hit("before", "deliver");
                let delivered = {
                    // A delivery of a cancelled turn may still be starting the program.
                    let _one_at_a_time = self.delivering.lock().await;
                    self.child.deliver(turn, delivery).await
                };
                if let Err(why) = delivered {
                    if self.talk.is_in(turn) {
                        self.talk.end_turn();
                    }
                    return Streamed::failed(why);
                }
                failpoint::hit("after", "deliver");
            }
            Wanted::Listen => {
                if let Some(question) = self.talk.take_question() {
                    // It was refused: a call that may run is answered when it runs.
                    self.answer(&question, Answer::Deny).await;
                }
                if let Some((call, _)) = self.talk.take_elicited() {
                    // The user was not asked.
                    self.reply(&call, QuestionReply::Decline).await;
                }
            }
        }
        let ended = self.listen(&on_delta).await;
        let is_last = !matches!(&ended, Ok(Heard::Stopped(StopReason::ToolUse)));
        let spent = is_last.then(|| self.talk.take_spent()).flatten();
        let (end, limited) = match ended {
            Ok(Heard::Stopped(stop)) => (Ok(end(stop)), None),
            Ok(Heard::Limited(limit)) => (Ok(end(StopReason::EndTurn)), Some(limit)),
            Err(why) => (Err(why), None),
        };
        Streamed {
            end,
            spent,
            limited,
        }
    }

    /// Waits until the driver has handled enough of what was passed on before.
    async fn room(&self, bytes: usize) -> Room {
        let bytes = u32::try_from(bytes.min(MOST_IN_FLIGHT)).unwrap_or(u32::MAX);
        // It is never closed.
        let room = Arc::clone(&self.in_flight).acquire_many_owned(bytes).await;
        room.ok()
    }

    async fn listen(&self, on_delta: &(impl Fn(Delta, Room) + Send)) -> Result<Heard, String> {
        let mut parts = Parts::default();
        loop {
            let Some(said) = self.talk.next().await else {
                return Err("the agent's program is not in this turn any more".to_owned());
            };
            let room = self.room(size(&said)).await;
            match said {
                ChildEvent::Text(text) => on_delta(parts.grow(Kind::Text, text), room),
                ChildEvent::Thinking(text) => on_delta(parts.grow(Kind::Thinking, text), room),
                ChildEvent::Call {
                    id,
                    name,
                    arguments,
                    is_pending,
                } => {
                    let mut reported = Reported {
                        id,
                        name,
                        arguments,
                        is_pending,
                        question: None,
                    };
                    if self.talk.complete(&mut reported).await == Completed::Later {
                        continue;
                    }
                    self.talk.open_call(&reported.id, reported.question);
                    let delta = call(&reported.id, reported.name, reported.arguments);
                    on_delta(delta, room);
                    return Ok(Heard::Stopped(StopReason::ToolUse));
                }
                ChildEvent::Asks {
                    id,
                    name,
                    arguments,
                    question,
                } => {
                    self.talk.open_call(&id, Some(question));
                    on_delta(call(&id, name, arguments), room);
                    return Ok(Heard::Stopped(StopReason::ToolUse));
                }
                ChildEvent::Elicits { id, question } => {
                    let arguments = question_arguments(&question);
                    self.talk.open_elicitation(&id, question);
                    let name = ELICITATION_CALL.to_owned();
                    on_delta(call(&id, name, arguments), room);
                    return Ok(Heard::Stopped(StopReason::ToolUse));
                }
                // The call was refused, and has its result.
                ChildEvent::CallEnded { id, .. } if self.talk.is_open(&id) => {}
                // The result of a call that the turn did not wait for.
                ChildEvent::CallEnded { blocks, .. } => {
                    let texts = blocks.into_iter().filter_map(|block| match block {
                        Block::Text { text } => Some(text),
                        _ => None,
                    });
                    let text = texts.collect::<Vec<_>>().join("\n");
                    if !text.trim().is_empty() {
                        let text = format!("\n[result of an earlier call]\n{text}\n");
                        on_delta(parts.grow(Kind::Text, text), room);
                    }
                }
                ChildEvent::CallBegan { .. }
                | ChildEvent::CallChanged { .. }
                | ChildEvent::Spent { .. } => {}
                ChildEvent::Over(Over::Answered) => {
                    return Ok(Heard::Stopped(StopReason::EndTurn));
                }
                ChildEvent::Over(Over::Limited(limit)) => return Ok(Heard::Limited(limit)),
                ChildEvent::Over(Over::Interrupted) => {
                    return Err("the agent's program ended its turn early".to_owned());
                }
                ChildEvent::Over(Over::Failed(why)) => return Err(why),
            }
        }
    }
}

/// The parts of text and thoughts of a reply.
#[derive(Default)]
struct Parts {
    part: usize,
    last: Option<Kind>,
}

impl Parts {
    fn grow(&mut self, kind: Kind, text: String) -> Delta {
        let kind = match self.last {
            // A child that changes between the two all the time would make a part of each byte.
            Some(last) if self.part >= MOST_PARTS => last,
            _ => kind,
        };
        if self.last.is_some_and(|last| last != kind) {
            self.part += 1;
        }
        self.last = Some(kind);
        let change = match kind {
            Kind::Text => Change::Text { text },
            Kind::Thinking => Change::Thinking { text },
        };
        Delta {
            part: self.part,
            change,
        }
    }
}

/// How many parts of text and thoughts one reply may have.
const MOST_PARTS: usize = 1000;

/// The number of a call's part: no text before it has that number.
const CALL_PART: usize = 1_000_000;

fn call(id: &str, name: String, arguments: Map<String, Value>) -> Delta {
    let name = match name.is_empty() {
        true => UNNAMED.to_owned(),
        false => name,
    };
    let arguments = agentd_core::message::Arguments::Object(arguments);
    let block = Block::ToolCall(agentd_core::message::ToolCall {
        id: CallId::new(id),
        name,
        arguments,
        signature: None,
    });
    let change = Change::Whole { block };
    Delta {
        part: CALL_PART,
        change,
    }
}
