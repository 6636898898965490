//! Restores run in the sandbox of the agent's tools. Skipped if the kernel has no namespaces for it.

use crate::files_fixture::*;
use crate::test_daemon::{KEY, TestDaemon};
use agentd_client::api::{CannotRestore, FilesOutcome, RestoreFiles};
use agentd_core::spec::Sandbox;
use std::fs;
use std::os::unix::fs::symlink;

fn sandboxed() -> Option<TestDaemon> {
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return None;
    }
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    daemon.create_with("coder", spec);
    Some(daemon)
}

#[test]
fn edits_and_commands_are_restored_in_a_sandbox() {
    let Some(daemon) = sandboxed() else { return };
    commit(&daemon, &[("a.txt", "one\n"), ("b.txt", "two\n")]);
    turn(
        &daemon,
        &[
            looked("a.txt"),
            wrote("a.txt", "changed\n"),
            ran("rm b.txt"),
        ],
    );
    restore(&daemon, &over("init"));
    assert_eq!(text(&daemon, "a.txt"), "one\n");
    assert_eq!(text(&daemon, "b.txt"), "two\n");
    undo(&daemon);
    assert_eq!(text(&daemon, "a.txt"), "changed\n");
    assert_eq!(read(&daemon, "b.txt"), None);
}

/// A directory of the work tree becomes a link to a directory outside: nothing is written there.
#[test]
fn a_planted_link_leads_no_restore_out_of_the_work_tree() {
    let Some(daemon) = sandboxed() else { return };
    turn(&daemon, &[wrote("dir/a.txt", "agent\n")]);
    let outside = daemon.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a.txt"), "of the user\n").unwrap();
    fs::remove_dir_all(path(&daemon, "dir")).unwrap();
    symlink(&outside, path(&daemon, "dir")).unwrap();
    let ask = RestoreFiles {
        overwrite: true,
        ..to("init")
    };
    let done = try_restore(&daemon, &ask).unwrap();
    assert_eq!(done.outcome, FilesOutcome::Failed, "{done:#?}");
    assert_eq!(done.not_restored[0].why, CannotRestore::ParentReplaced);
    let left = fs::read_to_string(outside.join("a.txt")).unwrap();
    assert_eq!(left, "of the user\n");
}

/// The sandbox shows nothing of the directory outside: what a restore's process finds there is not what the host has.
#[test]
fn a_file_that_the_sandbox_does_not_reach_is_left_alone_and_named() {
    let Some(daemon) = sandboxed() else { return };
    let outside = daemon.root().canonicalize().unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    let file = outside.join("a.txt");
    let mut spec = daemon.block(daemon.client().spec("coder")).unwrap();
    let mut set = |level| {
        spec.sandbox = Some(level);
        let set = daemon.block(daemon.client().set_spec("coder", &spec));
        set.unwrap();
    };
    set(Sandbox::FullAccess);
    turn(
        &daemon,
        &[
            wrote(&file.display().to_string(), "agent\n"),
            wrote("b.txt", "agent\n"),
        ],
    );
    set(Sandbox::WorkspaceWrite);
    for overwrite in [false, true] {
        let ask = RestoreFiles {
            overwrite,
            dry_run: true,
            ..to("init")
        };
        let done = try_restore(&daemon, &ask).unwrap();
        assert_eq!(done.outcome, FilesOutcome::Planned, "{done:#?}");
        assert_eq!(done.files.len(), 1);
    }
    let overwrite = RestoreFiles {
        overwrite: true,
        ..to("init")
    };
    let done = restore(&daemon, &overwrite);
    let [left] = done.not_restored.as_slice() else {
        panic!("{done:#?}");
    };
    assert_eq!(left.path.as_deref(), file.to_str());
    assert_eq!(left.why, CannotRestore::OutOfReach);
    assert_eq!(read(&daemon, "b.txt"), None);
    assert_eq!(fs::read_to_string(&file).unwrap(), "agent\n");
    // Without the sandbox it can be restored.
    set(Sandbox::FullAccess);
    restore(&daemon, &to("init"));
    assert!(!file.exists());
}

/// What an undo would need is not kept, so it is not replaced, even if the user wants to overwrite it.
#[test]
fn a_file_with_a_secret_is_not_kept_by_a_restore() {
    let daemon = coder();
    turn(&daemon, &[wrote("a.txt", "agent\n")]);
    fs::write(path(&daemon, "a.txt"), "agent\n").unwrap();
    turn(&daemon, &[wrote("a.txt", "two\n")]);
    restore(&daemon, &to("1"));
    // The user puts a key into the file that the restore wrote.
    fs::write(path(&daemon, "a.txt"), format!("key={KEY}\n")).unwrap();
    let done = try_restore(&daemon, &to("init")).unwrap();
    assert_eq!(done.outcome, FilesOutcome::Conflict);
    let overwrite = RestoreFiles {
        overwrite: true,
        ..to("init")
    };
    let done = try_restore(&daemon, &overwrite).unwrap();
    assert_eq!(done.not_restored[0].why, CannotRestore::CurrentSecret);
    let left = format!("key={KEY}\n").into_bytes();
    assert_eq!(read(&daemon, "a.txt"), Some(left));
    let events = serde_json::to_string(&daemon.events("coder")).unwrap();
    assert!(!events.contains(KEY));
}

/// A dry run tells what the restore would leave as it is.
#[test]
fn a_dry_run_names_what_cannot_be_kept() {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.limits.file_history_bytes = Some(1000);
    daemon.create_with("coder", spec);
    turn(&daemon, &[wrote("a.txt", &"agent\n".repeat(1000))]);
    for dry_run in [true, false] {
        let ask = RestoreFiles {
            dry_run,
            ..to("init")
        };
        let done = try_restore(&daemon, &ask).unwrap();
        assert_eq!(done.outcome, FilesOutcome::Failed, "{done:#?}");
        let why: Vec<CannotRestore> = done.not_restored.iter().map(|it| it.why).collect();
        assert_eq!(why, [CannotRestore::CurrentTooLarge]);
    }
    assert!(read(&daemon, "a.txt").is_some());
}
