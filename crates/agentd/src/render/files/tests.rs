//! What an agent changed in files, as lines.

use super::*;
use crate::terminal::seen;
use agentd_client::api::{AgentRef, CannotRestore};
use agentd_core::id::{AgentId, OpId};

#[test]
fn what_cannot_be_restored_has_its_path_and_the_number_of_its_turn() {
    let mut purged = NotRestored::new(
        Some("/home/user/project/a\nb".to_owned()),
        None,
        CannotRestore::NoLongerKept,
    );
    let why = CannotRestore::NoLongerKept.text();
    let path = r#""/home/user/project/a\nb""#;
    assert_eq!(line(&purged), format!("{path}: {why}"));
    purged.turn_number = Some(2);
    assert_eq!(line(&purged), format!("{path}: {why} (turn 2)"));
    purged.path = None;
    assert_eq!(line(&purged), format!("turn 2: {why}"));
}

fn file(name: &str, change: DiffChange) -> FileDiff {
    let path = format!("/home/user/project/{name}");
    FileDiff::new(path, name.to_owned(), ChangeBy::Tool, change)
}

#[test]
fn line_ends_and_control_characters_of_lines_are_visible() {
    let mut file = file("a", DiffChange::Edited);
    let lines = "old mode 100644\nnew mode 120000\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n-a\n+a\r\n+safe\rx\u{1b}[2J\u{202e}\n";
    file.diff = Some(lines.to_owned());
    let shown = of_file(&file);
    let shown: Vec<String> = shown.iter().map(|line| seen(line, false)).collect();
    assert_eq!(shown.len(), 8, "{shown:?}");
    assert_eq!(shown[6], "+a^M");
    assert_eq!(shown[7], "+safe^Mx\\u{1b}[2J\\u{202e}");
    // All lines before the first hunk are the head.
    let heads = of_file(&file);
    let heads = heads
        .iter()
        .filter(|line| line.starts_with(&HEADING.to_string()));
    assert_eq!(heads.count(), 4);
}

#[test]
fn names_in_a_summary_are_quoted_and_unchanged_files_are_not_counted() {
    let mut edited = file("a\nb\u{1b}", DiffChange::Edited);
    edited.added = 1;
    let diff = FilesDiff {
        agent: agent(),
        files: vec![edited, file("same", DiffChange::Unchanged)],
        unknown: Vec::new(),
        added: 1,
        removed: 0,
        subagents: Vec::new(),
    };
    let shown: Vec<String> = stat(&diff).iter().map(|line| seen(line, false)).collect();
    let expected = [
        r#" "a\nb\033" | 1 +"#,
        " same       | unchanged",
        "1 file changed, +1 −0",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn what_a_restore_removes_is_told_apart_from_what_it_writes() {
    let file = |path: &str, outcome, action| RestoredFile {
        path: path.to_owned(),
        outcome,
        action: Some(action),
        why: None,
    };
    let done = |outcome, files| RestoredFiles {
        agent: agent(),
        op: OpId::from_bytes([1; 16]),
        outcome,
        files,
        not_restored: Vec::new(),
        undo: None,
    };
    let both = |outcome| {
        vec![
            file("/a", outcome, FileAction::Written),
            file("/b", outcome, FileAction::Removed),
            file("/c", outcome, FileAction::Permissions),
        ]
    };
    let shown = restored(&done(FilesOutcome::Done, both(FileOutcome::Restored)));
    let expected = [
        "2 files restored, 1 removed",
        "  /a",
        "  /b (removed)",
        "  /c (permissions)",
    ];
    assert_eq!(shown, expected);
    let shown = restored(&done(FilesOutcome::Planned, both(FileOutcome::Planned)));
    assert_eq!(shown[0], "2 files would be restored, 1 removed");
    assert_eq!(shown[2], "  /b (would be removed)");
    let removed = vec![file("/b", FileOutcome::Restored, FileAction::Removed)];
    assert_eq!(
        counted(&done(FilesOutcome::Done, removed)),
        "1 file removed"
    );
}

fn agent() -> AgentRef {
    AgentRef {
        id: AgentId::from_bytes([1; 16]),
        name: Some("coder".to_owned()),
    }
}

#[test]
fn a_file_of_a_command_says_so_and_what_it_was_compared_with() {
    let mut file = FileDiff {
        by: ChangeBy::Command,
        note: Some("git does not have it".to_owned()),
        ..file("made", DiffChange::Created)
    };
    let [shown] = of_file(&file).try_into().unwrap();
    assert!(
        shown.contains("created by a command: git does not have it"),
        "{shown}"
    );
    file.diff = Some("--- a/made\n+++ b/made\n".to_owned());
    file.note = Some("compared with git's copy".to_owned());
    let shown = of_file(&file);
    assert_eq!(shown.len(), 3);
    assert!(
        shown[2].contains("made: compared with git's copy"),
        "{shown:?}"
    );
}
