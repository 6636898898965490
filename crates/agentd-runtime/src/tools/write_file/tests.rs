//! A file is replaced completely or not at all, and the outcome is known after a crash.

use super::super::hash;
use super::super::tests::Fixture;
use agentd_core::message::CallOutcome;
use agentd_core::recover::CallFact;
use agentd_core::secrets::MARK;
use agentd_core::spec::{ApprovalMode, Decision};
use agentd_core::turn::Prepared;
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

/// Checks that the directory contains only these files.
fn assert_only(fixture: &Fixture, names: &[&str]) {
    let entries = fs::read_dir(&fixture.options.cwd).unwrap();
    let mut found: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, names);
}

#[tokio::test]
async fn a_new_file_gets_its_dir() {
    let fixture = Fixture::new();
    let arguments = json!({"file_path": "x/y/a.txt", "content": "hé\n"});
    let text = fixture.ok("write_file", arguments).await;
    assert_eq!(text, "Wrote 4 bytes to x/y/a.txt, a new file.");
    assert_eq!(fixture.text("x/y/a.txt"), "hé\n");
    let mode = fs::metadata(fixture.path("x/y/a.txt"))
        .unwrap()
        .permissions();
    let plain = fixture.file("plain", "");
    let usual = fs::metadata(plain).unwrap().permissions();
    assert_eq!(mode.mode(), usual.mode(), "as any other new file");
}

#[tokio::test]
async fn the_mode_of_an_old_file_stays_and_nothing_else_is_left() {
    let fixture = Fixture::new();
    let path = fixture.known("a", "old");
    for mode in [0o755, 0o600, 0o640] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let content = format!("{mode}");
        let arguments = json!({"file_path": "a", "content": content});
        let text = fixture.ok("write_file", arguments).await;
        assert_eq!(text, "Wrote 3 bytes to a.");
        assert_eq!(fixture.text("a"), content);
        let now = fs::metadata(&path).unwrap().permissions();
        assert_eq!(now.mode() & 0o7777, mode);
    }
    assert_only(&fixture, &["a"]);
}

#[tokio::test]
async fn a_link_stays_one_and_what_it_leads_to_is_written() {
    let fixture = Fixture::new();
    fixture.known("dir/a", "old");
    symlink("dir/a", fixture.path("link")).unwrap();
    symlink("dir/b", fixture.path("dangling")).unwrap();
    for (link, target) in [("link", "dir/a"), ("dangling", "dir/b")] {
        let arguments = json!({"file_path": link, "content": "new"});
        fixture.ok("write_file", arguments).await;
        assert!(fixture.path(link).is_symlink());
        assert_eq!(fixture.text(target), "new");
    }
}

#[tokio::test]
async fn the_start_records_what_changes() {
    let fixture = Fixture::new();
    let arguments = json!({"file_path": "a", "content": "new"});
    let new = fixture.started("write_file", arguments.clone()).await;
    let change = new.change.unwrap();
    assert_eq!(change.before, None);
    assert_eq!(change.after, hash::of(b"new"));
    // As `printf new | sha256sum` says.
    let known = "11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437";
    assert_eq!(change.after, known);
    fixture.known("a", "old");
    let old = fixture.started("write_file", arguments).await;
    assert_eq!(old.change.unwrap().before, Some(hash::of(b"old")));
}

#[tokio::test]
async fn a_file_that_somebody_changed_in_between_is_left_alone() {
    let fixture = Fixture::new();
    let arguments = json!({"file_path": "a", "content": "new"});
    for before in [None, Some("old")] {
        drop(fs::remove_file(fixture.path("a")));
        if let Some(before) = before {
            fixture.known("a", before);
        }
        let started = fixture.started("write_file", arguments.clone()).await;
        fixture.file("a", "theirs");
        let finished = fixture.run("write_file", arguments.clone(), started).await;
        assert_eq!(finished.outcome, CallOutcome::Error);
        assert_eq!(fixture.text("a"), "theirs");
    }
    assert_only(&fixture, &["a"]);
}

#[tokio::test]
async fn done_and_not_done_and_neither_are_told_apart() {
    let fixture = Fixture::new();
    let arguments = json!({"file_path": "a", "content": "new"});
    let find = |started| {
        let (fixture, arguments) = (&fixture, arguments.clone());
        async move { fixture.find("write_file", arguments, &started).await }
    };
    let new = fixture.started("write_file", arguments.clone()).await;
    assert_eq!(find(new.clone()).await, CallFact::NotStarted);
    fixture.known("a", "old");
    assert_eq!(find(new.clone()).await, CallFact::Unknown);
    let old = fixture.started("write_file", arguments.clone()).await;
    assert_eq!(find(old.clone()).await, CallFact::NotStarted);
    let finished = fixture
        .run("write_file", arguments.clone(), old.clone())
        .await;
    assert_eq!(find(old.clone()).await, CallFact::Ended(finished));
    fixture.file("a", "theirs");
    assert_eq!(find(old.clone()).await, CallFact::Unknown);
    fs::remove_file(fixture.path("a")).unwrap();
    assert_eq!(find(old).await, CallFact::Unknown);
    assert_eq!(find(new).await, CallFact::NotStarted);
}

