//! The answer of one handler: from its exit status, its plain output, or its JSON output.

use super::event::HookEvent;
use super::hook_input::HookInput;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How much of a handler's context is used. The full text is in a file.
pub const CONTEXT_CHARACTERS: usize = 10_000;
/// How much of a reason or a warning is used.
const REASON_CHARACTERS: usize = 2_000;

/// How a handler ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended<'a> {
    Code(i32),
    /// It was killed by a signal, or its URL could not be reached.
    Failed(&'a str),
    /// Its program could not be started, or does not exist where hooks run.
    NotRun(&'a str),
    TimedOut,
}

/// Ordered by precedence, lowest first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    #[default]
    None,
    Allow,
    Ask,
    /// The decision comes later; the call waits.
    Defer,
    /// The call, the prompt, the end of the turn or the reset is refused.
    Deny,
}

/// The answer of a handler. Everything except the decision is free text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    pub decision: Decision,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// For the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_output: Option<String>,
    /// The turn is to end, for this reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The first prompt of the new conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_prompt: Option<String>,
    /// For the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A problem with the handler, for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl Answer {
    /// Whether it contains anything besides the decision.
    pub fn has_words(&self) -> bool {
        let silent = Self {
            decision: self.decision,
            ..Self::default()
        };
        *self != silent
    }

    /// No handler decided anything, for this reason.
    pub fn no_one(reason: String) -> Self {
        Self {
            reason: Some(reason),
            ..Self::default()
        }
    }

    fn warn(text: String) -> Self {
        Self {
            warning: Some(text),
            ..Self::default()
        }
    }
}

/// Reads the result of a program. With `fails_closed`, a failure counts as a denial.
pub fn read(
    hook_input: &HookInput,
    ended: Ended<'_>,
    stdout: &str,
    stderr: &str,
    fails_closed: bool,
) -> Answer {
    let event = hook_input.event;
    let said = || first(stderr.trim(), REASON_CHARACTERS);
    let failed = |what: String| {
        let mut answer = Answer::warn(what.clone());
        if fails_closed && event.can_block() {
            answer.decision = Decision::Deny;
            answer.reason = Some(what);
        }
        answer
    };
    match ended {
        Ended::Code(2) if event.can_block() => {
            let reason = match said() {
                text if text.is_empty() => format!("denied by a {event} hook"),
                text => text,
            };
            Answer {
                decision: Decision::Deny,
                reason: Some(reason),
                ..Answer::default()
            }
        }
        Ended::Code(0) => match object(stdout) {
            Object::Some(map) => of_json(hook_input, &map),
            Object::Bad(why) => Answer::warn(format!("the hook's output is not valid JSON: {why}")),
            Object::None => {
                let plain = stdout.trim();
                let is_context = event.takes_plain_context() && !plain.is_empty();
                Answer {
                    context: is_context.then(|| plain.to_owned()),
                    ..Answer::default()
                }
            }
        },
        Ended::Code(code) => match object(stdout) {
            Object::Some(map) => of_json(hook_input, &map),
            _ => failed(match said() {
                text if text.is_empty() => format!("the hook failed with exit code {code}"),
                text => format!("the hook failed with exit code {code}: {text}"),
            }),
        },
        Ended::Failed(why) => failed(format!("the hook failed: {why}")),
        Ended::NotRun(why) => failed(format!("the hook could not run: {why}")),
        Ended::TimedOut => failed("the hook timed out".to_owned()),
    }
}

/// What interpreters write that did not find the script or a module of it. Their exit codes say nothing.
const NOT_FOUND: [&str; 5] = [
    "Cannot find module",
    "Module not found",
    "Script not found",
    "Could not open input file",
    "(LoadError)",
];

/// Why a program that ended like this did not run: it does not exist where hooks run, it cannot be executed (126 and 127, as
/// shells report it), or its interpreter did not find it. `None` if it ran: it has blocked, succeeded or printed a decision.
pub fn could_not_run(code: i32, stdout: &str, stderr: &str) -> Option<String> {
    let is_missing = match code {
        126 | 127 => true,
        0 | 2 => false,
        _ => NOT_FOUND.iter().any(|words| stderr.contains(words)),
    };
    if !is_missing || matches!(object(stdout), Object::Some(_)) {
        return None;
    }
    let said = first(stderr.trim(), REASON_CHARACTERS);
    Some(match said.is_empty() {
        true => format!("exit code {code}"),
        false => format!("exit code {code}: {said}"),
    })
}

