//! A run's directory, to be doctored before it is written.

use super::super::{Violation, check};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub const AGENT: &str = "00000000-0000-7000-8000-00000000000a";

pub struct RunDir {
    pub run: Value,
    pub events: Vec<Value>,
    pub model: Vec<Value>,
    pub effects: Vec<Value>,
    pub clients: BTreeMap<String, Vec<Value>>,
    pub prompts: Vec<Value>,
    pub orders: Vec<Value>,
    pub faults: Vec<Value>,
    pub heard: Vec<Value>,
    /// Journals of further agents.
    pub others: BTreeMap<String, Vec<Value>>,
    pub processes: Vec<Value>,
    pub status: Vec<Value>,
    pub files: Vec<Value>,
    pub webhooks: Vec<Value>,
    /// Attempts to make a backup, checks of backups, and homes that were restored.
    pub backups: Vec<Value>,
    pub backup_checks: Vec<Value>,
    pub restored: Vec<Value>,
    /// The journals of restored homes, by the number of the home and the agent.
    pub copies: BTreeMap<(u64, String), Vec<Value>>,
    /// How many events the export says it has; none for as many as there are.
    pub said: Option<usize>,
}

impl RunDir {
    /// Writes it, and has it checked.
    pub fn check(&self) -> Vec<Violation> {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir(root.join("export")).unwrap();
        std::fs::create_dir(root.join("clients")).unwrap();
        std::fs::create_dir(root.join("restored")).unwrap();
        std::fs::write(root.join("run.json"), self.run.to_string()).unwrap();
        let write = |name: &str, lines: &[Value]| {
            let mut text = String::new();
            for line in lines {
                writeln!(text, "{line}").unwrap();
            }
            std::fs::write(root.join(name), text).unwrap();
        };
        let journal = |name: &str, agent: &str, events: &[Value], said: usize| {
            let mut export = vec![
                json!({"line": "export", "format": 1, "agent": agent}),
                json!({"line": "journal", "agent": agent}),
            ];
            for event in events {
                let mut event = event.clone();
                event["line"] = json!("event");
                export.push(event);
            }
            export.push(json!({"line": "end", "events": said}));
            write(name, &export);
        };
        let export = |agent: &str, events: &[Value], said: usize| {
            journal(&format!("export/{agent}.jsonl"), agent, events, said);
        };
        export(AGENT, &self.events, self.said.unwrap_or(self.events.len()));
        for (agent, events) in &self.others {
            export(agent, events, events.len());
        }
        for ((number, agent), events) in &self.copies {
            let name = format!("restored/{number}.{agent}.jsonl");
            journal(&name, agent, events, events.len());
        }
        write("model.jsonl", &self.model);
        write("effects.jsonl", &self.effects);
        write("prompts.jsonl", &self.prompts);
        write("orders.jsonl", &self.orders);
        write("faults.jsonl", &self.faults);
        write("heard.jsonl", &self.heard);
        write("processes.jsonl", &self.processes);
        write("status.jsonl", &self.status);
        write("files.jsonl", &self.files);
        write("webhooks.jsonl", &self.webhooks);
        write("backups.jsonl", &self.backups);
        write("backup_checks.jsonl", &self.backup_checks);
        write("restored.jsonl", &self.restored);
        for (name, lines) in &self.clients {
            write(&format!("clients/{name}.jsonl"), lines);
        }
        check(root).unwrap()
    }

    /// The place of the only event of this kind that has this in its body.
    pub fn find(&self, kind: &str, body: &str) -> usize {
        let is_it =
            |event: &Value| event["kind"] == kind && event["body"].to_string().contains(body);
        let found: Vec<usize> = (0..self.events.len())
            .filter(|at| is_it(&self.events[*at]))
            .collect();
        assert_eq!(found.len(), 1, "{kind} {body}");
        found[0]
    }

    /// Takes events out, as if they had never been written.
    pub fn remove(&mut self, kind: &str, body: &str) -> Value {
        let removed = self.events.remove(self.find(kind, body));
        self.renumber();
        removed
    }

    /// Puts an event behind the one at `at`.
    pub fn insert(&mut self, at: usize, kind: &str, body: Value) {
        let mut event = self.events[at].clone();
        event["kind"] = json!(kind);
        event["body"] = body;
        self.events.insert(at + 1, event);
        self.renumber();
    }

    /// Writes the event at `at` once more, right behind it.
    pub fn again(&mut self, at: usize) {
        let event = self.events[at].clone();
        self.events.insert(at + 1, event);
        self.renumber();
    }

    /// Leaves out everything from event `at` on, and what others say about it.
    pub fn cut(&mut self, at: usize) {
        self.events.truncate(at);
        self.renumber();
    }

    /// Numbers have no gaps, and what names one names the same event; clients that saw other events are left out.
    fn renumber(&mut self) {
        let mut numbers = BTreeMap::new();
        for (index, event) in self.events.iter_mut().enumerate() {
            let before = event["seq"].as_u64().unwrap();
            numbers.entry(before).or_insert(index + 1);
            event["seq"] = json!(index + 1);
        }
        for event in &mut self.events {
            let named = event["body"].pointer_mut("/through/seq");
            if let Some(named) = named {
                *named = json!(numbers[&named.as_u64().unwrap()]);
            }
        }
        self.clients.clear();
        self.status.clear();
    }

    /// The event at this place.
    pub fn event(&mut self, kind: &str, body: &str) -> &mut Value {
        let at = self.find(kind, body);
        &mut self.events[at]
    }
}
