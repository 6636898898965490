//! All or nothing, and found again after a crash.

use super::super::hash;
use super::super::tests::Stage;
use agentd_core::message::CallOutcome;
use agentd_core::recover::CallFact;
use agentd_core::secrets::MARK;
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

/// Nothing but these is in the folder.
fn assert_only(stage: &Stage, names: &[&str]) {
    let entries = fs::read_dir(&stage.options.cwd).unwrap();
    let mut found: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, names);
}

#[tokio::test]
async fn a_new_file_gets_its_folders() {
    let stage = Stage::new();
    let arguments = json!({"file_path": "x/y/a.txt", "content": "hé\n"});
    let text = stage.ok("write_file", arguments).await;
    assert_eq!(text, "Wrote 4 bytes to x/y/a.txt, a new file.");
    assert_eq!(stage.text("x/y/a.txt"), "hé\n");
    let mode = fs::metadata(stage.path("x/y/a.txt")).unwrap().permissions();
    let plain = stage.file("plain", "");
    let usual = fs::metadata(plain).unwrap().permissions();
    assert_eq!(mode.mode(), usual.mode(), "as any other new file");
}

#[tokio::test]
async fn the_mode_of_an_old_file_stays_and_nothing_else_is_left() {
    let stage = Stage::new();
    let path = stage.file("a", "old");
    for mode in [0o755, 0o600, 0o640] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let content = format!("{mode}");
        let arguments = json!({"file_path": "a", "content": content});
        let text = stage.ok("write_file", arguments).await;
        assert_eq!(text, "Wrote 3 bytes to a.");
        assert_eq!(stage.text("a"), content);
        let now = fs::metadata(&path).unwrap().permissions();
        assert_eq!(now.mode() & 0o7777, mode);
    }
    assert_only(&stage, &["a"]);
}

#[tokio::test]
async fn a_link_stays_one_and_what_it_leads_to_is_written() {
    let stage = Stage::new();
    stage.file("dir/a", "old");
    symlink("dir/a", stage.path("link")).unwrap();
    symlink("dir/b", stage.path("dangling")).unwrap();
    for (link, target) in [("link", "dir/a"), ("dangling", "dir/b")] {
        let arguments = json!({"file_path": link, "content": "new"});
        stage.ok("write_file", arguments).await;
        assert!(stage.path(link).is_symlink());
        assert_eq!(stage.text(target), "new");
    }
}

#[tokio::test]
async fn the_start_records_what_changes() {
    let stage = Stage::new();
    let arguments = json!({"file_path": "a", "content": "new"});
    let new = stage.started("write_file", arguments.clone()).await;
    let change = new.change.unwrap();
    assert_eq!(change.before, None);
    assert_eq!(change.after, hash::of(b"new"));
    // As `printf new | sha256sum` says.
    let known = "11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437";
    assert_eq!(change.after, known);
    stage.file("a", "old");
    let old = stage.started("write_file", arguments).await;
    assert_eq!(old.change.unwrap().before, Some(hash::of(b"old")));
}

#[tokio::test]
async fn a_file_that_somebody_changed_in_between_is_left_alone() {
    let stage = Stage::new();
    let arguments = json!({"file_path": "a", "content": "new"});
    for before in [None, Some("old")] {
        drop(fs::remove_file(stage.path("a")));
        if let Some(before) = before {
            stage.file("a", before);
        }
        let started = stage.started("write_file", arguments.clone()).await;
        stage.file("a", "theirs");
        let finished = stage.run("write_file", arguments.clone(), started).await;
        assert_eq!(finished.outcome, CallOutcome::Error);
        assert_eq!(stage.text("a"), "theirs");
    }
    assert_only(&stage, &["a"]);
}

