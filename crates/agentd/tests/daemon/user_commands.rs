//! Commands that the user runs in the sandbox of an agent's tools: `POST /v1/agents/{name}/commands`, `agentd exec` and
//! `!cmd` in the chat.

use crate::test_daemon::{KEY, TestDaemon, kill, until};
use agentd_client::Error;
use agentd_client::api::{EndedCommand, RunCommand};
use agentd_core::event::{Body, CommandCut, Kind, TaskExit};
use agentd_core::id::OpId;
use agentd_core::secrets::MARK;
use agentd_core::spec::Sandbox;
use agentd_failpoint::plan::Role;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Writes a line when it begins, and waits for the file `go`.
const SLOW: &str = "echo ran >> effects; until [ -e go ]; do sleep 0.05; done; echo went";

fn request(daemon: &TestDaemon, command: &str) -> RunCommand {
    RunCommand {
        command: command.to_owned(),
        timeout_ms: None,
        env: daemon.caller(),
    }
}

fn op(n: u128) -> OpId {
    OpId::new(Uuid::from_u128(n))
}

fn run_under(daemon: &TestDaemon, op: OpId, command: &str) -> Result<EndedCommand, Error> {
    let client = daemon.client().under(Some(op));
    daemon.block(client.run_command("coder", &request(daemon, command)))
}

fn run(daemon: &TestDaemon, command: &str) -> EndedCommand {
    let (client, request) = (daemon.client(), request(daemon, command));
    daemon.block(client.run_command("coder", &request)).unwrap()
}

/// Starts a command, and waits until it runs.
fn begin(daemon: &TestDaemon, op: OpId) -> JoinHandle<Result<EndedCommand, Error>> {
    let (client, request) = (daemon.client().under(Some(op)), request(daemon, SLOW));
    let running = daemon.spawn(async move { client.run_command("coder", &request).await });
    until("the command", || {
        (!daemon.effects().is_empty()).then_some(())
    });
    running
}

fn go(daemon: &TestDaemon) {
    fs::write(daemon.work().join("go"), "").unwrap();
}

const fn code(code: i32) -> TaskExit {
    TaskExit::Code { code }
}

/// The last request that the model got, as text.
fn last_request(daemon: &TestDaemon) -> String {
    let requests = daemon.requests();
    requests.last().unwrap().body.to_string()
}

fn coder() -> TestDaemon {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon
}

#[test]
fn its_output_is_in_the_next_request_and_nothing_is_sent_by_itself() {
    let daemon = coder();
    daemon.completed("coder", "do: say hello");
    let ran = run(&daemon, "pwd > where; echo out; echo wrong >&2; exit 3");
    assert_eq!(ran.output, "out\nwrong\n");
    assert_eq!((ran.end.exit, ran.end.cut), (code(3), None));
    assert!(!ran.repeated);
    let there = fs::read_to_string(daemon.work().join("where")).unwrap();
    let work = fs::canonicalize(daemon.work()).unwrap();
    assert_eq!(there.trim_end(), work.display().to_string());
    assert_eq!(daemon.requests().len(), 1, "the model was asked");
    daemon.completed("coder", "do: say I see");
    let body = last_request(&daemon);
    let at = |text: &str| body.find(text).unwrap_or_else(|| panic!("{text}: {body}"));
    at(r"echo wrong >&2; exit 3\nout\nwrong\n(exit code 3)");
    assert!(at("exit code 3") < at("do: say I see"));
    // It is told once, and stays where it is.
    daemon.completed("coder", "do: say more");
    assert_eq!(last_request(&daemon).matches("(exit code 3)").count(), 1);
    daemon.verify();
}

/// The user is told why a command failed that works in a shell.
#[test]
fn a_refusal_of_the_sandbox_is_explained() {
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return;
    }
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    daemon.create_with("coder", spec);
    let ran = run(&daemon, "touch /usr/made");
    assert_eq!(ran.end.exit, code(1));
    assert!(ran.output.contains("\n[sandbox] "), "{}", ran.output);
    let ran = run(&daemon, "echo fine; exit 1");
    assert_eq!(ran.output, "fine\n");
}

