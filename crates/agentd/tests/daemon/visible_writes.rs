//! What a command writes is where the user looks for it, or the command fails, or the result says where it is. Skipped if the
//! kernel has no namespaces for the sandbox.

use crate::sandbox::{run, tool};
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{DiffFiles, FilesQuery, RunCommand};
use agentd_core::event::{Body, NoticeCause};
use agentd_core::spec::Sandbox;
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A daemon whose agent works in `~/x/p`, a repository, and that home.
fn daemon() -> Option<(TestDaemon, PathBuf)> {
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return None;
    }
    let daemon = TestDaemon::new();
    let home = fs::canonicalize(daemon.root()).unwrap().join("user");
    let tree = home.join("x/p");
    fs::create_dir_all(&tree).unwrap();
    let script =
        "git init -q . && git -c user.name=a -c user.email=a@b commit -qm one --allow-empty";
    let made = Command::new("sh")
        .args(["-c", script])
        .current_dir(&tree)
        .status();
    assert!(made.unwrap().success());
    daemon.caller_env("HOME", &home.display().to_string());
    let mut spec = daemon.spec();
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    spec.cwd = Some(tree.display().to_string());
    daemon.create_with("coder", spec);
    Some((daemon, home))
}

const NOTE: &str = "[sandbox] written to this agent's private home, not to yours: ";

#[test]
fn a_command_that_writes_beside_the_work_tree_fails() {
    let Some((daemon, home)) = daemon() else {
        return;
    };
    let beside = home.join("x/newproj");
    let said = run(
        &daemon,
        "mkdir ../newproj && echo hi > ../newproj/README.md",
    );
    let denied = format!("[sandbox] Denied: {} (read-only).", beside.display());
    assert!(said.contains(&denied), "{said}");
    let said = run(&daemon, "git worktree add ../p2");
    assert!(said.contains("[sandbox] Denied: "), "{said}");
    assert!(!home.join("x/p/.git/worktrees/p2").exists());
    // It cannot be reached by another name either, and the tree itself is writable.
    let said = run(
        &daemon,
        "cd ~/x && touch a; mv ~/x ~/y; chmod 700 ~/x; touch ~/x/b; ls ~/x; echo in > p/file",
    );
    assert!(said.contains("\np\n") && !said.contains("\na\n"), "{said}");
    assert!(home.join("x/p/file").exists());
    assert!(!home.join("x/a").exists() && !beside.exists());
}

#[test]
fn a_new_file_in_the_private_home_is_named() {
    let Some((daemon, home)) = daemon() else {
        return;
    };
    let said = run(&daemon, "echo hi > ~/notes.md; mkdir ~/.config; echo done");
    assert_eq!(said, format!("done\n{NOTE}~/notes.md"));
    assert!(!home.join("notes.md").exists());
    // Once: after that it is no new file.
    assert_eq!(run(&daemon, "cat ~/notes.md; echo x >> ~/notes.md"), "hi\n");
    let failed = run(&daemon, "touch ~/a ~/b; exit 3");
    assert_eq!(failed, format!("exit code 3\n{NOTE}~/a, ~/b"));
    let request = RunCommand {
        command: "touch ~/mine".to_owned(),
        timeout_ms: None,
        env: daemon.caller(),
    };
    let ran = daemon.block(daemon.client().run_command("coder", &request));
    assert_eq!(ran.unwrap().output, format!("{NOTE}~/mine"));
}

#[test]
fn a_background_command_names_its_files_when_it_ends() {
    let Some((daemon, _)) = daemon() else { return };
    let call = json!({"command": "touch ~/later", "run_in_background": true});
    tool(&daemon, "shell", &call);
    let text = until("its end", || {
        let events = daemon.events("coder");
        events.into_iter().find_map(|event| match event.body {
            Body::Notice(notice) if notice.cause == NoticeCause::TaskEnded => Some(notice.text),
            _ => None,
        })
    });
    assert!(text.ends_with(&format!("{NOTE}~/later")), "{text}");
    let task = text.split(' ').nth(2).unwrap();
    let said = tool(&daemon, "task_output", &json!({ "task": task }));
    assert!(said.ends_with(&format!("{NOTE}~/later")), "{said}");
}

#[test]
fn a_denied_write_is_not_listed() {
    let Some((daemon, home)) = daemon() else {
        return;
    };
    let outside = home.join("outside");
    let write = json!({"file_path": outside, "content": "x"});
    let said = tool(&daemon, "write_file", &write);
    assert!(said.contains("[sandbox] Denied: "), "{said}");
    tool(
        &daemon,
        "write_file",
        &json!({"file_path": "in", "content": "x"}),
    );
    let diff = daemon.block(daemon.client().diff("coder", &DiffFiles::default()));
    let names: Vec<String> = diff.unwrap().files.into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["in"]);
    let files = daemon.block(daemon.client().files("coder", &FilesQuery::default()));
    let files = files.unwrap();
    assert_eq!(files.files.len(), 1, "{files:#?}");
    assert!(files.unknown.is_empty(), "{files:#?}");
}

#[test]
fn what_cannot_be_moved_away_keeps_tools_from_starting_and_is_listed() {
    let Some((daemon, home)) = daemon() else {
        return;
    };
    let hook = home.join("x/p/hook");
    fs::write(&hook, "").unwrap();
    let dir = daemon.home().join("agents");
    let dir = dir.join(daemon.show("coder").id.to_string());
    // No file system of a test refuses the rename, so the record is made here.
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("planted"), format!("{}\0", hook.display())).unwrap();
    let said = run(&daemon, "echo ran > file");
    assert!(
        said.contains("it cannot be moved away; remove it"),
        "{said}"
    );
    assert!(!home.join("x/p/file").exists());
    let why = daemon.show("coder").no_tools.unwrap();
    assert!(why.contains(&hook.display().to_string()), "{why}");
    let listed = String::from_utf8(daemon.cli(&["list"]).stdout).unwrap();
    assert!(
        listed.contains("coder cannot run tools: git would run programs because of"),
        "{listed}"
    );
    fs::remove_file(&hook).unwrap();
    assert_eq!(daemon.show("coder").no_tools, None);
    run(&daemon, "echo ran > file");
    assert!(home.join("x/p/file").exists());
    let listed = String::from_utf8(daemon.cli(&["list"]).stdout).unwrap();
    assert!(!listed.contains("cannot run tools"), "{listed}");
}
