//! What commands changed, and where a restore finds the earlier content. Restores of changes by tools are tested on random
//! histories in the test kit.

use super::*;
use crate::event::{
    Body, FileBefore, FileChange, FileKept, FileState, FilesPlan, FilesRestored, FilesScanned,
    KeptBy, KeptContent, Kind, Oid, PlannedFile, Position, RestoreTarget, RestoredFile,
    RestoredOutcome, Scan, ScanProblem, ScannedChange, ScannedFile, ToolEnded, ToolStarted,
    TurnStatus,
};
use crate::fixture::{self, Journal};
use crate::id::{CallId, OpId, Seq};
use crate::message::CallOutcome;
use std::collections::BTreeMap;

const PATH: &str = "/work/a";

fn oid(digit: &str) -> Oid {
    Oid::try_from(digit.repeat(40)).unwrap()
}

fn scanned(change: ScannedChange, after: Option<&str>) -> ScannedFile {
    ScannedFile {
        path: PATH.to_owned(),
        change,
        head: Some(oid("1")),
        index: Some(oid("2")),
        mode: 0o100_644,
        after: after.map(str::to_owned),
    }
}

/// A turn whose commands changed these files.
fn commands(journal: &mut Journal, n: u128, found: Scan) -> Seq {
    journal.start_turn(n);
    journal.end_turn(TurnStatus::Completed);
    let end = journal.head();
    let turn = fixture::turn(n);
    journal.push(FilesScanned { turn, found });
    end
}

fn known(file: ScannedFile) -> Scan {
    Scan::Known {
        files: vec![file],
        more: 0,
    }
}

/// A turn in which a tool wrote the file.
fn wrote(journal: &mut Journal, n: u128, before: Option<&str>, after: &str) {
    journal.start_turn(n);
    let call = CallId::new(format!("call{n}"));
    let state = match before {
        None => FileBefore::Absent,
        Some(hash) => FileBefore::File {
            mode: 0o644,
            size: 1,
            hash: hash.to_owned(),
            content: KeptContent::Text {
                text: "x".to_owned(),
            },
        },
    };
    journal.push(FileKept {
        by: KeptBy::Call { call: call.clone() },
        path: PATH.to_owned(),
        before: state,
        part: 0,
        parts: 1,
    });
    journal.push(ToolStarted {
        call: call.clone(),
        tool: "write_file".to_owned(),
        task: None,
        boot: None,
        change: Some(FileChange {
            before: before.map(str::to_owned),
            after: after.to_owned(),
            kept_bytes: 1,
        }),
        patched: Vec::new(),
    });
    journal.push(ToolEnded::new(call, CallOutcome::Ok));
    journal.end_turn(TurnStatus::Completed);
}

fn plan(journal: &Journal, to: Seq) -> RestorePlan {
    let history = History::of(&journal.events);
    restore(&history, to, &Selection::default())
}

/// The scan of a turn is recorded after its end, but belongs to the turn.
#[test]
fn what_the_commands_of_a_turn_changed_is_before_its_end() {
    let mut journal = Journal::new();
    let modified = known(scanned(ScannedChange::Modified, Some("new")));
    let end = commands(&mut journal, 1, modified);
    assert_eq!(plan(&journal, end), RestorePlan::default());
    let before = plan(&journal, Seq(end.0 - 1));
    assert_eq!(before.wanted.len(), 1);
    assert_eq!(before.wanted[0].expected, [Left::Content("new".to_owned())]);
}

#[test]
fn the_index_is_preferred_unless_the_command_has_changed_it() {
    let target = |hash: Option<&str>| Target::Git {
        objects: vec![(oid("2"), 0o100_644), (oid("1"), 0o100_644)],
        hash: hash.map(str::to_owned),
        after: Left::Content("new".to_owned()),
    };
    let hashes = |index: &str, head: &str| {
        BTreeMap::from([(oid("2"), index.to_owned()), (oid("1"), head.to_owned())])
    };
    let chosen = |target: &Target, index: &str, head: &str| {
        let object = target.object(&hashes(index, head));
        object.map(|(oid, _, _)| oid)
    };
    let any = target(None);
    assert_eq!(chosen(&any, "staged", "old"), Some(oid("2")));
    assert_eq!(chosen(&any, "new", "old"), Some(oid("1")));
    // Only its mode was changed.
    assert_eq!(chosen(&any, "new", "new"), Some(oid("2")));
    // The content that a tool had left is known.
    let exact = target(Some("old"));
    assert_eq!(chosen(&exact, "staged", "old"), Some(oid("1")));
    assert_eq!(chosen(&exact, "staged", "other"), None);
}

