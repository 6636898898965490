//! Restores of files: each kind of change returns to the byte, or the restore says exactly what it cannot do.

use crate::files_fixture::*;
use crate::test_daemon::TestDaemon;
use agentd_client::api::{
    CannotRestore, FileOutcome, FilesOutcome, FilesQuery, RestoreFiles, RestoredFiles, UndoFiles,
};
use agentd_client::{Error, Kind as ProblemKind};
use agentd_core::event::{Body, Kind};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

fn cannot(done: &RestoredFiles) -> Vec<CannotRestore> {
    done.not_restored.iter().map(|it| it.why).collect()
}

#[test]
fn a_created_file_is_removed_and_comes_back() {
    let daemon = coder();
    turn(&daemon, &[wrote("new/a.txt", "one\n")]);
    let done = restore(&daemon, &to("init"));
    assert_eq!(done.files.len(), 1);
    assert_eq!(done.undo.as_deref(), Some("agentd files undo coder"));
    assert_eq!(read(&daemon, "new/a.txt"), None);
    undo(&daemon);
    assert_eq!(text(&daemon, "new/a.txt"), "one\n");
    daemon.verify();
}

#[test]
fn each_edit_can_be_returned_to_and_undone_level_by_level() {
    let daemon = coder();
    fs::write(path(&daemon, "a.txt"), "zero\n").unwrap();
    for (n, word) in ["one", "two", "three"].iter().enumerate() {
        let before = ["zero", "one", "two"][n];
        let edit = json!({ "file_path": "a.txt", "old_string": before, "new_string": word });
        turn(&daemon, &[looked("a.txt"), ("edit_file", edit)]);
    }
    restore(&daemon, &to("2"));
    assert_eq!(text(&daemon, "a.txt"), "two\n");
    restore(&daemon, &to("init"));
    assert_eq!(text(&daemon, "a.txt"), "zero\n");
    // An undo cannot be undone: the next one takes the restore before it back.
    assert_eq!(undo(&daemon).undo, None);
    assert_eq!(text(&daemon, "a.txt"), "two\n");
    undo(&daemon);
    assert_eq!(text(&daemon, "a.txt"), "three\n");
    let none = UndoFiles::default();
    let none = daemon.block(daemon.client().undo_files("coder", &none));
    assert!(matches!(none, Err(Error::Problem(problem)) if problem.kind == ProblemKind::NotFound));
    daemon.verify();
}

/// Also line ends, modes and contents that are not text.
#[test]
fn crlf_mode_and_binary_content_are_restored_to_the_byte() {
    let daemon = coder();
    let binary: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let crlf = "one\r\ntwo\rthree\n\u{feff}";
    fs::write(path(&daemon, "crlf.txt"), crlf).unwrap();
    fs::write(path(&daemon, "data.bin"), &binary).unwrap();
    fs::set_permissions(path(&daemon, "crlf.txt"), fs::Permissions::from_mode(0o750)).unwrap();
    turn(
        &daemon,
        &[
            looked("crlf.txt"),
            wrote("crlf.txt", "changed\n"),
            looked("data.bin"),
        ],
    );
    // File tools do not overwrite a file that the model cannot read: a command does, and an undo keeps it.
    restore(&daemon, &to("init"));
    assert_eq!(text(&daemon, "crlf.txt"), crlf);
    let mode = fs::metadata(path(&daemon, "crlf.txt")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o7777, 0o750);
    fs::write(path(&daemon, "crlf.txt"), &binary).unwrap();
    let overwrite = UndoFiles {
        overwrite: true,
        ..UndoFiles::default()
    };
    let done = daemon.block(daemon.client().undo_files("coder", &overwrite));
    assert_eq!(done.unwrap().outcome, FilesOutcome::Done);
    assert_eq!(text(&daemon, "crlf.txt"), "changed\n");
    // The binary content was kept: a restore to before the undo has it.
    let kept = daemon.events("coder");
    let kept = kept.iter().any(|event| match &event.body {
        Body::FileKept(kept) => format!("{:?}", kept.before).contains("Base64"),
        _ => false,
    });
    assert!(kept);
    assert_eq!(read(&daemon, "data.bin").unwrap(), binary);
    daemon.verify();
}

#[test]
fn a_file_that_a_command_deleted_comes_back_from_git() {
    let daemon = coder();
    commit(&daemon, &[("a.txt", "one\r\n"), ("b.txt", "two\n")]);
    turn(&daemon, &[ran("rm a.txt")]);
    restore(&daemon, &over("init"));
    assert_eq!(text(&daemon, "a.txt"), "one\r\n");
    undo(&daemon);
    assert_eq!(read(&daemon, "a.txt"), None);
    assert_eq!(text(&daemon, "b.txt"), "two\n");
}

/// The old name comes back. What the command created is listed, and stays.
#[test]
fn a_rename_by_a_command_restores_the_old_name() {
    let daemon = coder();
    commit(&daemon, &[("old.txt", "one\n")]);
    turn(&daemon, &[ran("mv old.txt new.txt")]);
    let done = restore(&daemon, &over("init"));
    assert_eq!(text(&daemon, "old.txt"), "one\n");
    assert_eq!(text(&daemon, "new.txt"), "one\n");
    assert_eq!(cannot(&done), [CannotRestore::NotInGit]);
    let path = done.not_restored[0].path.as_deref().unwrap();
    assert!(path.ends_with("new.txt"), "{path}");
}

