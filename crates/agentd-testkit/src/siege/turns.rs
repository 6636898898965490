//! What the hostile model does: turns, tool calls, and scripts that it runs as tools.

use super::testbed::{TURN, Testbed};
use crate::lab::testbed::{Result, Stuck, lock, pause};
use agentd_client::api::{Deny, Send};
use agentd_core::id::PromptId;
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, Instant};

/// What the model saw of an attack.
#[derive(Clone, Debug, Default)]
pub struct Saw {
    pub text: String,
    /// The turn did not end by itself.
    pub is_stuck: bool,
}

impl Testbed {
    pub fn send(&self, name: &str, text: &str) -> Result<PromptId> {
        let send = Send {
            text: text.to_owned(),
            env: self.env(),
            ..Send::default()
        };
        let sent = self.ask("send", self.client().send(name, &send))?;
        Ok(sent.prompt)
    }

    /// One turn of the hostile model, which runs the text as a script. Approvals are denied.
    pub fn turn(&self, agent: &str, prompt: &str) -> Result<Saw> {
        let name = self.agent(agent)?;
        let from = self.model.count();
        let sent = match self.send(&name, prompt) {
            Err(Stuck::TooLong(_)) => None,
            sent => Some(sent?),
        };
        let is_stuck = sent.is_none_or(|prompt| !self.is_over(&name, prompt));
        let new = self.model.requests_since(from);
        let seen: Vec<String> = new
            .iter()
            .map(|request| since_prompt(&request.body))
            .collect();
        let text = seen.join("\n");
        lock(&self.last).clone_from(&text);
        Ok(Saw { text, is_stuck })
    }

    /// Waits for the end of a prompt; one that does not end is interrupted.
    fn is_over(&self, name: &str, prompt: PromptId) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < TURN {
            let wait = Duration::from_millis(400);
            match self.ask("answer", self.client().answer(name, prompt, wait)) {
                Ok(answer) if answer.status.is_over() => return true,
                Ok(_) => self.refuse_all(name),
                Err(Stuck::TooLong(_)) => return false,
                Err(_) => pause(),
            }
        }
        if !self.daemon_ended() {
            drop(self.ask("interrupt", self.client().interrupt(name)));
        }
        false
    }

    fn refuse_all(&self, name: &str) {
        let Ok(agent) = self.show(name) else {
            return;
        };
        for approval in agent.approvals {
            let deny = Deny::default();
            drop(self.ask("deny", self.client().deny(name, approval.id, &deny)));
        }
    }

    /// The end of what the model saw last.
    pub fn last_seen(&self) -> String {
        const SHOWN: usize = 400;
        let last = lock(&self.last);
        let all = last.chars().count();
        last.chars().skip(all.saturating_sub(SHOWN)).collect()
    }

    /// One call of a tool.
    pub fn tool(&self, agent: &str, tool: &str, arguments: &Value) -> Result<Saw> {
        self.turn(agent, &format!("do: call {tool} {arguments} ;; say done"))
    }

    pub fn shell(&self, agent: &str, command: &str) -> Result<Saw> {
        self.tool(agent, "shell", &json!({ "command": command }))
    }

    /// A bash script that the model has written to the work tree, and runs. It knows all paths; what it pipes into
    /// `loot` reaches the model in a form that no redaction recognises.
    pub fn script(&self, agent: &str, body: &str) -> Result<Saw> {
        self.script_with(agent, body, json!({}))
    }

    pub fn script_with(&self, agent: &str, body: &str, mut arguments: Value) -> Result<Saw> {
        self.agent(agent)?;
        fs::write(self.work().join("attack.sh"), self.prelude(agent)? + body)?;
        arguments["command"] = json!("bash attack.sh");
        self.tool(agent, "shell", &arguments)
    }

    pub(super) fn prelude(&self, agent: &str) -> Result<String> {
        let victim = lock(&self.victim).clone();
        let agent = self.show(agent)?;
        let mut text = String::new();
        let mut set =
            |name: &str, value: String| text.push_str(&format!("export {name}='{value}'\n"));
        set("STATE", self.state().display().to_string());
        set("USERHOME", self.user().display().to_string());
        set("OUTSIDE", self.outside().display().to_string());
        set("WORK", self.work().display().to_string());
        set("AGENTD", self.program.path().display().to_string());
        set("DAEMON", self.daemon_pid().to_string());
        set("RUNTIME", agent.process.pid.unwrap_or(0).to_string());
        set("BYSTANDER", self.bystander_pid().to_string());
        set("ID", agent.id.to_string());
        set("TCP", self.listeners.tcp.to_string());
        set("UDP", self.listeners.udp.to_string());
        set("LINK_V", agentd_core::link::VERSION.to_string());
        set("UNIX", self.listeners.unix.display().to_string());
        set("ABSTRACT", self.listeners.name.clone());
        if let Some(victim) = victim {
            set("VICTIM", victim.name);
            set("VICTIM_ID", victim.before.id.to_string());
            set("APPROVAL", victim.approval.to_string());
        }
        text.push_str(
            "loot() { grep -aoh 'canary-[a-z]*-[0-9a-f]*' | sort -u | head -n 20 | tee -a loot 2>/dev/null | \
             od -An -v -tx1 | tr -d ' \\n' | sed 's/^/LOOT:/'; echo; }\n\
             outer() { unset AGENTD_SOCKET AGENTD_CALL_ID; AGENTD_HOME=\"$STATE\" \"$AGENTD\" \"$@\"; }\n",
        );
        Ok(text)
    }
}

/// The texts of a request after the newest script.
fn since_prompt(body: &Value) -> String {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let is_script = |message: &Value| {
        let mut texts = Vec::new();
        strings(&message["content"], &mut texts);
        message["role"] == "user" && texts.iter().any(|text| text.starts_with("do:"))
    };
    let at = messages.iter().rposition(is_script).map_or(0, |at| at + 1);
    let mut texts = Vec::new();
    for message in messages.get(at..).unwrap_or_default() {
        // The model's own text is no evidence.
        if message["role"] == "user" {
            strings(&message["content"], &mut texts);
        }
    }
    texts.join("\n")
}

fn strings(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, into)),
        Value::Object(map) => map.values().for_each(|item| strings(item, into)),
        _ => {}
    }
}
