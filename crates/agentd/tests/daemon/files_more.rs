//! Large restores, several agents in one tree, crashes in the middle of a restore, and what the model is told.

use crate::files_fixture::*;
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{
    CannotRestore, DiffChange, DiffFiles, FilesOutcome, RestoreFiles, RestoredFiles, UndoFiles,
};
use agentd_client::{Error, Kind as ProblemKind};
use agentd_core::event::{Body, Kind, RestoreOutcome};
use agentd_core::id::OpId;
use agentd_failpoint::plan::Role;
use serde_json::json;
use std::fs;

/// 100 MB are more than one event may have.
#[test]
fn a_file_of_100_mb_is_restored_to_the_byte() {
    let daemon = coder();
    let large: Vec<u8> = (0..100_000_000u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    turn(&daemon, &[wrote("large.bin", "small\n")]);
    // The user replaces it, and the restore keeps that.
    fs::write(path(&daemon, "large.bin"), &large).unwrap();
    let ask = RestoreFiles {
        overwrite: true,
        ..to("init")
    };
    restore(&daemon, &ask);
    assert_eq!(read(&daemon, "large.bin"), None);
    undo(&daemon);
    assert!(read(&daemon, "large.bin").unwrap() == large);
    assert!(daemon.count("coder", Kind::FileKept) > 12);
}

#[test]
fn ten_thousand_files_are_restored() {
    let daemon = coder();
    commit(&daemon, &[("first", "1\n")]);
    for n in 0..10_000 {
        fs::write(path(&daemon, &format!("f{n}")), format!("{n}\n")).unwrap();
    }
    git(&daemon, &["add", "-A"]);
    git(&daemon, &["commit", "-q", "-m", "many"]);
    turn(&daemon, &[ran("for f in f*; do echo changed > $f; done")]);
    let mut done = try_restore(&daemon, &to("init")).unwrap();
    // The scan may take longer than it is given: then that is said, and nothing is half done.
    if done.outcome == FilesOutcome::Unchanged {
        assert_eq!(done.not_restored.len(), 1, "{:?}", done.not_restored);
        assert_eq!(text(&daemon, "f7"), "changed\n");
        return;
    }
    if done.outcome == FilesOutcome::Conflict {
        // The time was not enough to read all files: those that were not read may have been changed since.
        assert_eq!(text(&daemon, "f7"), "changed\n");
        let ask = RestoreFiles {
            overwrite: true,
            ..to("init")
        };
        done = restore(&daemon, &ask);
    }
    assert_eq!(done.outcome, FilesOutcome::Done, "{:?}", done.not_restored);
    let listed = done.files.len();
    let restored = (0..10_000).filter(|n| text(&daemon, &format!("f{n}")) == format!("{n}\n"));
    assert_eq!(restored.count(), listed);
    assert!(listed == 10_000 || !done.not_restored.is_empty());
}

#[test]
fn of_two_agents_in_one_tree_neither_overwrites_the_other() {
    let daemon = coder();
    daemon.create("other");
    turn(
        &daemon,
        &[wrote("a.txt", "coder\n"), wrote("own.txt", "coder\n")],
    );
    let call = json!({ "file_path": "a.txt" });
    let write = json!({ "file_path": "a.txt", "content": "other\n" });
    daemon.completed(
        "other",
        &format!("do: call read_file {call} ;; call write_file {write} ;; say done"),
    );
    let done = try_restore(&daemon, &to("init")).unwrap();
    assert_eq!(done.outcome, FilesOutcome::Conflict);
    assert_eq!(text(&daemon, "own.txt"), "coder\n");
    // The other agent takes its change back first.
    let done = daemon.block(daemon.client().restore_files("other", &to("init")));
    assert_eq!(done.unwrap().outcome, FilesOutcome::Done);
    assert_eq!(text(&daemon, "a.txt"), "coder\n");
    restore(&daemon, &to("init"));
    assert_eq!(read(&daemon, "a.txt"), None);
}

#[test]
fn a_repeated_op_gets_the_same_answer_and_restores_once() {
    let daemon = coder();
    turn(&daemon, &[wrote("a.txt", "one\n")]);
    let ask = RestoreFiles {
        op: Some("once".parse::<OpId>().unwrap()),
        ..to("init")
    };
    let first = restore(&daemon, &ask);
    turn(&daemon, &[wrote("a.txt", "two\n")]);
    assert_eq!(restore(&daemon, &ask), first);
    assert_eq!(text(&daemon, "a.txt"), "two\n");
    assert_eq!(daemon.count("coder", Kind::FilesRestoreBegan), 1);
    let other = RestoreFiles {
        overwrite: true,
        ..ask
    };
    let refused = try_restore(&daemon, &other);
    assert!(matches!(refused, Err(Error::Problem(it)) if it.kind == ProblemKind::Conflict));
}

/// What is left because of what is at a path now is not in the journal before the restore.
#[test]
fn a_repeated_op_names_the_same_files_that_were_left() {
    let daemon = coder();
    turn(
        &daemon,
        &[wrote("a", "a\n"), wrote("b", "b\n"), wrote("c", "c\n")],
    );
    let plant = |name: &str| {
        let _absent = fs::remove_file(path(&daemon, name));
        fs::create_dir(path(&daemon, name)).unwrap();
    };
    let left = |done: &RestoredFiles| {
        let left = done.not_restored.iter();
        left.map(|it| (it.path.clone(), it.why)).collect::<Vec<_>>()
    };
    let not_a_file = |name: &str| {
        let path = path(&daemon, name).to_str().unwrap().to_owned();
        vec![(Some(path), CannotRestore::NotAFile)]
    };
    plant("a");
    let ask = RestoreFiles {
        op: Some("restore".parse::<OpId>().unwrap()),
        ..over("init")
    };
    let first = restore(&daemon, &ask);
    assert_eq!(left(&first), not_a_file("a"));
    assert_eq!(restore(&daemon, &ask), first);
    plant("b");
    let ask = UndoFiles {
        op: Some("undo".parse::<OpId>().unwrap()),
        overwrite: true,
        ..UndoFiles::default()
    };
    let undo = || daemon.block(daemon.client().undo_files("coder", &ask));
    let first = undo().unwrap();
    assert_eq!(left(&first), not_a_file("b"));
    assert_eq!(text(&daemon, "c"), "c\n");
    assert_eq!(undo().unwrap(), first);
}

/// Two agents use one op, and each sends its request twice at the same time.
#[test]
fn repeated_requests_at_the_same_time_get_one_answer() {
    let daemon = coder();
    daemon.create("other");
    let write = json!({ "file_path": "b.txt", "content": "one\n" });
    daemon.completed("other", &format!("do: call write_file {write} ;; say done"));
    turn(&daemon, &[wrote("a.txt", "one\n")]);
    let asked = ["coder", "coder", "other", "other"].map(|name| {
        let client = daemon.client();
        let ask = RestoreFiles {
            op: Some("once".parse::<OpId>().unwrap()),
            ..to("init")
        };
        daemon.spawn(async move { client.restore_files(name, &ask).await })
    });
    for asked in asked {
        let done = daemon.block(asked).unwrap().unwrap();
        assert_eq!(done.outcome, FilesOutcome::Done, "{done:#?}");
        assert_eq!(done.files.len(), 1);
    }
    for name in ["coder", "other"] {
        assert_eq!(daemon.count(name, Kind::FilesRestoreBegan), 1);
    }
    assert_eq!(read(&daemon, "a.txt"), None);
    assert_eq!(read(&daemon, "b.txt"), None);
}

/// The user has taken a restore back by hand: the undo of it writes nothing, and the next one takes the one before back.
#[test]
fn an_undo_that_has_nothing_to_write_is_not_in_the_way_of_the_next_one() {
    let daemon = coder();
    turn(&daemon, &[wrote("a.txt", "one\n")]);
    turn(&daemon, &[wrote("a.txt", "two\n")]);
    restore(&daemon, &to("1"));
    restore(&daemon, &to("init"));
    fs::write(path(&daemon, "a.txt"), "one\n").unwrap();
    let client = daemon.client();
    let trial = UndoFiles {
        dry_run: true,
        ..UndoFiles::default()
    };
    let ask = UndoFiles {
        op: Some("once".parse::<OpId>().unwrap()),
        ..UndoFiles::default()
    };
    for ask in [&trial, &ask, &ask] {
        let done = daemon.block(client.undo_files("coder", ask)).unwrap();
        assert_eq!(done.outcome, FilesOutcome::Unchanged, "{done:#?}");
        assert_eq!((done.files.len(), done.undo), (0, None));
    }
    assert_eq!(daemon.count("coder", Kind::FilesRestoreEnded), 3);
    undo(&daemon);
    assert_eq!(text(&daemon, "a.txt"), "two\n");
    daemon.verify();
}

/// The daemon is killed while the worker is between two steps; the next daemon completes the restore.
#[test]
fn a_restore_that_a_crash_cut_off_is_completed() {
    for point in [
        "before-write.restore",
        "before-rename.restore",
        "after-rename.restore",
    ] {
        let daemon = TestDaemon::empty();
        daemon.hold(Role::Tool, point);
        daemon.start_daemon();
        daemon.create("coder");
        fs::write(path(&daemon, "a.txt"), "zero\n").unwrap();
        turn(
            &daemon,
            &[
                looked("a.txt"),
                wrote("a.txt", "one\n"),
                wrote("b.txt", "new\n"),
            ],
        );
        let client = daemon.client();
        let asked = daemon.spawn(async move { client.restore_files("coder", &to("init")).await });
        daemon.until_held();
        // Each file is whole at any moment.
        assert!(["zero\n", "one\n"].contains(&text(&daemon, "a.txt").as_str()));
        daemon.kill_daemon();
        let _broken = daemon.block(asked).unwrap();
        for (pid, arguments) in daemon.processes() {
            if arguments.contains("files-worker") {
                crate::test_daemon::kill(pid, rustix::process::Signal::KILL);
            }
        }
        daemon.start_daemon();
        let ended = daemon.until_kind("coder", Kind::FilesRestoreEnded);
        let Body::FilesRestoreEnded(ended) = ended.body else {
            panic!("another kind");
        };
        assert_eq!(
            (ended.outcome, ended.restored),
            (RestoreOutcome::Done, 2),
            "{point}"
        );
        assert_eq!(text(&daemon, "a.txt"), "zero\n");
        assert_eq!(read(&daemon, "b.txt"), None);
        let names: Vec<_> = fs::read_dir(daemon.work()).unwrap().flatten().collect();
        assert_eq!(names.len(), 1, "{names:?}");
        undo(&daemon);
        assert_eq!(text(&daemon, "a.txt"), "one\n");
        assert_eq!(text(&daemon, "b.txt"), "new\n");
        daemon.verify();
    }
}

#[test]
fn while_a_turn_runs_nothing_is_restored() {
    let daemon = coder();
    turn(&daemon, &[wrote("a.txt", "one\n")]);
    let call = json!({ "command": "echo on >> effects; sleep 60" });
    daemon.send("coder", &format!("do: call shell {call} ;; say done"));
    until("the tool", || (daemon.effects().len() == 1).then_some(()));
    let Err(Error::Problem(problem)) = try_restore(&daemon, &to("init")) else {
        panic!("it was restored");
    };
    assert_eq!(problem.kind, ProblemKind::Conflict);
    assert!(problem.next.unwrap().contains("agentd interrupt coder"));
    assert_eq!(text(&daemon, "a.txt"), "one\n");
}

#[test]
fn the_model_is_told_and_reads_a_restored_file_again() {
    let daemon = coder();
    turn(&daemon, &[wrote("a.txt", "one\n")]);
    turn(&daemon, &[wrote("a.txt", "two\n")]);
    restore(&daemon, &to("1"));
    turn(&daemon, &[looked("a.txt"), wrote("a.txt", "three\n")]);
    let request = daemon.requests().last().unwrap().body.to_string();
    assert!(request.contains("The user restored files"), "{request}");
    assert_eq!(text(&daemon, "a.txt"), "three\n");
}

#[test]
fn a_diff_shows_what_a_turn_changed_even_after_later_changes() {
    let daemon = coder();
    fs::write(path(&daemon, "a.txt"), "one\ntwo\nthree\n").unwrap();
    let edit = json!({ "file_path": "a.txt", "old_string": "two", "new_string": "2" });
    turn(&daemon, &[looked("a.txt"), ("edit_file", edit)]);
    turn(
        &daemon,
        &[wrote("b.txt", "new\n"), wrote("a.txt", "other\n")],
    );
    let first = diff(
        &daemon,
        &DiffFiles {
            turn: Some("1".to_owned()),
            ..DiffFiles::default()
        },
    );
    let [file] = first.files.as_slice() else {
        panic!("{first:#?}");
    };
    assert_eq!((file.added, file.removed), (1, 1));
    let expected = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
    assert_eq!(file.diff.as_deref(), Some(expected));
    let since = diff(
        &daemon,
        &DiffFiles {
            since: Some("1".to_owned()),
            paths: vec!["b.txt".to_owned()],
            ..DiffFiles::default()
        },
    );
    assert_eq!(since.files.len(), 1);
    assert_eq!(since.files[0].change, DiffChange::Created);
    // All turns of the conversation. The user has changed one of the files since: the call itself has the content.
    fs::write(path(&daemon, "a.txt"), "of the user\n").unwrap();
    let all = diff(&daemon, &DiffFiles::default());
    assert_eq!(
        (all.files.len(), all.added, all.removed),
        (2, 2, 3),
        "{all:#?}"
    );
}