#[test]
fn a_chmod_by_a_command_is_taken_back() {
    let daemon = coder();
    commit(&daemon, &[("run.sh", "echo\n")]);
    turn(&daemon, &[ran("chmod +x run.sh")]);
    let mode = |daemon: &TestDaemon| {
        let metadata = fs::metadata(path(daemon, "run.sh")).unwrap();
        metadata.permissions().mode() & 0o111
    };
    assert_ne!(mode(&daemon), 0);
    restore(&daemon, &to("init"));
    assert_eq!(mode(&daemon), 0);
    undo(&daemon);
    assert_ne!(mode(&daemon), 0);
}

/// A link that a command replaced by a file, and a file that it replaced by a link.
#[test]
fn symlinks_are_restored_as_such_and_never_followed() {
    let daemon = coder();
    symlink("target.txt", path(&daemon, "link")).unwrap();
    commit(&daemon, &[("target.txt", "target\n"), ("file", "file\n")]);
    turn(
        &daemon,
        &[ran(
            "rm link file; echo other > link; ln -s target.txt file",
        )],
    );
    let ask = RestoreFiles {
        overwrite: true,
        ..to("init")
    };
    restore(&daemon, &ask);
    let target = fs::read_link(path(&daemon, "link")).unwrap();
    assert_eq!(target.to_str(), Some("target.txt"));
    assert_eq!(text(&daemon, "file"), "file\n");
    assert!(
        fs::symlink_metadata(path(&daemon, "file"))
            .unwrap()
            .is_file()
    );
    assert_eq!(text(&daemon, "target.txt"), "target\n");
    undo(&daemon);
    let target = fs::read_link(path(&daemon, "file")).unwrap();
    assert_eq!(target.to_str(), Some("target.txt"));
    assert_eq!(text(&daemon, "link"), "other\n");
}

#[test]
fn without_git_changes_by_commands_are_said_to_be_unknown() {
    let daemon = coder();
    fs::write(path(&daemon, "a.txt"), "one\n").unwrap();
    turn(&daemon, &[ran("echo two > a.txt"), wrote("b.txt", "b\n")]);
    let done = restore(&daemon, &to("init"));
    assert_eq!(cannot(&done), [CannotRestore::NoGit]);
    assert!(done.not_restored[0].turn.is_some());
    assert_eq!(text(&daemon, "a.txt"), "two\n");
    assert_eq!(read(&daemon, "b.txt"), None);
    let listed = daemon.block(daemon.client().files("coder", &FilesQuery::default()));
    assert_eq!(listed.unwrap().unknown[0].why, CannotRestore::NoGit);
}

#[test]
fn a_conflict_writes_nothing_and_the_user_decides() {
    let daemon = coder();
    turn(&daemon, &[wrote("a.txt", "agent\n"), wrote("b.txt", "b\n")]);
    fs::write(path(&daemon, "a.txt"), "of the user\n").unwrap();
    let done = try_restore(&daemon, &to("init")).unwrap();
    assert_eq!(done.outcome, FilesOutcome::Conflict);
    assert_eq!(done.files.len(), 1);
    assert_eq!(done.files[0].outcome, FileOutcome::Conflict);
    assert_eq!(text(&daemon, "b.txt"), "b\n");
    assert_eq!(daemon.count("coder", Kind::FilesRestoreBegan), 0);
    // A selection without the conflict.
    let some = RestoreFiles {
        paths: vec!["b.txt".to_owned()],
        ..to("init")
    };
    restore(&daemon, &some);
    assert_eq!(read(&daemon, "b.txt"), None);
    assert_eq!(text(&daemon, "a.txt"), "of the user\n");
    let overwrite = RestoreFiles {
        overwrite: true,
        ..to("init")
    };
    restore(&daemon, &overwrite);
    assert_eq!(read(&daemon, "a.txt"), None);
    undo(&daemon);
    assert_eq!(text(&daemon, "a.txt"), "of the user\n");
}

#[test]
fn a_file_that_became_a_directory_is_a_conflict() {
    let daemon = coder();
    turn(&daemon, &[wrote("a", "agent\n")]);
    fs::remove_file(path(&daemon, "a")).unwrap();
    fs::create_dir(path(&daemon, "a")).unwrap();
    let done = try_restore(&daemon, &to("init")).unwrap();
    assert_eq!(done.outcome, FilesOutcome::Conflict);
    assert_eq!(done.files[0].why.as_deref(), Some("it is a directory now"));
    let overwrite = RestoreFiles {
        overwrite: true,
        ..to("init")
    };
    let done = try_restore(&daemon, &overwrite).unwrap();
    assert_eq!(cannot(&done), [CannotRestore::NotAFile]);
    assert!(path(&daemon, "a").is_dir());
}

#[test]
fn an_unknown_place_or_file_is_not_found() {
    let daemon = coder();
    turn(&daemon, &[wrote("a", "agent\n")]);
    let other = RestoreFiles {
        paths: vec!["other".to_owned()],
        ..to("init")
    };
    for ask in [to("7"), to("nowhere"), other] {
        let Err(Error::Problem(problem)) = try_restore(&daemon, &ask) else {
            panic!("{ask:?}");
        };
        assert_eq!(problem.kind, ProblemKind::NotFound);
        assert!(problem.next.is_some());
    }
}
