//! Restores compare what the journal records with what is on disk, and never replace what only the user has.

use crate::files_fixture::*;
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{
    CannotRestore, FileOutcome, FilesOutcome, FilesQuery, RestoredFiles, Rewind,
};
use agentd_core::event::{Scan, ScanProblem, ScannedChange, ScannedFile};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;

fn conflict(daemon: &TestDaemon, place: &str) -> RestoredFiles {
    let done = try_restore(daemon, &to(place)).unwrap();
    assert_eq!(done.outcome, FilesOutcome::Conflict, "{done:#?}");
    assert!(
        done.files
            .iter()
            .all(|it| it.outcome == FileOutcome::Conflict)
    );
    done
}

/// What commands of the newest turn changed; `None` if git took too long.
fn scanned(daemon: &TestDaemon) -> Option<Vec<ScannedFile>> {
    let listed = daemon.block(daemon.client().files("coder", &FilesQuery::default()));
    listed.unwrap();
    match scans(daemon).pop().expect("a scan") {
        Scan::Known { files, .. } => Some(files),
        Scan::Unknown {
            why: ScanProblem::Timeout,
        } => None,
        other @ Scan::Unknown { .. } => panic!("{other:?}"),
    }
}

fn names(files: &[ScannedFile]) -> Vec<(&str, ScannedChange)> {
    let names = files.iter().map(|file| {
        let name = file.path.rsplit('/').next().unwrap();
        (name, file.change)
    });
    names.collect()
}

#[test]
fn a_file_that_only_the_user_changed_after_the_turn_is_a_conflict() {
    let daemon = coder();
    turn(&daemon, &[wrote("a.txt", "one\n"), wrote("b.txt", "b\n")]);
    let same = try_restore(&daemon, &to("1")).unwrap();
    assert_eq!(same.outcome, FilesOutcome::Unchanged, "{same:#?}");
    assert_eq!(same.not_restored, []);
    fs::write(path(&daemon, "a.txt"), "of the user\n").unwrap();
    fs::remove_file(path(&daemon, "b.txt")).unwrap();
    let done = conflict(&daemon, "1");
    let paths = done.files.iter().map(|file| file.path.as_str());
    let paths: Vec<&str> = paths.map(|path| path.rsplit('/').next().unwrap()).collect();
    assert_eq!(paths, ["a.txt", "b.txt"]);
    // What the calls wrote is in no event that keeps a content.
    let done = try_restore(&daemon, &over("1")).unwrap();
    assert_eq!(done.outcome, FilesOutcome::Failed, "{done:#?}");
    let why: Vec<_> = done.not_restored.iter().map(|it| it.why).collect();
    assert_eq!(why, [CannotRestore::LeftNotKept; 2]);
    assert_eq!(text(&daemon, "a.txt"), "of the user\n");
    daemon.verify();
}

#[test]
fn what_the_user_changed_since_is_restored_from_a_kept_content() {
    let daemon = coder();
    for word in ["one\n", "two\n", "one\n"] {
        turn(&daemon, &[wrote("a.txt", word)]);
    }
    fs::write(path(&daemon, "a.txt"), "of the user\n").unwrap();
    conflict(&daemon, "3");
    let done = restore(&daemon, &over("3"));
    assert_eq!(done.files.len(), 1);
    assert_eq!(text(&daemon, "a.txt"), "one\n");
    undo(&daemon);
    assert_eq!(text(&daemon, "a.txt"), "of the user\n");
    daemon.verify();
}

#[test]
fn after_a_rewind_init_is_still_before_the_first_turn() {
    let daemon = coder();
    fs::write(path(&daemon, "a.txt"), "zero\n").unwrap();
    turn(&daemon, &[looked("a.txt"), wrote("a.txt", "one\n")]);
    turn(&daemon, &[wrote("a.txt", "bad\n")]);
    let rewind = Rewind {
        to: "1".to_owned(),
        ..Rewind::default()
    };
    daemon
        .block(daemon.client().rewind("coder", &rewind))
        .unwrap();
    restore(&daemon, &to("1"));
    assert_eq!(text(&daemon, "a.txt"), "one\n");
    restore(&daemon, &to("init"));
    assert_eq!(text(&daemon, "a.txt"), "zero\n");
    daemon.verify();
}

/// Git has an older content than the one that the user had, and did not commit, before the command ran.
#[test]
fn lines_that_the_user_did_not_commit_are_not_dropped_silently() {
    let daemon = coder();
    commit(&daemon, &[("a.txt", "one\n")]);
    fs::write(path(&daemon, "a.txt"), "one\nof the user\n").unwrap();
    turn(&daemon, &[ran("echo of the command >> a.txt")]);
    if scanned(&daemon).is_none() {
        return;
    }
    let done = conflict(&daemon, "init");
    // Which of them depends on how fast git was before the command.
    let why = done.files[0].why.as_deref().unwrap();
    let is_known = [
        "its content before this turn is not known; git's copy would be used",
        "it had changes before this turn that were not committed; git's copy would be used",
    ];
    assert!(is_known.contains(&why), "{why}");
    let left = "one\nof the user\nof the command\n";
    assert_eq!(text(&daemon, "a.txt"), left);
    restore(&daemon, &over("init"));
    assert_eq!(text(&daemon, "a.txt"), "one\n");
    undo(&daemon);
    assert_eq!(text(&daemon, "a.txt"), left);
}

