//! The journal of one agent, as an export has it.

use super::apart;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

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

impl Journal {
    /// An export: its agent, the separately stored strings, the events, and their number.
    pub fn read(name: &str, lines: Vec<Value>) -> Self {
        let mut journal = Self {
            agent: name.trim_end_matches(".jsonl").to_owned(),
            ..Self::default()
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
}
