//! Commands in the background.

use crate::fixture::{Fixture, PATIENCE, background, call, words};
use agentd_core::event::TaskExit;
use agentd_core::id::TaskId;
use agentd_core::message::CallOutcome;
use agentd_core::turn::Prepared;
use agentd_runtime::driver::Tools as _;
use serde_json::json;
use std::fs;

async fn output(fixture: &Fixture, task: TaskId, offset: Option<u64>) -> String {
    let call = call(
        "task_output",
        json!({"task": task.to_string(), "offset": offset}),
    );
    let finished = fixture.run(call).await;
    assert_eq!(finished.outcome, CallOutcome::Ok, "{finished:?}");
    words(&finished)
}

async fn stop(fixture: &Fixture, task: TaskId) -> String {
    let call = call("task_stop", json!({"task": task.to_string()}));
    let finished = fixture.run(call).await;
    assert_eq!(finished.outcome, CallOutcome::Ok, "{finished:?}");
    words(&finished)
}

async fn ended(fixture: &Fixture, task: TaskId) -> (TaskExit, String) {
    let toolbox = fixture.toolbox();
    let ended = toolbox.task_ended(task, fixture.options.boot);
    tokio::time::timeout(PATIENCE, ended).await.expect("an end")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_runs_writes_and_ends() {
    let fixture = Fixture::new();
    let waits = "echo one; : >ready; while ! [ -e go ]; do sleep 0.01; done; echo zwei ü; exit 4";
    let task = fixture.background(waits).await;
    fixture.wait_for("ready").await;
    let text = loop {
        // What was written is on its way through the shim.
        let text = output(&fixture, task, None).await;
        if text.contains("one") {
            break text;
        }
    };
    let expected = format!("Task {task} is running; it has written 4 bytes.\none\n");
    assert_eq!(text, expected);
    fs::write(fixture.path("go"), "").unwrap();
    let (exit, text) = ended(&fixture, task).await;
    assert_eq!(exit, TaskExit::Code { code: 4 });
    assert_eq!(
        text,
        format!("Background task {task} ended with exit code 4. Its last output:\none\nzwei ü")
    );
    let text = output(&fixture, task, Some(4)).await;
    assert!(text.contains("ended with exit code 4 after "), "{text}");
    assert!(
        text.contains("[bytes 4 to 12; this is the end so far; later output begins at offset 12]")
            && text.ends_with("\nzwei ü\n"),
        "{text}"
    );
    // Asked again, it is the same.
    assert_eq!(ended(&fixture, task).await.0, exit);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_was_stopped_takes_everybody_with_it() {
    let fixture = Fixture::new();
    let task = fixture
        .background(
            "trap '' TERM; setsid sh -c 'trap \"\" TERM; : >child; while :; do sleep 1; done' & \
             while :; do sleep 1; done",
        )
        .await;
    fixture.wait_for("child").await;
    let text = stop(&fixture, task).await;
    assert_eq!(text, format!("Task {task} was stopped, with signal 9."));
    fixture.nobody_is_left().await;
    let again = stop(&fixture, task).await;
    assert!(
        again.contains("had already ended: it was stopped"),
        "{again}"
    );
    let (exit, text) = ended(&fixture, task).await;
    assert_eq!(exit, TaskExit::Signal { signal: 9 });
    assert!(
        text.ends_with("was stopped, with signal 9. It had no output."),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_outlives_the_command_that_started_it() {
    let fixture = Fixture::new();
    let task = fixture
        .background("sh -c 'while ! [ -e go ]; do sleep 0.01; done; echo late' & echo soon")
        .await;
    let text = loop {
        // On a busy machine the child could otherwise write before the command that started it.
        let text = output(&fixture, task, None).await;
        if text.contains("soon") {
            break text;
        }
    };
    assert!(text.contains("is running"), "{text}");
    fs::write(fixture.path("go"), "").unwrap();
    let (exit, text) = ended(&fixture, task).await;
    assert_eq!(exit, TaskExit::Code { code: 0 });
    assert!(text.ends_with("soon\nlate"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn so_many_and_no_more() {
    let fixture = Fixture::new();
    let first = fixture.background("sleep 1000").await;
    let second = fixture.background("sleep 1000").await;
    let Prepared::Refuse { outcome, blocks } = fixture.prepare(&background("true")).await else {
        panic!("a third one")
    };
    let text = format!("{blocks:?}");
    assert_eq!(outcome, CallOutcome::Error);
    assert!(text.contains("2 background tasks are running") && text.contains("max_tasks"));
    assert!(text.contains(&first.to_string()) && text.contains(&second.to_string()));
    // In the foreground there is room, and after one has ended in the background too.
    assert_eq!(fixture.shell("echo x").await.1, "x\n");
    stop(&fixture, first).await;
    fixture.background("true").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_holds_in_the_background_too() {
    let fixture = Fixture::new();
    let arguments = json!({"command": "sleep 1000", "run_in_background": true, "timeout_ms": 50});
    let finished = fixture.run(call("shell", arguments)).await;
    let task = finished.background.unwrap().task;
    let (exit, text) = ended(&fixture, task).await;
    assert!(matches!(exit, TaskExit::Signal { .. }), "{exit:?}");
    assert!(text.contains("timed out and was ended"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_output_is_shown_in_part() {
    let fixture = Fixture::new();
    let task = fixture.background("seq 1 5000").await;
    ended(&fixture, task).await;
    let text = output(&fixture, task, None).await;
    assert!(text.contains("it has written 23,893 bytes."), "{text}");
    assert!(
        text.contains("\n1\n2\n") && text.contains("\n4999\n5000\n"),
        "{text}"
    );
    assert!(
        text.contains("bytes) omitted; task_output with offset "),
        "{text}"
    );
    let (_, text) = ended(&fixture, task).await;
    assert!(text.ends_with("4999\n5000") && text.len() < 1200, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_taken_back_before_it_begins_never_does() {
    let mut fixture = Fixture::new();
    fixture.hold_shims();
    let call = background(": >ran");
    let started = fixture.started(&call).await;
    let running = fixture.begin(call, started);
    fixture.wait_for_hold().await;
    let finished = running.cancelled().await;
    assert_eq!(finished.outcome, CallOutcome::Interrupted, "{finished:?}");
    assert_eq!(finished.background, None);
    assert!(!fixture.path("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_does_not_keep_a_task_from_beginning() {
    let mut fixture = Fixture::new();
    fixture.hold_shims();
    let call = background("echo x");
    let started = fixture.started(&call).await;
    let task = started.task.unwrap();
    let running = fixture.begin(call, started);
    fixture.wait_for_hold().await;
    let text = output(&fixture, task, None).await;
    assert!(text.contains("is about to start"), "{text}");
    // Nor does counting them.
    fixture.started(&background("true")).await;
    fixture.release();
    assert!(running.finished().await.background.is_some());
    assert_eq!(ended(&fixture, task).await.0, TaskExit::Code { code: 0 });
}
