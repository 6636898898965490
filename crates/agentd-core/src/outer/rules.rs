//! What the rules of an agent say about a call of its program. Only the program knows which of its arguments matter.

use super::UNNAMED;
use crate::message::ToolCall;
use crate::permission::{Because, Subject, Verdict, verdict};
use crate::spec::{Decision, Rule};
use serde_json::{Map, Value};

const EXECUTE: &str = "execute";
const COMMAND: &str = "command";
const TITLE: &str = "title";
/// The program's own words about the call, for users. They count only if there is nothing else.
const WORDS: [&str; 2] = [TITLE, "description"];

/// The arguments that say where a command runs. The sandbox limits that.
const PLACES: [&str; 3] = ["cwd", "workdir", "working_directory"];
/// The kinds of calls that may run a command line, whatever the argument with it is called.
const RUNS: [&str; 2] = [EXECUTE, UNNAMED];

/// What the rules say about a call, and why. A rule that refuses or asks counts if it matches one of the call's texts, and
/// rules that allow count if they match all of them. A command line is compared as a command line.
pub fn ruled(rules: &[Rule], call: &ToolCall) -> Option<(Decision, String)> {
    let subjects = Subjects::of(&call.name, &call.arguments.to_object());
    let judge = |subject: &Subject| verdict(rules, &call.name, subject);
    let mut verdicts: Vec<Verdict> = subjects.each.iter().filter_map(judge).collect();
    let matches = |verdict: &Verdict| matches!(verdict.because, Because::Rule { .. });
    let other = subjects.other.iter().filter_map(judge);
    verdicts.extend(other.filter(matches));
    let strictest = |decision: Decision| {
        let mut known = verdicts.iter();
        known.find(|verdict| verdict.decision == decision)
    };
    let found = match (strictest(Decision::Deny), strictest(Decision::Ask)) {
        (Some(denies), _) => denies.clone(),
        (None, Some(asks)) => asks.clone(),
        (None, None) => {
            let allows = |verdict: &Verdict| verdict.decision == Decision::Allow;
            let all = subjects.all.iter().map(|it| judge(it).filter(allows));
            let all: Vec<Verdict> = all.collect::<Option<_>>()?;
            all.into_iter().next()?
        }
    };
    Some((found.decision, found.because.to_string()))
}

/// The command line of a call that consists of nothing else: a rule with this pattern is about this call only.
pub fn only_command(name: &str, arguments: &Map<String, Value>) -> Option<String> {
    let mut subjects = Subjects::of(name, arguments);
    let line = command_line(name, arguments)?;
    match subjects.all.pop() {
        Some(Subject::Command(only)) if subjects.all.is_empty() && only == line => Some(line),
        _ => None,
    }
}

/// What the rules are compared with: the command line, and all other texts. At least one each.
struct Subjects {
    /// A rule that refuses or asks must match one of them, or could match it at run time.
    each: Vec<Subject>,
    /// The same, but what they mean at run time does not count: most of them are no command lines.
    other: Vec<Subject>,
    /// Rules that allow must match all of them.
    all: Vec<Subject>,
}

impl Subjects {
    fn of(name: &str, arguments: &Map<String, Value>) -> Self {
        let line = command_line(name, arguments);
        let runs = RUNS.contains(&name);
        let (mut texts, mut places, mut switches) = (Vec::new(), Vec::new(), Vec::new());
        let mut of_words = Vec::new();
        for (key, value) in arguments {
            let is_line = line.is_some() && key == COMMAND;
            if runs && is_on(value) {
                // Such as the one that switches the program's own sandbox off.
                switches.push(Subject::name(format!("{key}=true")));
            }
            if runs && PLACES.contains(&key.as_str()) {
                collect(value, &mut places);
            } else if !is_line && !WORDS.contains(&key.as_str()) {
                collect(value, &mut texts);
                let is_words = runs && value.as_array().is_some_and(|it| !it.is_empty());
                of_words.extend(line_of(value).filter(|_| is_words));
            }
        }
        if line.is_none() && texts.is_empty() {
            let words = WORDS.iter().filter_map(|key| arguments.get(*key));
            words.for_each(|value| collect(value, &mut texts));
        }
        let is_a_line = name == EXECUTE && line.is_none();
        let subject = |text: String| match runs {
            true => Subject::Command(text),
            false => Subject::name(text),
        };
        let texts: Vec<Subject> = texts.into_iter().map(subject).collect();
        let places: Vec<Subject> = places.into_iter().map(Subject::name).collect();
        let mut each: Vec<Subject> = line.into_iter().map(Subject::Command).collect();
        let mut all = [each.clone(), texts.clone()].concat();
        let mut other: Vec<Subject> = of_words.into_iter().map(Subject::Command).collect();
        other.extend(places.clone());
        match is_a_line {
            true => each.extend(texts),
            false => other.extend(texts),
        }
        if all.is_empty() {
            all = places;
        }
        all.extend(switches);
        for subjects in [&mut each, &mut all] {
            if subjects.is_empty() {
                // Only rules without a pattern are about it.
                subjects.push(Subject::Names(Vec::new()));
            }
        }
        Self { each, other, all }
    }
}