/// Git has an older content than the one that a tool had left before the command.
#[test]
fn a_content_of_git_is_not_taken_for_what_a_tool_had_left() {
    let mut journal = Journal::new();
    wrote(&mut journal, 1, Some("old"), "tool");
    let end = journal.head();
    let modified = known(scanned(ScannedChange::Modified, Some("command")));
    commands(&mut journal, 2, modified);
    let found = plan(&journal, end);
    let [wanted] = found.wanted.as_slice() else {
        panic!("{found:?}");
    };
    assert!(matches!(&wanted.target, Target::Git { hash: Some(hash), .. } if hash == "tool"));
    // If a later change kept that content, it is there.
    wrote(&mut journal, 3, Some("tool"), "last");
    let found = plan(&journal, end);
    assert!(matches!(
        &found.wanted[0].target,
        Target::Kept { state: FileState::File { hash, .. }, .. } if hash == "tool"
    ));
}

#[test]
fn what_cannot_be_known_is_said_with_its_turn() {
    let mut journal = Journal::new();
    let added = ScannedFile {
        head: None,
        index: None,
        ..scanned(ScannedChange::Added, Some("new"))
    };
    commands(&mut journal, 1, known(added));
    let why = ScanProblem::NoGit;
    commands(&mut journal, 2, Scan::Unknown { why });
    let files = Vec::new();
    commands(&mut journal, 3, Scan::Known { files, more: 7 });
    let found = plan(&journal, Seq::ZERO);
    assert_eq!(found.wanted, []);
    let not_restored = found.not_restored.iter();
    let not_restored = not_restored.map(|it| (it.path.as_deref(), it.turn, it.why));
    assert_eq!(
        not_restored.collect::<Vec<_>>(),
        [
            (Some(PATH), Some(fixture::turn(1)), CannotRestore::NotInGit),
            (None, Some(fixture::turn(2)), CannotRestore::NoGit),
            (None, Some(fixture::turn(3)), CannotRestore::TooMany),
        ]
    );
}

/// What a restore has left is known after the content that it restored was purged, so that its undo is no conflict.
#[test]
fn a_restore_of_a_purged_content_can_be_undone() {
    let restored = |hash: &str| FileState::File {
        mode: 0o644,
        hash: hash.to_owned(),
    };
    for (state, left) in [
        (Some(restored("one")), Left::Content("one".to_owned())),
        (Some(FileState::Absent), Left::Absent),
        (None, Left::Unknown),
    ] {
        let op = OpId::from_bytes([1; 16]);
        let mut journal = Journal::new();
        // The kept content that the plan names.
        let gone = journal.push(Body::Gone(Kind::FileKept));
        journal.push(FilesPlan {
            op,
            files: vec![PlannedFile {
                path: PATH.to_owned(),
                target: RestoreTarget::Kept {
                    at: Position {
                        agent: fixture::agent(1),
                        seq: gone.seq,
                    },
                    state,
                },
                expected: restored("two"),
            }],
        });
        journal.push(FileKept {
            by: KeptBy::Restore { op },
            path: PATH.to_owned(),
            before: FileBefore::File {
                mode: 0o644,
                size: 1,
                hash: "two".to_owned(),
                content: KeptContent::Text {
                    text: "x".to_owned(),
                },
            },
            part: 0,
            parts: 1,
        });
        journal.push(FilesRestored {
            op,
            files: vec![RestoredFile {
                path: PATH.to_owned(),
                outcome: RestoredOutcome::Restored,
            }],
        });
        let history = History::of(&journal.events);
        let plan = undo(&history, op, &Selection::default());
        assert_eq!(plan.wanted[0].expected, [left]);
    }
}

#[test]
fn a_path_is_compared_with_what_is_to_be_there_and_what_was_left() {
    let file = |hash: &str, mode| FileState::File {
        mode,
        hash: hash.to_owned(),
    };
    let left = [Left::Content("left".to_owned())];
    let compared = |now: &FileState| compare(now, &file("target", 0o644), &left);
    assert_eq!(compared(&file("target", 0o644)), Compared::Same);
    assert_eq!(compared(&file("left", 0o755)), Compared::AsLeft);
    for now in [FileState::Absent, file("other", 0o644)] {
        assert_eq!(compared(&now), Compared::Changed);
    }
    // Only the permissions differ from the target.
    assert_eq!(compared(&file("target", 0o600)), Compared::AsLeft);
}
