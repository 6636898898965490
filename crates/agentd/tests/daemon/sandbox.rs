//! What a tool can and cannot do in the default sandbox. Skipped if the kernel has no namespaces for it.

use crate::test_daemon::{TestDaemon, copy_program, until};
use agentd_core::event::{Body, Kind};
use agentd_core::spec::{AgentSpec, Decision, Network, Rule, Sandbox};
use agentd_core::state::Phase;
use agentd_testkit::harness::Program;
use serde_json::{Value, json};
use std::fs;
use std::net::TcpListener;

const CANARY: &str = "canary-7f3a";

/// A daemon with an agent whose tools are in this sandbox; none if this machine does not support it.
fn daemon(change: impl FnOnce(&mut AgentSpec)) -> Option<TestDaemon> {
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return None;
    }
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    change(&mut spec);
    daemon.create_with("coder", spec);
    Some(daemon)
}

/// The output and the exit code of a command, as the model sees them.
pub fn run(daemon: &TestDaemon, command: &str) -> String {
    tool(daemon, "shell", &json!({ "command": command }))
}

pub fn tool(daemon: &TestDaemon, name: &str, arguments: &Value) -> String {
    daemon.completed("coder", &format!("do: call {name} {arguments} ;; say done"));
    let events = daemon.events("coder");
    let result = events.iter().rev().find_map(|event| match &event.body {
        Body::ResultAdded(result) => Some(result.blocks.clone()),
        _ => None,
    });
    let mut words = Vec::new();
    result
        .unwrap()
        .iter()
        .for_each(|block| block.words(&mut words));
    words.join("\n")
}

#[test]
fn a_command_writes_its_work_tree_and_nothing_else() {
    let Some(daemon) = daemon(|_| {}) else { return };
    let outside = daemon.root().join("outside");
    fs::write(&outside, CANARY).unwrap();
    let said = run(
        &daemon,
        &format!(
            "echo mine > inside; cat inside; echo x > {0}; cat {0}; echo y > /tmp/own; cat /tmp/own; \
             echo z > /usr/z; exit 7",
            outside.display()
        ),
    );
    assert!(said.contains("mine") && said.contains('y'), "{said}");
    assert!(said.contains("exit code 7"), "{said}");
    assert!(!said.contains(CANARY), "{said}");
    assert_eq!(
        fs::read_to_string(daemon.work().join("inside")).unwrap(),
        "mine\n"
    );
    assert_eq!(fs::read_to_string(&outside).unwrap(), CANARY);
    // The agent's next command sees the temporary files; the host does not.
    let said = run(&daemon, "cat /tmp/own");
    assert!(said.starts_with("y\n"), "{said}");
    assert!(!std::path::Path::new("/tmp/own").exists());
}

#[test]
fn a_command_sees_neither_the_state_nor_the_sockets_nor_other_processes() {
    let Some(daemon) = daemon(|_| {}) else { return };
    let script = format!(
        "ls -a {0}; head -c 16 {0}/journal.db; ls {0}/run; ls -d /proc/[0-9]* | wc -l; \
         cat /proc/*/environ | tr '\\0' '\\n' | grep -c sk-; cat /proc/1/cmdline; kill -9 {1}",
        daemon.home().display(),
        daemon.daemon_pid().unwrap()
    );
    fs::write(daemon.work().join("attack.sh"), script).unwrap();
    let said = run(&daemon, "sh attack.sh");
    assert!(
        !said.contains("SQLite") && !said.contains("api.sock"),
        "{said}"
    );
    assert!(daemon.block(daemon.client().daemon()).is_ok());
    daemon.completed("coder", "do: say still here");
}

