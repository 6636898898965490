//! What the user decides: git's copy is not always what a file was, and not every change is certainly the agent's.

use super::*;
use crate::event::GitBefore;

fn file(hash: &str, mode: u32) -> FileState {
    FileState::File {
        mode,
        hash: hash.to_owned(),
    }
}

/// Why the user must decide about git's copy of a file that a command changed, or deleted.
fn must_ask(scanned: ScannedFile) -> Option<MustAsk> {
    let now = match scanned.after.clone() {
        Some(hash) => file(&hash, 0o644),
        None => FileState::Absent,
    };
    let mut journal = Journal::new();
    commands(&mut journal, 1, known(scanned));
    let found = plan(&journal, Seq::ZERO);
    found.wanted[0].must_ask(&file("old", 0o644), &now)
}

fn changed(git_before: Option<GitBefore>) -> [ScannedFile; 2] {
    [
        (ScannedChange::Modified, Some("command")),
        (ScannedChange::Deleted, None),
    ]
    .map(|(change, after)| ScannedFile {
        git_before,
        ..scanned(change, after)
    })
}

/// What git has may be older than what the user had there before the command.
#[test]
fn a_content_of_git_that_the_path_need_not_have_had_is_a_guess() {
    for scanned in changed(None) {
        assert_eq!(must_ask(scanned), Some(MustAsk::Unknown));
    }
    let mut journal = Journal::new();
    let modified = known(scanned(ScannedChange::Modified, Some("command")));
    commands(&mut journal, 1, modified);
    let found = plan(&journal, Seq::ZERO);
    let target = file("old", 0o644);
    // Only the permission bits differ: no content is replaced.
    let chmod = found.wanted[0].must_ask(&target, &file("old", 0o755));
    assert_eq!(chmod, None);
    // A tool had left the content that git has.
    let mut journal = Journal::new();
    wrote(&mut journal, 1, None, "old");
    let end = journal.head();
    let modified = known(scanned(ScannedChange::Modified, Some("command")));
    commands(&mut journal, 2, modified);
    let found = plan(&journal, end);
    let now = file("command", 0o644);
    assert_eq!(found.wanted[0].must_ask(&target, &now), None);
}

/// Which files were missing before the turn is not known: git's copy is not written without asking.
#[test]
fn a_deletion_that_may_be_the_users_is_a_guess() {
    let file = ScannedFile {
        unsure: true,
        ..scanned(ScannedChange::Deleted, None)
    };
    assert_eq!(must_ask(file), Some(MustAsk::Deleted));
}

/// Git was asked before the first command, so its copy is exactly what the file was, or certainly not.
#[test]
fn a_clean_file_is_restored_and_lines_that_were_not_committed_are_a_conflict() {
    for scanned in changed(Some(GitBefore::Clean)) {
        assert_eq!(must_ask(scanned), None);
    }
    for scanned in changed(Some(GitBefore::Changed)) {
        assert_eq!(must_ask(scanned), Some(MustAsk::Uncommitted));
    }
}

/// The command may have staged what it wrote, so the index does not count.
#[test]
fn a_clean_file_was_as_in_the_newest_commit() {
    let mut journal = Journal::new();
    let [modified, _] = changed(Some(GitBefore::Clean));
    commands(&mut journal, 1, known(modified));
    let found = plan(&journal, Seq::ZERO);
    let [wanted] = found.wanted.as_slice() else {
        panic!("{found:?}");
    };
    let hashes = BTreeMap::from([
        (oid("1"), "old".to_owned()),
        (oid("2"), "staged".to_owned()),
    ]);
    let object = wanted.target.object(&hashes);
    assert_eq!(object.map(|(oid, _, _)| oid), Some(oid("1")));
    assert!(wanted.target.is_certain());
}

/// A tool wrote the file, the user committed something else, and then a command changed it.
#[test]
fn a_clean_file_is_not_what_an_earlier_call_left() {
    let mut journal = Journal::new();
    wrote(&mut journal, 1, Some("zero"), "tool");
    let end = journal.head();
    let [modified, _] = changed(Some(GitBefore::Clean));
    commands(&mut journal, 2, known(modified));
    let found = plan(&journal, end);
    assert!(matches!(
        found.wanted[0].target,
        Target::Git {
            hash: None,
            before: Some(GitBefore::Clean),
            ..
        }
    ));
    // With other lines than those of git, it is what the call left.
    let mut journal = Journal::new();
    wrote(&mut journal, 1, Some("zero"), "tool");
    let [modified, _] = changed(Some(GitBefore::Changed));
    commands(&mut journal, 2, known(modified));
    let found = plan(&journal, end);
    assert!(matches!(
        &found.wanted[0].target,
        Target::Git { hash: Some(hash), .. } if hash == "tool"
    ));
    assert!(found.wanted[0].target.is_certain());
}

/// The user may have edited the file while only a background command ran, although its earlier content is kept.
#[test]
fn a_change_while_only_background_commands_ran_is_a_conflict() {
    let mut journal = Journal::new();
    wrote(&mut journal, 1, None, "one");
    let end = journal.head();
    let found = ScannedFile {
        unsure: true,
        ..scanned(ScannedChange::Modified, Some("other"))
    };
    commands(&mut journal, 2, known(found));
    wrote(&mut journal, 3, Some("other"), "two");
    wrote(&mut journal, 4, Some("two"), "one");
    wrote(&mut journal, 5, Some("one"), "last");
    let found = plan(&journal, end);
    let [wanted] = found.wanted.as_slice() else {
        panic!("{found:?}");
    };
    assert!(matches!(wanted.target, Target::Kept { .. }));
    let (one, now) = (file("one", 0o644), file("last", 0o644));
    assert_eq!(wanted.must_ask(&one, &now), Some(MustAsk::Background));
    assert_eq!(wanted.must_ask(&one, &one), None);
    // Nothing is there that could be lost.
    assert_eq!(wanted.must_ask(&one, &FileState::Absent), None);
}

/// A call of an MCP server may change files like a command: without a scan, what it changed is not known.
#[test]
fn a_call_that_may_change_files_is_scanned_like_a_command() {
    for may_change_files in [true, false] {
        let mut journal = Journal::new();
        journal.start_turn(1);
        journal.push(ToolStarted {
            may_change_files,
            ..ToolStarted::new(CallId::new("a"), "mcp__files__put".to_owned())
        });
        journal.end_turn(TurnStatus::Completed);
        let gaps = plan(&journal, Seq::ZERO).not_restored.len();
        assert_eq!(gaps, usize::from(may_change_files));
    }
}