/// Git lists neither a file that is as in the newest commit nor one that it never knew and is gone.
#[test]
fn commands_that_take_back_what_tools_left_are_found() {
    let daemon = coder();
    commit(&daemon, &[("a.txt", "one\n")]);
    turn(
        &daemon,
        &[
            looked("a.txt"),
            wrote("a.txt", "tool\n"),
            wrote("new.txt", "tool\n"),
        ],
    );
    turn(&daemon, &[ran("git checkout -q a.txt; rm new.txt")]);
    let Some(files) = scanned(&daemon) else {
        return;
    };
    let expected = [
        ("a.txt", ScannedChange::Modified),
        ("new.txt", ScannedChange::Deleted),
    ];
    assert_eq!(names(&files), expected);
    // What the tool left is in neither git nor another event.
    let done = try_restore(&daemon, &to("1")).unwrap();
    let why: Vec<_> = done.not_restored.iter().map(|it| it.why).collect();
    assert_eq!(why, [CannotRestore::NotInGit; 2], "{done:#?}");
    // The commands have already taken back all that the tools changed.
    let done = try_restore(&daemon, &to("init")).unwrap();
    assert_eq!(done.outcome, FilesOutcome::Unchanged, "{done:#?}");
    assert_eq!(done.not_restored, []);
}

#[test]
fn a_chmod_by_a_command_of_a_file_that_a_tool_wrote_is_taken_back() {
    let daemon = coder();
    commit(&daemon, &[("first", "1\n")]);
    turn(&daemon, &[wrote("run.sh", "echo\n")]);
    let before = mode(&daemon, "run.sh");
    turn(&daemon, &[ran("chmod 0700 run.sh")]);
    let Some(files) = scanned(&daemon) else {
        return;
    };
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(files[0].mode_before, Some(before));
    restore(&daemon, &to("1"));
    assert_eq!(mode(&daemon, "run.sh"), before);
    assert_eq!(text(&daemon, "run.sh"), "echo\n");
    undo(&daemon);
    assert_eq!(mode(&daemon, "run.sh"), 0o700);
    daemon.verify();
}

#[test]
fn a_directory_that_became_a_link_or_a_file_is_a_conflict() {
    let daemon = coder();
    turn(
        &daemon,
        &[wrote("dir/a.txt", "agent\n"), wrote("b.txt", "agent\n")],
    );
    fs::rename(path(&daemon, "dir"), path(&daemon, "moved")).unwrap();
    symlink("moved", path(&daemon, "dir")).unwrap();
    let done = conflict(&daemon, "init");
    let why = done.files[0].why.clone().unwrap();
    assert!(why.ends_with("/dir is a symlink now"), "{why}");
    assert_eq!(text(&daemon, "b.txt"), "agent\n");
    fs::remove_file(path(&daemon, "dir")).unwrap();
    fs::write(path(&daemon, "dir"), "of the user\n").unwrap();
    let done = conflict(&daemon, "init");
    let why = done.files[0].why.clone().unwrap();
    assert!(why.ends_with("/dir is not a directory now"), "{why}");
    let done = restore(&daemon, &over("init"));
    assert_eq!(done.not_restored[0].why, CannotRestore::ParentReplaced);
    assert_eq!(read(&daemon, "b.txt"), None);
    assert_eq!(text(&daemon, "dir"), "of the user\n");
    assert_eq!(text(&daemon, "moved/a.txt"), "agent\n");
}

/// The process that wrote the file is killed; the next one does not take its change for that of a command.
#[test]
fn after_a_restart_in_a_turn_an_edit_is_still_the_tools() {
    let daemon = TestDaemon::empty();
    daemon.daemon_has_keys();
    daemon.start_daemon();
    daemon.create("coder");
    commit(&daemon, &[("a.txt", "one\n")]);
    let look = json!({ "file_path": "a.txt" });
    let edit = json!({ "file_path": "a.txt", "old_string": "one", "new_string": "two" });
    let command = "echo on >> effects; until test -e go; do sleep 0.05; done";
    let command = json!({ "command": command });
    let sent = daemon.send(
        "coder",
        &format!(
            "do: call read_file {look} ;; call edit_file {edit} ;; call shell {command} ;; say done"
        ),
    );
    until("the command", || {
        (daemon.effects().len() == 1).then_some(())
    });
    let pid = until("a process", || daemon.pid("coder"));
    crate::test_daemon::kill(pid, rustix::process::Signal::KILL);
    fs::write(path(&daemon, "go"), "").unwrap();
    daemon.answer("coder", sent.prompt);
    let Some(files) = scanned(&daemon) else {
        return;
    };
    let edited = files.iter().any(|file| file.path.ends_with("/a.txt"));
    assert!(!edited, "{files:?}");
}
