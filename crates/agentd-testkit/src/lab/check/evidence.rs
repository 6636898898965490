//! The record of a run, as it was written. Nothing is checked here.

use super::apart;
use super::backed_up::Backups;
pub use super::traces::{Effect, Fault, Heard, Process};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
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

/// The output of `agentd export` for one agent.
#[derive(Debug, Default)]
pub struct Journal {
    pub agent: String,
    pub events: Vec<Event>,
    /// The parts of other agents' journals that this one's branches need.
    pub others: BTreeMap<String, Vec<Event>>,
    /// What is wrong with the file itself.
    pub damage: Option<String>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Event {
    pub seq: u64,
    /// Milliseconds since 1970; never used for order.
    #[serde(default)]
    pub at: u64,
    pub conversation: String,
    #[serde(default)]
    pub turn: Option<String>,
    pub kind: String,
    /// Null if it was purged.
    #[serde(default)]
    pub body: Value,
}

impl Event {
    pub fn is(&self, kind: &str) -> bool {
        self.kind == kind
    }

    /// A string of the body, or an empty one.
    pub fn text(&self, key: &str) -> &str {
        self.body[key].as_str().unwrap_or_default()
    }

    /// A list of strings of the body.
    pub fn list(&self, key: &str) -> Vec<&str> {
        let items = self.body[key].as_array().into_iter().flatten();
        items.filter_map(Value::as_str).collect()
    }

    /// The try that the event is about, as `incarnation.n`.
    pub fn request(&self) -> Option<String> {
        try_of(&self.body["request"])
    }
}

/// A try, written as an object or as text.
pub fn try_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(of) => {
            let (incarnation, n) = (of.get("incarnation")?, of.get("n")?);
            Some(format!("{incarnation}.{n}"))
        }
        _ => None,
    }
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
            evidence.journals.push(journal(&name, lines));
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

fn unreadable(name: &str, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{name}: {error}"))
}

/// The names of the files in a directory, in order. None if the directory does not exist.
pub fn files(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    match fs::read_dir(dir) {
        Ok(entries) => {
            for entry in entries {
                names.push(entry?.file_name().to_string_lossy().into_owned());
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    names.sort();
    Ok(names)
}

/// A file of JSON lines; a missing file counts as empty. A last line without a newline, of a process that was killed
/// while writing it, is ignored.
pub fn lines<T: DeserializeOwned>(run: &Path, name: &str) -> io::Result<Vec<T>> {
    let bytes = match fs::read(run.join(name)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut values = Vec::new();
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let is_blank = line.iter().all(u8::is_ascii_whitespace);
        if is_blank {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(value) => values.push(value),
            Err(_) if !line.ends_with(b"\n") => {}
            Err(error) => return Err(unreadable(&format!("{name}:{}", index + 1), &error)),
        }
    }
    Ok(values)
}

/// An export: its agent, the separately stored strings, the events, and their number.
pub fn journal(name: &str, lines: Vec<Value>) -> Journal {
    let mut journal = Journal {
        agent: name.trim_end_matches(".jsonl").to_owned(),
        ..Journal::default()
    };
    let mut blobs = BTreeMap::new();
    let mut whose = String::new();
    let (mut count, mut end) = (0u64, None);
    let mut damage = None;
    for mut line in lines {
        match line["line"].as_str().unwrap_or_default() {
            "export" => journal.agent = line["agent"].as_str().unwrap_or_default().to_owned(),
            "journal" => whose = line["agent"].as_str().unwrap_or_default().to_owned(),
            "blob" => {
                let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
                blobs.insert(text("hash"), text("text"));
            }
            "event" => {
                count += 1;
                let apart = line["apart"].take();
                let restored = apart::restore(&mut line["body"], &apart, &blobs);
                damage = damage.or(restored.err());
                match serde_json::from_value(line) {
                    Ok(event) if whose == journal.agent => journal.events.push(event),
                    Ok(event) => journal.others.entry(whose.clone()).or_default().push(event),
                    Err(error) => damage = damage.or_else(|| Some(error.to_string())),
                }
            }
            "end" => end = line["events"].as_u64(),
            other => damage = damage.or_else(|| Some(format!("a line of kind `{other}`"))),
        }
    }
    journal.damage = damage.or(match end {
        Some(told) if told == count => None,
        Some(told) => Some(format!(
            "the export has {count} events, but its end says {told}"
        )),
        None => Some("the export is truncated".to_owned()),
    });
    journal
}
