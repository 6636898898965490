//! What the journal and a reader of the files show about changes.

use super::run_dir::RunDir;
use serde_json::{Value, json};

const PATH: &str = "/work/a.txt";
/// The hash of another content.
const OTHER: &str = "fba8a90c9aba4eb57b4e0d9a1ff1c1fb1e3f1ee0bb8ae3ef4a95e3c1fd73ab31";

fn seen(run_dir: &mut RunDir, when: &str, text: &str) {
    let line = json!({"at": 1, "path": PATH, "when": when, "text": text});
    run_dir.files.push(line);
}

fn push(run_dir: &mut RunDir, turn: Option<&str>, kind: &str, body: Value) {
    let last = run_dir.events.last().cloned().unwrap_or_default();
    let seq = last["seq"].as_u64().unwrap_or_default() + 1;
    let mut event = json!({"seq": seq, "at": 0, "v": 1, "kind": kind, "body": body,
                           "conversation": last["conversation"]});
    if let Some(turn) = turn {
        event["turn"] = json!(turn);
    }
    run_dir.events.push(event);
}

fn hash(text: &str) -> String {
    super::super::p15_kept::hash(text)
}

/// A call that changes a file from `old` to `new`, with this outcome.
fn edit(run_dir: &mut RunDir, outcome: &str, parts: u64) {
    let turn = Some("t-files");
    push(run_dir, turn, "turn_started", json!({}));
    let call = json!({"type": "tool_call", "id": "call-f", "name": "write_file", "arguments": {}});
    push(
        run_dir,
        turn,
        "message",
        json!({"status": "complete", "blocks": [call]}),
    );
    for part in 0..parts {
        // The first part is one letter, and the last one has the rest.
        let text = match (part, parts) {
            (0, 1) => "old",
            (0, _) => "o",
            (1, _) => "ld",
            _ => "",
        };
        let before = json!({"type": "file", "mode": 420, "size": 3, "hash": hash("old"),
                            "content": {"type": "text", "text": text}});
        let kept = json!({"by": {"type": "call", "call": "call-f"}, "path": PATH,
                          "before": before, "part": part, "parts": parts});
        push(run_dir, turn, "file_kept", kept);
    }
    let change = json!({"before": hash("old"), "after": hash("new")});
    let started = json!({"call": "call-f", "tool": "write_file", "change": change});
    push(run_dir, turn, "tool_started", started);
    push(
        run_dir,
        turn,
        "tool_ended",
        json!({"call": "call-f", "outcome": outcome}),
    );
    push(
        run_dir,
        turn,
        "result",
        json!({"call": "call-f", "outcome": outcome, "blocks": []}),
    );
    push(run_dir, turn, "turn_ended", json!({"status": "completed"}));
}

/// The violations of this promise only: the turn was not begun by a prompt.
#[track_caller]
fn finds(words: Option<&str>, change: impl FnOnce(&mut RunDir)) {
    let mut run_dir = super::good();
    change(&mut run_dir);
    let found = run_dir.check().into_iter();
    let found: Vec<String> = found
        .filter(|it| it.promise == "P15")
        .map(|it| it.what)
        .collect();
    match words {
        None => assert!(found.is_empty(), "{found:#?}"),
        Some(words) => assert!(found.iter().any(|it| it.contains(words)), "{found:#?}"),
    }
}

#[test]
fn an_edit_that_was_kept_and_made() {
    finds(None, |run_dir| {
        seen(run_dir, "first", "old");
        edit(run_dir, "ok", 2);
        seen(run_dir, "seen", "new");
        seen(run_dir, "last", "new");
    });
    // One that was not made, and one whose outcome is unknown.
    for (outcome, last) in [
        ("not_started", "old"),
        ("unknown", "old"),
        ("unknown", "new"),
    ] {
        finds(None, |run_dir| {
            seen(run_dir, "first", "old");
            edit(run_dir, outcome, 1);
            seen(run_dir, "last", last);
        });
    }
}

