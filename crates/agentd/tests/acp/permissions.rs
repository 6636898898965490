//! Calls that wait for approval: every editor asks, and the first answer counts.

use crate::editor::Editor;
use crate::test_daemon::{TestDaemon, until};
use agentd_core::spec::ApprovalMode;
use agentd_core::state::Phase;
use serde_json::{Value, json};

const CALL: &str = "do: call shell {\"command\":\"echo hi >> effects\"} ;; say done";

fn daemon() -> TestDaemon {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.approval = Some(ApprovalMode::Always);
    daemon.create_with("coder", spec);
    daemon
}

fn question(editor: &mut Editor) -> Value {
    editor.until("the question", |frame| {
        frame["method"] == "session/request_permission"
    })
}

/// What the user can choose.
fn kinds(question: &Value) -> Vec<&str> {
    let options = question["params"]["options"].as_array().unwrap().iter();
    options
        .map(|option| option["kind"].as_str().unwrap())
        .collect()
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

#[test]
fn the_first_answer_counts_and_the_other_question_is_withdrawn() {
    let daemon = daemon();
    let mut one = Editor::start(&daemon, &["--agent", "coder"]);
    let session = one.new_session(&daemon);
    let mut two = Editor::start(&daemon, &[]);
    two.load(&daemon, &session);
    let prompt = one.prompt(&session, CALL);
    let (asked, other) = (question(&mut one), question(&mut two));
    let call = &asked["params"]["toolCall"];
    assert_eq!(call["title"], "$ echo hi >> effects");
    assert_eq!(call["rawInput"]["command"], "echo hi >> effects");
    assert_eq!(kinds(&asked), ["allow_once", "allow_always", "reject_once"]);
    assert!(daemon.effects().is_empty());
    one.reply(&asked, selected("allow"));
    let withdrawn = two.until("a cancel", |frame| frame["method"] == "$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], other["id"]);
    let (response, _) = one.response(prompt);
    assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
    assert_eq!(daemon.effects(), ["hi"]);
    // The other editor saw the call and its result.
    two.until("the result", |frame| {
        frame["params"]["update"]["status"] == "completed"
    });
}

#[test]
fn an_answer_elsewhere_withdraws_the_question_and_a_rejection_is_told() {
    let daemon = daemon();
    let mut editor = Editor::start(&daemon, &["--agent", "coder"]);
    let session = editor.new_session(&daemon);
    let prompt = editor.prompt(&session, CALL);
    let asked = question(&mut editor);
    assert!(daemon.cli(&["approve", "coder"]).status.success());
    let withdrawn = editor.until("a cancel", |frame| frame["method"] == "$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    let (response, _) = editor.response(prompt);
    assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
    assert_eq!(daemon.effects(), ["hi"]);
    let prompt = editor.prompt(&session, CALL);
    let asked = question(&mut editor);
    editor.reply(&asked, selected("reject"));
    let (response, updates) = editor.response(prompt);
    assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
    assert_eq!(daemon.effects(), ["hi"]);
    assert!(
        updates.iter().any(|it| it["status"] == "failed"),
        "{updates:#?}"
    );
}

#[test]
fn cancel_while_a_question_waits_ends_the_turn() {
    let daemon = daemon();
    let mut editor = Editor::start(&daemon, &["--agent", "coder"]);
    let session = editor.new_session(&daemon);
    let prompt = editor.prompt(&session, CALL);
    let asked = question(&mut editor);
    editor.notify("session/cancel", json!({"sessionId": session}));
    editor.reply(&asked, json!({"outcome": {"outcome": "cancelled"}}));
    let (response, _) = editor.response(prompt);
    assert_eq!(response["result"]["stopReason"], "cancelled", "{response}");
    until("an idle agent", || {
        (daemon.show("coder").phase == Phase::Idle).then_some(())
    });
    assert!(daemon.effects().is_empty());
}

#[test]
fn a_question_that_waited_before_the_editor_was_opened_is_asked() {
    let daemon = daemon();
    let mut editor = Editor::start(&daemon, &["--agent", "coder"]);
    let session = editor.new_session(&daemon);
    editor.prompt(&session, CALL);
    question(&mut editor);
    editor.quit();
    let mut editor = Editor::start(&daemon, &[]);
    editor.load(&daemon, &session);
    let asked = question(&mut editor);
    editor.reply(&asked, selected("allow"));
    until("the effect", || (daemon.effects() == ["hi"]).then_some(()));
}

#[test]
fn no_rule_is_offered_for_a_call_that_leaves_the_sandbox() {
    let daemon = daemon();
    let mut editor = Editor::start(&daemon, &["--agent", "coder"]);
    let session = editor.new_session(&daemon);
    let call = json!({"command": "echo hi >> effects", "escalate": "it is needed", "needs": ["everything"]});
    let prompt = editor.prompt(&session, &format!("do: call shell {call} ;; say done"));
    let asked = question(&mut editor);
    assert_eq!(kinds(&asked), ["allow_once", "reject_once"]);
    editor.reply(&asked, selected("reject"));
    let (response, _) = editor.response(prompt);
    assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
    assert!(daemon.effects().is_empty());
}

#[test]
fn a_question_whose_answer_is_refused_is_asked_again() {
    let daemon = daemon();
    let mut editor = Editor::start(&daemon, &["--agent", "coder"]);
    let session = editor.new_session(&daemon);
    // No rule can name a call with a wildcard.
    let call = json!({"command": "echo 'h*' >> effects"});
    let prompt = editor.prompt(&session, &format!("do: call shell {call} ;; say done"));
    let asked = question(&mut editor);
    assert_eq!(kinds(&asked), ["allow_once", "allow_always", "reject_once"]);
    editor.reply(&asked, selected("allow-always"));
    editor.until("the reason", |frame| {
        let text = frame["params"]["update"]["content"]["text"].as_str();
        text.is_some_and(|text| text.contains("which a rule would read as a pattern"))
    });
    let again = question(&mut editor);
    assert_ne!(again["id"], asked["id"]);
    assert_eq!(kinds(&again), ["allow_once", "reject_once"]);
    assert!(daemon.effects().is_empty());
    editor.reply(&again, selected("allow"));
    let (response, _) = editor.response(prompt);
    assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
    assert_eq!(daemon.effects(), ["h*"]);
}

#[test]
fn a_question_contains_the_whole_command() {
    let daemon = daemon();
    let mut editor = Editor::start(&daemon, &["--agent", "coder"]);
    let session = editor.new_session(&daemon);
    let command = format!("echo {}\necho hidden >> effects", "x".repeat(500));
    let call = json!({ "command": command });
    let prompt = editor.prompt(&session, &format!("do: call shell {call} ;; say done"));
    let asked = question(&mut editor);
    let shown = &asked["params"]["toolCall"];
    assert!(!shown["title"].as_str().unwrap().contains("hidden"));
    let text = shown["content"][0]["content"]["text"].as_str().unwrap();
    for line in command.lines() {
        assert!(text.contains(line), "{text}");
    }
    assert!(text.contains("; network "), "{text}");
    editor.reply(&asked, selected("reject"));
    let (response, _) = editor.response(prompt);
    assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
    assert!(daemon.effects().is_empty());
}
