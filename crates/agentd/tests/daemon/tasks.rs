//! Background tasks are listed, followed and ended, and their end is reported once, whichever process dies in between.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Archive, OutputQuery, Reset, Rewind, Stop, Task, TaskState};
use agentd_core::event::{Body, Direction, Kind, NoticeCause, TaskExit};
use agentd_core::id::TaskId;
use std::path::PathBuf;

fn call(command: &str) -> String {
    let arguments = serde_json::json!({ "command": command, "run_in_background": true });
    format!("call shell {arguments}")
}

/// Starts a command in the background.
fn leave(daemon: &TestDaemon, name: &str, command: &str) -> TaskId {
    daemon.completed(name, &format!("do: {} ;; say left", call(command)));
    let tasks = daemon.show(name).tasks;
    *tasks.last().unwrap()
}

fn tasks(daemon: &TestDaemon, name: &str) -> Vec<Task> {
    daemon.block(daemon.client().tasks(name)).unwrap().tasks
}

/// How often the model was told of the end of a task.
fn told(daemon: &TestDaemon, name: &str, task: TaskId) -> usize {
    let events = daemon.events(name);
    let notices = events.iter().filter(|event| match &event.body {
        Body::Notice(notice) => {
            notice.cause == NoticeCause::TaskEnded && notice.text.contains(&task.to_string())
        }
        _ => false,
    });
    notices.count()
}

fn go(daemon: &TestDaemon) -> PathBuf {
    daemon.work().join("go")
}

const UNTIL_GO: &str = "echo begun; while ! [ -e go ]; do sleep 0.02; done; echo done; exit 7";

/// claude-code#54658, #88732: background work could not be listed, and had no known owner.
#[test]
fn each_is_listed_with_its_owner_and_what_it_wrote() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.create("writer");
    let task = leave(&daemon, "coder", "echo hello; sleep 600");
    let other = leave(&daemon, "writer", "sleep 600");
    let wrote = until("its output", || {
        let [found] = &tasks(&daemon, "coder")[..] else {
            panic!("not one task");
        };
        (found.output_bytes == 6).then(|| found.clone())
    });
    let agent = daemon.show("coder");
    assert_eq!(
        (wrote.id, wrote.agent.id, wrote.agent.name.as_deref()),
        (task, agent.id, Some("coder"))
    );
    assert_eq!(wrote.conversation, agent.conversation.unwrap().id);
    assert_eq!(wrote.turn, agent.last_turn.map(|turn| turn.id));
    assert_eq!(wrote.command.as_deref(), Some("echo hello; sleep 600"));
    assert_eq!((wrote.state, wrote.running), (TaskState::Running, true));
    let all = daemon.block(daemon.client().all_tasks()).unwrap().tasks;
    let ids: Vec<TaskId> = all.iter().map(|task| task.id).collect();
    assert_eq!(ids, [task, other]);
    let output = daemon.block(
        daemon
            .client()
            .output("coder", task, &OutputQuery::default()),
    );
    let output = output.unwrap();
    assert_eq!((output.text.as_str(), output.next), ("hello\n", 6));
    assert!(!output.is_over);
}

/// claude-code#27959, #84625: background work was killed with the turn, the process or the session.
#[test]
fn it_outlives_runtime_daemon_and_reset_and_its_end_is_told_once() {
    let daemon = TestDaemon::empty();
    daemon.daemon_has_keys();
    daemon.start_daemon();
    daemon.create("coder");
    let task = leave(&daemon, "coder", UNTIL_GO);
    daemon.kill_runtime("coder");
    daemon.kill_daemon();
    daemon.start_daemon();
    daemon
        .block(daemon.client().reset("coder", &Reset::default()))
        .unwrap();
    assert_eq!(tasks(&daemon, "coder")[0].state, TaskState::Running);
    std::fs::write(go(&daemon), b"").unwrap();
    let ended = daemon.until_kind("coder", Kind::TaskEnded);
    let Body::TaskEnded(ended) = ended.body else {
        panic!("{ended:?}");
    };
    assert_eq!((ended.task, ended.exit), (task, TaskExit::Code { code: 7 }));
    daemon.completed("coder", "do: say next");
    assert_eq!(told(&daemon, "coder", task), 1);
    assert_eq!(daemon.count("coder", Kind::TaskEnded), 1);
    assert_eq!(tasks(&daemon, "coder"), []);
    daemon.requests();
    daemon.verify();
}

/// The agent has no prompt and no process. The daemon notices the end of its task nevertheless.
#[test]
fn a_new_daemon_sees_how_the_tasks_of_an_idle_agent_end() {
    let daemon = TestDaemon::empty();
    daemon.daemon_has_keys();
    daemon.start_daemon();
    daemon.create("coder");
    let task = leave(&daemon, "coder", UNTIL_GO);
    daemon.block(daemon.client().stop_daemon()).unwrap();
    until("its end", || daemon.block(daemon.client().daemon()).err());
    until("its process", || {
        let runs = |(_, line): &(u32, String)| line.contains(" runtime ");
        (!daemon.processes().iter().any(runs)).then_some(())
    });
    daemon.start_daemon();
    std::fs::write(go(&daemon), b"").unwrap();
    daemon.until_kind("coder", Kind::TaskEnded);
    assert_eq!(told(&daemon, "coder", task), 1);
}

