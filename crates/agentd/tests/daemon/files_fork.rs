//! The files of a fork: it shares the history of its parent up to the branch point, and no more.

use crate::files_fixture::*;
use crate::test_daemon::TestDaemon;
use agentd_client::api::{
    DiffChange, DiffFiles, FilesDiff, FilesOutcome, FilesQuery, Fork, RestoredFiles, UndoFiles,
};
use agentd_client::{Error, Kind as ProblemKind};
use agentd_core::event::Kind;
use agentd_core::id::TurnId;

fn fork(daemon: &TestDaemon, at: Option<&str>) {
    let ask = Fork {
        name: Some("other".to_owned()),
        at: at.map(str::to_owned),
        ..Fork::default()
    };
    daemon.block(daemon.client().fork("coder", &ask)).unwrap();
}

/// The ids of the turns that have ended.
fn turns(daemon: &TestDaemon) -> Vec<TurnId> {
    let events = daemon.events("coder").into_iter();
    let ended = events.filter(|event| event.kind() == Kind::TurnEnded);
    ended.filter_map(|event| event.turn).collect()
}

fn restore_fork(daemon: &TestDaemon, place: &str) -> RestoredFiles {
    let client = daemon.client();
    daemon
        .block(client.restore_files("other", &to(place)))
        .unwrap()
}

fn diff_fork(daemon: &TestDaemon, ask: &DiffFiles) -> FilesDiff {
    daemon.block(daemon.client().diff("other", ask)).unwrap()
}

#[test]
fn a_fork_restores_files_to_turns_that_it_shares() {
    let daemon = coder();
    turn(&daemon, &[wrote("a.txt", "one\n")]);
    turn(&daemon, &[wrote("a.txt", "two\n")]);
    fork(&daemon, None);
    let shared = turns(&daemon);
    let first = shared[0].to_string();
    let done = restore_fork(&daemon, &first);
    assert_eq!(done.outcome, FilesOutcome::Done, "{done:#?}");
    assert_eq!(text(&daemon, "a.txt"), "one\n");
    let client = daemon.client();
    let undone = daemon.block(client.undo_files("other", &UndoFiles::default()));
    let undone = undone.unwrap();
    assert_eq!(undone.outcome, FilesOutcome::Done, "{undone:#?}");
    assert_eq!(text(&daemon, "a.txt"), "two\n");
    // Neither is a change of the parent.
    assert_eq!(daemon.count("coder", Kind::FilesRestoreBegan), 0);
    assert_eq!(daemon.count("other", Kind::FilesRestoreBegan), 2);
    daemon.verify();
}

#[test]
fn a_fork_shows_what_the_turns_that_it_shares_changed() {
    let daemon = coder();
    turn(&daemon, &[wrote("a.txt", "one\n")]);
    turn(&daemon, &[wrote("b.txt", "two\n")]);
    turn(&daemon, &[wrote("c.txt", "three\n")]);
    fork(&daemon, Some("2"));
    let all = diff_fork(&daemon, &DiffFiles::default());
    let names: Vec<&str> = all.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["a.txt", "b.txt"]);
    assert!(all.files.iter().all(|it| it.change == DiffChange::Created));
    let ids = turns(&daemon);
    let of_turn = |n: usize| DiffFiles {
        turn: Some(ids[n].to_string()),
        ..DiffFiles::default()
    };
    let first = diff_fork(&daemon, &of_turn(0));
    assert_eq!((first.files.len(), first.added), (1, 1));
    // The third turn is after the branch point.
    let third = daemon.block(daemon.client().diff("other", &of_turn(2)));
    let Err(Error::Problem(problem)) = third else {
        panic!("{third:?}");
    };
    assert_eq!(problem.kind, ProblemKind::NotFound);
    let client = daemon.client();
    let listed = daemon.block(client.files("other", &FilesQuery::default()));
    assert_eq!(listed.unwrap().files.len(), 2);
}

#[test]
fn what_the_parent_changed_after_the_fork_is_a_conflict() {
    let daemon = coder();
    turn(&daemon, &[wrote("a.txt", "one\n")]);
    fork(&daemon, None);
    turn(&daemon, &[wrote("a.txt", "of the parent\n")]);
    let first = turns(&daemon)[0].to_string();
    for place in [first.as_str(), "init"] {
        let done = restore_fork(&daemon, place);
        assert_eq!(done.outcome, FilesOutcome::Conflict, "{place}: {done:#?}");
    }
    assert_eq!(text(&daemon, "a.txt"), "of the parent\n");
    // The parent can take its own change back: then there is no conflict.
    restore(&daemon, &to("1"));
    let done = restore_fork(&daemon, &first);
    assert_eq!(done.outcome, FilesOutcome::Unchanged, "{done:#?}");
    assert_eq!(text(&daemon, "a.txt"), "one\n");
}
