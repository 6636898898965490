//! What ended commands leave on disk is bounded, whatever happens to the process that removes it.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::OutputQuery;
use agentd_core::event::Kind;
use agentd_core::id::TaskId;
use agentd_failpoint::plan::{Action, Role, Rule};
use serde_json::json;
use std::fs;
use std::path::PathBuf;

fn tasks_dir(daemon: &TestDaemon) -> PathBuf {
    let agent = daemon.show("coder").id.to_string();
    daemon.home().join("agents").join(agent).join("tasks")
}

fn directories(daemon: &TestDaemon) -> Vec<String> {
    let entries = fs::read_dir(tasks_dir(daemon)).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    names.collect()
}

/// A turn with so many commands.
fn commands(daemon: &TestDaemon, count: usize) {
    let calls: Vec<String> = (0..count)
        .map(|n| format!("call shell {}", json!({"command": format!("echo {n}")})))
        .collect();
    daemon.completed("coder", &format!("do: {} ;; say done", calls.join(" | ")));
}

fn last_result(daemon: &TestDaemon) -> String {
    let events = daemon.events("coder");
    let results = events
        .iter()
        .rev()
        .filter(|it| it.kind() == Kind::ResultAdded);
    let words = results.map(|event| event.body.words().join("\n"));
    words.take(1).collect()
}

/// The newest 50 directories stay, and what the model was told about; it is tidied after each 32 calls.
const MOST: usize = 50 + 2 + 2 * 32;

#[test]
fn several_hundred_commands_leave_a_bounded_number_of_directories() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let long = json!({"command": "seq 1 20000"});
    daemon.completed("coder", &format!("do: call shell {long} ;; say done"));
    let told = last_result(&daemon);
    let (_, path) = told.split_once("the full output is in ").unwrap();
    let (path, _) = path.split_once(';').unwrap();
    let path = path.to_owned();
    let left = json!({"command": "echo of the background", "run_in_background": true});
    daemon.completed("coder", &format!("do: call shell {left} ;; say done"));
    daemon.until_kind("coder", Kind::TaskEnded);
    let runs = json!({"command": "until [ -e go ]; do sleep 0.1; done", "run_in_background": true});
    daemon.completed("coder", &format!("do: call shell {runs} ;; say done"));
    let running = daemon.show("coder").tasks;
    for _ in 0..6 {
        commands(&daemon, 50);
    }
    until("few directories", || {
        daemon.completed("coder", "do: say hm");
        (directories(&daemon).len() <= MOST).then_some(())
    });
    assert_eq!(daemon.show("coder").tasks, running);
    let read = json!({"file_path": path, "offset": 19_000, "limit": 1});
    daemon.completed("coder", &format!("do: call read_file {read} ;; say done"));
    assert!(
        last_result(&daemon).contains("19000"),
        "{}",
        last_result(&daemon)
    );
    for task in directories(&daemon) {
        let (client, query) = (daemon.client(), OutputQuery::default());
        let task: TaskId = task.parse().unwrap();
        daemon.block(client.output("coder", task, &query)).unwrap();
    }
    fs::write(daemon.work().join("go"), "").unwrap();
    until("the end", || {
        daemon.show("coder").tasks.is_empty().then_some(())
    });
    daemon.verify();
}

#[test]
fn killed_while_a_directory_is_removed_the_next_process_removes_the_rest() {
    for place in ["before-task-remove", "in-task-remove"] {
        let daemon = TestDaemon::empty();
        daemon.daemon_has_keys();
        daemon.follow(Rule {
            action: Action::Kill,
            ..Rule::hold("kill", Role::Runtime, place)
        });
        daemon.start_daemon();
        daemon.create("coder");
        commands(&daemon, 60);
        let killed = || daemon.root().join("fired").join("kill").exists();
        until("the kill", || {
            commands(&daemon, 20);
            killed().then_some(())
        });
        until("few directories, and no part of one", || {
            commands(&daemon, 20);
            let names = directories(&daemon);
            let is_whole = !names.iter().any(|name| name.ends_with(".removed"));
            (is_whole && names.len() <= MOST).then_some(())
        });
        daemon.verify();
    }
}
