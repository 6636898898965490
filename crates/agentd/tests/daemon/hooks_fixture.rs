//! Hooks for a daemon, and the input that they recorded.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Receipt, Reset};
use agentd_client::{Error, Problem};
use agentd_core::event::{Body, HookEnded, HookOutcome, HookStarted};
use agentd_core::hook::HookEvent;
use serde_json::{Value, json};
use std::fs;

/// A command that appends its input to a file, one line per invocation.
pub const KEEP: &str = r#"input=$(cat); printf '%s\n' "$input" >> "$AGENTD_PROJECT_DIR/heard""#;

/// A handler that records its input, and then runs this command.
pub fn keep_and(then: &str) -> Value {
    json!({"type": "command", "command": format!("{KEEP}; {then}")})
}

pub fn command(line: &str) -> Value {
    json!({"type": "command", "command": line})
}

/// A handler that records its input and prints this JSON.
pub fn says(output: &Value) -> Value {
    keep_and(&format!("printf '%s' '{output}'"))
}

/// One handler for each of these events.
pub fn file(hooks: &[(&str, Value)]) -> Value {
    let mut events = serde_json::Map::new();
    for (event, handler) in hooks {
        let groups = events.entry(*event).or_insert_with(|| json!([]));
        let group = json!({"hooks": [handler]});
        groups.as_array_mut().unwrap().push(group);
    }
    json!({"hooks": events})
}

/// The user's own hooks.
pub fn user(daemon: &TestDaemon, file: &Value) {
    fs::write(daemon.home().join("hooks.json"), file.to_string()).unwrap();
}

pub fn project(daemon: &TestDaemon, file: &Value) {
    fs::create_dir_all(daemon.work().join(".agentd")).unwrap();
    let path = daemon.work().join(".agentd/hooks.json");
    fs::write(path, file.to_string()).unwrap();
}

/// The inputs of hooks, in the order in which they recorded them.
pub fn heard(daemon: &TestDaemon) -> Vec<Value> {
    let text = fs::read_to_string(daemon.work().join("heard")).unwrap_or_default();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub fn heard_of(daemon: &TestDaemon, event: &str) -> Vec<Value> {
    let all = heard(daemon).into_iter();
    all.filter(|input| input["hook_event_name"] == event)
        .collect()
}

pub fn until_heard(daemon: &TestDaemon, event: &str) -> Value {
    until(&format!("{event} to be heard of"), || {
        heard_of(daemon, event).into_iter().next_back()
    })
}

pub fn reset(daemon: &TestDaemon, name: &str, ask: &Reset) -> Result<Receipt, Problem> {
    match daemon.block(daemon.client().reset(name, ask)) {
        Ok(receipt) => Ok(receipt),
        Err(Error::Problem(problem)) => Err(*problem),
        Err(error) => panic!("{error}"),
    }
}

/// The hooks that were started, and how each ended.
pub fn runs(daemon: &TestDaemon, name: &str) -> Vec<(HookStarted, Option<HookEnded>)> {
    let mut runs: Vec<(HookStarted, Option<HookEnded>)> = Vec::new();
    for event in daemon.events(name) {
        match event.body {
            Body::HookStarted(started) => runs.push((started, None)),
            Body::HookEnded(ended) => {
                let mut open = runs.iter_mut();
                let run = open.find(|(started, _)| started.hook == ended.hook);
                let run = run.expect("it was started");
                assert!(run.1.is_none(), "it ended once");
                run.1 = Some(ended);
            }
            _ => {}
        }
    }
    runs
}

pub fn until_ended(daemon: &TestDaemon, name: &str, event: HookEvent) -> HookEnded {
    until(&format!("the end of {event}"), || {
        let mut runs = runs(daemon, name).into_iter().rev();
        runs.find_map(|(started, ended)| ended.filter(|_| started.event == event))
    })
}

/// Checks that all hooks have ended, and that each has run.
pub fn all_ran(daemon: &TestDaemon, name: &str) {
    let runs = until("the end of all hooks", || {
        let runs = runs(daemon, name);
        runs.iter()
            .all(|(_, ended)| ended.is_some())
            .then_some(runs)
    });
    for (started, ended) in runs {
        let outcome = ended.unwrap().outcome;
        assert_eq!(outcome, HookOutcome::Ran, "{started:?}");
    }
}

/// The newest request, as the model saw it.
pub fn last_request(daemon: &TestDaemon) -> Value {
    daemon.requests().last().unwrap().body.clone()
}
