//! What processes recorded: tools and hooks themselves, the faults that were injected, and the processes that
//! existed in the end.

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub struct Effect {
    pub call: String,
    #[serde(default)]
    pub agent: Option<String>,
    /// The task, or the command of the user; none if its shim was gone.
    #[serde(default)]
    pub task: Option<String>,
    pub pid: u64,
    /// The PID namespace that the pid counts in.
    #[serde(default)]
    pub pid_ns: String,
    #[serde(default)]
    pub start: u64,
    #[serde(default)]
    pub what: String,
    #[serde(default)]
    pub at: u64,
}

#[derive(Debug, Deserialize)]
pub struct Fault {
    #[serde(default)]
    pub at: u64,
    #[serde(default)]
    pub role: String,
    #[serde(default)]
    pub what: String,
    /// The task or hook whose shim was hit.
    #[serde(default)]
    pub task: Option<String>,
}

/// A hook that ran, as it recorded itself.
#[derive(Debug, Deserialize)]
pub struct Heard {
    pub event: String,
    #[serde(default)]
    pub agent: String,
    #[serde(default)]
    pub session: String,
    /// Its id; none if its shim was gone before it could look.
    #[serde(default)]
    pub hook: Option<String>,
    #[serde(default)]
    pub turn: Option<String>,
    #[serde(default)]
    pub op: Option<String>,
    #[serde(default)]
    pub call: Option<String>,
    #[serde(default)]
    pub prompt: Option<String>,
    #[serde(default)]
    pub source: Option<String>,
    /// The turn continues because of a hook.
    #[serde(default)]
    pub active: Option<bool>,
    pub pid: u64,
    #[serde(default)]
    pub start: u64,
    /// It denies.
    #[serde(default)]
    pub denies: bool,
    /// Its text for the model.
    #[serde(default)]
    pub says: Option<String>,
    /// The last event in the transcript that it read.
    #[serde(default)]
    pub transcript: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub struct Process {
    pub when: String,
    pub pid: u64,
    #[serde(default)]
    pub ppid: u64,
    #[serde(default)]
    pub state: String,
    #[serde(default)]
    pub cmdline: Value,
    #[serde(default)]
    pub environ_mark: bool,
    #[serde(default)]
    pub role: String,
}

impl Process {
    /// The command line as one string, whichever way it was recorded.
    pub fn command(&self) -> String {
        match &self.cmdline {
            Value::String(line) => line.clone(),
            Value::Array(words) => {
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                words.join(" ")
            }
            _ => String::new(),
        }
    }

    pub fn is_zombie(&self) -> bool {
        self.state.starts_with('Z') || self.state.starts_with('X')
    }
}
