//! The history of files: what is kept, restores and their undo, scans.

use crate::event::*;
use crate::fixture::{Journal, turn};
use crate::id::{BootId, CallId, OpId, Seq, TaskId};
use crate::state::{AgentState, Unscanned};
use uuid::Uuid;

fn op(n: u128) -> OpId {
    OpId::new(Uuid::from_u128(n))
}

fn started(task: Option<TaskId>, kept_bytes: u64) -> ToolStarted {
    ToolStarted {
        call: CallId::new("a"),
        tool: "shell".to_owned(),
        task,
        boot: None,
        change: Some(FileChange {
            file: None,
            before: None,
            after: "hash".to_owned(),
            kept_bytes,
            is_private: false,
        }),
        patched: Vec::new(),
        may_change_files: false,
    }
}

fn began(n: u128, undo_of: Option<OpId>) -> FilesRestoreBegan {
    FilesRestoreBegan {
        op: op(n),
        undo_of,
        to: None,
        to_in: None,
        files: 1,
        kept_bytes: 5,
    }
}

fn ended(n: u128, outcome: RestoreOutcome) -> FilesRestoreEnded {
    FilesRestoreEnded {
        op: op(n),
        outcome,
        restored: 1,
        failed: 0,
    }
}

fn undo_stack(state: &AgentState) -> Vec<OpId> {
    state.files.undo_stack().map(|restore| restore.op).collect()
}

#[test]
fn what_is_kept_is_counted_and_a_purge_of_files_purges_no_conversation() {
    let mut journal = Journal::new();
    journal.start_turn(1);
    journal.push(started(None, 10));
    journal.push(started(None, 20));
    assert_eq!(journal.state().files.kept_bytes, 30);
    let conversation = journal.conversation;
    let files = FilesPurged {
        through: Seq(7),
        bytes: 10,
    };
    journal.push(Purged {
        files: Some(files),
        ..Purged::conversation(conversation, 1)
    });
    let state = journal.state();
    assert_eq!(
        (state.files.kept_bytes, state.files.purged_through),
        (20, Seq(7))
    );
    assert!(!state.tree.get(conversation).unwrap().purged);
    journal.push(Purged {
        kept_bytes: 20,
        ..Purged::conversation(conversation, 1)
    });
    let state = journal.state();
    assert_eq!(state.files.kept_bytes, 0);
    assert!(state.tree.get(conversation).unwrap().purged);
    assert_eq!(state.anomalies, 0);
}

#[test]
fn a_turn_that_ran_a_command_is_scanned_once_also_if_the_scan_was_purged() {
    let mut journal = Journal::new();
    journal.start_turn(1);
    journal.push(started(None, 0));
    journal.end_turn(TurnStatus::Completed);
    assert_eq!(journal.state().files.unscanned, None);
    journal.start_turn(2);
    journal.push(started(Some(TaskId::new(Uuid::from_u128(1))), 0));
    assert_eq!(journal.state().files.unscanned, None);
    journal.end_turn(TurnStatus::Interrupted);
    let unscanned = journal.state().files.unscanned.unwrap();
    assert_eq!(unscanned.turn, turn(2));
    assert!(unscanned.since.began <= unscanned.ended);
    assert_eq!(unscanned.since.from, unscanned.since.began);
    let found = Scan::Unknown {
        why: ScanProblem::NoGit,
    };
    let scanned = FilesScanned {
        turn: turn(2),
        found,
    };
    for body in [scanned.into(), Body::Gone(Kind::FilesScanned)] {
        let mut journal = journal.clone();
        journal.push(body);
        let state = journal.state();
        assert_eq!((state.files.unscanned, state.anomalies), (None, 0));
    }
}

/// A turn that leaves a background command running, with its scan.
fn left_running(journal: &mut Journal) -> TaskId {
    let task = TaskId::new(Uuid::from_u128(7));
    journal.start_turn(1);
    journal.push(started(Some(task), 0));
    journal.push(TaskStarted {
        task,
        call: CallId::new("a"),
        tool: "shell".to_owned(),
        boot: BootId::new(Uuid::from_u128(2)),
    });
    journal.at = journal.at.plus(10);
    journal.end_turn(TurnStatus::Completed);
    assert_eq!(journal.state().files.background, None);
    scan(journal, 1);
    task
}

fn scan(journal: &mut Journal, n: u128) {
    let (files, more) = (Vec::new(), 0);
    journal.push(FilesScanned {
        turn: turn(n),
        found: Scan::Known { files, more },
    });
}

/// A turn that runs no command, and the scan that is due after it.
fn plain_turn(journal: &mut Journal, n: u128) -> Option<Unscanned> {
    journal.at = journal.at.plus(10);
    journal.start_turn(n);
    journal.at = journal.at.plus(10);
    journal.end_turn(TurnStatus::Completed);
    journal.state().files.unscanned
}