#[test]
fn it_runs_in_the_sandbox_of_the_tools() {
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return;
    }
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    spec.env.insert("MINE".to_owned(), "of-the-spec".to_owned());
    daemon.create_with("coder", spec);
    let user = daemon.root().join("user");
    fs::create_dir_all(user.join(".ssh")).unwrap();
    fs::write(user.join(".ssh/id"), "canary-ssh").unwrap();
    fs::write(daemon.home().join("canary"), "canary-state").unwrap();
    let outside = daemon.root().join("outside");
    daemon.caller_env("HOME", &user.display().to_string());
    let ran = run(
        &daemon,
        &format!(
            "cat {}/canary; ls {0}/agents; cat {}/.ssh/id; echo x > {}; echo in > inside; echo $MINE \
             ${{ANTHROPIC_API_KEY:-none}}",
            daemon.home().display(),
            user.display(),
            outside.display()
        ),
    );
    assert!(!ran.output.contains("canary-"), "{}", ran.output);
    assert!(ran.output.ends_with("of-the-spec none\n"), "{}", ran.output);
    assert!(!outside.exists());
    assert!(daemon.work().join("inside").exists());
}

#[test]
fn a_secret_is_neither_in_the_answer_nor_in_the_journal() {
    let daemon = coder();
    let ran = run(&daemon, &format!("echo {KEY}"));
    assert_eq!(ran.output, format!("{MARK}\n"));
    assert_eq!(ran.command, format!("echo {MARK}"));
    daemon.completed("coder", "do: say ok");
    assert!(!last_request(&daemon).contains(KEY));
    let events = serde_json::to_string(&daemon.events("coder")).unwrap();
    assert!(!events.contains(KEY), "{events}");
}

#[test]
fn a_daemon_that_dies_runs_nothing_twice_and_the_next_one_has_the_result() {
    let daemon = coder();
    let running = begin(&daemon, op(1));
    daemon.kill_daemon();
    daemon.block(running).unwrap().unwrap_err();
    daemon.start_daemon();
    go(&daemon);
    let ran = run_under(&daemon, op(1), SLOW).unwrap();
    assert!(ran.repeated);
    assert_eq!((ran.output.as_str(), ran.end.exit), ("went\n", code(0)));
    assert_eq!(daemon.effects(), ["ran"]);
    // The end is recorded once, even if the next daemon finds the same.
    daemon.kill_daemon();
    daemon.start_daemon();
    assert_eq!(daemon.count("coder", Kind::CommandEnded), 1);
    daemon.completed("coder", "do: say ok");
    assert!(last_request(&daemon).contains(r"echo went\nwent"));
    assert!(
        daemon
            .home()
            .join("commands")
            .read_dir()
            .unwrap()
            .next()
            .is_none()
    );
}

#[test]
fn the_end_is_recorded_without_a_client_also_if_the_owner_of_its_directory_is_lost() {
    let daemon = coder();
    let running = begin(&daemon, op(1));
    daemon.kill_daemon();
    daemon.block(running).unwrap().unwrap_err();
    go(&daemon);
    daemon.start_daemon();
    daemon.until_kind("coder", Kind::CommandEnded);
    // A home that was written before owners were durable.
    fs::remove_file(daemon.work().join("go")).unwrap();
    fs::remove_file(daemon.work().join("effects")).unwrap();
    let running = begin(&daemon, op(2));
    daemon.kill_daemon();
    daemon.block(running).unwrap().unwrap_err();
    let mut dirs = daemon.home().join("commands").read_dir().unwrap();
    let dir = dirs.next().unwrap().unwrap().path();
    fs::remove_file(dir.join("agent")).unwrap();
    daemon.start_daemon();
    go(&daemon);
    // The first change of the agent finds the command in its journal.
    daemon.completed("coder", "do: say ok");
    until("the end", || {
        (daemon.count("coder", Kind::CommandEnded) == 2).then_some(())
    });
    assert_eq!(daemon.effects(), ["ran"]);
    daemon.verify();
}

#[test]
fn output_that_comes_after_a_purge_is_not_kept() {
    let daemon = coder();
    let slow = format!("{SLOW}; seq 100000");
    let (client, request) = (daemon.client(), request(&daemon, &slow));
    let running = daemon.spawn(async move { client.run_command("coder", &request).await });
    until("the command", || {
        (!daemon.effects().is_empty()).then_some(())
    });
    daemon.cli(&["reset", "coder"]);
    let purged = daemon.cli(&["purge", "coder", "--conversation", "1", "--yes"]);
    assert!(purged.status.success(), "{purged:?}");
    go(&daemon);
    let ran = daemon.block(running).unwrap().unwrap();
    assert_eq!((ran.output.as_str(), ran.end.exit), ("", code(0)));
    let agent = daemon.show("coder").id.to_string();
    let outputs = daemon.home().join("agents").join(agent).join("outputs");
    let kept = outputs.read_dir().map_or(0, Iterator::count);
    assert_eq!(kept, 0);
    daemon.verify();
}

