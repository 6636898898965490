//! What commands changed, and where a restore finds the earlier content. Restores of changes by tools are tested on random
//! histories in the test kit.

use super::*;
use crate::digest::sha256;
use crate::event::{
    Body, FileBefore, FileChange, FileKept, FileSeen, FileState, FilesPlan, FilesRestored,
    FilesScanned, KeptBy, KeptContent, Kind, Oid, PatchedFile, PlannedFile, Position,
    RestoreTarget, RestoredFile, RestoredOutcome, Scan, ScanProblem, ScannedChange, ScannedFile,
    ToolEnded, ToolStarted, TurnStatus,
};
use crate::fixture::{self, Journal};
use crate::id::{CallId, OpId, Seq, TaskId};
use crate::message::CallOutcome;
use std::collections::BTreeMap;

mod left_by_restores;
mod must_ask;

const PATH: &str = "/src/a";

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
        link: false,
        mode_before: None,
        unsure: false,
        git_before: None,
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
            file: None,
            before: before.map(str::to_owned),
            after: after.to_owned(),
            kept_bytes: 1,
            is_private: false,
        }),
        patched: Vec::new(),
        may_change_files: false,
    });
    journal.push(ToolEnded::new(call, CallOutcome::Ok));
    journal.end_turn(TurnStatus::Completed);
}

fn plan(journal: &Journal, to: Seq) -> RestorePlan {
    let history = History::of(&journal.events);
    restore(&history, history.own(to), &Selection::default())
}

