//! Questions of MCP servers to the user: durable, answered once, from any client, and withdrawn with their call.

use crate::test_daemon::{AGENTD, TestDaemon, until};
use agentd_client::api::{Approval, Status};
use agentd_core::event::{Body, Kind};
use agentd_core::message::{Block, CallOutcome};
use agentd_core::spec::McpServer;
use agentd_core::state::Phase;
use std::fs;
use std::path::Path;

/// A server of the newer revision returns what it requires; an older one asks during the call.
const KINDS: [(&[&str], &str); 2] = [(&[], "ask"), (&["--probe", "refuse"], "elicit")];

fn started(args: &[&str]) -> TestDaemon {
    let daemon = TestDaemon::new();
    let program = Path::new(AGENTD).with_file_name("agentd-fake-mcp");
    let server = McpServer {
        command: Some(program.display().to_string()),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        // The time of a call does not run while the user is asked.
        timeout_ms: Some(2000),
        ..McpServer::default()
    };
    let mut spec = daemon.spec();
    spec.mcp.insert("fake".to_owned(), server);
    daemon.create_with("coder", spec);
    daemon
}

fn asked(daemon: &TestDaemon) -> Approval {
    until("a question", || {
        let waiting = daemon.show("coder").approvals;
        waiting.into_iter().find(|it| it.question.is_some())
    })
}

