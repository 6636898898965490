//! An edit changes the one occurrence that it names, or fails with a reason.

use super::super::tests::Fixture;
use agentd_core::message::CallOutcome;
use agentd_core::recover::CallFact;
use agentd_core::secrets::MARK;
use agentd_core::spec::{ApprovalMode, Decision};
use agentd_core::turn::Prepared;
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

fn edit(old: &str, new: &str) -> Value {
    json!({"file_path": "a", "old_string": old, "new_string": new})
}

#[tokio::test]
async fn a_text_is_replaced() {
    let fixture = Fixture::new();
    let path = fixture.known("a", "one\ntwo\nthree\n");
    fs::set_permissions(&path, Permissions::from_mode(0o750)).unwrap();
    let text = fixture.ok("edit_file", edit("two\nth", "2\nTH")).await;
    assert_eq!(text, "Edited a, line 2.");
    assert_eq!(fixture.text("a"), "one\n2\nTHree\n");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    fixture.ok("edit_file", edit("one\n", "")).await;
    assert_eq!(fixture.text("a"), "2\nTHree\n");
}

#[tokio::test]
async fn all_places_are_replaced_where_that_is_asked_for() {
    let fixture = Fixture::new();
    fixture.known("a", "x = x + $1\nx\n");
    let arguments =
        json!({"file_path": "a", "old_string": "x", "new_string": "$0y", "replace_all": true});
    let text = fixture.ok("edit_file", arguments).await;
    assert_eq!(text, "Edited a: 3 replacements.");
    assert_eq!(fixture.text("a"), "$0y = $0y + $1\n$0y\n");
}

#[tokio::test]
async fn why_a_place_is_not_found_is_said() {
    let fixture = Fixture::new();
    let content = "fn a() {\n    let x = 1;\n\tlet y = 2;\n}\nlet x = 1;\nlet x = 3;\n";
    fixture.known("a", content);
    for (old, said) in [
        (
            "nothing like it",
            "is not in a; nothing was changed. Nothing similar was found. Read the file again",
        ),
        (
            "  let x = 1;\n  let y = 2;",
            "It differs from lines 2 to 3 only in whitespace",
        ),
        ("let  x  =  3;", "It differs from line 6 only in whitespace"),
        ("let y = 2;\n]", "The closest place is lines 3 to 4"),
        ("let x = 1;", "occurs 2 times in a (at lines 2, 5)"),
        ("", "`old_string` is empty"),
    ] {
        let text = fixture.error("edit_file", edit(old, "new")).await;
        assert!(text.contains(said), "{old}: {text}");
    }
    let text = fixture.error("edit_file", edit("let", "let")).await;
    assert!(text.contains("are equal"), "{text}");
    assert_eq!(fixture.text("a"), content);
}

#[tokio::test]
async fn places_that_overlap_are_several() {
    let fixture = Fixture::new();
    fixture.known("a", "aaa é é");
    let text = fixture.error("edit_file", edit("aa", "b")).await;
    assert!(text.contains("2 times"), "{text}");
    let text = fixture.error("edit_file", edit("é", "e")).await;
    assert!(text.contains("2 times"), "{text}");
    fixture.known("a", "x\n".repeat(30));
    let text = fixture.error("edit_file", edit("x", "y")).await;
    assert!(text.contains("30 times in a (at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)"));
}

#[tokio::test]
async fn a_file_keeps_the_ends_of_its_lines() {
    let fixture = Fixture::new();
    fixture.known("a", "one\r\ntwo\r\nthree\r\n");
    fixture.ok("edit_file", edit("one\ntwo", "1\n2\n2b")).await;
    assert_eq!(fixture.text("a"), "1\r\n2\r\n2b\r\nthree\r\n");
    fixture.ok("edit_file", edit("three\r\n", "3\r\n")).await;
    assert_eq!(fixture.text("a"), "1\r\n2\r\n2b\r\n3\r\n");
    let all =
        json!({"file_path": "a", "old_string": "\r\n", "new_string": "\n", "replace_all": true});
    fixture.ok("edit_file", all).await;
    assert_eq!(fixture.text("a"), "1\n2\n2b\n3\n");
    fixture.known("a", "one\r\ntwo\nthree\n");
    let text = fixture.error("edit_file", edit("one\ntwo", "x")).await;
    assert!(text.contains("only in whitespace"), "{text}");
    fixture.ok("edit_file", edit("two\n", "2\n")).await;
    assert_eq!(fixture.text("a"), "one\r\n2\nthree\n");
}

