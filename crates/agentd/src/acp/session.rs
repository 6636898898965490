//! An open session: follows the events of one agent, passes them on as updates, answers prompts when their turns end, and
//! asks the user about calls that wait for approval.
//!
//! A session shows one conversation. If a command of the session, or the agent itself, moves the agent to another
//! conversation, the session goes with it. If another client does, the session stays, and the next prompt forks it.

mod approvals;
mod bookkeeping;
mod elicitation;
mod following;
mod prompts;
mod settings;

use super::catalog::Models;
use super::commands;
use super::connection::{Peer, Responder};
use super::conversation_ref::ConversationRef;
use super::problem::log;
use super::servers::{Lending, Servers};
use super::translate::{Can, Translator, Waiting, When, Whose};
use crate::chat::commands::Own;
use crate::chat::requests::Target;
use crate::error::Error;
use crate::follow::Seen;
use agent_client_protocol::v1::schema::{
    ContentBlock, PromptResponse, SessionId, SessionUpdate, SetSessionConfigOptionResponse,
    SetSessionModeResponse,
};
use agentd_client::Client;
use agentd_client::api::{Agent, Answer, Output, OutputQuery, Sent};
use agentd_core::event::{Event, ResetSource};
use agentd_core::id::{OpId, PromptId, Seq};
use agentd_core::spec::AgentSpec;
use approvals::{Failed, Questions, Which};
use elicitation::Reply;
use following::{Forked, next};
use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use prompts::Pending;
use settings::{Change, ChangedBy, Changes};
use std::collections::BTreeSet;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval};

/// How often the output of running calls, and the approvals that subagents wait for, are looked at.
const LOOK: Duration = Duration::from_millis(500);

/// How long prompts that are being sent may take after the editor is gone.
pub const LAST_PROMPTS: Duration = Duration::from_secs(5);

/// What the editor asks of an open session.
pub enum Command {
    Prompt(Vec<ContentBlock>, Responder<PromptResponse>),
    Cancel,
    SetMode(String, Responder<SetSessionModeResponse>),
    SetOption(String, String, Responder<SetSessionConfigOptionResponse>),
    /// The session is no longer shown. The agent continues.
    Close(oneshot::Sender<()>),
}

/// What a request to the daemon, or a question to the user, has led to.
enum Done {
    Sent(String, Result<Sent, Error>),
    /// A slash command.
    Ran(Responder<PromptResponse>, OpId, Result<String, Error>),
    /// The reason for which the turn of a prompt failed.
    Explained(Responder<PromptResponse>, Result<Answer, Error>),
    Answered(Which, Option<Reply>),
    /// An answer about a call was not accepted.
    Failed(Which, Failed),
    /// With the agent that was asked for: the session may have another one meanwhile.
    Agent(String, Result<Box<Agent>, Error>),
    Spec(String, Result<Box<AgentSpec>, Error>),
    /// A setting.
    Changed(ChangedBy, String, Result<Box<AgentSpec>, Error>),
    Outputs(Vec<(Waiting, Output)>),
    Removed(PromptId, Result<(), Error>),
    /// The editor has cancelled the request with the prompt of this key.
    Cancelled(String),
    Nothing,
}

/// What every session of a connection needs.
#[derive(Clone)]
pub struct Shared {
    pub peer: Peer,
    pub client: Client,
    pub can: Can,
}

pub struct Session {
    shared: Shared,
    id: SessionId,
    reference: ConversationRef,
    target: Target,
    translator: Translator,
    models: Models,
    spec: Box<AgentSpec>,
    changes: Changes,
    own: Vec<Own>,
    /// The MCP servers of the editor, and the agent that has them.
    servers: Servers,
    lending: Option<Lending>,
    /// The last event that was seen.
    after: Seq,
    title: Option<String>,
    pending: Vec<Pending>,
    questions: Questions,
    /// How many questions were asked.
    asked: u64,
    has_subagents: bool,
    /// Another client moved the agent to another conversation.
    is_left: bool,
    /// The ops of the commands of this session that move the agent, until their events are seen.
    own_moves: BTreeSet<OpId>,
    /// Who requested the reset that is in progress.
    reset_by: ResetSource,
    running: FuturesUnordered<LocalBoxFuture<'static, Done>>,
    looks_at_agent: Look,
    /// The event stream has reached what happens now.
    is_live: bool,
    /// The output of calls is being read.
    is_reading: bool,
    /// The event stream broke, and is opened again when a daemon listens.
    follows_again: bool,
}

