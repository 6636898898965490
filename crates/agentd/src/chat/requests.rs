//! Carries out what the chat asks for: one request of the client for each effect.

mod load;
mod pages;
mod paths;
mod rewind;
mod send;
mod settings;
#[cfg(test)]
mod tests;

pub use load::older;
pub use pages::load as page;

use super::effect::{Answer, Change, Effect};
use super::modes;
use crate::conversation::Which;
use crate::error::Error;
use crate::keys;
use crate::overwritten;
use crate::render::word;
use agentd_client::api::{
    AnswerQuestion, Approve, Compact, Deny, Fork, OutputQuery, Reset, RunCommand, Start,
};
use agentd_client::{Client, Error as ClientError, Kind};
use agentd_core::id::{ApprovalId, OpId};
use agentd_core::state::CompactionOutcome;
use agentd_daemon::clock;
use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use uuid::Uuid;

/// Whom the requests are about.
#[derive(Clone)]
pub struct Target {
    pub client: Client,
    /// The agent's id: its name may change.
    pub id: String,
    pub cwd: Option<PathBuf>,
}

/// The requests that are running. Prompts and settings are sent one after the other, in the order of the keys.
pub struct Requests {
    target: Target,
    running: FuturesUnordered<LocalBoxFuture<'static, (Lane, Uuid, Answer)>>,
    waiting: VecDeque<Effect>,
    is_busy: bool,
    /// The keys of prompts and commands that may have been accepted although no answer came. If the user sends the same
    /// text again, it has the same key and is accepted once.
    unanswered: BTreeMap<String, Uuid>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    Ordered,
    Free,
}

impl Requests {
    pub fn new(target: Target) -> Self {
        Self {
            target,
            running: FuturesUnordered::new(),
            waiting: VecDeque::new(),
            is_busy: false,
            unanswered: BTreeMap::new(),
        }
    }

    pub fn push(&mut self, effect: Effect) {
        match effect {
            Effect::Send { .. }
            | Effect::SetApprovalMode(_)
            | Effect::SetModel(_)
            | Effect::EditQueued(_)
            | Effect::MoveQueued(_)
            | Effect::RemoveQueued(_) => {
                self.waiting.push_back(effect);
                self.start_next();
            }
            _ => self.start(Lane::Free, effect),
        }
    }

    fn start_next(&mut self) {
        if self.is_busy {
            return;
        }
        if let Some(effect) = self.waiting.pop_front() {
            self.is_busy = true;
            self.start(Lane::Ordered, effect);
        }
    }

    fn start(&self, lane: Lane, effect: Effect) {
        let target = self.target.clone();
        let key = match &effect {
            Effect::Send { text, .. } => self.unanswered.get(text),
            Effect::RunCommand(line) => self.unanswered.get(&command_text(line)),
            _ => None,
        };
        let key = key.copied().unwrap_or_else(clock::new_id);
        let request = async move { (lane, key, target.perform(effect, key).await) };
        self.running.push(Box::pin(request));
    }

    /// Whether every prompt that was given is with the daemon.
    pub fn is_idle(&self) -> bool {
        !self.is_busy && self.waiting.is_empty()
    }

    /// The next answer.
    pub async fn next(&mut self) -> Answer {
        let Some((lane, key, answer)) = self.running.next().await else {
            return std::future::pending().await;
        };
        match &answer {
            Answer::Sent(text, sent) => self.answered(text.clone(), key, sent),
            Answer::Ran(line, ran) => self.answered(command_text(line), key, ran),
            _ => {}
        }
        if lane == Lane::Ordered {
            self.is_busy = false;
            self.start_next();
        }
        answer
    }
}

impl Requests {
    /// Keeps the key of a request until its answer is known.
    fn answered<T>(&mut self, text: String, key: Uuid, answer: &Result<T, Error>) {
        match answer {
            Err(error) if error.is_unavailable() => {
                self.unanswered.insert(text, key);
            }
            _ => {
                self.unanswered.remove(&text);
            }
        }
    }
}

