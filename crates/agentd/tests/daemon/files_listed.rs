//! What is said about changes of files: purged contents, changes by commands, and restores that a model has not seen.

use crate::files_fixture::*;
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{
    CannotRestore, ChangeBy, DiffChange, DiffFiles, FilesQuery, Reset, RestoreFiles, Rewind,
};
use agentd_core::event::{Direction, Scan, ScannedChange};
use std::fs;

#[test]
fn purged_contents_are_listed_with_their_path_and_turn() {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.limits.file_history_bytes = Some(100);
    daemon.create_with("coder", spec);
    let line = |n: usize| format!("{n:>39}\n");
    for n in 0..2 {
        turn(&daemon, &[wrote("first.txt", &line(n))]);
    }
    for n in 0..4 {
        turn(&daemon, &[wrote("other.txt", &line(n))]);
    }
    let name = |name: &str| Some(path(&daemon, name).display().to_string());
    let why = CannotRestore::NoLongerKept;
    let expected = [
        (name("first.txt"), Some(1), why),
        (name("other.txt"), Some(3), why),
    ];
    let ask = RestoreFiles {
        dry_run: true,
        ..to("init")
    };
    let done = try_restore(&daemon, &ask).unwrap();
    let mut listed: Vec<_> = done
        .not_restored
        .iter()
        .map(|it| (it.path.clone(), it.turn_number, it.why))
        .collect();
    listed.sort();
    assert_eq!(listed, expected);
    // Of the one file no content is left at all.
    let client = daemon.client();
    let files = daemon.block(client.files("coder", &FilesQuery::default()));
    let files = files.unwrap();
    let unknown = files.unknown.iter();
    let unknown: Vec<_> = unknown
        .map(|it| (it.path.clone(), it.turn_number))
        .collect();
    assert_eq!(unknown, [(name("first.txt"), Some(1))]);
    assert_eq!(files.files.len(), 1);
    assert_eq!(files.files[0].cannot_restore, Some(why));
    assert_eq!(files.files[0].cannot_restore_turn, Some(3));
    let diff = daemon.block(client.diff("coder", &DiffFiles::default()));
    let unknown = diff.unwrap().unknown.into_iter();
    let unknown: Vec<_> = unknown
        .map(|it| (it.path, it.turn_number, it.why))
        .collect();
    assert_eq!(unknown, expected);
}

/// What the restore kept was purged: it is not counted, because its undo would write nothing.
#[test]
fn a_restore_whose_contents_were_purged_is_not_counted_as_one_that_can_be_undone() {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.limits.file_history_bytes = Some(100);
    daemon.create_with("coder", spec);
    let line = |n: usize| format!("{n:>39}\n");
    for n in 0..2 {
        turn(&daemon, &[wrote("a.txt", &line(n))]);
    }
    restore(&daemon, &to("1"));
    let levels = || {
        let files = daemon.block(daemon.client().files("coder", &FilesQuery::default()));
        files.unwrap().undo_levels
    };
    assert_eq!(levels(), 1);
    for n in 0..5 {
        turn(&daemon, &[wrote("other.txt", &line(n))]);
    }
    assert_eq!(levels(), 0);
}

