//! Commands of the user, and what they recorded themselves.

use super::run_dir::RunDir;
use super::{breaks, is_fine};
use serde_json::{Value, json};

fn push(run_dir: &mut RunDir, kind: &str, body: Value) {
    let last = run_dir.events.last().cloned().unwrap_or_default();
    let seq = last["seq"].as_u64().unwrap_or_default() + 1;
    run_dir.events.push(
        json!({"seq": seq, "at": 0, "v": 1, "kind": kind, "body": body,
                     "conversation": last["conversation"]}),
    );
}

/// A command that ran as this process, and ended like this.
fn command(run_dir: &mut RunDir, exit: &str) {
    push(
        run_dir,
        "command_started",
        json!({"command": "c-1", "boot": "b", "time_limit_ms": 1}),
    );
    push(
        run_dir,
        "command_line",
        json!({"command": "c-1", "line": "lab tool user-1 5"}),
    );
    ran(run_dir, Some("c-1"), 900);
    let ended = json!({"command": "c-1", "exit": {"type": exit}, "duration_ms": 5});
    push(run_dir, "command_ended", ended);
    let output =
        json!({"command": "c-1", "line": "", "output": "user-1 is done", "exit": {"type": exit}});
    push(run_dir, "command_output", output);
}

fn ran(run_dir: &mut RunDir, task: Option<&str>, pid: u64) {
    for what in ["user-1", "end"] {
        let effect =
            json!({"call": "", "task": task, "pid": pid, "start": 1, "what": what, "at": 1});
        run_dir.effects.push(effect);
    }
}

#[test]
fn a_command_that_ran_once_is_no_call_without_a_start() {
    is_fine(|run_dir| command(run_dir, "code"));
    // Its shim was gone when it looked: its word names it.
    is_fine(|run_dir| {
        command(run_dir, "code");
        run_dir.effects.retain(|effect| effect["pid"] != 900);
        ran(run_dir, None, 900);
    });
}

#[test]
fn a_command_that_ran_twice_or_without_its_start() {
    breaks("P4", "command c-1 ran 2 times", |run_dir| {
        command(run_dir, "code");
        ran(run_dir, Some("c-1"), 901);
    });
    breaks("P4", "its start is not on record", |run_dir| {
        ran(run_dir, Some("c-2"), 901);
    });
    breaks("P4", "its end says that it did not", |run_dir| {
        command(run_dir, "not_started");
    });
}

#[test]
fn a_command_that_ended_twice_or_is_unknown_without_a_reason() {
    breaks("P4", "began 1 times and ended 2 times", |run_dir| {
        command(run_dir, "code");
        let at = run_dir.find("command_ended", "c-1");
        run_dir.again(at);
    });
    breaks("P4", "unknown without a valid reason", |run_dir| {
        command(run_dir, "unknown");
    });
}