#[test]
fn a_command_whose_shim_dies_with_the_daemon_has_an_unknown_outcome() {
    let daemon = coder();
    let running = begin(&daemon, op(1));
    let shims = daemon.processes();
    let mut shims = shims.iter().filter(|(_, args)| args.contains("/commands/"));
    let (shim, _) = shims.next().unwrap();
    daemon.kill_daemon();
    kill(*shim, Signal::KILL);
    daemon.block(running).unwrap().unwrap_err();
    daemon.start_daemon();
    let ended = daemon.until_kind("coder", Kind::CommandEnded);
    let Body::CommandEnded(ended) = ended.body else {
        panic!("{ended:?}")
    };
    assert_eq!(ended.end.exit, TaskExit::Unknown);
    let ran = run_under(&daemon, op(1), SLOW).unwrap();
    assert!(ran.repeated && ran.end.exit == TaskExit::Unknown);
    assert_eq!(daemon.effects(), ["ran"]);
}

#[test]
fn a_command_that_was_recorded_and_not_started_never_runs() {
    let daemon = TestDaemon::empty();
    daemon.hold(Role::Daemon, "before-command");
    daemon.start_daemon();
    daemon.create("coder");
    let (client, request) = (daemon.client().under(Some(op(1))), request(&daemon, SLOW));
    let running = daemon.spawn(async move { client.run_command("coder", &request).await });
    daemon.until_held();
    daemon.kill_daemon();
    daemon.block(running).unwrap().unwrap_err();
    daemon.start_daemon();
    let ran = run_under(&daemon, op(1), SLOW).unwrap();
    assert!(ran.repeated && ran.end.exit == TaskExit::NotStarted);
    assert_eq!(daemon.effects(), [] as [&str; 0]);
}

#[test]
fn the_same_op_runs_once_and_is_for_one_command() {
    let daemon = coder();
    let command = "echo ran >> effects; echo once";
    let first = run_under(&daemon, op(7), command).unwrap();
    let again = run_under(&daemon, op(7), command).unwrap();
    assert!(!first.repeated && again.repeated);
    assert_eq!((first.id, &first.output), (again.id, &again.output));
    assert_eq!(daemon.effects(), ["ran"]);
    let other = run_under(&daemon, op(7), "echo other").unwrap_err();
    assert!(other.to_string().contains("another command"), "{other}");
    assert_eq!(daemon.count("coder", Kind::CommandStarted), 1);
}

#[test]
fn a_command_is_ended_after_its_time_limit() {
    let daemon = coder();
    let request = RunCommand {
        timeout_ms: Some(200),
        ..request(&daemon, "echo begun; sleep 1000")
    };
    let ran = daemon.block(daemon.client().run_command("coder", &request));
    let ran = ran.unwrap();
    assert_eq!(ran.end.cut, Some(CommandCut::TimedOut));
    assert_eq!(ran.output, "begun\n");
    let too_long = RunCommand {
        timeout_ms: Some(3_600_001),
        ..request
    };
    let refused = daemon.block(daemon.client().run_command("coder", &too_long));
    refused.unwrap_err();
}

#[test]
fn an_interrupt_ends_it_and_a_client_that_leaves_does_not() {
    let daemon = coder();
    let running = begin(&daemon, op(1));
    running.abort();
    assert_eq!(daemon.count("coder", Kind::CommandEnded), 0);
    let out = daemon.cli(&["interrupt", "coder"]);
    assert!(out.status.success(), "{out:?}");
    let ran = run_under(&daemon, op(1), SLOW).unwrap();
    assert_eq!(ran.end.cut, Some(CommandCut::Interrupted));
    // There is nothing left to interrupt.
    let out = daemon.cli(&["interrupt", "coder"]);
    assert_eq!(out.status.code(), Some(3), "{out:?}");
}

