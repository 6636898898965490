//! What the program of an ACP agent wants to know from the user: a durable question, answered once and to the process that
//! asked.

use crate::acp_fixture::{children, results, scripted};
use crate::test_daemon::{TestDaemon, kill, until};
use agentd_client::api::{Approval, Status};
use agentd_core::event::Kind;
use agentd_core::message::CallOutcome;
use agentd_core::state::Phase;
use rustix::process::Signal;
use std::fs;

fn started() -> TestDaemon {
    let daemon = TestDaemon::new();
    daemon.create_with("coder", scripted(&daemon, "true"));
    daemon
}

fn asked(daemon: &TestDaemon) -> Approval {
    until("a question", || {
        let waiting = daemon.show("coder").approvals;
        waiting.into_iter().find(|it| it.question.is_some())
    })
}

/// What the program was answered, over all its processes.
fn replies(daemon: &TestDaemon) -> Vec<String> {
    let text = fs::read_to_string(daemon.work().join("replies")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[track_caller]
fn late_answer_is_refused(daemon: &TestDaemon, question: &Approval) {
    assert!(daemon.show("coder").approvals.is_empty());
    let id = question.id.to_string();
    let late = daemon.cli(&["answer", "coder", "--id", &id, "name=Ann"]);
    assert!(!late.status.success(), "{late:?}");
}

#[test]
fn an_elicitation_is_a_durable_question_that_is_answered_once() {
    let daemon = started();
    let sent = daemon.send("coder", "do: elicit");
    let waiting = asked(&daemon);
    let question = waiting.question.clone().unwrap();
    assert_eq!(
        (&*question.server, &*question.message),
        ("bash", "Who are you?")
    );
    assert_eq!(daemon.show("coder").phase, Phase::AwaitingApproval);
    let may_elicit = fs::read_to_string(daemon.work().join("may-elicit")).unwrap();
    assert_eq!(may_elicit, "yes\n");
    daemon.kill_daemon();
    daemon.start_daemon();
    assert_eq!(asked(&daemon).id, waiting.id);
    // Neither an answer that does not fit nor a mere approval counts.
    for wrong in [
        &["answer", "coder", "other=1"][..],
        &["answer", "coder"],
        &["approve", "coder"],
    ] {
        let refused = daemon.cli(wrong);
        assert!(!refused.status.success(), "{wrong:?} {refused:?}");
    }
    assert!(replies(&daemon).is_empty());
    let answered = daemon.cli(&["answer", "coder", "name=Ann"]);
    assert!(answered.status.success(), "{answered:?}");
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Completed, "{answer:#?}");
    assert_eq!(answer.text, "hello Ann");
    assert_eq!(replies(&daemon).len(), 1);
    assert_eq!(results(&daemon).last().unwrap().0, CallOutcome::Ok);
    assert_eq!(daemon.count("coder", Kind::QuestionAsked), 1);
    assert_eq!(daemon.count("coder", Kind::ApprovalAnswered), 1);
    late_answer_is_refused(&daemon, &waiting);
    daemon.verify();
}

#[test]
fn an_elicitation_is_declined_and_a_page_is_accepted_without_fields() {
    let daemon = started();
    for (prompt, verb, said) in [
        ("do: elicit", "deny", "declined"),
        ("do: visit", "approve", "accepted"),
    ] {
        let sent = daemon.send("coder", prompt);
        asked(&daemon);
        let done = daemon.cli(&[verb, "coder"]);
        assert!(done.status.success(), "{done:?}");
        let answer = daemon.answer("coder", sent.prompt);
        assert_eq!(answer.status, Status::Completed, "{answer:#?}");
        assert_eq!(answer.text, said);
    }
    // The user is not asked what cannot be shown.
    assert_eq!(daemon.completed("coder", "do: odd").text, "declined");
    assert_eq!(daemon.count("coder", Kind::QuestionAsked), 2);
    daemon.verify();
}

/// No other process of the program gets the answer.
#[test]
fn an_elicitation_is_withdrawn_when_the_program_dies() {
    let daemon = started();
    let sent = daemon.send("coder", "do: elicit");
    let question = asked(&daemon);
    for pid in children(&daemon) {
        kill(pid, Signal::KILL);
    }
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Failed, "{answer:#?}");
    late_answer_is_refused(&daemon, &question);
    assert_eq!(daemon.completed("coder", "hello").text, "prompt 1");
    late_answer_is_refused(&daemon, &question);
    assert_eq!(replies(&daemon), [""; 0]);
    daemon.verify();
}

#[test]
fn an_elicitation_is_cancelled_with_its_turn() {
    let daemon = started();
    let sent = daemon.send("coder", "do: elicit");
    let question = asked(&daemon);
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Interrupted, "{answer:#?}");
    late_answer_is_refused(&daemon, &question);
    until("the answer to the program", || {
        let replies = replies(&daemon);
        let cancelled = |reply: &String| reply.contains("\"cancel\"");
        (replies.len() == 1 && replies.iter().all(cancelled)).then_some(())
    });
    daemon.verify();
}
