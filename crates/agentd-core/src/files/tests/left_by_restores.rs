//! A scan because of background commands, after a restore.

use super::*;

/// The file `PATH` is restored from the content `now` to this one.
fn restored(journal: &mut Journal, now: &str, target: FileState) {
    let op = OpId::new(uuid::Uuid::from_u128(9));
    let expected = FileState::File {
        mode: 0o644,
        hash: now.to_owned(),
    };
    let at = Position {
        agent: fixture::agent(1),
        seq: Seq(1),
    };
    journal.push(FilesPlan {
        op,
        files: vec![PlannedFile {
            path: PATH.to_owned(),
            target: RestoreTarget::Kept {
                at,
                state: Some(target),
            },
            expected,
        }],
        not_restored: None,
    });
    journal.push(FileKept {
        by: KeptBy::Restore { op },
        path: PATH.to_owned(),
        before: FileBefore::File {
            mode: 0o644,
            size: 1,
            hash: now.to_owned(),
            content: KeptContent::Text {
                text: "x".to_owned(),
            },
        },
        part: 0,
        parts: 1,
    });
    let files = vec![RestoredFile {
        path: PATH.to_owned(),
        outcome: RestoredOutcome::Restored,
    }];
    journal.push(FilesRestored { op, files });
}

fn content(hash: &str) -> FileState {
    FileState::File {
        mode: 0o644,
        hash: hash.to_owned(),
    }
}

fn unsure(file: ScannedFile) -> Scan {
    known(ScannedFile {
        unsure: true,
        ..file
    })
}

fn changes(journal: &Journal) -> usize {
    History::of(&journal.events).changes().len()
}

#[test]
fn what_a_restore_wrote_is_not_a_change_by_background_commands() {
    let target = "other".to_owned();
    let link = ScannedFile {
        link: true,
        ..scanned(ScannedChange::TypeChanged, Some(&sha256(target.as_bytes())))
    };
    for (state, found) in [
        (
            content("old"),
            scanned(ScannedChange::Modified, Some("old")),
        ),
        (FileState::Absent, scanned(ScannedChange::Deleted, None)),
        (FileState::Symlink { target }, link),
    ] {
        let mut journal = Journal::new();
        wrote(&mut journal, 1, Some("old"), "tool");
        let end = journal.head();
        restored(&mut journal, "tool", state.clone());
        commands(&mut journal, 2, unsure(found));
        assert_eq!(changes(&journal), 2, "{state:?}");
        // Nothing is to be asked: all states of the path are known.
        let found = plan(&journal, end);
        assert!(!found.wanted[0].unsure, "{state:?}");
    }
}

#[test]
fn other_contents_and_changes_that_are_sure_are_changes() {
    let same = || scanned(ScannedChange::Modified, Some("old"));
    let chmod = ScannedFile {
        mode_before: Some(0o644),
        ..same()
    };
    for found in [
        known(same()),
        unsure(scanned(ScannedChange::Modified, Some("other"))),
        unsure(scanned(ScannedChange::Modified, None)),
        unsure(chmod),
    ] {
        let mut journal = Journal::new();
        wrote(&mut journal, 1, Some("old"), "tool");
        restored(&mut journal, "tool", content("old"));
        commands(&mut journal, 2, found.clone());
        assert_eq!(changes(&journal), 3, "{found:?}");
    }
}

/// What the restore left is not the newest state any more.
#[test]
fn after_a_later_change_the_restored_content_is_a_change_again() {
    let same = || unsure(scanned(ScannedChange::Modified, Some("old")));
    let mut journal = Journal::new();
    restored(&mut journal, "tool", content("old"));
    wrote(&mut journal, 1, Some("old"), "tool");
    commands(&mut journal, 2, same());
    assert_eq!(changes(&journal), 3);
    // The content that the call replaced was purged: only the name of its file is left, or nothing.
    for file in [Some(FileSeen::file_of(PATH.as_bytes())), None] {
        let mut journal = Journal::new();
        restored(&mut journal, "tool", content("old"));
        wrote(&mut journal, 1, Some("old"), "tool");
        for event in &mut journal.events {
            match &mut event.body {
                Body::FileKept(kept) if matches!(kept.by, KeptBy::Call { .. }) => {
                    event.body = Body::Gone(Kind::FileKept);
                }
                Body::ToolStarted(started) => {
                    let change = started.change.as_mut().unwrap();
                    change.file.clone_from(&file);
                }
                _ => {}
            }
        }
        commands(&mut journal, 2, same());
        assert_eq!(changes(&journal), 2, "{file:?}");
    }
}