/// The user deleted two files before the turn; a command changes the same directory.
#[test]
fn what_the_user_deleted_before_the_turn_is_not_attributed_to_its_commands() {
    let daemon = coder();
    commit(
        &daemon,
        &[("b.txt", "b\n"), ("d.txt", "d\n"), ("x.txt", "x\n")],
    );
    fs::remove_file(path(&daemon, "b.txt")).unwrap();
    git(&daemon, &["rm", "-q", "d.txt"]);
    let mut attempts = 0;
    // A busy machine may take longer than git is given.
    let files = until("a scan in time", || {
        attempts += 1;
        fs::write(path(&daemon, "x.txt"), "x\n").unwrap();
        turn(&daemon, &[ran("rm x.txt; touch made.txt")]);
        // Each turn has one scan, which is recorded after its end.
        let scan = until("the scan", || scans(&daemon).into_iter().nth(attempts - 1));
        match scan {
            Scan::Known { files, .. } if !files.iter().any(|file| file.unsure) => Some(files),
            _ => None,
        }
    });
    let deleted = files
        .iter()
        .filter(|it| it.change == ScannedChange::Deleted);
    let deleted: Vec<&str> = deleted.map(|it| it.path.as_str()).collect();
    assert_eq!(deleted, [path(&daemon, "x.txt").to_str().unwrap()]);
    let before = match attempts {
        1 => "init".to_owned(),
        more => (more - 1).to_string(),
    };
    restore(&daemon, &over(&before));
    assert_eq!(text(&daemon, "x.txt"), "x\n");
    assert_eq!(read(&daemon, "b.txt"), None);
    assert_eq!(read(&daemon, "d.txt"), None);
}

#[test]
fn a_diff_shows_what_a_command_changed_in_a_tracked_file() {
    let daemon = coder();
    commit(&daemon, &[("a.txt", "one\ntwo\n"), ("gone.txt", "gone\n")]);
    let mut number = 0;
    let diff = until("a scan in time", || {
        git(&daemon, &["checkout", "-q", "--", "."]);
        drop(fs::remove_file(path(&daemon, "made.txt")));
        turn(
            &daemon,
            &[ran(
                "sed -i s/two/2/ a.txt; rm gone.txt; echo new > made.txt",
            )],
        );
        number += 1;
        let ask = DiffFiles {
            turn: Some(number.to_string()),
            ..DiffFiles::default()
        };
        let diff = daemon.block(daemon.client().diff("coder", &ask)).unwrap();
        (diff.files.len() == 3).then_some(diff)
    });
    let [edited, gone, made] = diff.files.as_slice() else {
        panic!("{diff:#?}");
    };
    assert!(diff.files.iter().all(|file| file.by == ChangeBy::Command));
    let lines = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n";
    assert_eq!(edited.diff.as_deref(), Some(lines));
    // Unless git told in time that the file was clean, the user may have had other lines there.
    if let Some(note) = &edited.note {
        assert!(note.contains("git's copy"), "{note}");
    }
    assert_eq!((gone.change, gone.removed), (DiffChange::Deleted, 1));
    assert!(gone.diff.as_ref().unwrap().contains("-gone\n"));
    assert_eq!((made.change, made.added), (DiffChange::Created, 0));
    assert_eq!(made.note.as_deref(), Some("git does not have it"));
}

/// `rewind --files`, then `reset --undo`: the conversation is the one before the rewind, the files are not.
#[test]
fn after_an_undo_the_model_is_told_which_files_were_restored() {
    let daemon = coder();
    turn(&daemon, &[wrote("a.txt", "one\n")]);
    turn(&daemon, &[wrote("b.txt", "two\n")]);
    let client = daemon.client();
    let back = Rewind {
        to: "1".to_owned(),
        ..Rewind::default()
    };
    let rewound = daemon.block(client.rewind("coder", &back)).unwrap();
    let ask = RestoreFiles {
        conversation: Some(rewound.old),
        ..to("1")
    };
    restore(&daemon, &ask);
    assert_eq!(read(&daemon, "b.txt"), None);
    let told = |words: &str| {
        let request = daemon.requests().last().unwrap().body.to_string();
        request.matches(words).count()
    };
    let words = "While this conversation was not the current one, the user restored files";
    for direction in [Direction::Undo, Direction::Redo, Direction::Undo] {
        let step = Reset {
            step: Some(direction),
            ..Reset::default()
        };
        daemon.block(client.reset("coder", &step)).unwrap();
    }
    daemon.completed("coder", "do: say here");
    // Once, although it became the current one twice.
    assert_eq!(told(words), 1);
    assert!(told("b.txt. Read a file again") > 0);
}
