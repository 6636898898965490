//! The demo's daemon, with its own state directory, and the agent, seen through the API.

use super::claims::Claims;
use super::journal::Journal;
use super::line;
use crate::connect::Connection;
use crate::error::{Error, Exit};
use crate::follow::{Follow, Seen};
use crate::providers;
use agentd_client::Client;
use agentd_client::api::{Agent, Answer, Create, EventQuery, Send, Sent};
use agentd_core::event::{Body, Event};
use agentd_core::id::Seq;
use agentd_core::spec::{AgentSpec, Sandbox};
use agentd_files::own;
use agentd_process::{Delivery, Identity, Signal, signal};
use agentd_sandbox::Missing;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const NAME: &str = "coder";
const POLL: Duration = Duration::from_millis(10);
/// The timeout of one request for an answer.
const WAIT: Duration = Duration::from_secs(10);

pub struct DemoDaemon {
    pub home: PathBuf,
    pub tree: PathBuf,
    pub connection: Connection,
    follow: Follow,
    /// Every event that the stream has shown, in order.
    pub seen: Vec<Seq>,
    /// The text that was streamed since the last prompt.
    pub streamed: String,
}

/// Why tools cannot run in a sandbox on this kernel, if they cannot.
pub fn missing_sandbox() -> Option<Missing> {
    agentd_sandbox::support().namespaces.err()
}

/// The daemon's state directory.
pub fn home(dir: &Path) -> PathBuf {
    dir.join("home")
}

/// Kills and reaps all processes of the demo when it is dropped.
pub struct Curtain(());

impl Curtain {
    pub fn raise() -> Result<Self, Error> {
        // Orphaned processes become children of the demo, so that it can find and kill them all.
        agentd_process::adopt_orphans().map_err(|error| cannot("adopt processes", error))?;
        Ok(Self(()))
    }
}

impl Drop for Curtain {
    fn drop(&mut self) {
        // An error cannot be reported here.
        let _untold = agentd_process::kill_descendants();
        let _untold = agentd_process::reap_orphans();
    }
}

impl DemoDaemon {
    pub async fn set(dir: &Path) -> Result<Self, Error> {
        let tree = dir.join("work");
        fs::create_dir(&tree).map_err(|error| cannot_use(&tree, error))?;
        let query = EventQuery {
            all: true,
            ..EventQuery::default()
        };
        Ok(Self {
            home: home(dir),
            tree,
            connection: Connection::at(home(dir)).await?,
            follow: Follow::new(NAME, query),
            seen: Vec::new(),
            streamed: String::new(),
        })
    }

    pub const fn client(&self) -> &Client {
        &self.connection.client
    }

    pub async fn create(&self) -> Result<(), Error> {
        let spec = AgentSpec {
            provider: Some("demo".to_owned()),
            cwd: Some(self.tree.display().to_string()),
            sandbox: missing_sandbox().map(|_| Sandbox::FullAccess),
            ..AgentSpec::default()
        };
        let create = Create {
            name: Some(NAME.to_owned()),
            spec,
            env: providers::of_programs().collect(),
            ..Create::default()
        };
        self.client().create(&create).await?;
        Ok(())
    }

    pub async fn agent(&self) -> Result<Agent, Error> {
        Ok(self.client().agent(NAME).await?)
    }

    /// The process that runs the agent.
    pub async fn process(&self) -> Result<Identity, Error> {
        let none = || Error::new(Exit::Failed, "the agent has no process");
        let pid = self.agent().await?.process.pid.ok_or_else(none)?;
        Identity::of(pid).map_err(|error| cannot("identify the agent's process", error))
    }

    pub async fn send(&mut self, claims: &mut Claims<'_>, text: &str) -> Result<Sent, Error> {
        claims.say(&format!("> {text}"))?;
        self.streamed.clear();
        let send = Send {
            text: text.to_owned(),
            ..Send::default()
        };
        Ok(self.client().send(NAME, &send).await?)
    }

