//! Repositories and files that a model made to disturb a difference or a restore.

use crate::files_fixture::*;
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{
    CannotRestore, DiffFiles, FilesDiff, FilesOutcome, FilesQuery, RestoreFiles,
};
use std::fs;

/// A number that no other process has in its arguments.
const SLOW: &str = "sleep 3131";

fn diff(daemon: &TestDaemon) -> FilesDiff {
    let ask = DiffFiles::default();
    daemon.block(daemon.client().diff("coder", &ask)).unwrap()
}

/// Runs a command in a turn, again if git took too long to find what it changed.
fn ran_and_found(daemon: &TestDaemon, command: &str, name: &str) {
    let wanted = path(daemon, name).display().to_string();
    until("a scan in time", || {
        turn(daemon, &[ran(command)]);
        let listed = daemon.block(daemon.client().files("coder", &FilesQuery::default()));
        let listed = listed.unwrap();
        let found = listed.files.iter().any(|file| file.path == wanted);
        found.then_some(())
    });
}

/// The daemon, and the repository of the user. The model has changed two files of it, and made the directory of one a
/// repository of its own, with these commands.
fn nested(commands: &str) -> TestDaemon {
    let daemon = coder();
    fs::create_dir(path(&daemon, "sub")).unwrap();
    commit(&daemon, &[("a.txt", "one\n"), ("sub/b.txt", "one\n")]);
    let command = format!(
        "git init -q sub; echo one > sub/one; git -C sub hash-object -w one; rm sub/one; {commands}; date +%N > sub/b.txt; date +%N > a.txt"
    );
    ran_and_found(&daemon, &command, "sub/b.txt");
    daemon
}

/// A filter of the inner repository does not end.
fn slow() -> TestDaemon {
    nested(&format!(
        "mkdir -p sub/.git/info; echo '* filter=slow' > sub/.git/info/attributes; \
         git -C sub config filter.slow.smudge '{SLOW}'"
    ))
}

fn is_slow_running(daemon: &TestDaemon) -> bool {
    let all = daemon.processes();
    all.iter().any(|(_, arguments)| arguments.contains(SLOW))
}

/// Requests a restore that waits for the filter.
fn restore_waits(daemon: &TestDaemon) {
    let client = daemon.client();
    daemon.spawn(async move {
        let ask = RestoreFiles {
            dry_run: true,
            ..over("init")
        };
        client.restore_files("coder", &ask).await
    });
    until("the filter", || is_slow_running(daemon).then_some(()));
}

#[test]
fn no_monitor_or_hook_of_a_repository_runs_for_a_diff_or_a_restore() {
    let mark = tempfile::tempdir().unwrap();
    let mark = mark.path().join("mark");
    let run = format!("touch {}; false", mark.display());
    let daemon = nested(&format!(
        "git -C sub config core.fsmonitor '{run}'; mkdir -p hooks; \
         printf '#!/bin/sh\\n{run}\\n' > hooks/post-index-change; chmod +x hooks/post-index-change; \
         git -C sub config core.hooksPath $PWD/hooks"
    ));
    // Git itself may have run them for the commands.
    drop(fs::remove_file(&mark));
    let diff = diff(&daemon);
    assert!(diff.files.iter().any(|file| file.name == "sub/b.txt"));
    restore(&daemon, &over("init"));
    assert!(!mark.exists());
}

/// What git can tell in time is shown.
#[test]
fn a_filter_that_does_not_end_delays_a_diff_only_for_a_while() {
    let daemon = slow();
    let diff = diff(&daemon);
    let of = |name: &str| diff.files.iter().find(|file| file.name == name).unwrap();
    let late = "git could not be asked in time for its earlier content";
    assert_eq!(of("sub/b.txt").note.as_deref(), Some(late));
    let outer = of("a.txt").diff.as_deref().unwrap();
    assert!(outer.contains("\n-one\n"), "{outer}");
    assert!(!is_slow_running(&daemon));
}

#[test]
fn git_ends_with_the_daemon_that_asked_it() {
    let daemon = slow();
    restore_waits(&daemon);
    let stopped = daemon.cli(&["daemon", "stop"]);
    assert!(stopped.status.success(), "{stopped:?}");
    daemon.until_daemon_ends();
    assert!(!is_slow_running(&daemon));
}

/// The daemon is killed while a restore is planned: the next one ends its processes and removes what they have written.
#[test]
fn what_a_killed_daemon_left_of_a_plan_is_ended_and_removed() {
    let daemon = slow();
    restore_waits(&daemon);
    daemon.kill_daemon();
    assert!(is_slow_running(&daemon));
    daemon.start_daemon();
    assert!(!is_slow_running(&daemon));
    let left = fs::read_dir(daemon.home().join("restores")).unwrap();
    let left: Vec<_> = left.flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
    let log = daemon.log();
    assert!(!log.contains("directory of a restore not removed"), "{log}");
}

/// To read it would take minutes.
#[test]
fn a_file_that_a_command_made_very_large_is_not_read() {
    let daemon = coder();
    commit(&daemon, &[("k", "one\n"), ("l", "one\n")]);
    ran_and_found(&daemon, "truncate -s 40G k; echo two > l", "k");
    let diff = diff(&daemon);
    let large = diff.files.iter().find(|file| file.name == "k").unwrap();
    assert_eq!(large.diff, None);
    let note = large.note.as_deref().unwrap();
    assert_eq!(note, "it is too large to be compared (42949672960 bytes)");
    let done = try_restore(&daemon, &over("init")).unwrap();
    assert_eq!(done.outcome, FilesOutcome::Done, "{done:#?}");
    let left = done.not_restored.iter().find(|it| {
        let path = it.path.as_deref().unwrap_or_default();
        path.ends_with("/k")
    });
    assert_eq!(left.unwrap().why, CannotRestore::CurrentTooLarge);
    assert_eq!(text(&daemon, "l"), "one\n");
}
