//! Carries out what the chat asks for: one request of the client for each effect.

mod load;
mod pages;
mod paths;

pub use load::older;

use super::command_files;
use super::commands::Own;
use super::effect::{Answer, Change, Effect};
use super::modes;
use crate::conversation::Which;
use crate::error::Error;
use crate::keys;
use crate::providers;
use crate::render::word;
use agentd_client::api::{Approve, Compact, Deny, Fork, OutputQuery, Reset, Rewind, Send, Start};
use agentd_client::{Client, Error as ClientError, Kind};
use agentd_core::event::PromptMode;
use agentd_core::id::ApprovalId;
use agentd_core::spec::AgentSpec;
use agentd_core::state::CompactionOutcome;
use agentd_daemon::clock;
use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use std::collections::VecDeque;
use std::path::PathBuf;

/// Time that a running turn gets to end before a rewind.
const GRACE_MS: u64 = 15_000;

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
    running: FuturesUnordered<LocalBoxFuture<'static, (Lane, Answer)>>,
    waiting: VecDeque<Effect>,
    is_busy: bool,
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
        let request = async move { (lane, target.perform(effect).await) };
        self.running.push(Box::pin(request));
    }

    /// Whether every prompt that was given is with the daemon.
    pub fn is_idle(&self) -> bool {
        !self.is_busy && self.waiting.is_empty()
    }

    /// The next answer.
    pub async fn next(&mut self) -> Answer {
        let Some((lane, answer)) = self.running.next().await else {
            return std::future::pending().await;
        };
        if lane == Lane::Ordered {
            self.is_busy = false;
            self.start_next();
        }
        answer
    }
}

impl Target {
    async fn perform(&self, effect: Effect) -> Answer {
        let (client, id) = (&self.client, self.id.as_str());
        match effect {
            Effect::Send { text, mode } => {
                let sent = self.send(&text, mode).await;
                Answer::Sent(text, sent)
            }
            Effect::LoadOlder(before) => Answer::Older(older(client, id, before).await),
            Effect::LoadAgent => Answer::Agent(load::agent(client, id).await),
            Effect::LoadSpec => {
                let spec = client.spec(id).await;
                Answer::Spec(spec.map(Box::new).map_err(Error::from))
            }
            Effect::LoadCommands => {
                let home = providers::variable("HOME").map(PathBuf::from);
                let mut own = command_files::read(home.as_deref(), self.cwd.as_deref());
                let skills = client.context(id).await.map(|context| context.skills);
                let skills = skills.unwrap_or_default();
                own.extend(skills.iter().map(|it| Own::skill(&it.name, &it.path)));
                Answer::Commands(own)
            }
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
                let found = paths::beginning(self.cwd.as_deref(), &typed);
                Answer::Paths(typed, found)
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

    async fn change(&self, effect: Effect) -> Result<Change, Error> {
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
            Effect::Rewind { to, conversation } => {
                keys::merge_env(client, id).await?;
                let how = Reset {
                    grace_ms: Some(GRACE_MS),
                    ..Reset::default()
                };
                let rewind = Rewind::new(to, conversation, how);
                let receipt = client.rewind(id, &rewind).await?;
                let new = Which::from(receipt.new).number(client, id).await;
                format!(
                    "back at the end of that turn, in conversation {new}; files stay as they are; /undo returns"
                )
            }
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

    async fn send(&self, text: &str, mode: PromptMode) -> Result<(), Error> {
        let send = Send {
            text: text.to_owned(),
            // The client may have to send the prompt again after it was accepted.
            key: Some(clock::new_id().to_string()),
            mode,
            env: keys::env_of(&self.client, &self.id).await?,
        };
        self.client.send(&self.id, &send).await?;
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

    /// Changes the settings of the agent.
    async fn set(&self, change: impl FnOnce(&mut AgentSpec)) -> Result<(), Error> {
        keys::merge_env(&self.client, &self.id).await?;
        let mut spec = self.client.spec(&self.id).await?;
        change(&mut spec);
        self.client.set_spec(&self.id, &spec).await?;
        Ok(())
    }

    async fn set_model(&self, model: String) -> Result<Change, Error> {
        let mut provider = None;
        self.set(|spec| {
            provider.clone_from(&spec.provider);
            spec.model = Some(model.clone());
        })
        .await?;
        let catalog = providers::catalog().ok();
        let known = catalog
            .zip(provider)
            .and_then(|(catalog, provider)| catalog.model(&provider, &model));
        Ok(Change::Model {
            message: match known {
                Some(_) => format!("model: {model}"),
                None => format!(
                    "model: {model}; agentd does not know it: its prices and its window are unknown"
                ),
            },
            window: known.and_then(|known| known.window),
        })
    }

    async fn reset(&self, reset: &Reset) -> Result<Change, Error> {
        let (client, id) = (&self.client, self.id.as_str());
        keys::merge_env(client, id).await?;
        let receipt = client.reset(id, reset).await?;
        let new = Which::from(receipt.new).number(client, id).await;
        Ok(match (reset.step, reset.clear_log) {
            (Some(_), _) => Change::Done(format!("back in conversation {new}")),
            (None, false) => Change::Done(format!("conversation {new}; /undo returns")),
            (None, true) => Change::Cleared(format!("conversation {new}; /undo returns")),
        })
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
