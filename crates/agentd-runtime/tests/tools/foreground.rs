//! Commands in the foreground.

use crate::fixture::{Fixture, SECRET, call, shell, words};
use agentd_core::message::CallOutcome;
use agentd_core::turn::Prepared;
use agentd_process::{Delivery, Signal, signal};
use agentd_runtime::tools::MARK;
use serde_json::json;
use std::fs;
use std::path::PathBuf;

/// Neither the command nor its child, which has its own session, ends on SIGTERM.
const STUBBORN: &str = "trap '' TERM; echo begun; \
     setsid sh -c 'trap \"\" TERM; : >child; while :; do sleep 1; done' & \
     : >ready; while :; do sleep 1; done";

#[tokio::test(flavor = "multi_thread")]
async fn how_a_command_ends_is_told() {
    let fixture = Fixture::new();
    for (command, outcome, text) in [
        ("echo out; echo err >&2", CallOutcome::Ok, "out\nerr\n"),
        ("true", CallOutcome::Ok, ""),
        ("echo a; exit 3", CallOutcome::Error, "a\nexit code 3"),
        ("exit 1", CallOutcome::Error, "exit code 1"),
        ("kill -9 $$", CallOutcome::Error, "signal 9"),
        ("cat", CallOutcome::Ok, ""),
        ("[[ a == a ]] && echo bash", CallOutcome::Ok, "bash\n"),
    ] {
        let expected = (outcome, text.to_owned());
        assert_eq!(fixture.shell(command).await, expected, "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_runs_where_it_is_told_to() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("dir")).unwrap();
    let (_, text) = fixture.shell("pwd").await;
    assert_eq!(text.trim(), fixture.options.cwd.display().to_string());
    let inside = call("shell", json!({"command": "pwd", "cwd": "dir/../dir"}));
    let finished = fixture.run(inside).await;
    assert_eq!(
        words(&finished).trim(),
        fixture.path("dir").display().to_string()
    );
    let nowhere = call("shell", json!({"command": "pwd", "cwd": "nowhere"}));
    let finished = fixture.run(nowhere).await;
    assert!(words(&finished).contains("nowhere is not a directory"));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_limits_are_refused() {
    let fixture = Fixture::new();
    for timeout_ms in [0, 3_600_001] {
        let call = call("shell", json!({"command": "ls", "timeout_ms": timeout_ms}));
        let prepared = fixture.prepare(&call).await;
        assert!(matches!(prepared, Prepared::Refuse { .. }), "{prepared:?}");
    }
    let prepared = fixture.prepare(&shell("  ")).await;
    assert!(matches!(prepared, Prepared::Refuse { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_too_long_is_ended_with_all_of_it() {
    let fixture = Fixture::new();
    let call = call("shell", json!({"command": STUBBORN, "timeout_ms": 300}));
    let finished = fixture.run(call).await;
    assert_eq!(finished.outcome, CallOutcome::Error);
    let end = "timed out after 300 ms: the command and all its processes were ended";
    assert!(words(&finished).contains(end), "{finished:?}");
    fixture.nobody_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_all_of_it() {
    let fixture = Fixture::new();
    let call = shell(STUBBORN);
    let started = fixture.started(&call).await;
    let running = fixture.begin(call, started);
    fixture.wait_for("ready").await;
    fixture.wait_for("child").await;
    assert!(fixture.alive().len() >= 2);
    let finished = running.cancelled().await;
    assert_eq!(finished.outcome, CallOutcome::Interrupted);
    let text = words(&finished);
    assert!(
        text.starts_with("begun\n") && text.contains("\ninterrupted: "),
        "{text}"
    );
    fixture.nobody_is_left().await;
}

/// The command has little time to clean up, on a busy machine not enough: so there are several attempts.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_lets_a_command_clean_up() {
    let cleans_up = async || {
        let fixture = Fixture::new();
        let call =
            shell("trap 'echo cleaned; exit 5' TERM; : >ready; while :; do sleep 0.01; done");
        let started = fixture.started(&call).await;
        let running = fixture.begin(call, started);
        fixture.wait_for("ready").await;
        let finished = running.cancelled().await;
        assert_eq!(finished.outcome, CallOutcome::Interrupted);
        let text = words(&finished);
        text.contains("cleaned\ninterrupted: ") && text.contains("exit code 5")
    };
    for _ in 0..20 {
        if cleans_up().await {
            return;
        }
    }
    panic!("it never could");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_before_it_begins_keeps_it_from_beginning() {
    let mut fixture = Fixture::new();
    fixture.hold_shims();
    let call = shell(": >ran");
    let started = fixture.started(&call).await;
    let running = fixture.begin(call, started);
    fixture.wait_for_hold().await;
    let finished = running.cancelled().await;
    assert_eq!(finished.outcome, CallOutcome::Interrupted);
    assert_eq!(words(&finished), "interrupted: it was not started");
    assert!(!fixture.path("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_leaves_behind_is_ended() {
    let fixture = Fixture::new();
    let (outcome, text) = fixture.shell("sleep 1000 & echo done").await;
    assert_eq!((outcome, text.as_str()), (CallOutcome::Ok, "done\n"));
    fixture.nobody_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_shim_leaves_an_unknown_outcome_and_nobody() {
    let fixture = Fixture::new();
    let call = shell("echo begun; : >ready; while :; do sleep 1; done");
    let started = fixture.started(&call).await;
    let task = started.task.unwrap();
    let running = fixture.begin(call, started);
    fixture.wait_for("ready").await;
    let shim = fixture.task(task).shim();
    assert_eq!(signal(shim, Signal::KILL).unwrap(), Delivery::Sent);
    let finished = running.finished().await;
    assert_eq!(finished.outcome, CallOutcome::Unknown);
    assert!(words(&finished).contains("Outcome unknown"), "{finished:?}");
    fixture.nobody_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_shim_nothing_runs_and_the_reason_is_told() {
    let mut fixture = Fixture::new();
    fixture.options.shim.program = PathBuf::from("/nonexistent/agentd");
    let (outcome, text) = fixture.shell(": >ran").await;
    assert_eq!(outcome, CallOutcome::Error);
    assert!(text.contains("cannot start /nonexistent/agentd"), "{text}");
    assert!(!fixture.path("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_is_the_one_that_was_given() {
    let mut fixture = Fixture::new();
    fixture.options.env.insert("OWN".into(), "a b".into());
    // Cargo gives this one to every test.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    fixture.options.output_bytes = 100_000;
    let (_, text) = fixture.shell("tr '\\0' '\\n' </proc/$$/environ").await;
    let mut found: Vec<&str> = text.lines().collect();
    found.sort_unstable();
    let given = fixture.options.env.iter();
    let mut expected: Vec<String> = given.map(|(name, it)| format!("{name}={it}")).collect();
    // And by which call it runs.
    expected.push("AGENTD_CALL_ID=call_1".to_owned());
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_neither_shown_nor_kept() {
    let fixture = Fixture::new();
    let call = shell("printf sk-0123456; sleep 0.1; echo 789abcdef.");
    let started = fixture.started(&call).await;
    let task = started.task.unwrap();
    let finished = fixture.begin(call, started).finished().await;
    assert_eq!(words(&finished), format!("{MARK}.\n"));
    for entry in fs::read_dir(fixture.task_dir(task)).unwrap() {
        let path = entry.unwrap().path();
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains(SECRET), "{}", path.display());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_output_is_kept_and_its_place_named() {
    let fixture = Fixture::new();
    let call = shell("seq -f 'zeile %g ü€🙂' 1 5000; exit 7");
    let started = fixture.started(&call).await;
    let path = fixture.task_dir(started.task.unwrap()).join("output");
    let finished = fixture.begin(call, started).finished().await;
    let text = words(&finished);
    assert!(text.starts_with("zeile 1 ü€🙂\nzeile 2 "), "{text}");
    assert!(text.ends_with("zeile 5000 ü€🙂\nexit code 7"), "{text}");
    assert!(text.contains(&format!(
        "bytes) omitted; the full output is in {}; read_file with offset ",
        path.display()
    )));
    assert!(text.len() < 1300 && !text.contains('\u{fffd}'), "{text}");
    assert_eq!(fs::read_to_string(path).unwrap().lines().count(), 5000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_output_that_was_removed_is_said_to_be() {
    let fixture = Fixture::new();
    let call = shell("seq 1 5000");
    let started = fixture.started(&call).await;
    let dir = fixture.task_dir(started.task.unwrap());
    fixture.begin(call, started.clone()).finished().await;
    fs::remove_dir_all(&dir).unwrap();
    let path = dir.join("output").display().to_string();
    let read = crate::fixture::call("read_file", json!({"file_path": path}));
    let output = crate::fixture::call("task_output", json!({"task": started.task}));
    let tail = shell(&format!("tail -c +100 {path} | head -c 100"));
    for call in [read, output, tail] {
        let finished = fixture.run(call).await;
        let text = words(&finished);
        let said = "Kept output is removed when there is newer output";
        assert!(text.contains(said), "{text}");
    }
}