/// A command as it stands in the prompt line.
fn command_text(line: &str) -> String {
    format!("!{line}")
}

impl Target {
    async fn perform(&self, effect: Effect, key: Uuid) -> Answer {
        let (client, id) = (&self.client, self.id.as_str());
        match effect {
            Effect::Send {
                text,
                typed,
                chosen,
                mode,
            } => {
                let sent = self.send(&text, (typed, chosen), mode, key).await;
                Answer::Sent(text, sent)
            }
            Effect::Attach(typed) => Answer::Attached(self.locate(typed).await),
            Effect::RunCommand(line) => {
                let ran = self.run_command(&line, key).await;
                Answer::Ran(line, ran)
            }
            Effect::LoadOlder(before) => Answer::Older(older(client, id, before).await),
            Effect::LoadAgent => Answer::Agent(load::agent(client, id).await),
            Effect::LoadBefore { approval, call } => {
                Answer::Before(approval, overwritten::text(&call))
            }
            Effect::LoadSpec => {
                let spec = client.spec(id).await;
                Answer::Spec(spec.map(Box::new).map_err(Error::from))
            }
            Effect::LoadCommands => Answer::Commands(self.commands().await),
            Effect::LoadQueue => Answer::Queue(client.queue(id).await.map_err(Error::from)),
            Effect::LoadTasks => Answer::Tasks(client.tasks(id).await.map_err(Error::from)),
            Effect::LoadOutput { task, offset } => {
                let output = client.output(id, task, &OutputQuery { offset }).await;
                Answer::Output(task, offset, output.map_err(Error::from))
            }
            Effect::LoadSubagent(agent) => {
                let found = load::agent(client, &agent.to_string()).await;
                Answer::Subagent(agent, found)
            }
            Effect::LoadTurns(of) => Answer::Turns(load::turns(client, id, of).await),
            Effect::LoadConversations => {
                let all = client.conversations(id).await;
                Answer::Conversations(all.map_err(Error::from))
            }
            Effect::LoadPage(page) => Answer::Page(pages::load(client, id, page).await),
            Effect::LoadPaths(typed) => {
                let found = self.paths(typed.trim_start_matches('"').to_owned()).await;
                Answer::Paths(typed, found)
            }
            Effect::LoadFiles(typed) => {
                let found = self.files(typed.trim_start_matches('"').to_owned()).await;
                Answer::Files(typed, found)
            }
            Effect::EditQueued(edit) => {
                let queue = client.edit_prompt(id, &edit).await;
                Answer::Queue(queue.map_err(Error::from))
            }
            Effect::MoveQueued(order) => {
                let queue = client.move_prompt(id, &order).await;
                Answer::Queue(queue.map_err(Error::from))
            }
            Effect::RemoveQueued(remove) => {
                let queue = client.remove_prompts(id, &remove).await;
                Answer::Queue(queue.map_err(Error::from))
            }
            change => Answer::Changed(self.change(change).await),
        }
    }