fn task_ended(task: TaskId) -> TaskEnded {
    TaskEnded::by_itself(task, TaskExit::Code { code: 0 })
}

#[test]
fn while_a_background_command_runs_each_turn_is_scanned_from_the_last_scan_on() {
    let mut journal = Journal::new();
    let task = left_running(&mut journal);
    let first = journal.state().files.background.unwrap();
    assert_eq!((first.turn, first.since), (turn(1), journal.at));
    let unscanned = plain_turn(&mut journal, 2).unwrap();
    assert_eq!(unscanned.since.from, first.since);
    assert!(unscanned.since.from < unscanned.since.began);
    assert!(unscanned.leaves_tasks);
    scan(&mut journal, 2);
    assert_eq!(journal.state().files.background.unwrap().turn, turn(2));
    // It ends between two turns: what it changed before its end is found by one more scan.
    journal.push(task_ended(task));
    let unscanned = plain_turn(&mut journal, 3).unwrap();
    assert!(!unscanned.leaves_tasks);
    scan(&mut journal, 3);
    assert_eq!(journal.state().files.background, None);
    assert_eq!(plain_turn(&mut journal, 4), None);
    assert_eq!(journal.state().anomalies, 0);
}

/// The command may have changed something after git had looked, and ended before that was recorded.
#[test]
fn a_background_command_that_ended_before_the_scan_was_recorded_is_scanned_again() {
    let mut journal = Journal::new();
    let task = TaskId::new(Uuid::from_u128(7));
    left_running(&mut journal);
    plain_turn(&mut journal, 2).unwrap();
    journal.push(task_ended(task));
    scan(&mut journal, 2);
    assert!(journal.state().files.background.is_some());
    assert!(plain_turn(&mut journal, 3).is_some());
}

#[test]
fn a_turn_that_is_not_shown_leaves_the_changes_of_background_commands_to_the_next_one() {
    let mut journal = Journal::new();
    left_running(&mut journal);
    let before = journal.state().files.background;
    journal.start_turn(2);
    journal.push(TurnEnded {
        withdrawn: true,
        ..TurnEnded::with(TurnStatus::Interrupted)
    });
    journal.turn = None;
    let files = journal.state().files;
    assert_eq!((files.unscanned, files.background), (None, before));
    assert!(plain_turn(&mut journal, 3).is_some());
}

#[test]
fn a_call_that_may_change_files_like_a_command_is_scanned() {
    for may_change_files in [true, false] {
        let mut journal = Journal::new();
        journal.start_turn(1);
        journal.push(ToolStarted {
            may_change_files,
            ..ToolStarted::new(CallId::new("a"), "mcp__files__put".to_owned())
        });
        journal.end_turn(TurnStatus::Completed);
        let is_due = journal.state().files.unscanned.is_some();
        assert_eq!(is_due, may_change_files);
    }
}

#[test]
fn restores_are_undone_from_the_newest_and_a_conflict_leaves_nothing_to_undo() {
    let mut journal = Journal::new();
    for (n, outcome) in [
        (1, RestoreOutcome::Done),
        (2, RestoreOutcome::Conflict),
        (3, RestoreOutcome::Failed),
    ] {
        let event = journal.push(began(n, None));
        let restoring = journal.state().files.restoring.unwrap();
        assert_eq!((restoring.op, restoring.seq), (op(n), event.seq));
        journal.push(ended(n, outcome));
        assert_eq!(journal.state().files.restoring, None);
    }
    assert_eq!(undo_stack(&journal.state()), [op(3), op(1)]);
    journal.push(began(4, Some(op(3))));
    journal.push(ended(4, RestoreOutcome::Done));
    let state = journal.state();
    assert_eq!(undo_stack(&state), [op(1)]);
    assert_eq!((state.files.kept_bytes, state.anomalies), (20, 0));
    // One that never began.
    journal.push(ended(9, RestoreOutcome::Done));
    assert_eq!(journal.state().anomalies, 1);
}

#[test]
fn the_model_must_read_a_restored_file_again() {
    let mut journal = Journal::new();
    journal.start_turn(1);
    let seen = ["/a", "/b"].map(|path| FileSeen {
        file: FileSeen::file_of(path.as_bytes()),
        content: "hash".to_owned(),
    });
    journal.push(ToolEnded {
        seen: seen.to_vec(),
        ..ToolEnded::new(CallId::new("a"), crate::message::CallOutcome::Ok)
    });
    journal.push(FilesRestored {
        op: op(1),
        files: vec![RestoredFile {
            path: "/a".to_owned(),
            outcome: RestoredOutcome::Restored,
        }],
    });
    let window = journal.window();
    let known = seen.map(|seen| window.seen_files().content_of(&seen.file).is_some());
    assert_eq!(known, [false, true]);
}