#[tokio::test]
async fn done_and_not_done_and_neither_are_told_apart() {
    let stage = Stage::new();
    let arguments = json!({"file_path": "a", "content": "new"});
    let find = |started| {
        let (stage, arguments) = (&stage, arguments.clone());
        async move { stage.find("write_file", arguments, &started).await }
    };
    let new = stage.started("write_file", arguments.clone()).await;
    assert_eq!(find(new.clone()).await, CallFact::NotStarted);
    stage.file("a", "old");
    assert_eq!(find(new.clone()).await, CallFact::Unknown);
    let old = stage.started("write_file", arguments.clone()).await;
    assert_eq!(find(old.clone()).await, CallFact::NotStarted);
    let finished = stage
        .run("write_file", arguments.clone(), old.clone())
        .await;
    assert_eq!(find(old.clone()).await, CallFact::Ended(finished));
    stage.file("a", "theirs");
    assert_eq!(find(old.clone()).await, CallFact::Unknown);
    fs::remove_file(stage.path("a")).unwrap();
    assert_eq!(find(old).await, CallFact::Unknown);
    assert_eq!(find(new).await, CallFact::NotStarted);
}

#[tokio::test]
async fn what_changes_nothing_is_done() {
    let stage = Stage::new();
    stage.file("a", "same");
    let arguments = json!({"file_path": "a", "content": "same"});
    let started = stage.started("write_file", arguments.clone()).await;
    let fact = stage.find("write_file", arguments.clone(), &started).await;
    let finished = stage.run("write_file", arguments, started).await;
    assert_eq!(fact, CallFact::Ended(finished));
}

#[tokio::test]
async fn what_a_crash_left_half_written_is_removed() {
    let stage = Stage::new();
    let arguments = json!({"file_path": "a", "content": "new"});
    stage.file("a", "old");
    let started = stage.started("write_file", arguments.clone()).await;
    let id = hash::of(b"call_1");
    let half = format!(".a.agentd-{}.tmp", &id[..8]);
    let others = ".a.agentd-00000000.tmp";
    stage.file(&half, "ne");
    stage.file(others, "");
    let fact = stage.find("write_file", arguments.clone(), &started).await;
    assert_eq!(fact, CallFact::NotStarted);
    assert_only(&stage, &[others, "a"]);
    // Nor is it in the way.
    stage.file(&half, "ne");
    let finished = stage.run("write_file", arguments, started).await;
    assert_eq!(finished.outcome, CallOutcome::Ok);
    assert_only(&stage, &[others, "a"]);
}

#[tokio::test]
async fn a_text_with_the_mark_is_refused() {
    let stage = Stage::new();
    stage.file("a", format!("theirs {MARK}"));
    let arguments = json!({"file_path": "a", "content": format!("key: {MARK}\n")});
    let text = stage.error("write_file", arguments).await;
    assert!(text.contains("stands for a secret"), "{text}");
    assert_eq!(stage.text("a"), format!("theirs {MARK}"));
}

#[tokio::test]
async fn what_cannot_be_written_is_said() {
    let stage = Stage::new();
    stage.file("dir/a", "");
    for (path, said) in [
        ("dir", "dir is a folder."),
        ("dir/a/b", "Cannot"),
        ("/dev/null", "/dev/null is no regular file"),
        ("", "The path is empty"),
        ("/proc/nothing/here", "Cannot"),
    ] {
        let arguments = json!({"file_path": path, "content": "x"});
        let text = stage.error("write_file", arguments).await;
        assert!(text.contains(said), "{text}");
    }
    assert_only(&stage, &["dir"]);
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_it_begins_changes_nothing() {
    use super::super::{Toolbox, tests::call};
    use crate::driver::Tools as _;
    let stage = Stage::new();
    let arguments = json!({"file_path": "a", "content": "x"});
    let started = stage.started("write_file", arguments.clone()).await;
    let (_sender, cancelled) = tokio::sync::watch::channel(true);
    let toolbox: Toolbox = stage.toolbox();
    let call = call("write_file", arguments);
    let finished = toolbox.run(call, started, cancelled).await;
    assert_eq!(finished.outcome, CallOutcome::Interrupted);
    assert_only(&stage, &[]);
}
