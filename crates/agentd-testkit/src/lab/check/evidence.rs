//! The record of a run, as it was written. Nothing is checked here.

use super::backed_up::Backups;
pub use super::journal::{Event, Journal, try_of};
use super::lines::{files, lines, unreadable};
pub use super::traces::{Effect, Fault, Heard, Process};
use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::io;
use std::path::Path;

/// The directory of one run.
#[derive(Debug, Default)]
pub struct Evidence {
    pub run: Run,
    pub journals: Vec<Journal>,
    pub model: Vec<ModelRequest>,
    pub effects: Vec<Effect>,
    pub clients: Vec<Client>,
    pub prompts: Vec<SentPrompt>,
    pub orders: Vec<Order>,
    pub faults: Vec<Fault>,
    /// What hooks recorded themselves.
    pub heard: Vec<Heard>,
    pub processes: Vec<Process>,
    pub status: Vec<Status>,
    pub files: Vec<SeenFile>,
    pub webhooks: Vec<SentWebhook>,
    pub backups: Backups,
}

#[derive(Debug, Default, Deserialize)]
pub struct Run {
    #[serde(default)]
    pub scenario: String,
    #[serde(default)]
    pub agents: Vec<Named>,
    /// When it began, in microseconds since 1970.
    #[serde(default)]
    pub began_unix_us: u64,
    /// What the scenario tells the checker.
    #[serde(default)]
    pub expects: Value,
}

#[derive(Debug, Deserialize)]
pub struct Named {
    pub id: String,
    #[serde(default)]
    pub name: String,
}

#[derive(Debug, Deserialize)]
pub struct ModelRequest {
    #[serde(default)]
    pub at: u64,
    pub n: u64,
    #[serde(default)]
    pub agent: Option<String>,
    pub body: Value,
    pub accepted: bool,
    #[serde(default)]
    pub violations: Vec<Value>,
    /// The reply was sent completely.
    #[serde(default)]
    pub finished: bool,
}

/// What one client saw, in order.
#[derive(Debug, Default)]
pub struct Client {
    pub name: String,
    pub head: ClientHead,
    pub saw: Vec<Value>,
}

#[derive(Debug, Default, Deserialize)]
pub struct ClientHead {
    #[serde(default)]
    pub client: String,
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub agent: Option<String>,
    #[serde(default)]
    pub from: Option<u64>,
    /// It requested only some events, so there are gaps.
    #[serde(default)]
    pub filtered: bool,
}

#[derive(Debug, Deserialize)]
pub struct SentPrompt {
    #[serde(default)]
    pub at: u64,
    pub agent: String,
    #[serde(default)]
    pub key: Option<String>,
    #[serde(default)]
    pub text: String,
    /// The files that were attached: names and contents, text as it is and all else in base64.
    #[serde(default)]
    pub files: Vec<(String, String)>,
    pub acknowledged: bool,
    #[serde(default)]
    pub prompt: Option<String>,
    /// What the sender was told in the end.
    #[serde(default)]
    pub status: Option<String>,
    #[serde(default)]
    pub exit: Option<i64>,
}

/// Any other request of a client.
#[derive(Debug, Deserialize)]
pub struct Order {
    #[serde(default)]
    pub at: u64,
    /// When the answer arrived.
    #[serde(default, alias = "until")]
    pub answered_at: Option<u64>,
    pub agent: String,
    pub verb: String,
    #[serde(default)]
    pub op: Option<String>,
    /// The approval that is answered.
    #[serde(default)]
    pub approval: Option<String>,
    pub acknowledged: bool,
    #[serde(default)]
    pub answer: Value,
    /// It came from a process that a tool started.
    #[serde(default)]
    pub from_tool: bool,
}

#[derive(Debug, Deserialize)]
pub struct Status {
    pub agent: String,
    pub show: Value,
}

/// What a reader found in a file.
#[derive(Debug, Deserialize)]
pub struct SeenFile {
    pub path: String,
    /// `first`, before the run; `last`, after it; or `seen`.
    pub when: String,
    /// None if there was no file.
    #[serde(default)]
    pub text: Option<String>,
}

/// A request that a webhook received.
#[derive(Debug, Deserialize)]
pub struct SentWebhook {
    pub id: String,
    /// It was answered with success.
    pub accepted: bool,
    /// Its signature is valid.
    pub signed: bool,
    pub raw: String,
}

impl Evidence {
    pub fn read(run: &Path) -> io::Result<Self> {
        let about = fs::read_to_string(run.join("run.json"))?;
        let about: Run =
            serde_json::from_str(&about).map_err(|error| unreadable("run.json", &error))?;
        let mut evidence = Self {
            run: about,
            model: lines(run, "model.jsonl")?,
            effects: lines(run, "effects.jsonl")?,
            prompts: lines(run, "prompts.jsonl")?,
            orders: lines(run, "orders.jsonl")?,
            faults: lines(run, "faults.jsonl")?,
            heard: lines(run, "heard.jsonl")?,
            processes: lines(run, "processes.jsonl")?,
            status: lines(run, "status.jsonl")?,
            files: lines(run, "files.jsonl")?,
            webhooks: lines(run, "webhooks.jsonl")?,
            backups: Backups::read(run)?,
            ..Self::default()
        };
        for name in files(&run.join("export"))? {
            let lines = lines(run, &format!("export/{name}"))?;
            evidence.journals.push(Journal::read(&name, lines));
        }
        for name in files(&run.join("clients"))? {
            let mut saw: Vec<Value> = lines(run, &format!("clients/{name}"))?;
            if saw.is_empty() {
                continue;
            }
            let head = serde_json::from_value(saw.remove(0));
            let head = head.map_err(|error| unreadable(&name, &error))?;
            evidence.clients.push(Client { name, head, saw });
        }
        Ok(evidence)
    }

    /// Whether the power was off at this time. The processes lived on for a moment, as they could not on a real machine.
    pub fn is_off(&self, at: u64) -> bool {
        let times = self.run.expects["power_off"].as_array();
        times.into_iter().flatten().any(|time| {
            let [off, on] = [&time[0], &time[1]].map(Value::as_u64);
            off.is_some_and(|off| off <= at) && on.is_some_and(|on| at <= on)
        })
    }

    /// Whether the shim of this task or hook was killed.
    pub fn shim_was_killed(&self, task: &str) -> bool {
        let mut faults = self.faults.iter();
        faults.any(|it| it.role == "shim" && it.what == "KILL" && it.task.as_deref() == Some(task))
    }

    /// The id of an agent, from its id or its name.
    pub fn id<'a>(&'a self, agent: &'a str) -> &'a str {
        let named = self.run.agents.iter().find(|known| known.name == agent);
        named.map_or(agent, |known| &known.id)
    }
}