/// Whether the agent is to be looked at again, after the look that is under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    No,
    Running,
    Again,
}

impl Session {
    /// A session that shows this conversation from now on.
    pub async fn open(
        shared: Shared,
        id: SessionId,
        agent: &Agent,
        reference: ConversationRef,
    ) -> Result<Self, Error> {
        let client = shared.client.clone();
        let name = reference.agent.to_string();
        let spec = client.spec(&name).await?;
        let cwd = agent.cwd.as_ref().map(PathBuf::from);
        let models = Models::read();
        let target = Target {
            client,
            id: name,
            cwd: cwd.clone(),
        };
        Ok(Self {
            translator: Translator::new(shared.can, cwd, models.window(&spec)),
            own: target.commands().await,
            servers: Servers::default(),
            lending: None,
            shared,
            id,
            reference,
            target,
            models,
            spec: Box::new(spec),
            changes: Changes::default(),
            after: agent.head,
            title: None,
            pending: Vec::new(),
            questions: Questions::default(),
            asked: 0,
            has_subagents: false,
            is_left: false,
            own_moves: BTreeSet::new(),
            reset_by: ResetSource::User,
            running: FuturesUnordered::new(),
            looks_at_agent: Look::No,
            is_live: false,
            is_reading: false,
            follows_again: true,
        })
    }

    /// An event of the past, which the editor has not seen.
    pub fn replay(&mut self, event: &Event) {
        let updates = self.translator.event(event, When::Past, |_| Whose::Other);
        self.update(updates);
    }

    /// The past was replayed up to this event of the agent's own journal.
    pub fn replayed(&mut self, through: Option<Seq>) {
        self.after = through.unwrap_or(self.after);
        let usage = self.translator.usage();
        self.update(usage);
    }

    fn update(&self, updates: impl IntoIterator<Item = SessionUpdate>) {
        for update in updates {
            self.shared.peer.update(&self.id, update);
        }
    }

