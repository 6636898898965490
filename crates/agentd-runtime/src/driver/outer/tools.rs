//! The child's own calls. The child runs them; here they are approved, and their ends are waited for.

use crate::driver::Tools;
use crate::outer::{Next, Outer};
use agentd_core::event::{TaskExit, ToolStarted};
use agentd_core::id::{BootId, TaskId};
use agentd_core::message::{Block, CallOutcome, ToolCall};
use agentd_core::outer::ChildEvent;
use agentd_core::permission::{Subject, Verdict, verdict};
use agentd_core::recover::CallFact;
use agentd_core::spec::{ApprovalMode, Decision, Rule};
use agentd_core::state::StartedCall;
use agentd_core::turn::{Consent, Finished, Prepared};
use agentd_core::window::SeenFiles;
use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio::sync::watch;

pub struct OuterTools {
    outer: Outer,
}

impl OuterTools {
    pub const fn new(outer: Outer) -> Self {
        Self { outer }
    }

    /// What the rules say about a question, and then the approval mode; `None` if the call may run. With `approval: never`
    /// the sandbox alone decides.
    fn rule(&self, call: &ToolCall) -> Option<Prepared> {
        let mode = self.outer.approval();
        match ruled(self.outer.rules(), call) {
            Some((Decision::Allow, _)) => None,
            Some((Decision::Ask, why)) if mode != ApprovalMode::Never => Some(Prepared::Ask(why)),
            Some((Decision::Deny | Decision::Ask, why)) => Some(Prepared::Refuse {
                outcome: CallOutcome::Denied,
                blocks: vec![Block::text(format!("The rules refuse this call: {why}."))],
            }),
            None if mode == ApprovalMode::Never => None,
            None => {
                let why = "the agent's program asks for permission";
                Some(Prepared::Ask(why.to_owned()))
            }
        }
    }
}

/// What the rules say about a call, and why. Only the program knows which of its arguments matter: a rule that refuses or
/// asks counts if it matches one of them, and rules that allow count if they match all of them. A command line is compared
/// as a command line.
fn ruled(rules: &[Rule], call: &ToolCall) -> Option<(Decision, String)> {
    let arguments = call.arguments.to_object();
    let subjects = match command_line(&call.name, &arguments) {
        Some(line) => vec![Subject::Command(line)],
        None => texts(&arguments).into_iter().map(Subject::name).collect(),
    };
    let verdicts = subjects
        .iter()
        .map(|subject| verdict(rules, &call.name, subject));
    let verdicts: Vec<_> = match subjects.is_empty() {
        true => vec![verdict(rules, &call.name, &Subject::Names(Vec::new()))],
        false => verdicts.collect(),
    };
    let strictest = |decision: Decision| {
        let mut known = verdicts.iter().flatten();
        known.find(|verdict| verdict.decision == decision)
    };
    let is_allowed = |verdict: &Option<Verdict>| {
        let verdict = verdict.as_ref();
        verdict.is_some_and(|verdict| verdict.decision == Decision::Allow)
    };
    let found = match (strictest(Decision::Deny), strictest(Decision::Ask)) {
        (Some(denies), _) => denies,
        (None, Some(asks)) => asks,
        (None, None) if verdicts.iter().all(is_allowed) => verdicts.first()?.as_ref()?,
        (None, None) => return None,
    };
    Some((found.decision, found.because.to_string()))
}

/// The command line of a call: a text, or words. Of a shell with a script the script counts. Some agents give the command
/// line as the title only.
fn command_line(name: &str, arguments: &Map<String, Value>) -> Option<String> {
    let title = || {
        arguments
            .get("title")
            .filter(|_| name == "execute" && arguments.len() == 1)
    };
    let words = match arguments.get("command").or_else(title)? {
        Value::String(line) => return Some(line.clone()),
        Value::Array(words) => words.iter().map(Value::as_str),
        _ => return None,
    };
    let words: Vec<&str> = words.collect::<Option<_>>()?;
    match words.as_slice() {
        [
            "bash" | "sh" | "/bin/bash" | "/bin/sh",
            "-c" | "-lc",
            script,
        ] => Some((*script).to_owned()),
        words => {
            let quoted = words.iter().map(|word| {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
                match !word.is_empty() && word.chars().all(is_plain) {
                    true => (*word).to_owned(),
                    false => format!("'{}'", word.replace('\'', "'\\''")),
                }
            });
            Some(quoted.collect::<Vec<_>>().join(" "))
        }
    }
}