    /// Carries out a change; the message says what was done.
    pub async fn change(&self, effect: Effect) -> Result<Change, Error> {
        let (client, id) = (&self.client, self.id.as_str());
        let message = match effect {
            Effect::Interrupt => {
                match client.interrupt(id).await {
                    // The turn has ended meanwhile.
                    Err(ClientError::Problem(problem)) if problem.kind == Kind::Conflict => {}
                    done => drop(done?),
                }
                String::new()
            }
            Effect::Approve {
                approval,
                hash,
                always,
            } => {
                let hash = Some(hash);
                self.approve(approval, &Approve { hash, always }).await?
            }
            Effect::Deny {
                approval,
                hash,
                reason,
            } => {
                keys::merge_env(client, id).await?;
                client.deny(id, approval, &Deny { hash, reason }).await?;
                String::new()
            }
            Effect::Answer { approval, content } => {
                keys::merge_env(client, id).await?;
                let answer = AnswerQuestion { content };
                client.answer_question(id, approval, &answer).await?;
                String::new()
            }
            Effect::SetApprovalMode(mode) => {
                self.set(|spec| spec.approval = Some(mode)).await?;
                format!("approval: {}", modes::meaning(mode))
            }
            Effect::SetModel(model) => return self.set_model(model).await,
            Effect::StopTask(task) => {
                client.stop_tasks(&task.to_string()).await?;
                "the task was ended".to_owned()
            }
            Effect::Reset(reset) => return self.reset(&reset).await,
            Effect::PlanRewind { to, parts } => {
                return rewind::plan(client, id, to, parts).await;
            }
            Effect::Rewind {
                to,
                parts,
                conflicts,
            } => rewind::rewind(client, id, (to, parts), conflicts).await?,
            Effect::Fork { name, at } => self.fork(name, at).await?,
            Effect::Compact { instructions } => self.compact(instructions).await?,
            Effect::Continue => {
                client
                    .continue_turn(
                        id,
                        &Start::with(keys::env_of(&self.client, &self.id).await?),
                    )
                    .await?;
                String::new()
            }
            Effect::Start => {
                client
                    .start(
                        id,
                        &Start::with(keys::env_of(&self.client, &self.id).await?),
                    )
                    .await?;
                "started".to_owned()
            }
            // The driver carries these out itself, and the others are no changes.
            _ => String::new(),
        };
        Ok(Change::Done(message))
    }

    async fn run_command(&self, line: &str, key: Uuid) -> Result<(), Error> {
        let run = RunCommand {
            command: line.to_owned(),
            timeout_ms: None,
            env: keys::env_of(&self.client, &self.id).await?,
        };
        let client = self.client.under(Some(OpId::new(key)));
        client.run_command(&self.id, &run).await?;
        Ok(())
    }

    async fn approve(&self, approval: ApprovalId, approve: &Approve) -> Result<String, Error> {
        keys::merge_env(&self.client, &self.id).await?;
        self.client.approve(&self.id, approval, approve).await?;
        Ok(match approve.always {
            true => "approved; a rule was added to the agent's settings".to_owned(),
            false => String::new(),
        })
    }

    async fn reset(&self, reset: &Reset) -> Result<Change, Error> {
        let (client, id) = (&self.client, self.id.as_str());
        keys::merge_env(client, id).await?;
        let receipt = client.reset(id, reset).await?;
        let new = Which::from(receipt.new).number(client, id).await;
        Ok(match (reset.step, reset.clear_log) {
            // A rewind of both returns files too; the undo is only about the conversation.
            (Some(_), _) => Change::Stepped(format!(
                "back in conversation {new}; files stay as they are: `agentd files undo {}` takes a restore back",
                self.name().await
            )),
            (None, false) => Change::Done(format!("conversation {new}; /undo returns")),
            (None, true) => Change::Cleared(format!("conversation {new}; /undo returns")),
        })
    }

    /// The agent's name, for a command that the user can type.
    async fn name(&self) -> String {
        let agent = self.client.agent(&self.id).await;
        agent.map_or_else(|_| self.id.clone(), |agent| agent.name)
    }

    async fn fork(&self, name: String, at: Option<String>) -> Result<String, Error> {
        let fork = Fork {
            name: Some(name),
            at,
            env: keys::env_of(&self.client, &self.id).await?,
            ..Fork::default()
        };
        let forked = self.client.fork(&self.id, &fork).await?;
        let (name, seq) = (&forked.agent.name, forked.from.seq);
        Ok(format!(
            "{name} continues from event {seq}: agentd chat {name}"
        ))
    }

    async fn compact(&self, instructions: Option<String>) -> Result<String, Error> {
        let compact = Compact {
            instructions,
            op: None,
            env: keys::env_of(&self.client, &self.id).await?,
        };
        let compacted = self.client.compact(&self.id, &compact).await?;
        let why = compacted.error.unwrap_or_default();
        Ok(match compacted.outcome {
            CompactionOutcome::Compacted => {
                format!("compacted to about {} tokens", compacted.tokens)
            }
            CompactionOutcome::Nothing => "there is nothing to compact".to_owned(),
            outcome => format!("not compacted: {} {why}", word(outcome)),
        })
    }
}
