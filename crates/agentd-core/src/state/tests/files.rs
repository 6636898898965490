//! The history of files: what is kept, restores and their undo, scans.

use crate::event::*;
use crate::fixture::{Journal, turn};
use crate::id::{CallId, OpId, Seq, TaskId};
use crate::state::AgentState;
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
        }),
        patched: Vec::new(),
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
    assert!(unscanned.since <= unscanned.ended);
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
