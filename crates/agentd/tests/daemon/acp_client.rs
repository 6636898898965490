//! Files and terminals that the program of an ACP agent asks its client for: agentd serves them in the program's sandbox.

use crate::acp_fixture::{processes, results, session_file, spec};
use crate::command_agents::reset;
use crate::test_daemon::{TestDaemon, kill, until};
use agentd_client::api::Status;
use agentd_core::message::{Block, CallOutcome};
use agentd_core::outer::acp::files::ARGUMENT;
use agentd_core::spec::Sandbox;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const CHILD: &str = include_str!("../fixture/acp-client.sh");
const CHILD_FILE: &str = "acp-client.sh";

/// An agent at this level.
fn started(sandbox: Sandbox) -> TestDaemon {
    let daemon = TestDaemon::new();
    create_agent(&daemon, sandbox);
    daemon
}

fn create_agent(daemon: &TestDaemon, sandbox: Sandbox) {
    let mut spec = spec(daemon, CHILD_FILE, CHILD);
    spec.sandbox = Some(sandbox);
    daemon.create_with("coder", spec);
}

/// An agent in a sandbox, and one without; only the latter where the machine has no sandbox.
fn levels() -> Vec<TestDaemon> {
    let mut levels = vec![started(Sandbox::FullAccess)];
    levels.extend(sandboxed());
    levels
}

fn sandboxed() -> Option<TestDaemon> {
    has_sandbox().then(|| started(Sandbox::WorkspaceWrite))
}

fn has_sandbox() -> bool {
    match agentd_sandbox::support().namespaces {
        Ok(()) => true,
        Err(missing) => {
            println!("skipped: {missing}");
            false
        }
    }
}

/// A step of the program: a request.
fn request(method: &str, mut params: Value) -> String {
    params["sessionId"] = json!("SESSION");
    format!("{method} {params}")
}

fn read(path: &Path) -> String {
    request("fs/read_text_file", json!({"path": path}))
}

fn write(path: &Path, content: &str) -> String {
    request(
        "fs/write_text_file",
        json!({"path": path, "content": content}),
    )
}

fn create(command: &str) -> String {
    request("terminal/create", json!({"command": command}))
}

/// A request about the newest terminal.
fn terminal(verb: &str) -> String {
    request(
        &format!("terminal/{verb}"),
        json!({"terminalId": "TERMINAL"}),
    )
}

/// Gives the program steps. Returns the prompt that makes it carry them out.
fn plan(daemon: &TestDaemon, steps: &[String]) -> &'static str {
    let text = steps.join("\n") + "\n";
    fs::write(daemon.work().join("plan"), text).unwrap();
    let _none = fs::remove_file(daemon.work().join("replies"));
    "do: plan"
}

/// The answers to the program's requests.
fn replies(daemon: &TestDaemon) -> Vec<Value> {
    let text = fs::read_to_string(daemon.work().join("replies")).unwrap_or_default();
    let replies = text.lines().map(|line| serde_json::from_str(line).unwrap());
    replies.collect()
}

/// Lets the program carry out these steps in a turn. Returns the answers to its requests.
#[track_caller]
fn carried_out(daemon: &TestDaemon, steps: &[String]) -> Vec<Value> {
    let answer = daemon.completed("coder", plan(daemon, steps));
    assert_eq!(answer.text, "done");
    replies(daemon)
}

#[track_caller]
fn refused(reply: &Value, code: i64, why: &str) {
    assert_eq!(reply["error"]["code"], code, "{reply}");
    let message = reply["error"]["message"].as_str().unwrap();
    assert!(message.contains(why), "{message}");
}

/// The commands of terminals that run: each sleeps for its own time.
fn sleeping(daemon: &TestDaemon, seconds: &str) -> usize {
    let command = format!("sleep {seconds}");
    processes(daemon, |arguments| arguments.contains(&command)).len()
}

#[track_caller]
fn until_sleeps(daemon: &TestDaemon, seconds: &str, count: usize) {
    until("the processes of terminals", || {
        (sleeping(daemon, seconds) == count).then_some(())
    });
}

#[track_caller]
fn until_none_sleeps(daemon: &TestDaemon, seconds: &str) {
    until("no process of a terminal", || {
        (sleeping(daemon, seconds) == 0).then_some(())
    });
}