#[test]
fn a_change_whose_file_is_not_kept() {
    finds(Some("what it was is not kept"), |run_dir| {
        edit(run_dir, "ok", 0);
    });
    // It was purged since.
    finds(None, |run_dir| {
        edit(run_dir, "ok", 0);
        let purged = json!({"conversation": "c-1", "events": 1,
                            "files": {"through": 100_000, "bytes": 3}});
        push(run_dir, None, "purged", purged);
    });
}

#[test]
fn a_file_that_is_kept_after_the_start() {
    finds(Some("not kept right before its start"), |run_dir| {
        edit(run_dir, "ok", 1);
        let at = run_dir.find("file_kept", "call-f");
        let (kept, started) = (
            run_dir.events[at]["seq"].clone(),
            run_dir.events[at + 1]["seq"].clone(),
        );
        run_dir.events.swap(at, at + 1);
        run_dir.events[at]["seq"] = kept;
        run_dir.events[at + 1]["seq"] = started;
    });
}

#[test]
fn a_part_that_is_missing_and_a_file_that_is_another_one() {
    finds(Some("a part of what it was is missing"), |run_dir| {
        edit(run_dir, "ok", 1);
        run_dir.event("file_kept", "call-f")["body"]["parts"] = json!(2);
    });
    finds(Some("something else is kept"), |run_dir| {
        edit(run_dir, "ok", 1);
        run_dir.event("file_kept", "call-f")["body"]["before"]["hash"] = json!(OTHER);
    });
}

#[test]
fn a_content_that_is_not_the_one_that_is_named() {
    for content in [
        json!({"type": "text", "text": "odd"}),
        json!({"type": "text", "text": "old "}),
        json!({"type": "base64", "base64": "AAAA"}),
        json!({"type": "base64", "base64": "?"}),
    ] {
        finds(Some("recorded hash or size"), |run_dir| {
            edit(run_dir, "ok", 1);
            run_dir.event("file_kept", "call-f")["body"]["before"]["content"] = content;
        });
    }
    finds(None, |run_dir| {
        edit(run_dir, "ok", 1);
        let content = json!({"type": "base64", "base64": "b2xk"});
        run_dir.event("file_kept", "call-f")["body"]["before"]["content"] = content;
    });
}

/// A restore that replaces one file, which it keeps in this state.
fn restore(run_dir: &mut RunDir, kept: Option<Value>) {
    let expected = json!({"type": "file", "mode": 420, "hash": hash("new")});
    let target = json!({"type": "git", "oid": "1", "mode": 33188, "hash": hash("old")});
    let files = json!([{"path": PATH, "target": target, "expected": expected}]);
    push(
        run_dir,
        None,
        "files_restore_began",
        json!({"op": "op-r", "files": 1}),
    );
    push(
        run_dir,
        None,
        "files_plan",
        json!({"op": "op-r", "files": files}),
    );
    if let Some(before) = kept {
        let kept = json!({"by": {"type": "restore", "op": "op-r"}, "path": PATH,
                          "before": before, "part": 0, "parts": 1});
        push(run_dir, None, "file_kept", kept);
    }
    let ended = json!({"op": "op-r", "outcome": "done", "restored": 1, "failed": 0});
    push(run_dir, None, "files_restore_ended", ended);
    let files = json!([{"path": PATH, "outcome": {"type": "restored"}}]);
    push(
        run_dir,
        None,
        "files_restored",
        json!({"op": "op-r", "files": files}),
    );
}

#[test]
fn a_restore_keeps_what_it_replaces() {
    let state = |hash: String, text: &str| {
        json!({"type": "file", "mode": 420, "size": 3, "hash": hash,
               "content": {"type": "text", "text": text}})
    };
    finds(None, |run_dir| {
        restore(run_dir, Some(state(hash("new"), "new")));
    });
    for other in [
        state(hash("old"), "old"),
        state(hash("new"), "old"),
        json!({"type": "absent"}),
    ] {
        finds(Some("keeps something else"), |run_dir| {
            restore(run_dir, Some(other));
        });
    }
    finds(Some("other files than it keeps"), |run_dir| {
        restore(run_dir, None);
    });
    // It was purged since.
    finds(None, |run_dir| {
        restore(run_dir, None);
        let purged = json!({"conversation": "c-1", "events": 1,
                            "files": {"through": 100_000, "bytes": 3}});
        push(run_dir, None, "purged", purged);
    });
}

