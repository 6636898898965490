//! What a finished one-shot agent leaves on disk.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::Create;
use agentd_core::event::{Kind, Mode};
use agentd_core::spec::{AgentSpec, Sandbox};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

fn all_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // It may be gone by now.
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(all_below(&path));
        }
        found.push(path);
    }
    found
}

/// What there is of agents, without what belongs to the daemon.
fn entries(daemon: &TestDaemon) -> Vec<PathBuf> {
    let run = daemon.home().join("run");
    let of_agents = [
        daemon.home().join("agents"),
        run.join("a"),
        run.join("agents"),
    ];
    of_agents.iter().flat_map(|dir| all_below(dir)).collect()
}

fn run(daemon: &TestDaemon, prompt: &str) -> String {
    let create = Create {
        spec: AgentSpec {
            sandbox: Some(Sandbox::WorkspaceWrite),
            ..daemon.spec()
        },
        mode: Some(Mode::Oneshot),
        prompt: Some(prompt.to_owned()),
        env: daemon.caller(),
        ..Create::default()
    };
    let created = daemon.block(daemon.client().create(&create)).unwrap();
    let name = created.agent.id.to_string();
    daemon.until_kind(&name, Kind::TurnEnded);
    name
}

/// The user's home is not the state directory, so tools have layers of its caches. None if there is no sandbox.
fn daemon() -> Option<TestDaemon> {
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return None;
    }
    let daemon = TestDaemon::empty();
    let home = daemon.root().join("user");
    fs::create_dir_all(&home).unwrap();
    daemon.caller_env("HOME", &home.display().to_string());
    daemon.daemon_has_keys();
    daemon.start_daemon();
    Some(daemon)
}

fn shell(command: &str) -> String {
    format!("call shell {}", json!({"command": command}))
}

#[test]
fn a_finished_one_shot_leaves_its_commands_and_what_was_written() {
    let Some(daemon) = daemon() else { return };
    let before = entries(&daemon).len();
    let write = json!({"file_path": "a.txt", "content": "text"});
    run(&daemon, &format!("do: call write_file {write} ;; say done"));
    until("nothing", || {
        let left = entries(&daemon);
        // Its directory, if its log has a line.
        (left.len() <= before + 2 && !left.iter().any(|path| path.ends_with("caches")))
            .then_some(())
    });
    let written = shell("echo kept > ~/written; mkdir -p ~/.npm/x; echo cached > ~/.npm/x/y");
    let name = run(&daemon, &format!("do: {written} ;; say done"));
    let dir = daemon.home().join("agents").join(&name);
    until("no caches", || {
        let lock = daemon.home().join(format!("run/agents/{name}.lock"));
        (!lock.exists()).then_some(())
    });
    let own_home = fs::read_to_string(dir.join("home/written")).unwrap();
    assert_eq!(own_home, "kept\n");
    for gone in ["caches", "caches.removed", "tmp", "file_tools"] {
        assert!(!dir.join(gone).exists(), "{gone}");
    }
    let tasks: Vec<PathBuf> = all_below(&dir.join("tasks"));
    assert!(tasks.iter().any(|path| path.ends_with("exit")), "{tasks:?}");
    daemon.verify();
}

#[test]
fn a_one_shot_with_a_background_task_keeps_everything_until_the_task_ends() {
    let Some(daemon) = daemon() else { return };
    let left = json!({
        "command": "mkdir -p ~/.npm; echo begun > ~/.npm/begun; until [ -e go ]; do sleep 0.05; done; cat ~/.npm/begun > seen",
        "run_in_background": true
    });
    let name = run(&daemon, &format!("do: call shell {left} ;; say done"));
    let caches = daemon.home().join("agents").join(&name).join("caches");
    assert!(caches.is_dir() && !daemon.show(&name).tasks.is_empty());
    // It is looked at again, as after every change.
    daemon.kill_runtime(&name);
    daemon.show(&name);
    assert!(caches.is_dir());
    fs::write(daemon.work().join("go"), "").unwrap();
    until("the end", || {
        (!caches.exists() && daemon.show(&name).tasks.is_empty()).then_some(())
    });
    let seen = fs::read_to_string(daemon.work().join("seen")).unwrap();
    assert_eq!(seen, "begun\n");
    daemon.verify();
}

/// A killed daemon leaves the rest to the next one.
#[test]
fn the_next_daemon_tidies_what_a_killed_one_left() {
    let Some(daemon) = daemon() else { return };
    let name = run(&daemon, &format!("do: {} ;; say done", shell("true")));
    let lock = daemon.home().join(format!("run/agents/{name}.lock"));
    until("the lock's end", || (!lock.exists()).then_some(()));
    daemon.kill_daemon();
    let dir = daemon.home().join("agents").join(&name);
    fs::create_dir_all(dir.join("caches.removed/upper")).unwrap();
    fs::create_dir_all(dir.join("caches/upper")).unwrap();
    fs::write(&lock, "").unwrap();
    daemon.start_daemon();
    until("the lock's end", || (!lock.exists()).then_some(()));
    assert!(!dir.join("caches.removed").exists() && !dir.join("caches").exists());
}