/// Reads the response of an HTTP service.
pub fn read_http(hook_input: &HookInput, status: u16, body: &str, fails_closed: bool) -> Answer {
    match status {
        200..=299 => read(hook_input, Ended::Code(0), body, "", fails_closed),
        _ => {
            let why = format!("HTTP status {status}");
            read(hook_input, Ended::Failed(&why), body, "", fails_closed)
        }
    }
}

/// The context cut to its limit; `rest` is the file with the full text.
pub fn capped(text: &str, rest: &str) -> Option<String> {
    if text.chars().count() <= CONTEXT_CHARACTERS {
        return None;
    }
    let kept = first(text, CONTEXT_CHARACTERS);
    Some(format!("{kept}\n[The rest is in the file {rest}]"))
}

fn first(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

enum Object {
    None,
    Some(Map<String, Value>),
    Bad(String),
}

/// Output that begins with a brace is read as JSON.
fn object(stdout: &str) -> Object {
    let text = stdout.trim();
    if !text.starts_with('{') {
        return Object::None;
    }
    match serde_json::from_str(text) {
        Ok(map) => Object::Some(map),
        Err(error) => Object::Bad(error.to_string()),
    }
}

fn of_json(hook_input: &HookInput, map: &Map<String, Value>) -> Answer {
    let event = hook_input.event;
    let text = |map: &Map<String, Value>, key: &str| {
        let text = map.get(key).and_then(Value::as_str);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let mut answer = Answer {
        reason: text(map, "reason"),
        message: text(map, "systemMessage"),
        ..Answer::default()
    };
    if map.get("continue") == Some(&Value::Bool(false)) {
        let reason = text(map, "stopReason");
        answer.stop = Some(reason.unwrap_or_else(|| format!("a {event} hook ended the turn")));
    }
    answer.decision = match map.get("decision").and_then(Value::as_str) {
        Some("block" | "deny") if event.can_block() => Decision::Deny,
        Some("approve" | "allow") if event.is_about_permission() => Decision::Allow,
        _ => Decision::None,
    };
    let specific = map.get("hookSpecificOutput").and_then(Value::as_object);
    if let Some(specific) = specific {
        match text(specific, "hookEventName") {
            Some(name) if name != event.name() => {
                let what = format!("its `hookSpecificOutput` is about {name}, not {event}");
                answer.warning = Some(what);
            }
            _ => of_specific(hook_input, specific, &text, &mut answer),
        }
    }
    answer
}

fn of_specific(
    hook_input: &HookInput,
    specific: &Map<String, Value>,
    text: &impl Fn(&Map<String, Value>, &str) -> Option<String>,
    answer: &mut Answer,
) {
    let event = hook_input.event;
    answer.context = text(specific, "additionalContext");
    if event.is_about_permission() {
        let of_request = specific.get("decision").and_then(Value::as_object);
        let behaviour = of_request.and_then(|decision| text(decision, "behavior"));
        let decision = text(specific, "permissionDecision").or(behaviour);
        answer.decision = match decision.as_deref() {
            Some("allow") => Decision::Allow,
            Some("deny") => Decision::Deny,
            Some("ask") => Decision::Ask,
            Some("defer") => Decision::Defer,
            _ => answer.decision,
        };
        let reason = text(specific, "permissionDecisionReason");
        let message = of_request.and_then(|decision| text(decision, "message"));
        answer.reason = reason.or(message).or(answer.reason.take());
        let input = specific.get("updatedInput");
        let input = input.or(of_request.and_then(|decision| decision.get("updatedInput")));
        answer.updated_input = input.and_then(Value::as_object).cloned();
    }
    if event == HookEvent::PostToolUse {
        answer.updated_output = match specific.get("updatedToolOutput") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => Some(other.to_string()),
        };
    }
    let keeps_title = matches!(hook_input.source(), Some("clear" | "compact"));
    if event == HookEvent::UserPromptSubmit || (event == HookEvent::SessionStart && !keeps_title) {
        answer.title = text(specific, "sessionTitle");
    }
    if event == HookEvent::SessionStart {
        answer.initial_prompt = text(specific, "initialUserMessage");
    }
}