/// In a conversation that was left, the task still counts as running.
#[test]
fn one_that_ended_in_a_newer_conversation_is_told_after_undo() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let task = leave(&daemon, "coder", UNTIL_GO);
    daemon
        .block(daemon.client().reset("coder", &Reset::default()))
        .unwrap();
    std::fs::write(go(&daemon), b"").unwrap();
    daemon.until_kind("coder", Kind::TaskEnded);
    let undo = Reset {
        step: Some(Direction::Undo),
        ..Reset::default()
    };
    daemon.block(daemon.client().reset("coder", &undo)).unwrap();
    daemon.completed("coder", "do: say back");
    let request = daemon.requests().last().unwrap().body.to_string();
    let words = format!("{task} (shell: exit code 7)");
    assert!(request.contains(&words), "{request}");
}

/// In a branch from before its end, the task still counts as running.
#[test]
fn one_that_ended_after_the_place_of_a_rewind_is_told_in_the_branch_once() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let task = leave(&daemon, "coder", UNTIL_GO);
    std::fs::write(go(&daemon), b"").unwrap();
    daemon.until_kind("coder", Kind::TaskEnded);
    daemon.completed("coder", "do: say two");
    let to = |place: &str| Rewind {
        to: place.to_owned(),
        ..Rewind::default()
    };
    let words = format!("{task} (shell: exit code 7)");
    let ask = |text: &str| {
        daemon.completed("coder", text);
        let request = daemon.requests().last().unwrap().body.to_string();
        request.matches(&words).count()
    };
    daemon
        .block(daemon.client().rewind("coder", &to("1")))
        .unwrap();
    assert_eq!(ask("do: say back"), 1);
    assert_eq!(ask("do: say again"), 1);
    // A branch of the branch has it in its past, and one from before the task knows of none.
    daemon
        .block(daemon.client().rewind("coder", &to("session-latest")))
        .unwrap();
    assert_eq!(ask("do: say deeper"), 1);
    daemon.verify();
}

#[test]
fn one_is_stopped_by_its_id_and_all_of_a_stopped_agent_by_its_name() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let first = leave(&daemon, "coder", "sleep 600");
    let second = leave(&daemon, "coder", "sleep 600");
    let stopped = daemon
        .block(daemon.client().stop_tasks(&first.to_string()))
        .unwrap()
        .tasks;
    assert_eq!((stopped.len(), stopped[0].id), (1, first));
    until("its end", || {
        (tasks(&daemon, "coder").len() == 1).then_some(())
    });
    assert_eq!(told(&daemon, "coder", first), 1);
    daemon
        .block(daemon.client().stop("coder", &Stop::default()))
        .unwrap();
    assert_eq!(tasks(&daemon, "coder")[0].state, TaskState::Running);
    let stopped = daemon
        .block(daemon.client().stop_tasks("coder"))
        .unwrap()
        .tasks;
    assert_eq!((stopped.len(), stopped[0].id), (1, second));
    assert_eq!(tasks(&daemon, "coder"), []);
    assert_eq!(told(&daemon, "coder", second), 1);
    let gone = daemon.block(daemon.client().stop_tasks(&first.to_string()));
    assert!(gone.is_err());
    let left = daemon.processes();
    assert!(!left.iter().any(|(_, line)| line.contains("sleep 600")));
}

/// claude-code#93794: 1,300 zombies and 37 GB.
#[test]
fn number_and_output_are_limited_and_the_model_is_told() {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.limits.max_tasks = 1;
    spec.limits.task_output_bytes = 10;
    daemon.create_with("coder", spec);
    let task = leave(&daemon, "coder", "yes; sleep 600");
    daemon.completed("coder", &format!("do: {} ;; say no", call("sleep 600")));
    let request = daemon.requests().last().unwrap().body.to_string();
    assert!(request.contains("`max_tasks`"), "{request}");
    assert_eq!(tasks(&daemon, "coder").len(), 1);
    until("its output", || {
        (tasks(&daemon, "coder")[0].output_bytes == 10).then_some(())
    });
    let look = serde_json::json!({ "task": task });
    daemon.completed("coder", &format!("do: call task_output {look} ;; say seen"));
    let request = daemon.requests().last().unwrap().body.to_string();
    assert!(request.contains("`task_output_bytes`"), "{request}");
    assert_eq!(tasks(&daemon, "coder")[0].output_bytes, 10);
}

#[test]
fn they_end_with_the_agent_which_says_which() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let task = leave(&daemon, "coder", "sleep 600");
    let removed = daemon
        .block(daemon.client().archive("coder", &Archive::default()))
        .unwrap();
    assert_eq!(removed.ended.tasks, [task]);
    assert!(removed.agent.archived);
    assert_eq!(daemon.block(daemon.client().all_tasks()).unwrap().tasks, []);
    until("its end", || {
        let left = daemon.processes();
        (!left.iter().any(|(_, line)| line.contains("sleep 600"))).then_some(())
    });
}

/// Regression: if no prompt came after the crash, no process was started, and the task was shown as running without end.
#[test]
fn the_end_of_a_task_is_recorded_after_an_idle_agents_process_was_killed() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    leave(&daemon, "coder", "until test -e go; do sleep 0.02; done");
    daemon.kill_runtime("coder");
    std::fs::write(daemon.work().join("go"), "").unwrap();
    daemon.until_kind("coder", Kind::TaskEnded);
    until("no task", || {
        daemon.show("coder").tasks.is_empty().then_some(())
    });
}