#[test]
fn long_output_is_cut_in_the_middle_and_kept_in_a_file() {
    let daemon = coder();
    let ran = run(&daemon, "seq 100000");
    assert!(ran.output.len() < 40_000, "{}", ran.output.len());
    assert!(ran.output.starts_with("1\n2\n") && ran.output.ends_with("\n99999\n100000\n"));
    let note = ran.output.lines().find(|line| line.starts_with('…'));
    let note = note.unwrap();
    let path = note.split(" is in ").nth(1).unwrap();
    let path = path.trim_end_matches(" …");
    assert_eq!(fs::read_to_string(path).unwrap().lines().count(), 100_000);
    daemon.completed("coder", "do: say ok");
    assert!(last_request(&daemon).contains("omitted"));
    // A purge removes the file with the rest of the conversation.
    daemon.cli(&["reset", "coder"]);
    let purged = daemon.cli(&["purge", "coder", "--conversation", "1", "--yes"]);
    assert!(purged.status.success(), "{purged:?}");
    assert!(!fs::exists(path).unwrap());
    daemon.verify();
}

#[test]
fn a_reset_clears_it_also_while_it_runs() {
    let daemon = coder();
    daemon.completed("coder", "do: say hello");
    run(&daemon, "echo before-the-reset");
    let running = begin(&daemon, op(1));
    let out = daemon.cli(&["reset", "coder"]);
    assert!(out.status.success(), "{out:?}");
    go(&daemon);
    let ran = daemon.block(running).unwrap().unwrap();
    assert_eq!(ran.output, "went\n");
    daemon.completed("coder", "do: say fresh");
    let body = last_request(&daemon);
    assert!(!body.contains("before-the-reset"), "{body}");
    assert!(!body.contains("went"), "{body}");
    daemon.verify();
}

#[test]
fn while_a_turn_runs_it_is_told_at_the_next_boundary() {
    let daemon = coder();
    let call = serde_json::json!({ "command": SLOW });
    let sent = daemon.send("coder", &format!("do: call shell {call} ;; say done"));
    until("the call", || (!daemon.effects().is_empty()).then_some(()));
    run(&daemon, "echo meanwhile");
    go(&daemon);
    daemon.answer("coder", sent.prompt);
    let body = last_request(&daemon);
    let at = |text: &str| body.rfind(text).unwrap_or_else(|| panic!("{text}: {body}"));
    assert!(
        at("tool_result") < at(r"echo meanwhile\nmeanwhile"),
        "{body}"
    );
    daemon.verify();
}

#[test]
fn archived_and_imported_agents_run_nothing() {
    let daemon = coder();
    let file = daemon.root().join("coder.agentd").display().to_string();
    assert!(daemon.cli(&["export", "coder", &file]).status.success());
    let imported = daemon.cli(&["import", &file, "--as", "copy"]);
    assert!(imported.status.success(), "{imported:?}");
    let held = daemon.cli(&["exec", "copy", "--", "echo ran >> effects"]);
    assert_eq!(held.status.code(), Some(6), "{held:?}");
    let running = begin(&daemon, op(1));
    assert!(daemon.cli(&["rm", "coder"]).status.success());
    let ended = daemon.block(running).unwrap().unwrap();
    assert_eq!(ended.end.cut, Some(CommandCut::Interrupted));
    let archived = daemon.cli(&["exec", "coder", "--", "echo ran >> effects"]);
    assert!(!archived.status.success(), "{archived:?}");
    assert_eq!(daemon.effects(), ["ran"]);
}

#[test]
fn exec_prints_the_output_and_says_how_the_command_ended() {
    let daemon = coder();
    let out = daemon.cli(&["exec", "coder", "--", "echo", "it's", "$HOME"]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    assert_eq!(String::from_utf8_lossy(&out.stdout), "it's $HOME\n");
    let out = daemon.cli(&["exec", "coder", "--", "echo no | cat; exit 7"]);
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    assert_eq!(String::from_utf8_lossy(&out.stdout), "no\n");
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(error.contains("exit code 7"), "{error}");
    let out = daemon.cli(&["exec", "coder", "--json", "--", "exit 7"]);
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    let ended: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(
        ended["exit"],
        serde_json::json!({"type": "code", "code": 7})
    );
    let out = daemon.cli(&["exec", "coder", "--timeout", "1", "--", "sleep 1000"]);
    assert_eq!(out.status.code(), Some(124), "{out:?}");
}