#[tokio::test]
async fn a_text_with_the_mark_is_refused() {
    let fixture = Fixture::new();
    fixture.known("a", "key: sk-0123456789\nname: x\n");
    let text = fixture
        .error("edit_file", edit("name: x", &format!("name: {MARK}")))
        .await;
    assert!(text.contains("stands for a secret"), "{text}");
    let text = fixture
        .error("edit_file", edit(&format!("key: {MARK}"), "key: y"))
        .await;
    assert!(text.contains("Use text next to it"), "{text}");
    // Beside it, an edit is fine.
    fixture.ok("edit_file", edit("name: x", "name: y")).await;
    assert_eq!(fixture.text("a"), "key: sk-0123456789\nname: y\n");
}

#[tokio::test]
async fn a_file_that_somebody_changed_in_between_is_left_alone() {
    let fixture = Fixture::new();
    fixture.known("a", "one two");
    let arguments = edit("one", "1");
    let started = fixture.started("edit_file", arguments.clone()).await;
    fixture.file("a", "one three");
    let finished = fixture.run("edit_file", arguments, started).await;
    assert_eq!(finished.outcome, CallOutcome::Error);
    assert_eq!(fixture.text("a"), "one three");
}

#[tokio::test]
async fn done_and_not_done_and_neither_are_told_apart() {
    let fixture = Fixture::new();
    fixture.known("a", "one two");
    let arguments = edit("one", "one one");
    let started = fixture.started("edit_file", arguments.clone()).await;
    let fact = fixture.find("edit_file", arguments.clone(), &started).await;
    assert_eq!(fact, CallFact::NotStarted);
    fixture
        .run("edit_file", arguments.clone(), started.clone())
        .await;
    assert_eq!(fixture.text("a"), "one one two");
    let fact = fixture.find("edit_file", arguments.clone(), &started).await;
    assert!(matches!(fact, CallFact::Ended(it) if it.outcome == CallOutcome::Ok));
    fixture.file("a", "else");
    let fact = fixture.find("edit_file", arguments, &started).await;
    assert_eq!(fact, CallFact::Unknown);
}

#[tokio::test]
async fn what_cannot_be_edited_is_said() {
    let fixture = Fixture::new();
    let text = fixture.error("edit_file", edit("x", "y")).await;
    assert!(text.contains("Cannot read a: No such file"), "{text}");
    fixture.known("a", b"x\xff");
    let text = fixture.error("edit_file", edit("x", "y")).await;
    assert!(text.contains("not UTF-8 text"), "{text}");
    let file = fs::File::create(fixture.path("a")).unwrap();
    file.set_len(super::MAX_BYTES + 1).unwrap();
    let text = fixture.error("edit_file", edit("x", "y")).await;
    assert!(text.contains("33,554,433 bytes"), "{text}");
}

#[tokio::test]
async fn an_edit_that_cannot_be_carried_out_fails_before_the_user_is_asked() {
    let mut fixture = Fixture::new();
    fixture.options.approval = ApprovalMode::Always;
    fixture.known("a", "one\ntwo\n");
    let prepared = fixture.prepare("edit_file", edit("two", "2")).await;
    assert!(matches!(prepared, Prepared::Ask(_)), "{prepared:?}");
    let text = fixture.error("edit_file", edit("three", "3")).await;
    assert!(text.contains("is not in a"), "{text}");
    fixture.file("a", "one\ntwo\nmore\n");
    let text = fixture.error("edit_file", edit("two", "2")).await;
    assert!(text.contains("has changed since"), "{text}");
    assert_eq!(fixture.text("a"), "one\ntwo\nmore\n");
}

/// The error quotes the file. A model that may not read it gets no answer before the user has approved the call.
#[tokio::test]
async fn an_edit_of_what_the_model_may_not_read_is_asked_about_first() {
    let asks = async |fixture: &Fixture, arguments: Value| {
        let prepared = fixture.prepare("edit_file", arguments).await;
        assert!(matches!(prepared, Prepared::Ask(_)), "{prepared:?}");
    };
    for (decision, pattern) in [(Decision::Deny, "a"), (Decision::Ask, "*")] {
        let mut fixture = Fixture::new().rule("read_file", pattern, decision);
        fixture.options.approval = ApprovalMode::Always;
        fixture.known("a", "one\n");
        asks(&fixture, edit("two", "2")).await;
    }
    let mut fixture = Fixture::new();
    fixture.options.approval = ApprovalMode::Always;
    fixture.known("a", "one\n");
    fixture.options.tools = Some(vec!["edit_file".to_owned()]);
    asks(&fixture, edit("two", "2")).await;
    fixture.options.tools = None;
    let mut leaves = edit("two", "2");
    leaves["escalate"] = json!("it is elsewhere");
    asks(&fixture, leaves).await;
}