    /// Serves the session until it is closed or the editor is gone. Then prompts that are being sent are still sent.
    pub async fn run(mut self, mut commands: UnboundedReceiver<Command>) {
        self.update([commands::available(&self.own)]);
        for skipped in std::mem::take(&mut self.servers.skipped) {
            self.tell(&skipped);
        }
        self.look_at_agent();
        let mut events = self.follow().await;
        let mut ticks = interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_due = self.is_due(events.is_some());
            // A reply streams only if its beginning is seen live.
            let is_ready = self.is_live || events.is_none();
            tokio::select! {
                biased;
                command = commands.recv(), if is_ready => match command {
                    None => break,
                    Some(Command::Close(closed)) => {
                        let _gone = closed.send(());
                        break;
                    }
                    Some(Command::Prompt(blocks, responder)) => {
                        match self.fork_if_left().await {
                            Ok(Forked::Yes) => events = self.follow().await,
                            Ok(Forked::No) => {}
                            Err(error) => {
                                prompts::fail(responder, error);
                                continue;
                            }
                        }
                        self.prompt(blocks, responder);
                    }
                    Some(command) => self.command(command),
                },
                Some(done) = self.running.next(), if !self.running.is_empty() => self.done(done),
                seen = next(&mut events) => match seen {
                    Ok(seen) => self.seen(seen),
                    Err(error) => {
                        self.lost(&error);
                        events = None;
                    }
                },
                _ = ticks.tick(), if is_due => match events {
                    Some(_) => self.look(),
                    None => events = self.follow_again().await,
                },
            }
        }
        self.finish().await;
    }

    /// Whether something is to be looked at, or the connection to be made again.
    fn is_due(&self, follows: bool) -> bool {
        match follows {
            true => self.has_subagents || self.translator.calls.is_running(),
            false => self.follows_again,
        }
    }

    fn look(&mut self) {
        if self.has_subagents {
            self.look_at_agent();
        }
        let running = self.translator.calls.running();
        if self.is_reading || running.is_empty() {
            return;
        }
        self.is_reading = true;
        let (client, name) = (self.shared.client.clone(), self.target.id.clone());
        self.start(async move {
            let mut outputs = Vec::new();
            for waiting in running {
                let query = OutputQuery {
                    offset: waiting.offset,
                };
                let output = client.output(&name, waiting.task, &query).await;
                // The result of the call has the output in any case.
                outputs.extend(output.ok().map(|output| (waiting, output)));
            }
            Done::Outputs(outputs)
        });
    }

    fn look_at_agent(&mut self) {
        if self.looks_at_agent != Look::No {
            self.looks_at_agent = Look::Again;
            return;
        }
        self.looks_at_agent = Look::Running;
        let (client, name) = (self.shared.client.clone(), self.target.id.clone());
        self.start(async move {
            let agent = client.agent(&name).await;
            let agent = agent.map(Box::new).map_err(Error::from);
            Done::Agent(name, agent)
        });
    }

    fn start(&self, request: impl Future<Output = Done> + 'static) {
        self.running.push(Box::pin(request));
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Cancel => self.cancel(),
            Command::SetMode(mode, responder) => self.change(Change::of_mode(mode, responder)),
            Command::SetOption(id, value, responder) => {
                self.change(Change::of_option(id, value, responder));
            }
            // They were handled at once.
            Command::Prompt(..) | Command::Close(_) => {}
        }
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Sent(key, sent) => self.sent(&key, sent),
            Done::Ran(responder, op, ran) => self.ran(responder, op, ran),
            Done::Explained(responder, answer) => prompts::explain(responder, answer),
            Done::Answered(which, reply) => self.answered(which, reply),
            Done::Failed(which, failed) => self.failed(which, failed),
            Done::Agent(name, agent) => {
                let is_other = name != self.target.id;
                let again = is_other || self.looks_at_agent == Look::Again;
                self.looks_at_agent = Look::No;
                match agent {
                    Ok(_) if is_other => {}
                    Ok(agent) => self.looked_at(&agent),
                    Err(error) => log(&error),
                }
                if again {
                    self.look_at_agent();
                }
            }
            Done::Spec(name, spec) => match spec {
                Ok(spec) => self.spec_changed(&name, spec),
                Err(error) => log(&error),
            },
            Done::Changed(by, name, spec) => self.changed(by, &name, spec),
            Done::Outputs(outputs) => {
                self.is_reading = false;
                for (waiting, output) in outputs {
                    let update = self.translator.calls.output(&waiting, &output);
                    self.update(update);
                }
            }
            Done::Removed(prompt, removed) => self.removed(prompt, removed),
            Done::Cancelled(key) => self.cancel_one(&key),
            Done::Nothing => {}
        }
    }

    fn seen(&mut self, seen: Seen) {
        match seen {
            Seen::Event(event) => {
                self.after = event.seq;
                self.event(&event);
            }
            Seen::Delta(delta) if !self.is_left => {
                let updates = self.translator.delta(self.reference.agent, &delta);
                self.update(updates);
            }
            Seen::CaughtUp => {
                self.is_live = true;
                self.look_at_agent();
            }
            // The daemon was gone, perhaps when the agent was looked at.
            Seen::Found => self.look_at_agent(),
            Seen::Delta(_) | Seen::Progress(_) | Seen::Lost => {}
        }
    }

    /// Prompts that were given before the editor left are still sent.
    async fn finish(mut self) {
        self.questions.withdraw_all();
        drop(self.lending.take());
        let sent = async {
            while self.pending.iter().any(Pending::is_being_sent) {
                match self.running.next().await {
                    Some(Done::Sent(key, sent)) => self.sent(&key, sent),
                    Some(_) => {}
                    None => break,
                }
            }
            self.close_all();
        };
        let _too_slow = tokio::time::timeout(LAST_PROMPTS, sent).await;
    }
}