#[tokio::test]
async fn what_changes_nothing_is_done() {
    let fixture = Fixture::new();
    fixture.file("a", "same");
    let arguments = json!({"file_path": "a", "content": "same"});
    let started = fixture.started("write_file", arguments.clone()).await;
    let fact = fixture
        .find("write_file", arguments.clone(), &started)
        .await;
    let finished = fixture.run("write_file", arguments, started).await;
    assert_eq!(fact, CallFact::Ended(finished));
}

#[tokio::test]
async fn what_a_crash_left_half_written_is_removed() {
    let fixture = Fixture::new();
    let arguments = json!({"file_path": "a", "content": "new"});
    fixture.known("a", "old");
    let started = fixture.started("write_file", arguments.clone()).await;
    let id = hash::of(b"call_1");
    let half = format!(".a.agentd-{}.tmp", &id[..8]);
    let others = ".a.agentd-00000000.tmp";
    fixture.file(&half, "ne");
    fixture.file(others, "");
    let fact = fixture
        .find("write_file", arguments.clone(), &started)
        .await;
    assert_eq!(fact, CallFact::NotStarted);
    assert_only(&fixture, &[others, "a"]);
    // Nor is it in the way.
    fixture.file(&half, "ne");
    let finished = fixture.run("write_file", arguments, started).await;
    assert_eq!(finished.outcome, CallOutcome::Ok);
    assert_only(&fixture, &[others, "a"]);
}

#[tokio::test]
async fn a_text_with_the_mark_is_refused() {
    let fixture = Fixture::new();
    fixture.known("a", format!("theirs {MARK}"));
    let arguments = json!({"file_path": "a", "content": format!("key: {MARK}\n")});
    let text = fixture.error("write_file", arguments).await;
    assert!(text.contains("stands for a secret"), "{text}");
    assert_eq!(fixture.text("a"), format!("theirs {MARK}"));
}

#[tokio::test]
async fn what_cannot_be_written_is_said() {
    let fixture = Fixture::new();
    fixture.file("dir/a", "");
    for (path, said) in [
        ("dir", "dir is a directory; give the path of a file."),
        ("dir/a/b", "Cannot"),
        ("/dev/null", "/dev/null is not a regular file"),
        ("", "The path is empty"),
        ("/proc/nothing/here", "Cannot"),
    ] {
        let arguments = json!({"file_path": path, "content": "x"});
        let text = fixture.error("write_file", arguments).await;
        assert!(text.contains(said), "{text}");
    }
    assert_only(&fixture, &["dir"]);
}

#[tokio::test]
async fn a_write_that_cannot_be_carried_out_fails_before_the_user_is_asked() {
    let mut fixture = Fixture::new();
    fixture.options.approval = ApprovalMode::Always;
    fixture.known("a", "old");
    for path in ["a", "new", "new/b"] {
        let arguments = json!({"file_path": path, "content": "x"});
        let prepared = fixture.prepare("write_file", arguments).await;
        assert!(matches!(prepared, Prepared::Ask(_)), "{prepared:?}");
    }
    fixture.file("dir/unread", "old");
    for (path, said) in [
        ("dir", "dir is a directory; give the path of a file."),
        ("dir/unread/b", "Cannot"),
        ("dir/unread", "you have not read it"),
    ] {
        let arguments = json!({"file_path": path, "content": "x"});
        let text = fixture.error("write_file", arguments).await;
        assert!(text.contains(said), "{text}");
    }
    assert_only(&fixture, &["a", "dir"]);
    assert_eq!(fixture.text("dir/unread"), "old");
}

/// The error tells something about the file. A model that may not read it gets no answer before the user has approved the
/// call.
#[tokio::test]
async fn a_write_to_what_the_model_may_not_read_is_asked_about_first() {
    let mut fixture = Fixture::new().rule("read_file", "a", Decision::Deny);
    fixture.options.approval = ApprovalMode::Always;
    fixture.file("a", "old");
    fixture.file("b", "old");
    for arguments in [
        json!({"file_path": "a", "content": "x"}),
        json!({"file_path": "b", "content": "x", "escalate": "it is elsewhere"}),
    ] {
        let prepared = fixture.prepare("write_file", arguments).await;
        assert!(matches!(prepared, Prepared::Ask(_)), "{prepared:?}");
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_it_begins_changes_nothing() {
    use super::super::{Toolbox, tests::call};
    use crate::driver::Tools as _;
    let fixture = Fixture::new();
    let arguments = json!({"file_path": "a", "content": "x"});
    let started = fixture.started("write_file", arguments.clone()).await;
    let (_sender, cancelled) = tokio::sync::watch::channel(true);
    let toolbox: Toolbox = fixture.toolbox();
    let call = call("write_file", arguments);
    let finished = toolbox.run(call, started, cancelled).await;
    assert_eq!(finished.outcome, CallOutcome::Interrupted);
    assert_only(&fixture, &[]);
}