#[test]
fn file_tools_obey_the_same_rules() {
    let Some(daemon) = daemon(|_| {}) else { return };
    let outside = daemon.root().join("outside");
    fs::write(&outside, CANARY).unwrap();
    let path = outside.display().to_string();
    let said = tool(&daemon, "read_file", &json!({ "file_path": path }));
    assert!(!said.contains(CANARY), "{said}");
    tool(
        &daemon,
        "write_file",
        &json!({"file_path": path, "content": "x"}),
    );
    tool(
        &daemon,
        "edit_file",
        &json!({"file_path": path, "old_string": CANARY, "new_string": "x"}),
    );
    assert_eq!(fs::read_to_string(&outside).unwrap(), CANARY);
    std::os::unix::fs::symlink(&outside, daemon.work().join("link")).unwrap();
    let said = tool(&daemon, "read_file", &json!({ "file_path": "link" }));
    assert!(!said.contains(CANARY), "{said}");
    tool(
        &daemon,
        "write_file",
        &json!({"file_path": "link", "content": "x"}),
    );
    assert_eq!(fs::read_to_string(&outside).unwrap(), CANARY);
    let said = tool(
        &daemon,
        "search_files",
        &json!({"pattern": "canary", "path": daemon.root().display().to_string()}),
    );
    assert!(!said.contains(CANARY), "{said}");
    let said = tool(
        &daemon,
        "write_file",
        &json!({"file_path": "a/b", "content": "x"}),
    );
    assert!(said.contains("Wrote"), "{said}");
    let said = tool(&daemon, "read_file", &json!({ "file_path": "a/b" }));
    assert!(said.contains('x'), "{said}");
    let said = tool(&daemon, "list_files", &json!({}));
    assert!(said.contains("a/b"), "{said}");
}

/// A git hook that would run as the user the next time that the user runs git in the work tree.
#[test]
fn a_tool_plants_nothing_in_a_git_directory() {
    let Some(daemon) = daemon(|_| {}) else { return };
    let git = |args: &[&str]| {
        let out = std::process::Command::new("git")
            .args(args)
            .current_dir(daemon.work())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(out.status.success(), "{out:?}");
    };
    git(&["init", "-q"]);
    git(&["config", "user.email", "a@b.c"]);
    git(&["config", "user.name", "a"]);
    run(
        &daemon,
        "echo 'touch planted' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit; \
         git config core.fsmonitor 'touch planted'; mv .git .git2; \
         echo x > x; git add x; git commit -qm x",
    );
    tool(
        &daemon,
        "write_file",
        &json!({"file_path": ".git/hooks/pre-commit", "content": "touch planted"}),
    );
    git(&["status"]);
    git(&["log", "-1"]);
    assert!(!daemon.work().join("planted").exists());
    assert!(!daemon.work().join(".git/hooks/post-commit").exists());
    assert!(!daemon.work().join(".git/hooks/pre-commit").exists());
}

#[test]
fn without_a_network_nothing_is_reached() {
    let Some(daemon) = daemon(|spec| spec.network = Some(Network::Off)) else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached");
    assert!(!run(&daemon, &connect).contains("reached\n"));
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err());
}

/// Services on this machine trust local users, and a cloud's metadata service gives its keys to every client.
#[test]
fn fetch_url_reaches_nothing_on_this_machine() {
    let Some(daemon) = daemon(|spec| {
        spec.tools = Some(vec!["fetch_url".to_owned()]);
        spec.permissions = vec![Rule {
            tool: "fetch_url".to_owned(),
            pattern: None,
            decision: Decision::Allow,
            needs: Vec::new(),
        }];
    }) else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"] {
        let url = format!("http://{host}:{port}/");
        let said = tool(&daemon, "fetch_url", &json!({ "url": url }));
        assert!(said.contains("public internet"), "{host}: {said}");
    }
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err());
}

#[test]
fn read_only_writes_nothing() {
    let Some(daemon) = daemon(|spec| spec.sandbox = Some(Sandbox::ReadOnly)) else {
        return;
    };
    fs::write(daemon.work().join("there"), "words").unwrap();
    let said = run(&daemon, "cat there; echo x > new; echo y > there");
    assert!(said.contains("words"), "{said}");
    assert!(!daemon.work().join("new").exists());
    tool(
        &daemon,
        "write_file",
        &json!({"file_path": "new", "content": "x"}),
    );
    assert!(!daemon.work().join("new").exists());
    assert_eq!(
        fs::read_to_string(daemon.work().join("there")).unwrap(),
        "words"
    );
}

