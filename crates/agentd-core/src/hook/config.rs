//! A hooks file: its usable parts, and the problems of the rest. No problem is fatal, because a file that was written
//! for another tool may contain keys that agentd does not know.

use super::event::HookEvent;
use super::matcher::Matcher;
use crate::foreign_rule::ForeignRule;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The longest timeout that a handler may set.
const LONGEST_MS: u64 = 24 * 3_600_000;

#[derive(Clone, Debug, Default)]
pub struct Config {
    pub groups: Vec<Group>,
    pub problems: Vec<Problem>,
}

/// The handlers of one event with one matcher.
#[derive(Clone, Debug)]
pub struct Group {
    pub event: HookEvent,
    /// As written in the file.
    pub pattern: String,
    pub matcher: Matcher,
    pub handlers: Vec<Handler>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handler {
    #[serde(flatten)]
    pub run: Run,
    /// `None` means the default of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// agentd does not wait for it, and it decides nothing.
    #[serde(default, rename = "async")]
    pub is_async: bool,
    #[serde(default)]
    pub on_failure: OnFailure,
    /// The calls for which it runs, of those that the matcher selects. None means all.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<ForeignRule>,
}

/// What is run. If two layers contain the same, it runs once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Run {
    Command {
        command: String,
        /// With arguments, `command` is a program; without them, it is a line for the shell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        args: Option<Vec<String>>,
    },
    Http {
        url: String,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
}

impl Run {
    /// For display.
    pub fn shown(&self) -> String {
        match self {
            Self::Command { command, args } => {
                let args = args.iter().flatten();
                let words = std::iter::once(command).chain(args);
                words.cloned().collect::<Vec<_>>().join(" ")
            }
            Self::Http { url, .. } => url.clone(),
        }
    }
}

/// What to do if a handler fails: it timed out, could not be run, or did not follow the contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    #[default]
    GoOn,
    Block,
}

/// A problem in a hooks file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    pub severity: Severity,
    /// The position, such as `hooks.PreToolUse[0].matcher`.
    pub at: String,
    pub what: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It is ignored, and the rest works.
    Warning,
    /// A handler that was meant to run does not.
    Error,
}

impl Config {
    pub fn parse(text: &str) -> Self {
        match serde_json::from_str(text) {
            Ok(value) => Self::of_file(&value),
            Err(error) => Self::unusable(format!("invalid JSON: {error}")),
        }
    }

    /// A file that cannot be read at all.
    pub fn unusable(why: String) -> Self {
        let mut config = Self::default();
        config.error("", why, None);
        config
    }

    /// Why nothing in the file can be used, if the file as a whole is invalid.
    pub fn why_unusable(&self) -> Option<&str> {
        let is_whole =
            |problem: &&Problem| problem.severity == Severity::Error && problem.at.is_empty();
        Some(&self.problems.iter().find(is_whole)?.what)
    }

    /// The first hook that does not run although the file can be used, such as one of an unknown event.
    pub fn why_ignored(&self) -> Option<String> {
        let mut problems = self.problems.iter();
        let first = problems.find(|problem| problem.severity == Severity::Error)?;
        let hint = first.hint.as_ref().map(|hint| format!("; {hint}"));
        let (at, what) = (&first.at, &first.what);
        Some(format!("{at}: {what}{}", hint.unwrap_or_default()))
    }

    /// A whole file, with its events under `hooks`.
    pub fn of_file(value: &Value) -> Self {
        let mut config = Self::default();
        match value.get("hooks") {
            Some(hooks) => config.events(hooks),
            None => {
                let hint = r#"a hooks file is {"hooks": {"PreToolUse": [...]}}"#;
                config.error("", "`hooks` is missing".to_owned(), Some(hint.to_owned()));
            }
        }
        config
    }

