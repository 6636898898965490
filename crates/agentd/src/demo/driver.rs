//! Between the turn machine and the world: commits what it wants committed, asks the script what it
//! wants asked, and feeds back what came of it. Nothing is decided here.

use super::model;
use super::pen::{Pen, Terms, events, failed};
use crate::clock;
use crate::error::{Error, Exit};
use agentd_core::draft::{self, Delta, Reply};
use agentd_core::event::{After, Event, Prompt, PromptMode, PromptQueued, ToolStarted};
use agentd_core::id::{AgentId, PromptId, Seq, TryId};
use agentd_core::message::{Block, ToolCall};
use agentd_core::request::Request;
use agentd_core::turn::{Effect, Finished, Input, Machine, Moment, Policy, Prepared};
use agentd_store::{DraftAck, DraftChunk, SqliteStore, Store as _};
use std::collections::{BTreeSet, VecDeque};

/// Hears of everything that became durable, and of every request that leaves.
pub trait Witness {
    fn committed(&mut self, first: Seq, last: Seq) -> Result<(), Error>;
    fn kept(&mut self, request: TryId, bytes: u64) -> Result<(), Error>;
    fn sending(&mut self, request: &Request);
}

/// A stream is flushed to disk when so much of it has come.
#[derive(Clone, Copy)]
pub struct FlushBytes(pub usize);

/// An agent's process, as small as can be.
pub struct Driver<W> {
    pub pen: Pen,
    pub witness: W,
    machine: Machine,
    flush: FlushBytes,
}

impl<W: Witness> Driver<W> {
    /// Takes the agent over, and looks at it as it is then. Nothing is carried out yet.
    pub async fn take_over(
        store: SqliteStore,
        agent: AgentId,
        after: After,
        flush: FlushBytes,
        witness: W,
    ) -> Result<Self, Error> {
        let (pen, recovered) = Pen::take_over(store, agent, after).await?;
        let loaded = pen.store.load(agent).await.map_err(failed)?;
        let policy = Policy {
            context: model::context(),
            model_window: None,
            price: None,
            parallel: BTreeSet::new(),
            max_failures: 3,
        };
        let mut driver = Self {
            machine: Machine::new(loaded.state, loaded.window, policy, recovered.running),
            pen,
            witness,
            flush,
        };
        driver.tell_committed(&recovered.events)?;
        Ok(driver)
    }

    pub const fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Goes on with whatever the journal says is unfinished.
    pub async fn go_on(&mut self) -> Result<(), Error> {
        let effects = self.machine.start(&mut Moment {
            at: clock::now(),
            new_id: &mut clock::new_id,
        });
        self.carry_out(effects).await
    }

    /// Accepts a prompt, and works until nothing is left to do.
    pub async fn prompt(&mut self, text: &str) -> Result<(), Error> {
        let Some(conversation) = self.machine.agent().tree.current() else {
            return Err(unexpected("the agent has no conversation"));
        };
        let prompt = PromptId::new(clock::new_id());
        let (key, mode) = (None, PromptMode::Queue);
        let blocks = vec![Block::text(text)];
        let accepted = events(
            conversation,
            None,
            [
                PromptQueued { prompt, key, mode }.into(),
                Prompt { prompt, blocks }.into(),
            ],
        );
        let accepted = self.pen.append(accepted, Terms::default()).await?;
        self.tell_committed(&accepted)?;
        let effects = accepted.into_iter().map(Input::Event);
        let effects = effects.flat_map(|input| self.step(input)).collect();
        self.carry_out(effects).await
    }

    fn step(&mut self, input: Input) -> Vec<Effect> {
        let mut moment = Moment {
            at: clock::now(),
            new_id: &mut clock::new_id,
        };
        self.machine.step(&mut moment, input)
    }

    async fn carry_out(&mut self, effects: Vec<Effect>) -> Result<(), Error> {
        let mut effects = VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            for input in self.perform(effect).await? {
                effects.extend(self.step(input));
            }
        }
        Ok(())
    }

    /// Does one thing, and returns what came of it.
    async fn perform(&mut self, effect: Effect) -> Result<Vec<Input>, Error> {
        match effect {
            Effect::Append { events, ends } => {
                let terms = Terms {
                    ends,
                    ..Terms::default()
                };
                let events = self.pen.append(events, terms).await?;
                self.tell_committed(&events)?;
                let events = events.into_iter().map(Input::Event);
                Ok(events.chain([Input::Appended]).collect())
            }
            Effect::Send {
                request_id,
                request,
            } => {
                self.witness.sending(&request);
                Ok(vec![self.stream(request_id, &request).await?])
            }
            Effect::PrepareTool { call, .. } => Ok(vec![may_run(call)]),
            Effect::RunTool { call, .. } => {
                let (outcome, blocks) = model::multiply(&call);
                Ok(vec![Input::ToolFinished {
                    call: call.id,
                    finished: Finished::new(outcome, blocks),
                }])
            }
            // The script never fails, and nobody interrupts it.
            other => Err(unexpected(&format!("the turn machine asked for {other:?}"))),
        }
    }

    /// Takes in a reply piece by piece, keeping it on disk while it comes.
    async fn stream(&mut self, request_id: TryId, request: &Request) -> Result<Input, Error> {
        let answer = model::answer(request);
        let mut reply = Reply::default();
        let mut pending: Vec<u8> = Vec::new();
        let mut offset = 0;
        for delta in answer.deltas {
            pending.extend(encoded(&delta)?);
            reply.apply(delta);
            if pending.len() >= self.flush.0 {
                offset += self
                    .keep(request_id, offset, std::mem::take(&mut pending))
                    .await?;
            }
        }
        Ok(Input::Replied {
            request: request_id,
            reply,
            stop: answer.stop,
            usage: None,
            provider_request: None,
        })
    }

    async fn keep(&mut self, request: TryId, offset: u64, bytes: Vec<u8>) -> Result<u64, Error> {
        let length = bytes.len() as u64;
        let chunk = DraftChunk {
            request,
            offset,
            bytes,
        };
        let kept = self.pen.store.write_draft(self.pen.fence, chunk).await;
        match kept.map_err(failed)? {
            DraftAck::Kept => self.witness.kept(request, offset + length)?,
            DraftAck::Dropped => return Err(unexpected("a piece of the reply was not kept")),
        }
        Ok(length)
    }

    fn tell_committed(&mut self, events: &[Event]) -> Result<(), Error> {
        match (events.first(), events.last()) {
            (Some(first), Some(last)) => self.witness.committed(first.seq, last.seq),
            _ => Ok(()),
        }
    }
}

/// The demo's tool is harmless; nobody needs to be asked.
fn may_run(call: ToolCall) -> Input {
    Input::Prepared {
        call: call.id.clone(),
        prepared: Prepared::Run(ToolStarted {
            call: call.id,
            tool: call.name,
            task: None,
            boot: None,
            change: None,
        }),
    }
}

fn encoded(delta: &Delta) -> Result<Vec<u8>, Error> {
    draft::encode(std::slice::from_ref(delta))
        .map_err(|error| unexpected("a piece of the reply is no JSON").because(error))
}

fn unexpected(what: &str) -> Error {
    Error::new(Exit::Failed, what)
}