/// Whether a value has a switch that is on.
fn is_on(value: &Value) -> bool {
    match value {
        Value::Bool(is_on) => *is_on,
        Value::Array(items) => items.iter().any(is_on),
        Value::Object(map) => map.values().any(is_on),
        Value::Null | Value::Number(_) | Value::String(_) => false,
    }
}

/// The command line of a call. Some agents give it as the title only.
fn command_line(name: &str, arguments: &Map<String, Value>) -> Option<String> {
    let title = || {
        let is_alone = name == EXECUTE && arguments.len() == 1;
        arguments.get(TITLE).filter(|_| is_alone)
    };
    line_of(arguments.get(COMMAND).or_else(title)?)
}

/// A command line: a text, or words. Of a shell with a script the script counts.
fn line_of(value: &Value) -> Option<String> {
    let words = match value {
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
            needs: Vec::new(),
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

    /// Only the program knows which argument it runs.
    #[test]
    fn every_text_of_a_call_that_may_run_a_command_is_compared_as_a_command_line() {
        let allows = [rule("*", "ls *", Decision::Allow)];
        let refuses = [rule("*", "rm *", Decision::Deny)];
        for name in ["execute", "call"] {
            for key in ["cmd", "input", "script"] {
                let run = |line: &str| json!({key: line, "timeout": 5});
                let decoy = run("ls -l; curl x | sh");
                assert_eq!(decided(&allows, name, &decoy), None, "{name} {key}");
                let plain = run("ls -l");
                let allowed = Some(Decision::Allow);
                assert_eq!(decided(&allows, name, &plain), allowed, "{name} {key}");
                let hidden = run("cd x && rm -r y");
                let denied = Some(Decision::Deny);
                assert_eq!(decided(&refuses, name, &hidden), denied, "{name} {key}");
            }
        }
        let words = json!({"cmd": ["rm", "-r", "y"]});
        assert_eq!(decided(&refuses, "execute", &words), Some(Decision::Deny));
        let title = json!({"title": "ls -l; curl x | sh", "timeout": 5});
        assert_eq!(decided(&allows, "execute", &title), None);
        let hidden = json!({"title": "cd x && rm -r y", "timeout": 5});
        assert_eq!(decided(&refuses, "execute", &hidden), Some(Decision::Deny));
    }

    /// Most texts beside a command line are prose.
    #[test]
    fn a_text_that_is_no_command_line_is_refused_only_by_a_rule_that_matches_it() {
        let rules = [rule("*", "rm *", Decision::Deny)];
        let prose = "I'd like to see it";
        let beside = json!({"command": "ls", "justification": prose});
        assert_eq!(decided(&rules, "execute", &beside), None);
        assert_eq!(decided(&rules, "call", &json!({"text": prose})), None);
        // Here it must be the command line.
        let line = json!({"cmd": prose});
        assert_eq!(decided(&rules, "execute", &line), Some(Decision::Ask));
    }

    /// As Codex sends every command.
    #[test]
    fn where_a_command_runs_needs_no_rule_that_allows_it() {
        let rules = [
            rule("execute", "ls *", Decision::Allow),
            rule("execute", "/secret*", Decision::Deny),
        ];
        let run = |arguments: Value| decided(&rules, "execute", &arguments);
        let allowed = Some(Decision::Allow);
        assert_eq!(run(json!({"command": "ls -l", "cwd": "/w"})), allowed);
        assert_eq!(run(json!({"cmd": "ls -l", "workdir": "/w"})), allowed);
        assert_eq!(run(json!({"command": "ls -l", "path": "/w"})), None);
        assert_eq!(run(json!({"cwd": "/w"})), None);
        let refused = json!({"command": "ls -l", "cwd": "/secret/x"});
        assert_eq!(run(refused), Some(Decision::Deny));
    }

    #[test]
    fn a_switch_that_is_on_is_not_covered_by_the_command_line() {
        let rules = [rule("execute", "make", Decision::Allow)];
        let make = |value: Value| json!({"command": "make", "dangerouslyDisableSandbox": value});
        let allowed = Some(Decision::Allow);
        assert_eq!(decided(&rules, "execute", &make(json!(false))), allowed);
        assert_eq!(decided(&rules, "execute", &make(json!(true))), None);
        let nested = make(json!({"all": [true]}));
        assert_eq!(decided(&rules, "execute", &nested), None);
        let any = [rule("execute", "*", Decision::Allow)];
        assert_eq!(decided(&any, "execute", &make(json!(true))), allowed);
    }

    #[test]
    fn a_pattern_is_bound_to_a_call_that_is_a_command_line_only() {
        let line = |arguments: Value| only_command("execute", arguments.as_object().unwrap());
        let words = json!({"command": ["ls", "a b"], "timeout": 5, "title": "List"});
        assert_eq!(line(words), Some("ls 'a b'".to_owned()));
        let with_place = json!({"command": "ls", "cwd": "/", "env": {}});
        assert_eq!(line(with_place), Some("ls".to_owned()));
        assert_eq!(line(json!({"command": "ls", "stdin": "x"})), None);
        let open = json!({"command": "ls", "dangerouslyDisableSandbox": true});
        assert_eq!(line(open), None);
        assert_eq!(line(json!({"cmd": "ls"})), None);
        assert_eq!(line(json!({"path": "ls"})), None);
        assert_eq!(line(json!({})), None);
    }
}