/// All texts in the arguments. The title is for users; it counts if there is nothing else.
fn texts(arguments: &Map<String, Value>) -> Vec<String> {
    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) => found.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            Value::Object(map) => map.values().for_each(|item| collect(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut found = Vec::new();
    let own = arguments.iter().filter(|(name, _)| *name != "title");
    own.for_each(|(_, value)| collect(value, &mut found));
    if found.is_empty()
        && let Some(title) = arguments.get("title")
    {
        collect(title, &mut found);
    }
    found
}

#[async_trait]
impl Tools for OuterTools {
    async fn prepare(&self, call: &ToolCall, consent: Consent, _seen: &SeenFiles) -> Prepared {
        let talk = self.outer.talk();
        // A question that comes later is asked as a call of its own.
        if consent == Consent::NotAsked
            && talk.has_question()
            && talk.is_in_turn()
            && let Some(prepared) = self.rule(call)
        {
            return prepared;
        }
        let started = ToolStarted {
            call: call.id.clone(),
            tool: call.name.clone(),
            task: None,
            boot: None,
            change: None,
            patched: Vec::new(),
        };
        Prepared::Run(started, Vec::new())
    }

    async fn run(
        &self,
        _call: ToolCall,
        _started: StartedCall,
        mut cancelled: watch::Receiver<bool>,
    ) -> Finished {
        self.outer.allow().await;
        let is_cancelled = async {
            // If the driver is gone, so is the turn.
            drop(cancelled.wait_for(|cancelled| *cancelled).await);
        };
        let next = tokio::select! {
            next = self.outer.talk().call_ended() => next,
            () = is_cancelled => {
                self.outer.cancel(self.outer.newest_turn()).await;
                let text = "The turn was interrupted while this call ran; it may have had an effect.";
                return said(CallOutcome::Interrupted, text);
            }
        };
        match next {
            Next::Ended(ChildEvent::CallEnded {
                outcome, blocks, ..
            }) => Finished::new(outcome, blocks),
            Next::Ended(_) | Next::Over => said(
                CallOutcome::Unknown,
                "Outcome unknown: the agent's program did not report the end of this call.",
            ),
            Next::Question => said(
                CallOutcome::Ok,
                "The call has not ended; the agent's program asks for permission meanwhile. See the next call.",
            ),
        }
    }

    async fn find(&self, _call: &ToolCall, _started: &StartedCall) -> CallFact {
        CallFact::Unknown
    }

    async fn resume(
        &self,
        _call: ToolCall,
        _started: StartedCall,
        _cancelled: watch::Receiver<bool>,
    ) -> Finished {
        said(CallOutcome::Unknown, "The outcome of this call is unknown.")
    }

    async fn task_ended(&self, _task: TaskId, _boot: BootId) -> (TaskExit, String) {
        // It has no tasks of its own. One of an earlier runtime is not waited for.
        std::future::pending().await
    }

    async fn close(&self) {
        self.outer.close().await;
    }
}

fn said(outcome: CallOutcome, text: &str) -> Finished {
    Finished::new(outcome, vec![Block::text(text)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::id::CallId;
    use agentd_core::message::Arguments;
    use serde_json::json;

    fn rule(tool: &str, pattern: &str, decision: Decision) -> Rule {
        Rule {
            tool: tool.to_owned(),
            pattern: Some(pattern.to_owned()),
            decision,
        }
    }

    fn decided(rules: &[Rule], name: &str, arguments: &Value) -> Option<Decision> {
        let call = ToolCall {
            id: CallId::new("c"),
            name: name.to_owned(),
            arguments: Arguments::Object(arguments.as_object().unwrap().clone()),
            signature: None,
        };
        ruled(rules, &call).map(|(decision, _)| decision)
    }

    /// A model could add an argument that an allow rule matches.
    #[test]
    fn an_argument_that_is_allowed_does_not_allow_the_others() {
        let rules = [rule("edit", "src/*", Decision::Allow)];
        let edit = |arguments: Value| decided(&rules, "edit", &arguments);
        assert_eq!(
            edit(json!({"path": "src/a", "title": "Edit"})),
            Some(Decision::Allow)
        );
        assert_eq!(edit(json!({"path": "src/a", "also": "/etc/passwd"})), None);
        assert_eq!(
            edit(json!({"changes": {"x": ["/etc/passwd", "src/a"]}})),
            None
        );
        let refuses = [
            rule("edit", "src/*", Decision::Allow),
            rule("edit", "/etc/*", Decision::Deny),
        ];
        let nested = json!({"path": "src/a", "more": [{"path": "/etc/passwd"}]});
        assert_eq!(decided(&refuses, "edit", &nested), Some(Decision::Deny));
    }

    #[test]
    fn a_command_of_words_is_a_command_line() {
        let rules = [
            rule("execute", "ls *", Decision::Allow),
            rule("execute", "rm *", Decision::Deny),
        ];
        let run = |arguments: Value| decided(&rules, "execute", &arguments);
        assert_eq!(run(json!({"command": "ls -l"})), Some(Decision::Allow));
        let script = json!({"command": ["bash", "-lc", "rm -r x"]});
        assert_eq!(run(script), Some(Decision::Deny));
        assert_eq!(run(json!({"command": ["ls", "-l"]})), Some(Decision::Allow));
        let decoy = json!({"cmd": "rm -r x", "description": "ls -l"});
        assert_eq!(run(decoy), Some(Decision::Deny));
    }
}
