//! File tools in a view of their own. Skipped if the kernel has no namespaces for it.

use crate::sandbox::{run, tool};
use crate::test_daemon::{TestDaemon, kill, until};
use agentd_core::event::{Body, CannotRestore, Kind, NotRestored};
use agentd_core::message::CallOutcome;
use agentd_core::spec::{Decision, Network, Rule, Sandbox};
use agentd_failpoint::Passed;
use agentd_failpoint::plan::Role;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

/// The argument of a process of the file tools, and the directory of its shim.
const WORKER: &str = "__file-tools";
const SHIM: &str = "/file_tools/";

fn is_skipped() -> bool {
    match agentd_sandbox::support().namespaces {
        Ok(()) => false,
        Err(missing) => {
            println!("skipped: {missing}");
            true
        }
    }
}

fn daemon() -> Option<TestDaemon> {
    if is_skipped() {
        return None;
    }
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    spec.network = Some(Network::Off);
    daemon.create_with("coder", spec);
    Some(daemon)
}

/// The processes of the file tools are held before they replace a file. They see the lab's directory.
fn held_daemon() -> Option<TestDaemon> {
    if is_skipped() {
        return None;
    }
    let daemon = TestDaemon::empty();
    daemon.hold(Role::Tool, "before-rename.file");
    daemon.daemon_has_keys();
    daemon.start_daemon();
    let mut spec = daemon.spec();
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    spec.writable = vec![daemon.root().display().to_string()];
    daemon.create_with("coder", spec);
    fs::write(daemon.work().join("a"), "old").unwrap();
    Some(daemon)
}

fn shims(daemon: &TestDaemon) -> Vec<u32> {
    let all = daemon.processes().into_iter();
    let shims = all.filter(|(_, arguments)| arguments.contains(SHIM));
    // Its first process in the sandbox is a copy of it.
    let shims = shims.filter(|(pid, arguments)| {
        !arguments.contains(WORKER) && namespaces(*pid) == namespaces(std::process::id())
    });
    shims.map(|(pid, _)| pid).collect()
}

fn namespaces(pid: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    pids.unwrap_or_default().split_whitespace().count()
}

fn worker(daemon: &TestDaemon) -> u32 {
    let all = daemon.processes().into_iter();
    let mut workers = all.filter(|(_, arguments)| arguments.contains(WORKER));
    workers.next().expect("a process of the file tools").0
}

fn edit() -> String {
    format!(
        "do: call read_file {} ;; call edit_file {} ;; say done",
        json!({"file_path": "a"}),
        json!({"file_path": "a", "old_string": "old", "new_string": "new"})
    )
}

fn outcomes(daemon: &TestDaemon) -> Vec<CallOutcome> {
    let events = daemon.events("coder");
    let results = events.iter().filter_map(|event| match &event.body {
        Body::ResultAdded(result) => Some(result.outcome),
        _ => None,
    });
    results.collect()
}

#[test]
fn file_tools_see_no_process_and_no_connection_of_the_host() {
    let Some(daemon) = daemon() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = format!(":{:04X} ", listener.local_addr().unwrap().port());
    let pid = daemon.daemon_pid().unwrap();
    let host = fs::read_to_string("/proc/net/tcp").unwrap();
    assert!(host.contains(&port), "{host}");
    for name in ["cmdline", "environ", "status", "maps"] {
        let path = format!("/proc/{pid}/{name}");
        let said = tool(&daemon, "read_file", &json!({ "file_path": path }));
        assert!(said.contains("No such file"), "{name}: {said}");
        let edit = json!({"file_path": path, "old_string": "A=", "new_string": "B="});
        let said = tool(&daemon, "edit_file", &edit);
        assert!(
            said.contains("does not exist") || said.contains("No such file"),
            "{said}"
        );
    }
    let said = tool(&daemon, "read_file", &json!({"file_path": "/proc/net/tcp"}));
    assert!(!said.contains(&port), "{said}");
    let said = tool(&daemon, "list_files", &json!({"path": "/proc", "depth": 1}));
    assert!(said.contains("/proc/1/"), "{said}");
    assert!(!said.contains(&format!("/proc/{pid}/")), "{said}");
    let search = json!({"pattern": "agentd", "path": format!("/proc/{pid}/cmdline")});
    let said = tool(&daemon, "search_files", &search);
    assert!(said.contains("No such file"), "{said}");
}