#[test]
fn a_file_that_is_kept_for_a_call_that_does_not_start() {
    finds(Some("which does not start then"), |run_dir| {
        let kept = json!({"by": {"type": "call", "call": "call-x"}, "path": PATH,
                          "before": {"type": "absent"}, "part": 0, "parts": 1});
        push(run_dir, None, "file_kept", kept);
    });
}

#[test]
fn half_a_file_and_a_file_that_is_not_as_its_outcome_says() {
    finds(Some("had a content that no change gave it"), |run_dir| {
        seen(run_dir, "first", "old");
        edit(run_dir, "ok", 1);
        seen(run_dir, "seen", "ne");
        seen(run_dir, "last", "new");
    });
    for (outcome, last) in [("ok", "old"), ("not_started", "new")] {
        finds(Some("is not as the recorded outcomes"), |run_dir| {
            seen(run_dir, "first", "old");
            edit(run_dir, outcome, 1);
            seen(run_dir, "last", last);
        });
    }
}

#[test]
fn a_turn_with_commands_that_is_not_scanned_or_scanned_twice() {
    let scanned = json!({"turn": "t-cmd", "found": {"type": "unknown", "why": "no_git"}});
    let command = |run_dir: &mut RunDir| {
        let turn = Some("t-cmd");
        push(run_dir, turn, "turn_started", json!({}));
        let started = json!({"call": "call-c", "tool": "shell", "task": "task-c"});
        push(run_dir, turn, "tool_started", started);
        push(run_dir, turn, "turn_ended", json!({"status": "completed"}));
    };
    finds(Some("before the scan"), |run_dir| {
        command(run_dir);
        push(run_dir, Some("t-next"), "turn_started", json!({}));
    });
    finds(None, |run_dir| {
        command(run_dir);
        push(run_dir, None, "files_scanned", scanned.clone());
        push(run_dir, Some("t-next"), "turn_started", json!({}));
    });
    finds(Some("or twice"), |run_dir| {
        command(run_dir);
        push(run_dir, None, "files_scanned", scanned.clone());
        push(run_dir, None, "files_scanned", scanned.clone());
    });
}

#[test]
fn a_turn_with_a_call_of_an_mcp_server_is_scanned_like_one_with_commands() {
    for (may_change_files, what) in [(true, Some("before the scan")), (false, None)] {
        finds(what, |run_dir| {
            let turn = Some("t-mcp");
            push(run_dir, turn, "turn_started", json!({}));
            let started = json!({"call": "call-m", "tool": "mcp__a__b",
                                 "may_change_files": may_change_files});
            push(run_dir, turn, "tool_started", started);
            push(run_dir, turn, "turn_ended", json!({"status": "completed"}));
            push(run_dir, Some("t-next"), "turn_started", json!({}));
        });
    }
}

#[test]
fn a_turn_without_commands_is_scanned_only_after_a_background_command() {
    let scanned = |turn: &str| {
        let found = json!({"type": "unknown", "why": "no_git"});
        json!({"turn": turn, "found": found})
    };
    let turns = |run_dir: &mut RunDir, is_background: bool| {
        let turn = Some("t-bg");
        // The task that the run leaves.
        push(run_dir, None, "task_ended", json!({"task": "k-3"}));
        push(run_dir, turn, "turn_started", json!({}));
        let started = json!({"call": "call-b", "tool": "shell", "task": "task-b"});
        push(run_dir, turn, "tool_started", started);
        if is_background {
            push(
                run_dir,
                turn,
                "task_started",
                json!({"task": "task-b", "call": "call-b"}),
            );
        }
        push(run_dir, turn, "turn_ended", json!({"status": "completed"}));
        push(run_dir, None, "files_scanned", scanned("t-bg"));
        push(run_dir, Some("t-plain"), "turn_started", json!({}));
        push(
            run_dir,
            Some("t-plain"),
            "turn_ended",
            json!({"status": "completed"}),
        );
        push(run_dir, None, "files_scanned", scanned("t-plain"));
    };
    finds(None, |run_dir| turns(run_dir, true));
    finds(Some("or twice"), |run_dir| turns(run_dir, false));
}