fn effects(daemon: &TestDaemon) -> Vec<String> {
    let text = fs::read_to_string(daemon.work().join("mcp-effects")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The newest result of a call.
fn result(daemon: &TestDaemon) -> (CallOutcome, String) {
    let events = daemon.events("coder");
    let result = events.iter().rev().find_map(|event| match &event.body {
        Body::ResultAdded(result) => Some(result.clone()),
        _ => None,
    });
    let result = result.unwrap();
    let texts = result.blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    (result.outcome, texts.collect())
}

#[test]
fn a_question_survives_the_daemon_and_is_answered_once() {
    for (args, tool) in KINDS {
        let daemon = started(args);
        let sent = daemon.send(
            "coder",
            &format!("do: call mcp__fake__{tool} {{}} ;; say done"),
        );
        let question = asked(&daemon);
        let of = question.question.clone().unwrap();
        assert_eq!(
            (of.server.as_str(), of.message.as_str()),
            ("fake", "Who are you?")
        );
        assert_eq!(daemon.show("coder").phase, Phase::AwaitingApproval);
        daemon.kill_daemon();
        daemon.start_daemon();
        assert_eq!(asked(&daemon).id, question.id);
        let shown = daemon.cli(&["show", "coder"]);
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(
            shown.contains("Who are you?") && shown.contains("name (string)"),
            "{shown}"
        );
        // What to do next fits the question: an approval without its fields is refused.
        let waits = daemon.cli(&["wait", "coder", &sent.prompt.to_string()]);
        let waits = String::from_utf8(waits.stderr).unwrap();
        assert!(waits.contains("agentd answer coder name=…"), "{waits}");
        assert!(!waits.contains("agentd approve"), "{waits}");
        // Neither an answer that does not fit nor a mere approval counts.
        for wrong in [
            &["answer", "coder"][..],
            &["answer", "coder", "other=1"],
            &["approve", "coder"],
        ] {
            let refused = daemon.cli(wrong);
            assert!(!refused.status.success(), "{wrong:?} {refused:?}");
        }
        let answered = daemon.cli(&["answer", "coder", "name=Ann"]);
        assert!(answered.status.success(), "{answered:?}");
        assert_eq!(
            daemon.answer("coder", sent.prompt).status,
            Status::Completed
        );
        assert_eq!(
            result(&daemon),
            (CallOutcome::Ok, "hello Ann".to_owned()),
            "{tool}"
        );
        assert_eq!(daemon.count("coder", Kind::QuestionAsked), 1);
        assert_eq!(daemon.count("coder", Kind::ApprovalAnswered), 1);
        assert_eq!(daemon.count("coder", Kind::ToolStarted), 1);
        assert!(daemon.show("coder").approvals.is_empty());
        daemon.verify();
    }
}

#[test]
fn a_question_is_declined() {
    for (args, tool) in KINDS {
        let daemon = started(args);
        let sent = daemon.send(
            "coder",
            &format!("do: call mcp__fake__{tool} {{}} ;; say done"),
        );
        asked(&daemon);
        let denied = daemon.cli(&["deny", "coder"]);
        assert!(denied.status.success(), "{denied:?}");
        assert_eq!(
            daemon.answer("coder", sent.prompt).status,
            Status::Completed
        );
        let expected = (CallOutcome::Ok, "not answered: decline".to_owned());
        assert_eq!(result(&daemon), expected, "{tool}");
    }
}

/// Only the process that has the call could pass the answer on. Its death alone withdraws the question, and the turn goes on.
#[test]
fn a_question_is_withdrawn_when_the_runtime_dies() {
    for (args, tool) in KINDS {
        let daemon = started(args);
        let prompt = format!("do: call mcp__fake__{tool} {{}} ;; say done");
        let sent = daemon.send("coder", &prompt);
        let question = asked(&daemon);
        daemon.kill_runtime("coder");
        assert_eq!(
            daemon.answer("coder", sent.prompt).status,
            Status::Completed
        );
        assert_eq!(result(&daemon).0, CallOutcome::Unknown, "{tool}");
        assert!(daemon.show("coder").approvals.is_empty());
        let id = question.id.to_string();
        let late = daemon.cli(&["answer", "coder", "--id", &id, "name=Ann"]);
        assert!(!late.status.success(), "{late:?}");
        assert_eq!(effects(&daemon), ["asked"]);
        daemon.verify();
    }
}

/// An interrupt, and the end of the process that has the call, withdraw the question. It is not asked again, and the call
/// is not made again.
#[test]
fn a_question_is_withdrawn_with_its_call() {
    for (args, tool) in KINDS {
        let daemon = started(args);
        let prompt = format!("do: call mcp__fake__{tool} {{}} ;; say done");
        let sent = daemon.send("coder", &prompt);
        let question = asked(&daemon);
        daemon.block(daemon.client().interrupt("coder")).unwrap();
        let answer = daemon.answer("coder", sent.prompt);
        assert_eq!(answer.status, Status::Interrupted);
        assert!(daemon.show("coder").approvals.is_empty());
        let id = question.id.to_string();
        let late = daemon.cli(&["answer", "coder", "--id", &id, "name=Ann"]);
        assert!(!late.status.success(), "{late:?}");
        let sent = daemon.send("coder", &prompt);
        asked(&daemon);
        daemon.kill_runtime("coder");
        assert_eq!(
            daemon.answer("coder", sent.prompt).status,
            Status::Completed
        );
        assert_eq!(result(&daemon).0, CallOutcome::Unknown, "{tool}");
        assert!(daemon.show("coder").approvals.is_empty());
        assert_eq!(effects(&daemon), ["asked", "asked"]);
        daemon.verify();
    }
}

/// An older server asks, does not want to know any more, and asks something else in the same call. The first question is
/// withdrawn, and an answer to it reaches nothing.
#[test]
fn a_question_that_the_server_gives_up_is_withdrawn() {
    let daemon = started(&["--probe", "refuse"]);
    let sent = daemon.send("coder", "do: call mcp__fake__change_mind {} ;; say done");
    let first = asked(&daemon);
    assert_eq!(first.question.unwrap().message, "Who were you?");
    fs::write(daemon.work().join("mcp-continue"), "").unwrap();
    let second = until("another question", || {
        let waiting = daemon.show("coder").approvals;
        waiting.into_iter().find(|it| it.id != first.id)
    });
    assert_eq!(second.question.unwrap().message, "Who are you?");
    let waiting = daemon.show("coder").approvals;
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    assert_eq!(daemon.count("coder", Kind::ApprovalWithdrawn), 1);
    let id = first.id.to_string();
    let late = daemon.cli(&["answer", "coder", "--id", &id, "name=Bob"]);
    assert!(!late.status.success(), "{late:?}");
    let answered = daemon.cli(&["answer", "coder", "name=Ann"]);
    assert!(answered.status.success(), "{answered:?}");
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Completed
    );
    assert_eq!(result(&daemon), (CallOutcome::Ok, "hello Ann".to_owned()));
    daemon.verify();
}