#[test]
fn file_tools_have_the_tmp_of_commands_and_not_that_of_the_host() {
    let Some(daemon) = daemon() else { return };
    let name = format!("agentd-file-tools-{}", std::process::id());
    let path = format!("/tmp/{name}");
    let write = json!({"file_path": path, "content": "by a file tool\n"});
    let said = tool(&daemon, "write_file", &write);
    assert!(said.contains("a new file"), "{said}");
    let said = run(&daemon, &format!("cat {path}; echo by a command > {path}"));
    assert!(said.starts_with("by a file tool\n"), "{said}");
    let said = tool(&daemon, "read_file", &json!({ "file_path": path }));
    assert_eq!(said, "by a command\n");
    assert!(!Path::new(&path).exists());
    // It is not among the user's files.
    let files = daemon.block(daemon.client().files("coder", &Default::default()));
    let files = files.unwrap();
    // What the command changed is unknown: the directory is no repository.
    let lost = |it: &NotRestored| it.why == CannotRestore::NoLongerKept;
    assert!(
        files.files.is_empty() && !files.unknown.iter().any(lost),
        "{files:#?}"
    );
}

/// Only the view of the tools knows what a link in their `/tmp` leads to.
#[test]
fn a_rule_counts_for_what_a_link_in_the_tmp_of_the_tools_leads_to() {
    if is_skipped() {
        return;
    }
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    spec.permissions = vec![Rule {
        tool: "read_file".to_owned(),
        pattern: Some("secrets/*".to_owned()),
        decision: Decision::Deny,
        needs: Vec::new(),
    }];
    daemon.create_with("coder", spec);
    fs::create_dir(daemon.work().join("secrets")).unwrap();
    fs::write(daemon.work().join("secrets/a"), "canary-1").unwrap();
    run(&daemon, "ln -s \"$PWD/secrets\" /tmp/link");
    let said = tool(&daemon, "read_file", &json!({"file_path": "/tmp/link/a"}));
    assert!(!said.contains("canary-1"), "{said}");
}

#[test]
fn file_tools_change_neither_a_separate_git_directory_nor_that_of_a_linked_work_tree() {
    let Some(daemon) = daemon() else { return };
    let git = |at: &Path, args: &[&str]| {
        let out = Command::new("git")
            .args(["-c", "user.email=a@b.c", "-c", "user.name=a"])
            .args(args)
            .current_dir(at)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(out.status.success(), "{out:?}");
    };
    let (root, work) = (daemon.root().canonicalize().unwrap(), daemon.work());
    let separate = root.join("separate");
    let init = ["init", "-q", "--separate-git-dir"];
    git(&work, &[&init[..], &[separate.to_str().unwrap()]].concat());
    refuses(&daemon, &separate);
    fs::remove_file(work.join(".git")).unwrap();
    let bare = root.join("bare");
    let (first, at) = (root.join("first"), bare.to_str().unwrap());
    git(&root, &["init", "-q", first.to_str().unwrap()]);
    git(&first, &["commit", "-q", "--allow-empty", "-m", "x"]);
    git(
        &root,
        &["clone", "-q", "--bare", first.to_str().unwrap(), at],
    );
    git(
        &bare,
        &["worktree", "add", "-q", "--force", work.to_str().unwrap()],
    );
    refuses(&daemon, &bare);
}

/// The configuration and the hooks of a git directory stay as they are.
fn refuses(daemon: &TestDaemon, git_dir: &Path) {
    let config = git_dir.join("config");
    let before = fs::read_to_string(&config).unwrap();
    tool(daemon, "read_file", &json!({ "file_path": config }));
    let canary = "[core]\n\tfsmonitor = canary\n";
    for (name, content) in [("config", canary), ("hooks/post-commit", "canary")] {
        let path = git_dir.join(name);
        let write = json!({"file_path": path, "content": content});
        // Where the view shows nothing of it, this may write to the private /tmp.
        tool(daemon, "write_file", &write);
        assert!(
            !fs::read_to_string(&path)
                .unwrap_or_default()
                .contains("canary")
        );
    }
    assert_eq!(fs::read_to_string(&config).unwrap(), before);
}