    /// Shows events until one matches.
    pub async fn watch(
        &mut self,
        claims: &mut Claims<'_>,
        mut is_it: impl FnMut(&Event) -> bool,
    ) -> Result<(), Error> {
        loop {
            if let Some(event) = self.next(claims).await?
                && is_it(&event)
            {
                return Ok(());
            }
        }
    }

    /// Shows the turn of a prompt to its end.
    pub async fn finish(&mut self, claims: &mut Claims<'_>, sent: &Sent) -> Result<Answer, Error> {
        // There is one turn at a time.
        self.watch(claims, |event| matches!(event.body, Body::TurnEnded(_)))
            .await?;
        Ok(self.client().answer(NAME, sent.prompt, WAIT).await?)
    }

    /// Shows a reply while it streams, until this many lines have arrived.
    pub async fn stream(&mut self, claims: &mut Claims<'_>, lines: usize) -> Result<(), Error> {
        while self.streamed.lines().count() < lines {
            let event = self.next(claims).await?;
            if event.is_some_and(|event| matches!(event.body, Body::TurnEnded(_))) {
                let what = "the turn ended before the reply had enough lines";
                return Err(Error::new(Exit::Failed, what));
            }
            let far = self.streamed.lines().last().unwrap_or_default();
            claims.out.progress(format_args!("   | … {far}"))?;
        }
        Ok(())
    }

    async fn next(&mut self, claims: &mut Claims<'_>) -> Result<Option<Box<Event>>, Error> {
        match self.follow.next(&mut self.connection).await? {
            Seen::Event(event) => {
                self.seen.push(event.seq);
                for line in line::shown(&event) {
                    claims.say(&line)?;
                }
                Ok(Some(event))
            }
            Seen::Delta(delta) => {
                self.streamed.push_str(&delta.text);
                Ok(None)
            }
            Seen::Progress(_) | Seen::CaughtUp | Seen::Lost | Seen::Found => Ok(None),
        }
    }

    /// The journal as it is now. When this returns, the stream has shown all of it.
    pub async fn journal(&mut self, claims: &mut Claims<'_>) -> Result<Journal, Error> {
        let mut events: Vec<Event> = Vec::new();
        loop {
            let query = EventQuery {
                after: events.last().map_or(0, |event| event.seq.0),
                all: true,
                ..EventQuery::default()
            };
            let (page, next) = self.client().page(NAME, &query).await?;
            events.extend(page);
            if next.is_none() {
                break;
            }
        }
        let head = events.last().map(|event| event.seq);
        if self.seen.last().copied() < head {
            self.watch(claims, |event| Some(event.seq) >= head).await?;
        }
        Ok(Journal(events))
    }

    /// The content of a file in the agent's working directory.
    pub fn read(&self, name: &str) -> String {
        own::read_to_string(self.tree.join(name)).unwrap_or_default()
    }

    pub fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.tree.join(name);
        fs::write(&path, text).map_err(|error| cannot_use(&path, error))
    }
}

/// Polls until `look` returns a value.
pub async fn until<T>(mut look: impl AsyncFnMut() -> Result<Option<T>, Error>) -> Result<T, Error> {
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        // tidy: polls
        tokio::time::sleep(POLL).await;
    }
}

/// Kills a process with SIGKILL and waits until it has ended.
pub async fn kill(one: Identity) -> Result<(), Error> {
    let sent = signal(one, Signal::KILL).map_err(|error| cannot("kill a process", error))?;
    if sent == Delivery::Gone {
        return Err(Error::new(Exit::Failed, "a process ended too early"));
    }
    let ended = agentd_process::ended(one).await;
    ended.map_err(|error| cannot("wait for the end of a process", error))
}

pub fn is_alive(one: Identity) -> Result<bool, Error> {
    one.is_alive()
        .map_err(|error| cannot("check a process", error))
}

pub fn cannot(what: &str, error: agentd_process::Error) -> Error {
    Error::new(Exit::Unavailable, format!("the demo cannot {what}")).because(error)
}

fn cannot_use(path: &Path, error: std::io::Error) -> Error {
    let what = format!("cannot use {}", path.display());
    Error::new(Exit::Unavailable, what).because(error)
}