/// Recovery finds a command that runs in its own namespaces, and no command runs twice.
#[test]
fn a_sandboxed_command_outlives_its_daemon_and_its_runtime() {
    let Some(daemon) = daemon(|_| {}) else { return };
    let command =
        "echo ran >> effects; until [ -e go ]; do sleep 0.05; done; echo ended >> effects; exit 3";
    let call = json!({ "command": command });
    let sent = daemon.send("coder", &format!("do: call shell {call} ;; say done"));
    until("the command", || {
        (daemon.effects() == ["ran"]).then_some(())
    });
    daemon.daemon_has_keys();
    daemon.kill_runtime("coder");
    daemon.kill_daemon();
    daemon.start_daemon();
    fs::write(daemon.work().join("go"), "").unwrap();
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.text, "done");
    assert_eq!(daemon.effects(), ["ran", "ended"]);
    assert_eq!(daemon.count("coder", Kind::ToolStarted), 1);
}

#[test]
fn an_interrupt_and_a_background_task_end_as_without_a_sandbox() {
    let Some(daemon) = daemon(|_| {}) else { return };
    let call = json!({ "command": "echo up; sleep 98765", "run_in_background": true });
    daemon.completed("coder", &format!("do: call shell {call} ;; say done"));
    let tasks = daemon.block(daemon.client().tasks("coder")).unwrap();
    assert_eq!(tasks.tasks.len(), 1, "{tasks:?}");
    let call = json!({ "command": "echo began >> effects; sleep 98765" });
    daemon.send("coder", &format!("do: call shell {call} ;; say done"));
    until("the command", || {
        (daemon.effects() == ["began"]).then_some(())
    });
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    until("the end of the turn", || {
        (daemon.show("coder").phase == Phase::Idle).then_some(())
    });
    daemon.cli(&["stop", "coder"]);
    daemon.cli(&["rm", "coder"]);
    until("the end of the task", || {
        let out = std::process::Command::new("pgrep")
            .args(["-f", "sleep 98765"])
            .output()
            .unwrap();
        (!out.status.success()).then_some(())
    });
}

/// The user's `TMPDIR` does not exist in the sandbox, and overlayfs or a tool may leave directories without permissions,
/// which an ordinary user cannot remove directly.
#[test]
fn an_ordinary_user_has_temporary_files_and_can_purge_the_agent() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    const USER: u32 = 54_321;
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let is_root = rustix::process::geteuid().is_root();
    let program = root.path().join("agentd");
    copy_program(&program);
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["home", "home/.cache", "home/temporary", "work", "state"] {
        let dir = root.path().join(name);
        fs::create_dir(&dir).unwrap();
        if is_root {
            std::os::unix::fs::chown(&dir, Some(USER), Some(USER)).unwrap();
        }
    }
    let program = Program::new(program, root.path().join("state"), root.path().join("work"))
        .sandboxed()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", root.path().join("home"))
        .env("TMPDIR", root.path().join("home/temporary"));
    let agentd = |args: &[&str]| {
        let mut command = program.command();
        command.args(args);
        if is_root {
            command.uid(USER).gid(USER);
        }
        let out = command.output().unwrap();
        assert_eq!(out.status.code(), Some(0), "{args:?}: {out:?}");
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    agentd(&["create", "coder", "--provider", "demo"]);
    let command =
        "run `mktemp; echo x > ~/.cache/x; mkdir /tmp/shut; touch /tmp/shut/x; chmod 0 /tmp/shut`";
    let said = agentd(&["send", "coder", command]);
    assert!(said.contains("/tmp/tmp."), "{said}");
    agentd(&["rm", "coder"]);
    agentd(&["purge", "coder", "--yes"]);
    let left = fs::read_dir(root.path().join("state/agents")).unwrap();
    assert_eq!(left.count(), 0);
    agentd(&["daemon", "stop"]);
}

/// Both if the agent's settings say so and if the daemon's environment does.
#[test]
fn the_journal_says_that_tools_run_without_a_sandbox() {
    let is_open = |daemon: &TestDaemon| {
        daemon.completed("coder", "do: say hello");
        let event = daemon.until_kind("coder", Kind::IncarnationBegan);
        matches!(event.body, Body::IncarnationBegan(began) if began.full_access)
    };
    let open = TestDaemon::new();
    open.create("coder");
    assert!(is_open(&open), "the daemon's environment says so");
    let Some(closed) = daemon(|_| {}) else { return };
    assert!(!is_open(&closed));
}