/// The view lasts while the user works in the same repository.
#[test]
fn what_the_user_makes_in_a_git_directory_stays_and_is_seen() {
    let Some(daemon) = daemon() else { return };
    let (work, git) = (daemon.work(), daemon.work().join(".git"));
    let by_user = |args: &[&str]| {
        let mut command = Command::new("git");
        let command = command.args(args).current_dir(&work);
        let status = command.env("GIT_CONFIG_GLOBAL", "/dev/null").status();
        assert!(status.unwrap().success());
    };
    by_user(&["init", "-q"]);
    tool(&daemon, "list_files", &json!({}));
    assert!(!shims(&daemon).is_empty(), "{:?}", daemon.processes());
    by_user(&["config", "user.name", "Someone"]);
    fs::create_dir_all(git.join("hooks")).unwrap();
    fs::create_dir_all(git.join("info")).unwrap();
    let made = ["config.worktree", "hooks/pre-commit", "info/attributes"];
    for name in made {
        fs::write(git.join(name), "# mine\n").unwrap();
    }
    let config = json!({"file_path": ".git/config"});
    let said = tool(&daemon, "read_file", &config);
    assert!(said.contains("Someone"), "{said}");
    let write = json!({"file_path": ".git/config", "content": "evil"});
    let said = tool(&daemon, "write_file", &write);
    assert!(said.contains("is in a git directory"), "{said}");
    daemon.cli(&["stop", "coder"]);
    until("the end of the process", || {
        shims(&daemon).is_empty().then_some(())
    });
    for name in made {
        let text = fs::read_to_string(git.join(name)).unwrap();
        assert_eq!(text, "# mine\n", "{name}");
    }
    let config = fs::read_to_string(git.join("config")).unwrap();
    assert!(
        config.contains("Someone") && !config.contains("evil"),
        "{config}"
    );
}

#[test]
fn an_approved_call_has_a_process_with_what_the_question_named() {
    let Some(daemon) = daemon() else { return };
    let outside = fs::canonicalize(daemon.root()).unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    let path = outside.join("dir/new");
    let needs = [format!("write:{}", path.display())];
    let call =
        json!({"file_path": path, "content": "x", "escalate": "for the test", "needs": needs});
    let sent = daemon.send("coder", &format!("do: call write_file {call} ;; say done"));
    until("the question", || {
        daemon.show("coder").approvals.into_iter().next()
    });
    let out = daemon.cli(&["approve", "coder"]);
    assert!(out.status.success(), "{out:?}");
    assert_eq!(daemon.answer("coder", sent.prompt).text, "done");
    assert_eq!(fs::read_to_string(&path).unwrap(), "x");
    // Outside of the directories that tools can write, and listed all the same.
    let files = daemon.block(daemon.client().files("coder", &Default::default()));
    assert_eq!(files.unwrap().files.len(), 1);
    // Only that call.
    let write = json!({"file_path": outside.join("dir/other"), "content": "x"});
    let said = tool(&daemon, "write_file", &write);
    assert!(said.contains("[sandbox]"), "{said}");
    assert!(!outside.join("dir/other").exists());
}

#[test]
fn a_work_tree_that_is_replaced_is_seen_as_it_is_now() {
    let Some(daemon) = daemon() else { return };
    let write = |content: &str| json!({"file_path": "new", "content": content});
    let said = tool(&daemon, "write_file", &write("one"));
    assert!(said.contains("a new file"), "{said}");
    let (work, before) = (daemon.work(), daemon.root().join("before"));
    fs::rename(&work, &before).unwrap();
    fs::create_dir(&work).unwrap();
    let said = tool(&daemon, "write_file", &write("two"));
    assert!(said.contains("a new file"), "{said}");
    assert_eq!(fs::read_to_string(work.join("new")).unwrap(), "two");
    assert_eq!(fs::read_to_string(before.join("new")).unwrap(), "one");
}

#[test]
fn calls_in_parallel_are_all_served() {
    let Some(daemon) = daemon() else { return };
    let names: Vec<String> = (0..6).map(|n| format!("file{n}")).collect();
    let calls = names.iter().map(|name| {
        fs::write(daemon.work().join(name), format!("content of {name}")).unwrap();
        format!("call read_file {}", json!({ "file_path": name }))
    });
    let calls: Vec<String> = calls.collect();
    daemon.completed("coder", &format!("do: {} ;; say done", calls.join(" | ")));
    let events = daemon.events("coder");
    let events = serde_json::to_string(&events).unwrap();
    assert!(
        names
            .iter()
            .all(|name| events.contains(&format!("content of {name}")))
    );
}

