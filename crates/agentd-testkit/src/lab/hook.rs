//! The program that hooks run in the lab: it records that it ran, for which event, and what it found in
//! the transcript.

use super::tool::{BEGAN, Whose, micros_since};
use agentd_failpoint::{self as failpoint, VARIABLE, plan::Role};
use agentd_process::Identity;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// Where hooks record that they ran.
pub const HEARD: &str = "LAB_HEARD";
/// Commands that contain this text are denied.
pub const FORBIDDEN: &str = "tool forbidden";

/// `agentd-lab hook`: handles an event. Returns whether it allows it.
pub fn run() -> io::Result<bool> {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let lab = variable(VARIABLE);
    failpoint::enter(Path::new(&lab), Path::new(&lab), Role::Tool).map_err(io::Error::other)?;
    let mut input = String::new();
    io::stdin().lock().read_to_string(&mut input)?;
    let input: Value = serde_json::from_str(&input)?;
    let session = input["session_id"].as_str().unwrap_or_default();
    let event = input["hook_event_name"].as_str().unwrap_or_default();
    let command = input["tool_input"]["command"].as_str().unwrap_or_default();
    let denies = event == "PreToolUse" && command.contains(FORBIDDEN);
    let source = input["source"].as_str().unwrap_or_default();
    let says = (event == "SessionStart").then(|| context(session, source));
    let me = Identity::current().map_err(io::Error::other)?;
    let line = json!({
        "at": micros_since(variable(BEGAN).parse().unwrap_or(0)),
        "event": event, "session": session, "hook": Whose::look().task,
        "agent": input["agentd"]["agent_id"], "turn": input["agentd"]["turn"],
        "op": input["agentd"]["op"], "call": input["tool_use_id"], "prompt": input["prompt"],
        "source": input["source"], "reason": input["reason"],
        "active": input["stop_hook_active"], "pid": me.pid, "start": me.start_ticks,
        "denies": denies, "says": says, "transcript": last_line(&input),
    });
    failpoint::hit("before", "heard");
    let file = File::options()
        .create(true)
        .append(true)
        .open(variable(HEARD));
    file?.write_all(format!("{line}\n").as_bytes())?;
    failpoint::hit("after", "heard");
    if let Some(says) = says {
        let mut out = io::stdout().lock();
        writeln!(out, "{says}")?;
        out.flush()?;
    }
    Ok(!denies)
}

/// The text that a conversation gets when it begins.
fn context(session: &str, source: &str) -> String {
    format!("the hook's words for {session} ({source})")
}

/// The number of the last event in the transcript.
fn last_line(input: &Value) -> Option<u64> {
    let text = fs::read_to_string(input["transcript_path"].as_str()?).ok()?;
    let last: Value = serde_json::from_str(text.lines().last()?).ok()?;
    last["seq"].as_u64()
}