    /// The hooks in a file of settings of another program, which need not have any.
    pub fn of_settings(text: &str) -> Self {
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => return Self::unusable(format!("invalid JSON: {error}")),
        };
        let is_off = value.get("disableAllHooks").and_then(Value::as_bool) == Some(true);
        match value.get("hooks") {
            Some(_) if !is_off => Self::of_file(&value),
            _ => Self::default(),
        }
    }

    /// The events alone, as in an agent's spec, or a whole file.
    pub fn of_spec(value: &Value) -> Self {
        let mut config = Self::default();
        match value {
            Value::Null => {}
            _ => config.events(value.get("hooks").unwrap_or(value)),
        }
        config
    }

    pub fn has_errors(&self) -> bool {
        let mut problems = self.problems.iter();
        problems.any(|problem| problem.severity == Severity::Error)
    }

    fn error(&mut self, at: &str, what: String, hint: Option<String>) {
        self.problem(Severity::Error, at, what, hint);
    }

    fn warn(&mut self, at: &str, what: String) {
        self.problem(Severity::Warning, at, what, None);
    }

    fn problem(&mut self, severity: Severity, at: &str, what: String, hint: Option<String>) {
        let at = at.to_owned();
        self.problems.push(Problem {
            severity,
            at,
            what,
            hint,
        });
    }

    fn events(&mut self, hooks: &Value) {
        let Some(events) = hooks.as_object() else {
            let what = "`hooks` must be an object of events".to_owned();
            return self.error("hooks", what, None);
        };
        for (name, groups) in events {
            let at = format!("hooks.{name}");
            let Some(event) = HookEvent::parse(name) else {
                let hint = HookEvent::nearest(name).map(|near| format!("did you mean `{near}`?"));
                self.error(&at, format!("unknown event `{name}`"), hint);
                continue;
            };
            let Some(groups) = groups.as_array() else {
                let what = "it must be a list of {\"matcher\", \"hooks\"}".to_owned();
                self.error(&at, what, None);
                continue;
            };
            for (n, group) in groups.iter().enumerate() {
                self.group(event, &format!("{at}[{n}]"), group);
            }
        }
    }

    fn group(&mut self, event: HookEvent, at: &str, group: &Value) {
        let pattern = match group.get("matcher") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(_) => {
                let what = "it must be a string".to_owned();
                return self.error(&format!("{at}.matcher"), what, None);
            }
        };
        let matcher = match Matcher::parse(&pattern) {
            Ok(matcher) => matcher,
            Err(why) => {
                let what = format!("`{pattern}` is not a valid regular expression: {why}");
                return self.error(&format!("{at}.matcher"), what, None);
            }
        };
        if event.subject().is_none() && !matches!(matcher, Matcher::All) {
            self.warn(
                &format!("{at}.matcher"),
                format!("{event} has nothing to match; its handlers always run"),
            );
        }
        let Some(list) = group.get("hooks").and_then(Value::as_array) else {
            let what = "the list `hooks` is missing".to_owned();
            return self.error(at, what, None);
        };
        let mut handlers = Vec::new();
        for (n, handler) in list.iter().enumerate() {
            let at = format!("{at}.hooks[{n}]");
            match handler.as_object() {
                Some(map) => handlers.extend(self.handler(event, &at, map)),
                None => self.error(&at, "it must be an object".to_owned(), None),
            }
        }
        self.groups.push(Group {
            event,
            pattern,
            matcher,
            handlers,
        });
    }

    fn handler(&mut self, event: HookEvent, at: &str, map: &Map<String, Value>) -> Option<Handler> {
        let run = match self.run(at, map) {
            Ok(run) => run,
            Err((what, hint)) => {
                self.error(at, what, hint);
                return None;
            }
        };
        let on_failure = match map.get("onFailure").and_then(Value::as_str) {
            Some("block") => OnFailure::Block,
            _ => OnFailure::GoOn,
        };
        let known = [
            "type",
            "command",
            "args",
            "url",
            "headers",
            "timeout",
            "async",
            "onFailure",
            "if",
        ];
        if map.contains_key("if") && !event.is_about_a_tool() {
            let what = format!("{event} is not about a tool call, so a hook with `if` never runs");
            self.error(&format!("{at}.if"), what, None);
            return None;
        }
        for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
            self.warn(&format!("{at}.{key}"), "unknown key, ignored".to_owned());
        }
        Some(Handler {
            run,
            timeout_ms: self.timeout(at, map),
            is_async: map.get("async").and_then(Value::as_bool).unwrap_or(false),
            on_failure,
            condition: self.condition(at, map),
        })
    }

    /// A hook may be a guard, so a condition that cannot be read does not keep it from running.
    fn condition(&mut self, at: &str, map: &Map<String, Value>) -> Option<ForeignRule> {
        let given = map.get("if")?;
        match given.as_str().map(ForeignRule::parse) {
            Some(Ok(rule)) => Some(rule),
            _ => {
                let what = format!(
                    "`{given}` is not a rule such as `Bash(git *)`; the hook runs for every call"
                );
                self.warn(&format!("{at}.if"), what);
                None
            }
        }
    }

    fn timeout(&mut self, at: &str, map: &Map<String, Value>) -> Option<u64> {
        let given = map.get("timeout")?;
        match given.as_f64() {
            Some(seconds) if seconds > 0.0 => {
                let ms = (seconds * 1000.0).min(LONGEST_MS as f64);
                Some(ms.max(1.0) as u64)
            }
            _ => {
                let what = format!("`{given}` is not a positive number of seconds");
                self.error(&format!("{at}.timeout"), what, None);
                None
            }
        }
    }

    fn run(&self, at: &str, map: &Map<String, Value>) -> Result<Run, (String, Option<String>)> {
        let text = |key: &str| {
            let text = map.get(key).and_then(Value::as_str);
            let text = text.filter(|text| !text.trim().is_empty());
            text.map(str::to_owned)
                .ok_or_else(|| (format!("`{key}` is missing"), None))
        };
        match map.get("type").and_then(Value::as_str) {
            Some("command") | None => Ok(Run::Command {
                command: text("command")?,
                args: texts(map.get("args")).ok_or_else(|| {
                    let what = format!("`args` of {at} must be a list of strings");
                    (what, None)
                })?,
            }),
            Some("http") => {
                let headers = map.get("headers").and_then(Value::as_object);
                let headers = headers.into_iter().flatten();
                let headers = headers
                    .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
                Ok(Run::Http {
                    url: text("url")?,
                    headers: headers.collect(),
                })
            }
            Some(other) => {
                let hint = "the types are `command` and `http`".to_owned();
                Err((format!("unknown type `{other}`"), Some(hint)))
            }
        }
    }
}

/// `None` if it is not a list of strings. A missing list is valid.
fn texts(value: Option<&Value>) -> Option<Option<Vec<String>>> {
    match value {
        None | Some(Value::Null) => Some(None),
        Some(Value::Array(list)) => {
            let texts = list.iter().map(|one| one.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<_>>>().map(Some)
        }
        Some(_) => None,
    }
}