#[test]
fn a_process_of_the_file_tools_is_kept_and_ends_with_its_runtime() {
    let Some(daemon) = daemon() else { return };
    fs::write(daemon.work().join("a"), "x").unwrap();
    let read = |name: &str| tool(&daemon, "read_file", &json!({ "file_path": name }));
    read("a");
    let first = shims(&daemon);
    assert!(!first.is_empty(), "{:?}", daemon.processes());
    read("a");
    assert_eq!(shims(&daemon), first);
    daemon.kill_runtime("coder");
    until("the end of the process", || {
        shims(&daemon).is_empty().then_some(())
    });
    read("a");
    assert!(!shims(&daemon).is_empty());
    daemon.cli(&["stop", "coder"]);
    until("the end of the process", || {
        shims(&daemon).is_empty().then_some(())
    });
    daemon.cli(&["rm", "coder"]);
    daemon.cli(&["purge", "coder", "--yes"]);
    until("no process of the agent", || {
        let all = daemon.processes();
        let left = all
            .iter()
            .any(|(_, arguments)| arguments.contains("/agents/"));
        (!left).then_some(())
    });
}

#[test]
fn a_process_that_is_killed_in_mid_call_is_told_by_the_file() {
    let Some(daemon) = held_daemon() else { return };
    let sent = daemon.send("coder", &edit());
    daemon.until_held();
    kill(worker(&daemon), Signal::KILL);
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.text, "done");
    assert_eq!(outcomes(&daemon), [CallOutcome::Ok, CallOutcome::Error]);
    let events: Value = serde_json::to_value(daemon.events("coder")).unwrap();
    assert!(
        events.to_string().contains("Nothing was changed"),
        "{events:#}"
    );
    assert_eq!(fs::read_to_string(daemon.work().join("a")).unwrap(), "old");
    let left = fs::read_dir(daemon.work()).unwrap().flatten();
    let left = left.filter(|entry| entry.file_name().to_string_lossy().ends_with(".tmp"));
    assert_eq!(left.count(), 0);
    // The next call gets another process.
    let said = tool(&daemon, "read_file", &json!({"file_path": "a"}));
    assert_eq!(said, "old");
}

/// A link to a device that never ends, in place of a file that a walk reads, does not fill the memory of the runtime.
#[test]
fn a_walk_uses_no_more_memory_than_its_process_may() {
    if is_skipped() {
        return;
    }
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    spec.limits.task_memory_bytes = Some(256 * 1024 * 1024);
    daemon.create_with("coder", spec);
    fs::write(daemon.work().join("a"), "x").unwrap();
    std::os::unix::fs::symlink("/dev/zero", daemon.work().join(".gitignore")).unwrap();
    tool(&daemon, "list_files", &json!({}));
    let said = tool(&daemon, "read_file", &json!({"file_path": "a"}));
    assert_eq!(said, "x");
}

/// Without that, a call could be reported as not done, and be done afterwards.
#[test]
fn recovery_waits_for_the_process_of_an_earlier_runtime() {
    let Some(daemon) = held_daemon() else { return };
    let sent = daemon.send("coder", &edit());
    daemon.until_held();
    let [shim] = shims(&daemon)[..] else {
        panic!("{:?}", daemon.processes());
    };
    // The process stays alive when its runtime is gone.
    kill(shim, Signal::STOP);
    let earlier = daemon.pid("coder").unwrap();
    kill(earlier, Signal::KILL);
    until("another runtime", || {
        daemon.pid("coder").filter(|pid| *pid != earlier)
    });
    assert_eq!(daemon.count("coder", Kind::ResultAdded), 1);
    Passed::release(&daemon.root(), "hold").unwrap();
    kill(shim, Signal::CONT);
    daemon.answer("coder", sent.prompt);
    let found = fs::read_to_string(daemon.work().join("a")).unwrap();
    let told = outcomes(&daemon).get(1).copied();
    match found.as_str() {
        "new" => assert_eq!(told, Some(CallOutcome::Ok)),
        "old" => assert_ne!(told, Some(CallOutcome::Ok)),
        other => panic!("{other}"),
    }
    // What was told stays true.
    assert!(shims(&daemon).iter().all(|it| *it != shim));
    assert_eq!(fs::read_to_string(daemon.work().join("a")).unwrap(), found);
}