/// The processes that read and write files for this agent's program. They have no variables that name the daemon.
fn file_processes(daemon: &TestDaemon) -> usize {
    let work = fs::canonicalize(daemon.work()).unwrap();
    let is_own = |process: &Path| {
        let arguments = fs::read(process.join("cmdline")).unwrap_or_default();
        let arguments = String::from_utf8_lossy(&arguments).into_owned();
        let dir = fs::read_link(process.join("cwd"));
        arguments.contains(ARGUMENT) && dir.is_ok_and(|dir| dir == work)
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter(|entry| is_own(&entry.path())).count()
}

#[test]
fn a_program_is_offered_files_and_terminals() {
    let daemon = started(Sandbox::FullAccess);
    carried_out(&daemon, &[]);
    let hello = fs::read_to_string(daemon.work().join("hello")).unwrap();
    let hello: Value = serde_json::from_str(hello.trim()).unwrap();
    let offered = &hello["params"]["clientCapabilities"];
    let files = json!({"readTextFile": true, "writeTextFile": true});
    assert_eq!(
        (&offered["fs"], &offered["terminal"]),
        (&files, &json!(true))
    );
}

#[test]
fn files_are_read_in_part_created_and_replaced() {
    for daemon in levels() {
        let path = daemon.work().join("new/dir/a");
        let part = json!({"path": path, "line": 2, "limit": 1});
        let replies = carried_out(
            &daemon,
            &[
                write(&path, "one\ntwo\nthree"),
                read(&path),
                request("fs/read_text_file", part),
                write(&path, "other é\n"),
                read(&path),
            ],
        );
        let results: Vec<&Value> = replies.iter().map(|reply| &reply["result"]).collect();
        let content = |text: &str| json!({"content": text});
        assert_eq!(results[0], &json!({}), "{replies:?}");
        assert_eq!(results[1], &content("one\ntwo\nthree"));
        assert_eq!(results[2], &content("two\n"));
        assert_eq!(results[4], &content("other é\n"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "other é\n");
        assert_eq!(file_processes(&daemon), 1, "one for all requests");
        assert!(daemon.cli(&["stop", "coder"]).status.success());
        until("the end of the process", || {
            (file_processes(&daemon) == 0).then_some(())
        });
        daemon.verify();
    }
}

#[test]
fn what_cannot_be_read_or_written_is_an_error_and_the_turn_goes_on() {
    for daemon in levels() {
        let work = daemon.work();
        fs::write(work.join("binary"), b"a\0b").unwrap();
        fs::write(work.join("latin"), b"caf\xe9").unwrap();
        fs::write(work.join("large"), "x".repeat(5 * 1024 * 1024)).unwrap();
        let relative = json!({"path": "a"});
        let replies = carried_out(
            &daemon,
            &[
                read(&work.join("missing")),
                read(&work),
                read(&work.join("binary")),
                read(&work.join("latin")),
                read(&work.join("large")),
                request("fs/read_text_file", relative),
                write(&work.join("large/below"), ""),
                write(&work, ""),
                r#"fs/read_text_file {"sessionId":"other","path":"/etc/hostname"}"#.to_owned(),
                r#"fs/read_text_file {"path":"/etc/hostname"}"#.to_owned(),
                request("fs/delete_file", json!({})),
                read(Path::new("/etc/passwd")),
            ],
        );
        for (n, code, why) in [
            (0, -32002, "Resource not found"),
            (1, -32603, "is a directory"),
            (2, -32603, "binary"),
            (3, -32603, "UTF-8"),
            (4, -32603, "`limit`"),
            (5, -32602, "absolute path"),
            (6, -32603, "large"),
            (7, -32603, "is a directory"),
            (8, -32602, "not the session"),
            (9, -32602, "`sessionId`"),
            (10, -32601, "does not serve"),
        ] {
            refused(&replies[n], code, why);
        }
        let passwd = replies[11]["result"]["content"].as_str().unwrap();
        assert!(passwd.contains("root:"), "{passwd}");
        daemon.verify();
    }
}

/// A path means what it means to the program: files that the sandbox hides from it are hidden from its client too.
#[test]
fn files_outside_the_sandbox_and_protected_files_are_refused() {
    let Some(daemon) = sandboxed() else { return };
    let work = daemon.work();
    let outside = daemon.home().join("outside");
    fs::write(&outside, "not for the agent").unwrap();
    symlink(&outside, work.join("link")).unwrap();
    fs::create_dir_all(work.join(".git/hooks")).unwrap();
    let hook = work.join(".git/hooks/pre-commit");
    let etc = PathBuf::from(format!("/etc/agentd-test-{}", std::process::id()));
    let own = PathBuf::from(format!("/tmp/agentd-test-{}", std::process::id()));
    let replies = carried_out(
        &daemon,
        &[
            read(&outside),
            read(&work.join("link")),
            write(&outside, "changed"),
            write(&work.join("link"), "changed"),
            write(&hook, "#!/bin/sh\n"),
            write(&etc, "text"),
            write(&own, "of the program"),
            create(&format!("cat {}", own.display())),
            terminal("wait_for_exit"),
            terminal("output"),
        ],
    );
    for reply in &replies[..2] {
        assert!(reply["error"].is_object(), "{reply}");
    }
    refused(&replies[4], -32603, "write-protected");
    refused(&replies[5], -32603, "agentd-test");
    // The sandbox may have a directory of its own in that place.
    assert_eq!(fs::read_to_string(&outside).unwrap(), "not for the agent");
    assert!(!hook.exists() && !etc.exists());
    // The /tmp of the program is not that of the machine, and its terminals have the same one.
    assert_eq!(replies[6]["result"], json!({}), "{replies:?}");
    assert!(!own.exists());
    assert_eq!(replies[9]["result"]["output"], "of the program");
    daemon.verify();
}

#[test]
fn a_terminal_shows_the_output_and_the_end_of_its_command() {
    for daemon in levels() {
        let sub = daemon.work().join("sub");
        fs::create_dir(&sub).unwrap();
        let line = "echo out; echo err >&2; basename $(pwd); echo $MARK; cat; exit 3";
        let program = json!({
            "command": "sh", "args": ["-c", line], "cwd": sub,
            "env": [{"name": "MARK", "value": "of the request"}],
        });
        let replies = carried_out(
            &daemon,
            &[
                request("terminal/create", program),
                terminal("wait_for_exit"),
                terminal("output"),
                terminal("release"),
                terminal("output"),
                create("echo a b | cat"),
                terminal("wait_for_exit"),
                terminal("output"),
            ],
        );
        let exit = json!({"exitCode": 3, "signal": null});
        assert_eq!(replies[1]["result"], exit, "{replies:?}");
        let output = "out\nerr\nsub\nof the request\n";
        let shown = json!({"output": output, "truncated": false, "exitStatus": exit});
        assert_eq!(replies[2]["result"], shown);
        assert_eq!(replies[3]["result"], json!({}));
        refused(&replies[4], -32602, "no terminal");
        assert_eq!(replies[7]["result"]["output"], "a b\n");
        daemon.verify();
    }
}

#[test]
fn the_newest_output_is_kept_and_a_command_can_be_killed() {
    for daemon in levels() {
        let limited = json!({"command": "seq 1 100000", "outputByteLimit": 10});
        let flood = json!({"command": "head -c 9000000 /dev/zero | tr '\\0' x"});
        let replies = carried_out(
            &daemon,
            &[
                request("terminal/create", limited),
                terminal("wait_for_exit"),
                terminal("output"),
                request("terminal/create", flood),
                terminal("wait_for_exit"),
                create("sleep 311"),
                terminal("output"),
                terminal("kill"),
                terminal("wait_for_exit"),
                terminal("output"),
                terminal("release"),
            ],
        );
        let kept = &replies[2]["result"];
        assert_eq!(kept["output"], "99\n100000\n", "{kept}");
        assert_eq!(kept["truncated"], true);
        assert_eq!(replies[4]["result"]["exitCode"], 0);
        let running = json!({"output": "", "truncated": false, "exitStatus": null});
        assert_eq!(replies[6]["result"], running);
        let exit = &replies[8]["result"];
        assert!(
            exit["signal"].is_string() && exit["exitCode"].is_null(),
            "{exit}"
        );
        assert_eq!(&replies[9]["result"]["exitStatus"], exit);
        assert_eq!(sleeping(&daemon, "311"), 0);
        daemon.verify();
    }
}

#[test]
fn a_command_that_cannot_be_started_says_why() {
    for daemon in levels() {
        let program = json!({"command": "no-such-program", "args": ["x"]});
        let nowhere = json!({"command": "ls", "cwd": daemon.work().join("nowhere")});
        let relative = json!({"command": "ls", "cwd": "sub"});
        let replies = carried_out(
            &daemon,
            &[
                request("terminal/create", program),
                terminal("wait_for_exit"),
                terminal("output"),
                request("terminal/create", nowhere),
                terminal("wait_for_exit"),
                terminal("output"),
                request("terminal/create", relative),
                create(" "),
                request("terminal/kill", json!({"terminalId": "other"})),
                terminal("release"),
            ],
        );
        assert_eq!(replies[1]["result"]["exitCode"], 127, "{replies:?}");
        let said = replies[2]["result"]["output"].as_str().unwrap();
        assert!(said.contains("no-such-program"), "{said}");
        assert_eq!(replies[4]["result"]["exitCode"], 126, "{replies:?}");
        let said = replies[5]["result"]["output"].as_str().unwrap();
        assert!(said.contains("could not be started"), "{said}");
        refused(&replies[6], -32602, "`cwd`");
        refused(&replies[7], -32602, "`command` is empty");
        refused(&replies[8], -32602, "no terminal `other`");
        assert_eq!(replies[9]["result"], json!({}));
        daemon.verify();
    }
}

/// The program names the terminal in its call, and releases it before the call ends.
#[test]
fn a_call_is_recorded_with_the_output_of_its_terminal() {
    let daemon = started(Sandbox::FullAccess);
    let call = json!({
        "sessionUpdate": "tool_call", "toolCallId": "t1", "title": "say", "kind": "execute",
        "status": "in_progress", "rawInput": {"command": "echo hi-there"},
        "content": [{"type": "terminal", "terminalId": "TERMINAL"}],
    });
    let end =
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed"});
    carried_out(
        &daemon,
        &[
            create("echo hi-there"),
            format!("update {call}"),
            terminal("wait_for_exit"),
            terminal("release"),
            format!("update {end}"),
        ],
    );
    let expected = (CallOutcome::Ok, vec![Block::text("hi-there\n")]);
    assert_eq!(results(&daemon), [expected]);
    daemon.verify();
}

/// The answer to a request that waits comes when the command ends; the program is served meanwhile.
#[test]
fn a_wait_holds_nothing_up() {
    let daemon = started(Sandbox::FullAccess);
    let go = daemon.work().join("go");
    let waits = "until [ -e go ]; do sleep 0.05; done; echo went";
    let answers = carried_out(
        &daemon,
        &[
            create(waits),
            format!("later {}", terminal("wait_for_exit")),
            format!("later {}", terminal("wait_for_exit")),
            terminal("output"),
            write(&go, ""),
            terminal("wait_for_exit"),
            terminal("output"),
        ],
    );
    let has_output = |it: &Value| it["result"]["output"] == "went\n";
    assert!(answers.iter().any(has_output), "{answers:?}");
    until("the answers to all waits", || {
        let exits = replies(&daemon).into_iter();
        let exits = exits.filter(|it| it["result"]["exitCode"] == 0);
        (exits.count() == 3).then_some(())
    });
    daemon.verify();
}

#[test]
fn terminals_end_with_the_program() {
    for daemon in levels() {
        // They stay when the turn ends, and end when the program dies.
        carried_out(&daemon, &[create("sleep 312"), create("sleep 312")]);
        until_sleeps(&daemon, "312", 2);
        let answer = daemon.ask("coder", plan(&daemon, &["die".to_owned()]));
        assert_eq!(answer.status, Status::Failed, "{answer:#?}");
        until_none_sleeps(&daemon, "312");
        // The same if it is killed.
        carried_out(
            &daemon,
            &[create("sleep 313"), read(&daemon.work().join("plan"))],
        );
        until_sleeps(&daemon, "313", 1);
        for pid in processes(&daemon, |arguments| arguments.contains(CHILD_FILE)) {
            kill(pid, Signal::KILL);
        }
        until_none_sleeps(&daemon, "313");
        // And if the agent's process is killed.
        carried_out(
            &daemon,
            &[create("sleep 314"), read(&daemon.work().join("plan"))],
        );
        until_sleeps(&daemon, "314", 1);
        daemon.kill_runtime("coder");
        until_none_sleeps(&daemon, "314");
        carried_out(&daemon, &[create("sleep 315")]);
        until_sleeps(&daemon, "315", 1);
        reset(&daemon, None);
        until_none_sleeps(&daemon, "315");
        daemon.verify();
    }
}

/// The processes that a killed shim leaves are killed by the agent's process, and the program is told.
#[test]
fn a_command_whose_shim_is_killed_has_ended() {
    let daemon = started(Sandbox::FullAccess);
    carried_out(&daemon, &[create("sleep 320")]);
    until_sleeps(&daemon, "320", 1);
    let command = processes(&daemon, |arguments| arguments.contains("sleep 320"));
    let shim = shim_of(command[0]);
    kill(shim, Signal::KILL);
    until_none_sleeps(&daemon, "320");
    let replies = carried_out(&daemon, &[terminal("wait_for_exit"), terminal("release")]);
    let killed = json!({"exitCode": null, "signal": "SIGKILL"});
    assert_eq!(replies[0]["result"], killed, "{replies:?}");
    daemon.verify();
}

/// The nearest process above this one that is a shim.
fn shim_of(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    let parent: u32 = parent.unwrap().trim().parse().unwrap();
    let arguments = fs::read(format!("/proc/{parent}/cmdline")).unwrap();
    match String::from_utf8_lossy(&arguments).contains("shim") {
        true => parent,
        false => shim_of(parent),
    }
}

#[test]
fn a_command_that_ignores_sigterm_is_killed() {
    let daemon = started(Sandbox::FullAccess);
    // The shell and the command that it runs: the signal is ignored by then.
    carried_out(&daemon, &[create("trap '' TERM; sleep 321; true")]);
    until_sleeps(&daemon, "321", 2);
    let replies = carried_out(&daemon, &[terminal("kill"), terminal("wait_for_exit")]);
    assert_eq!(replies[0]["result"], json!({}), "{replies:?}");
    let killed = json!({"exitCode": null, "signal": "SIGKILL"});
    assert_eq!(replies[1]["result"], killed, "{replies:?}");
    assert_eq!(sleeping(&daemon, "321"), 0);
    daemon.verify();
}

/// A process that is none of the command's holds its output open.
#[test]
fn an_output_that_is_held_open_does_not_hide_the_end_of_a_command() {
    let daemon = started(Sandbox::FullAccess);
    carried_out(&daemon, &[create("echo before; exec sleep 322")]);
    until_sleeps(&daemon, "322", 1);
    let command = processes(&daemon, |arguments| arguments.contains("sleep 322"));
    let stdout = format!("/proc/{}/fd/1", command[0]);
    let held = fs::File::options().write(true).open(stdout).unwrap();
    until("the output", || {
        let replies = carried_out(&daemon, &[terminal("output")]);
        (replies[0]["result"]["output"] == "before\n").then_some(())
    });
    let steps = ["kill", "wait_for_exit", "output"].map(terminal);
    let replies = carried_out(&daemon, &steps);
    assert!(replies[1]["result"]["signal"].is_string(), "{replies:?}");
    assert_eq!(replies[2]["result"]["output"], "before\n");
    drop(held);
    daemon.verify();
}

/// An id of a request is a number or a text.
#[test]
fn a_request_with_a_text_as_its_id_is_answered() {
    let daemon = started(Sandbox::FullAccess);
    let path = daemon.work().join("a");
    fs::write(&path, "of a").unwrap();
    let params = json!({"sessionId": "SESSION", "path": path});
    let message =
        json!({"jsonrpc": "2.0", "id": "text-1", "method": "fs/read_text_file", "params": params});
    carried_out(&daemon, &[format!("raw {message}")]);
    let reply = until("the answer", || {
        let mut replies = replies(&daemon).into_iter();
        replies.find(|reply| reply["id"] == "text-1")
    });
    assert_eq!(reply["result"]["content"], "of a", "{reply}");
    daemon.verify();
}

/// As after an upgrade while the agent's process runs. The name that the kernel then has for the old file may be a link to any
/// file: it is neither run nor shown.
#[test]
fn files_are_served_by_a_copy_of_a_program_that_was_replaced() {
    if !has_sandbox() {
        return;
    }
    let daemon = TestDaemon::empty();
    daemon.run_replaced_program();
    let outside = daemon.root().join("outside");
    fs::write(&outside, "not for the agent").unwrap();
    let mut deleted = daemon.program().path().as_os_str().to_owned();
    deleted.push(" (deleted)");
    symlink(&outside, &deleted).unwrap();
    create_agent(&daemon, Sandbox::WorkspaceWrite);
    let path = daemon.work().join("a");
    let replies = carried_out(
        &daemon,
        &[write(&path, "text"), read(&path), read(&outside)],
    );
    assert_eq!(replies[0]["result"], json!({}), "{replies:?}");
    assert_eq!(replies[1]["result"]["content"], "text");
    assert!(replies[2]["error"].is_object(), "{replies:?}");
    let copy = session_file(&daemon, "coder").with_file_name("agentd");
    assert!(copy.is_file());
    daemon.verify();
}

/// The program confirms the interrupt and forgets its terminal.
#[test]
fn an_interrupt_ends_the_commands_of_its_turn() {
    let daemon = started(Sandbox::FullAccess);
    carried_out(&daemon, &[create("sleep 316")]);
    let hold = [create("sleep 317"), "hold".to_owned()];
    let sent = daemon.send("coder", plan(&daemon, &hold));
    until("the terminal", || {
        let is_held = daemon.effects().contains(&"hold".to_owned());
        (is_held && sleeping(&daemon, "317") == 1).then_some(())
    });
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Interrupted, "{answer:#?}");
    until_none_sleeps(&daemon, "317");
    assert_eq!(sleeping(&daemon, "316"), 1, "it belongs to another turn");
    // It is told how the command ended.
    let replies = carried_out(&daemon, &[terminal("wait_for_exit"), terminal("release")]);
    assert!(replies[0]["result"]["signal"].is_string(), "{replies:?}");
    assert!(daemon.cli(&["stop", "coder"]).status.success());
    until_none_sleeps(&daemon, "316");
    daemon.verify();
}

/// The program is not in a turn any more, and was not given another one.
#[test]
fn a_command_that_starts_after_the_interrupt_of_its_turn_is_ended() {
    let daemon = started(Sandbox::FullAccess);
    let late = [create("sleep 319"), terminal("wait_for_exit")];
    fs::write(daemon.work().join("late"), late.join("\n") + "\n").unwrap();
    let sent = daemon.send("coder", plan(&daemon, &["hold late".to_owned()]));
    until("the turn", || {
        daemon.effects().contains(&"hold".to_owned()).then_some(())
    });
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Interrupted, "{answer:#?}");
    fs::write(daemon.work().join("go"), "").unwrap();
    until("the end of the command", || {
        let mut replies = replies(&daemon).into_iter();
        replies.find(|reply| reply["result"]["signal"].is_string())
    });
    until_none_sleeps(&daemon, "319");
    // Those of the next turn run.
    let replies = carried_out(&daemon, &[create("echo again"), terminal("wait_for_exit")]);
    assert_eq!(replies[1]["result"]["exitCode"], 0, "{replies:?}");
    daemon.verify();
}

#[test]
fn more_terminals_than_allowed_are_refused() {
    let daemon = started(Sandbox::FullAccess);
    let many = vec![create("sleep 318"); 18];
    let replies = carried_out(&daemon, &many);
    let (served, rest) = replies.split_at(16);
    for reply in served {
        assert!(reply["result"]["terminalId"].is_string(), "{reply}");
    }
    assert_eq!(rest.len(), 2);
    for reply in rest {
        refused(reply, -32603, "16 terminals run already");
    }
    // One that is released makes room.
    let mut steps = vec![
        terminal("kill"),
        terminal("wait_for_exit"),
        terminal("release"),
    ];
    steps.extend([
        create("echo again"),
        terminal("wait_for_exit"),
        terminal("output"),
    ]);
    let replies = carried_out(&daemon, &steps);
    assert_eq!(replies[5]["result"]["output"], "again\n", "{replies:?}");
    assert!(daemon.cli(&["stop", "coder"]).status.success());
    until_none_sleeps(&daemon, "318");
    daemon.verify();
}