/// The scan of a turn is recorded after its end, but belongs to the turn.
#[test]
fn what_the_commands_of_a_turn_changed_is_before_its_end() {
    let mut journal = Journal::new();
    let modified = known(scanned(ScannedChange::Modified, Some("new")));
    let end = commands(&mut journal, 1, modified);
    let after = plan(&journal, end);
    assert_eq!((after.wanted.len(), after.not_restored.len()), (0, 0));
    assert_eq!(after.unchanged.len(), 1);
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
        before: None,
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

/// An earlier change left a content that is not known: what git has may be older.
#[test]
fn after_a_change_that_left_something_unknown_git_is_not_trusted() {
    let command = || known(scanned(ScannedChange::Modified, Some("command")));
    let why = |journal: &Journal, to| {
        let found = plan(journal, to);
        assert_eq!(found.wanted, []);
        let of_path = found.not_restored.into_iter();
        let mut of_path = of_path.filter(|it| it.path.is_some());
        of_path.next().map(|it| it.why)
    };
    // A scan that could not read the file.
    let mut journal = Journal::new();
    let unread = known(scanned(ScannedChange::Modified, None));
    let end = commands(&mut journal, 1, unread);
    commands(&mut journal, 2, command());
    assert_eq!(why(&journal, end), Some(CannotRestore::NotInGit));
    // A call of which it is not known whether it was made; an older one is.
    let mut journal = Journal::new();
    wrote(&mut journal, 1, Some("old"), "tool");
    journal.start_turn(2);
    patched(&mut journal, &[(PATH, Some("tool"), Some("other"))], 0);
    journal.end_turn(TurnStatus::Completed);
    let end = journal.head();
    commands(&mut journal, 3, command());
    assert_eq!(why(&journal, end), Some(CannotRestore::NotInGit));
}

/// The user changed the file between two calls, so what is there is not only the agent's.
#[test]
fn what_something_else_changed_between_two_calls_is_a_conflict() {
    let mut journal = Journal::new();
    wrote(&mut journal, 1, None, "one");
    wrote(&mut journal, 2, Some("one"), "two");
    let left = [Left::Content("two".to_owned())];
    assert_eq!(plan(&journal, Seq::ZERO).wanted[0].expected, left);
    let end = journal.head();
    let of_user = |journal: &mut Journal| wrote(journal, 4, Some("of the user"), "three");
    let mut other = journal.clone();
    of_user(&mut other);
    assert_eq!(plan(&other, Seq::ZERO).wanted[0].expected, []);
    // After the change of the user, all changes are the agent's.
    let left = [Left::Content("three".to_owned())];
    assert_eq!(plan(&other, end).wanted[0].expected, left);
    // It may have been a command.
    command(&mut journal, 3);
    of_user(&mut journal);
    assert_eq!(plan(&journal, Seq::ZERO).wanted[0].expected, left);
}

#[test]
fn a_symlink_that_a_command_left_is_known_by_its_target() {
    let mut journal = Journal::new();
    let link = ScannedFile {
        link: true,
        ..scanned(ScannedChange::TypeChanged, Some(&sha256(b"target")))
    };
    commands(&mut journal, 1, known(link));
    let found = plan(&journal, Seq::ZERO);
    let now = FileState::Symlink {
        target: "target".to_owned(),
    };
    assert!(found.wanted[0].expected[0].is(&now));
}

/// A turn that runs a command.
fn command(journal: &mut Journal, n: u128) {
    journal.start_turn(n);
    journal.push(ToolStarted {
        call: CallId::new("command"),
        tool: "shell".to_owned(),
        task: Some(TaskId::new(uuid::Uuid::from_u128(7))),
        boot: None,
        change: None,
        patched: Vec::new(),
        may_change_files: false,
    });
    journal.end_turn(TurnStatus::Completed);
}

/// A scan that has not been made yet, or that was purged.
#[test]
fn commands_without_the_record_of_a_scan_are_a_gap() {
    let mut journal = Journal::new();
    command(&mut journal, 1);
    let why = |journal: &Journal| {
        let found = plan(journal, Seq::ZERO).not_restored.into_iter();
        let found = found.map(|it| (it.turn, it.why));
        found.collect::<Vec<_>>()
    };
    let turn = fixture::turn(1);
    let unknown = [(Some(turn), CannotRestore::NotScanned)];
    assert_eq!(why(&journal), unknown);
    let files = Vec::new();
    let found = Scan::Known { files, more: 0 };
    journal.push(FilesScanned { turn, found });
    assert_eq!(why(&journal), []);
    let last = journal.events.last_mut().unwrap();
    last.body = Body::Gone(Kind::FilesScanned);
    assert_eq!(why(&journal), unknown);
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
            not_restored: None,
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

/// A patch that changes these files. Of `lost` of them, from the front, the kept content was purged.
fn patched(journal: &mut Journal, files: &[(&str, Option<&str>, Option<&str>)], lost: usize) {
    let call = CallId::new("patch");
    for (path, before, _) in &files[lost..] {
        let before = match before {
            None => FileBefore::Absent,
            Some(hash) => FileBefore::File {
                mode: 0o644,
                size: 1,
                hash: (*hash).to_owned(),
                content: KeptContent::Text {
                    text: "x".to_owned(),
                },
            },
        };
        journal.push(FileKept {
            by: KeptBy::Call { call: call.clone() },
            path: (*path).to_owned(),
            before,
            part: 0,
            parts: 1,
        });
    }
    let patched = files.iter().map(|(path, before, after)| PatchedFile {
        file: Some(FileSeen::file_of(path.as_bytes())),
        before: before.map(str::to_owned),
        after: after.map(str::to_owned),
        kept_bytes: 0,
        is_private: false,
    });
    journal.push(ToolStarted {
        call: call.clone(),
        tool: "apply_patch".to_owned(),
        task: None,
        boot: None,
        change: None,
        patched: patched.collect(),
        may_change_files: false,
    });
    journal.push(ToolEnded::new(call, CallOutcome::Unknown));
}

/// The tool removed the file, and what it was is no longer kept. The absence that a later call found is not what the file
/// was before.
#[test]
fn a_deletion_whose_content_was_purged_is_not_forgotten() {
    let mut journal = Journal::new();
    journal.start_turn(1);
    patched(&mut journal, &[(PATH, Some("old"), None)], 1);
    journal.end_turn(TurnStatus::Completed);
    let end = journal.head();
    wrote(&mut journal, 2, None, "new");
    let found = plan(&journal, Seq::ZERO);
    assert_eq!(found.wanted, []);
    let [not_restored] = found.not_restored.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(not_restored.path.as_deref(), Some(PATH));
    assert_eq!(not_restored.why, CannotRestore::NoLongerKept);
    // What the later call found is what the file was between them.
    assert_eq!(plan(&journal, end).wanted.len(), 1);
}

/// Two files had the same content, and the first one's was purged: what is left belongs to the second.
#[test]
fn what_is_left_of_a_call_belongs_to_its_own_path() {
    let mut journal = Journal::new();
    journal.start_turn(1);
    let files = [
        ("/src/a", Some("same"), Some("of a")),
        ("/src/b", Some("same"), Some("of b")),
    ];
    patched(&mut journal, &files, 1);
    journal.end_turn(TurnStatus::Completed);
    let history = History::of(&journal.events);
    let [change] = history.changes() else {
        panic!("{history:?}");
    };
    assert_eq!(change.path, "/src/b");
    assert_eq!(change.after, Left::Content("of b".to_owned()));
    let lost = history.lost().iter().flat_map(|lost| &lost.files);
    let lost: Vec<&LostFile> = lost.collect();
    assert_eq!(
        lost,
        [&LostFile {
            file: Some(FileSeen::file_of(b"/src/a")),
            path: None,
            after: Left::Content("of a".to_owned()),
        }]
    );
}

/// Of two files that a restore replaced, only one's earlier state is still kept.
#[test]
fn an_undo_names_each_path_whose_state_was_purged() {
    let mut journal = Journal::new();
    let op = OpId::new(uuid::Uuid::from_u128(9));
    let state = |hash: &str| FileState::File {
        mode: 0o644,
        hash: hash.to_owned(),
    };
    let planned = |path: &str| PlannedFile {
        path: path.to_owned(),
        target: RestoreTarget::Git {
            oid: oid("1"),
            mode: 0o100_644,
            hash: "old".to_owned(),
        },
        expected: state("new"),
    };
    let files = vec![planned("/src/a"), planned("/src/b")];
    journal.push(FilesPlan {
        op,
        files,
        not_restored: None,
    });
    journal.push(FileKept {
        by: KeptBy::Restore { op },
        path: "/src/b".to_owned(),
        before: FileBefore::Absent,
        part: 0,
        parts: 1,
    });
    let restored = ["/src/a", "/src/b"].map(|path| RestoredFile {
        path: path.to_owned(),
        outcome: RestoredOutcome::Restored,
    });
    let files = restored.to_vec();
    journal.push(FilesRestored { op, files });
    // A restore to an earlier position does not take a later state for what the purged path was.
    let earlier = plan(&journal, Seq::ZERO).not_restored;
    assert_eq!(earlier[0].why, CannotRestore::NoLongerKept);
    let found = undo(&History::of(&journal.events), op, &Selection::default());
    let wanted: Vec<&str> = found.wanted.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(wanted, ["/src/b"]);
    let not_restored = found.not_restored.iter();
    let not_restored: Vec<_> = not_restored
        .map(|it| (it.path.as_deref(), it.why))
        .collect();
    assert_eq!(
        not_restored,
        [(Some("/src/a"), CannotRestore::NoLongerKept)]
    );
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

/// No change is recorded after the position, so what is on disk must be what the last one left.
#[test]
fn a_path_that_was_not_changed_since_is_compared_with_the_disk() {
    let mut journal = Journal::new();
    wrote(&mut journal, 1, Some("zero"), "one");
    let found = |hash: &str| work::Found::Known {
        state: FileState::File {
            mode: 0o644,
            hash: hash.to_owned(),
        },
        size: 1,
        not_kept: None,
    };
    let compared = |journal: &Journal, found: &work::Found| {
        let plan = plan(journal, journal.head());
        let [unchanged] = plan.unchanged.as_slice() else {
            panic!("{plan:?}");
        };
        (unchanged.compare(Some(found)), unchanged.target.clone())
    };
    assert_eq!(compared(&journal, &found("one")).0, ComparedUnchanged::Same);
    // The content that the call wrote is kept nowhere.
    let changed = (ComparedUnchanged::Changed, None);
    assert_eq!(compared(&journal, &found("of the user")), changed);
    let directory = work::Found::Other {
        what: "a directory".to_owned(),
    };
    let compared_dir = compared(&journal, &directory).0;
    assert!(matches!(compared_dir, ComparedUnchanged::NotAFile(_)));
    // A later call keeps it, and the one after that writes it again.
    wrote(&mut journal, 2, Some("one"), "two");
    wrote(&mut journal, 3, Some("two"), "one");
    let (is, target) = compared(&journal, &found("of the user"));
    assert_eq!(is, ComparedUnchanged::Changed);
    assert!(matches!(
        target,
        Some(Target::Kept { state: FileState::File { hash, .. }, .. }) if hash == "one"
    ));
    // What the commands of a later turn changed is not known: it may have been them.
    let why = ScanProblem::NoGit;
    commands(&mut journal, 4, Scan::Unknown { why });
    let (is, _) = compared(&journal, &found("of a command"));
    assert_eq!(is, ComparedUnchanged::NotChecked);
    assert_eq!(compared(&journal, &found("one")).0, ComparedUnchanged::Same);
}

/// A large file is not read to the end by a scan.
#[test]
fn what_a_scan_did_not_read_is_not_said_to_be_changed_by_something_else() {
    let mut journal = Journal::new();
    let unread = known(scanned(ScannedChange::Modified, None));
    commands(&mut journal, 1, unread);
    let found = plan(&journal, Seq::ZERO);
    assert!(!found.wanted[0].is_left_known());
}

#[test]
fn permission_bits_that_a_command_changed_are_restored_without_a_kept_content() {
    let mut journal = Journal::new();
    wrote(&mut journal, 1, None, "tool");
    let end = journal.head();
    let chmod = ScannedFile {
        head: None,
        index: None,
        mode_before: Some(0o640),
        ..scanned(ScannedChange::Added, Some("tool"))
    };
    commands(&mut journal, 2, known(chmod));
    let found = plan(&journal, end);
    assert_eq!(found.not_restored, []);
    let mode = Target::Mode {
        mode: 0o640,
        hash: "tool".to_owned(),
    };
    assert_eq!(found.wanted[0].target, mode);
}

/// The events of a fork are numbered from 1 again, and come after those that it shares.
#[test]
fn a_fork_goes_on_with_the_history_of_its_parent() {
    let mut parent = Journal::new();
    wrote(&mut parent, 1, None, "one");
    let end = parent.head();
    wrote(&mut parent, 2, Some("one"), "two");
    let through = parent.head();
    // After the branch point.
    wrote(&mut parent, 3, Some("two"), "three");
    let mut fork = Journal::new();
    fork.agent = fixture::agent(2);
    wrote(&mut fork, 4, Some("two"), "mine");
    let mut history = History::default();
    let shared = parent.events.iter().filter(|it| it.seq <= through);
    shared.for_each(|event| history.apply(event));
    history.end_inherited(parent.agent, through);
    fork.events.iter().for_each(|event| history.apply(event));
    let place = |seq| Position {
        agent: parent.agent,
        seq,
    };
    let target = |to: Order| {
        let plan = restore(&history, to, &Selection::default());
        let [wanted] = plan.wanted.as_slice() else {
            panic!("{plan:?}");
        };
        assert_eq!(wanted.expected, [Left::Content("mine".to_owned())]);
        match &wanted.target {
            Target::Kept {
                at,
                state: FileState::File { hash, .. },
                ..
            } => (at.agent, hash.clone()),
            other => panic!("{other:?}"),
        }
    };
    let shared = history.order(place(end)).unwrap();
    assert_eq!(target(shared), (parent.agent, "one".to_owned()));
    let beginning = history.own(Seq::ZERO);
    assert_eq!(target(beginning), (fork.agent, "two".to_owned()));
    assert_eq!(history.order(place(parent.head())), None);
    // What the parent changed after the branch point is not a change of the fork.
    assert_eq!(history.changes().len(), 3);
}

/// The scan of a turn is recorded after its end, which is the branch point.
#[test]
fn a_fork_knows_what_commands_of_its_last_shared_turn_changed() {
    let mut parent = Journal::new();
    command(&mut parent, 1);
    let through = parent.head();
    let turn = fixture::turn(1);
    let found = known(scanned(ScannedChange::Modified, Some("new")));
    let scan = parent.push(FilesScanned { turn, found });
    let of_fork = |is_scanned: bool| {
        let mut history = History::default();
        let shared = parent.events.iter().filter(|it| it.seq <= through);
        shared.for_each(|event| history.apply(event));
        assert!(history.is_open());
        if is_scanned {
            history.apply_late(&scan);
        }
        history.end_inherited(parent.agent, through);
        (history.changes().len(), history.gaps().len())
    };
    assert_eq!(of_fork(true), (1, 0));
    assert_eq!(of_fork(false), (0, 1));
}

/// The kept contents of a patch were purged. Other changes, or the arguments of the call, tell the paths.
#[test]
fn what_was_purged_is_listed_with_its_path_and_turn() {
    let mut journal = Journal::new();
    journal.start_turn(1);
    let files = [
        ("/src/a", Some("old"), Some("of a")),
        ("/src/b", Some("old"), Some("of b")),
    ];
    patched(&mut journal, &files, 2);
    journal.end_turn(TurnStatus::Completed);
    let mut history = History::of(&journal.events);
    let listed = |history: &History| {
        let plan = restore(history, Order::BEGINNING, &Selection::default());
        let listed = plan.not_restored.into_iter();
        let listed = listed.map(|it| {
            assert_eq!(it.why, CannotRestore::NoLongerKept);
            (it.path, it.turn)
        });
        listed.collect::<Vec<_>>()
    };
    let turn = Some(fixture::turn(1));
    assert_eq!(listed(&history), [(None, turn)]);
    let started = history.unnamed().next().unwrap().event;
    let input =
        "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** Delete File: b\n*** End Patch";
    let arguments = serde_json::json!({ "input": input });
    let paths = paths_of_call("apply_patch", arguments.as_object().unwrap());
    assert_eq!(paths, ["a", "b"]);
    let paths: Vec<String> = paths
        .iter()
        .map(|path| Selection::absolute("/src", path))
        .collect();
    history.name_by_call(started, &paths);
    let path = |name: &str| Some(format!("/src/{name}"));
    assert_eq!(listed(&history), [(path("a"), turn), (path("b"), turn)]);
    assert_eq!(history.unnamed().count(), 0);
    let only = Selection::new("/src", &["b".to_owned()]);
    let plan = restore(&history, Order::BEGINNING, &only);
    assert_eq!(plan.not_restored.len(), 1);
    // A later change of the same path, which is kept, tells it too.
    patched(&mut journal, &[("/src/a", Some("of a"), Some("newer"))], 0);
    let mut history = History::of(&journal.events);
    history.name_by_changes();
    let names = history.lost().iter().flat_map(|lost| &lost.files);
    let names: Vec<_> = names.map(|file| file.path.clone()).collect();
    assert_eq!(names, [path("a"), None]);
}
