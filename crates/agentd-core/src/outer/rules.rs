//! What the rules of an agent say about a call of its program. Only the program knows which of its arguments matter.

use crate::message::ToolCall;
use crate::permission::{Subject, Verdict, verdict};
use crate::spec::{Decision, Rule};
use serde_json::{Map, Value};

const COMMAND: &str = "command";
const TITLE: &str = "title";
/// The program's own words about the call, for users. They count only if there is nothing else.
const WORDS: [&str; 2] = [TITLE, "description"];

/// What the rules say about a call, and why. A rule that refuses or asks counts if it matches one of the call's texts, and
/// rules that allow count if they match all of them. A command line is compared as a command line.
pub fn ruled(rules: &[Rule], call: &ToolCall) -> Option<(Decision, String)> {
    let subjects = subjects(&call.name, &call.arguments.to_object());
    let verdicts = subjects
        .iter()
        .map(|subject| verdict(rules, &call.name, subject));
    let verdicts: Vec<Option<Verdict>> = verdicts.collect();
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

/// The command line of a call that consists of nothing else: a rule with this pattern is about this call only.
pub fn only_command(name: &str, arguments: &Map<String, Value>) -> Option<String> {
    let mut subjects = subjects(name, arguments);
    match subjects.pop() {
        Some(Subject::Command(line)) if subjects.is_empty() => Some(line),
        _ => None,
    }
}

/// What the rules are compared with: the command line, and all other texts. At least one.
fn subjects(name: &str, arguments: &Map<String, Value>) -> Vec<Subject> {
    let line = command_line(name, arguments);
    let mut found = Vec::new();
    for (key, value) in arguments {
        let is_line = line.is_some() && key == COMMAND;
        if !is_line && !WORDS.contains(&key.as_str()) {
            collect(value, &mut found);
        }
    }
    if line.is_none() && found.is_empty() {
        let words = WORDS.iter().filter_map(|key| arguments.get(*key));
        words.for_each(|value| collect(value, &mut found));
    }
    let line = line.map(Subject::Command);
    let mut subjects: Vec<Subject> = line.into_iter().collect();
    subjects.extend(found.into_iter().map(Subject::name));
    if subjects.is_empty() {
        // Only rules without a pattern are about it.
        subjects.push(Subject::Names(Vec::new()));
    }
    subjects
}

/// The command line of a call: a text, or words. Of a shell with a script the script counts. Some agents give the command
/// line as the title only.
fn command_line(name: &str, arguments: &Map<String, Value>) -> Option<String> {
    let title = || {
        let is_alone = name == "execute" && arguments.len() == 1;
        arguments.get(TITLE).filter(|_| is_alone)
    };
    let words = match arguments.get(COMMAND).or_else(title)? {
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

/// All texts in a value.
fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(map) => map.values().for_each(|item| collect(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::CallId;
    use crate::message::Arguments;
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
        // The program's words are for users.
        let described = json!({"command": "ls -l", "description": "List", "title": "`ls -l`"});
        assert_eq!(run(described), Some(Decision::Allow));
        assert_eq!(run(json!({"title": "rm -r x"})), Some(Decision::Deny));
    }

    /// A model could add a `command` to a call that reads another argument.
    #[test]
    fn a_command_does_not_hide_the_other_arguments() {
        let refuses = [rule("edit", "/etc/*", Decision::Deny)];
        let edit = json!({"path": "/etc/passwd", "command": "x"});
        assert_eq!(decided(&refuses, "edit", &edit), Some(Decision::Deny));
        let allows = [rule("execute", "ls *", Decision::Allow)];
        let decoy = json!({"cmd": "rm -r x", "command": "ls -l"});
        assert_eq!(decided(&allows, "execute", &decoy), None);
        let no_line = json!({"command": {"path": "/etc/passwd"}});
        assert_eq!(decided(&refuses, "edit", &no_line), Some(Decision::Deny));
    }

    #[test]
    fn a_pattern_is_bound_to_a_call_that_is_a_command_line_only() {
        let line = |arguments: Value| only_command("execute", arguments.as_object().unwrap());
        let words = json!({"command": ["ls", "a b"], "timeout": 5, "title": "List"});
        assert_eq!(line(words), Some("ls 'a b'".to_owned()));
        assert_eq!(line(json!({"command": "ls", "cwd": "/"})), None);
        assert_eq!(line(json!({"path": "ls"})), None);
        assert_eq!(line(json!({})), None);
    }
}
