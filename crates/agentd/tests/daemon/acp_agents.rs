//! Agents that speak the Agent Client Protocol, with a scripted one.

use crate::acp_fixture::{asked, children, results, scripted, session_file, sessions, spec};
use crate::command_agents::reset;
use crate::test_daemon::{TestDaemon, kill, until};
use agentd_client::api::Status;
use agentd_core::event::{Body, Decision, Direction, Kind};
use agentd_core::message::{Block, CallOutcome};
use agentd_core::usage::MicroUsd;
use rustix::process::Signal;
use serde_json::json;
use std::fs;

/// An agent that records the requests for new sessions in `begun`.
const FRAGILE: &str = include_str!("../fixture/acp-fragile.sh");

fn create(daemon: &TestDaemon, load: &str) {
    daemon.create_with("coder", scripted(daemon, load));
}

fn begun(daemon: &TestDaemon, what: &str) {
    until("the prompt in the program", || {
        daemon.effects().contains(&what.to_owned()).then_some(())
    });
}

#[test]
fn a_turn_with_a_tool_is_recorded_as_it_happens() {
    let daemon = TestDaemon::new();
    create(&daemon, "false");
    assert_eq!(daemon.completed("coder", "hello").text, "prompt 1");
    let answer = daemon.completed("coder", "do: tool");
    assert_eq!(answer.text, "It is a file.");
    assert_eq!(answer.usage.input_tokens, 7);
    let expected = (CallOutcome::Ok, vec![Block::text("a file")]);
    assert_eq!(results(&daemon), [expected]);
    // A request for a file of another session is refused, and the turn goes on.
    assert_eq!(daemon.completed("coder", "do: file").text, "no files");
    assert_eq!(sessions(&daemon), ["new"]);
    daemon.verify();
    assert!(daemon.cli(&["stop", "coder"]).status.success());
    until("no process of the program", || {
        children(&daemon).is_empty().then_some(())
    });
}

#[test]
fn a_permission_request_is_a_durable_approval() {
    let daemon = TestDaemon::new();
    create(&daemon, "false");
    for (decision, said) in [(Decision::Allow, "allowed"), (Decision::Deny, "refused")] {
        let sent = daemon.send("coder", "do: ask");
        let approval = asked(&daemon, "coder").id;
        let verb = match decision {
            Decision::Allow => "approve",
            Decision::Deny => "deny",
        };
        let id = approval.to_string();
        assert!(daemon.cli(&[verb, "coder", &id]).status.success());
        let answer = daemon.answer("coder", sent.prompt);
        assert_eq!(answer.status, Status::Completed, "{answer:#?}");
        assert_eq!(answer.text, said);
    }
    // It is withdrawn when the program dies, and never answered to another one.
    let sent = daemon.send("coder", "do: ask");
    asked(&daemon, "coder");
    for pid in children(&daemon) {
        kill(pid, Signal::KILL);
    }
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Failed, "{answer:#?}");
    assert!(daemon.show("coder").approvals.is_empty());
    assert_eq!(daemon.count("coder", Kind::ApprovalRequested), 3);
    daemon.verify();
}

#[test]
fn an_interrupt_is_a_cancel_and_the_next_prompt_is_answered() {
    let daemon = TestDaemon::new();
    create(&daemon, "false");
    let sent = daemon.send("coder", "do: wait");
    begun(&daemon, "wait");
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Interrupted, "{answer:#?}");
    assert_eq!(daemon.completed("coder", "hello").text, "prompt 2");
    assert_eq!(sessions(&daemon), ["new"], "it is the same process");
    daemon.verify();
}

#[test]
fn a_program_that_dies_is_given_the_conversation_so_far() {
    let daemon = TestDaemon::new();
    create(&daemon, "false");
    daemon.completed("coder", "remember plugh");
    let answer = daemon.ask("coder", "do: die");
    assert_eq!(answer.status, Status::Failed, "{answer:#?}");
    // The call that was open is unknown, and nothing is sent again.
    assert_eq!(results(&daemon).last().unwrap().0, CallOutcome::Unknown);
    assert_eq!(daemon.completed("coder", "do: tell").text, "told");
    assert_eq!(daemon.effects(), ["die"]);
    assert_eq!(sessions(&daemon), ["new", "new"]);
    daemon.verify();
}

#[test]
fn a_session_is_loaded_where_the_program_can_and_belongs_to_its_conversation() {
    let daemon = TestDaemon::new();
    create(&daemon, "true");
    daemon.completed("coder", "remember plugh");
    daemon.kill_runtime("coder");
    let answer = daemon.completed("coder", "do: tell");
    assert_eq!(answer.text, "not told", "the session knows it already");
    assert_eq!(sessions(&daemon), ["new", "load"]);
    reset(&daemon, None);
    daemon.completed("coder", "hello");
    assert_eq!(sessions(&daemon), ["new", "load", "new"]);
    reset(&daemon, Some(Direction::Undo));
    daemon.completed("coder", "hello");
    assert_eq!(sessions(&daemon), ["new", "load", "new", "load"]);
    daemon.verify();
}

/// Regression: Gemini CLI repeats the history after its answer to `session/load`, and it became a part of the next answer.
#[test]
fn history_that_is_repeated_late_is_no_part_of_an_answer() {
    let daemon = TestDaemon::new();
    let mut spec = scripted(&daemon, "true");
    spec.env.insert("ACP_REPLAY".to_owned(), "late".to_owned());
    daemon.create_with("coder", spec);
    assert_eq!(daemon.completed("coder", "hello").text, "prompt 1");
    daemon.kill_runtime("coder");
    assert_eq!(daemon.completed("coder", "do: tell").text, "not told");
    assert_eq!(sessions(&daemon), ["new", "load"]);
    assert_eq!(results(&daemon), [], "the old call is not repeated");
    daemon.verify();
}

#[test]
fn no_prompt_is_sent_again_after_a_crash_of_the_runtime() {
    let daemon = TestDaemon::new();
    create(&daemon, "true");
    let sent = daemon.send("coder", "do: wait");
    begun(&daemon, "wait");
    let old = children(&daemon);
    daemon.kill_runtime("coder");
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Interrupted, "{answer:#?}");
    until("the end of the old program", || {
        let left = children(&daemon);
        (!left.iter().any(|pid| old.contains(pid))).then_some(())
    });
    daemon.completed("coder", "hello");
    assert_eq!(daemon.effects(), ["wait"]);
    daemon.verify();
}

/// Everything that turns were charged.
fn charged(daemon: &TestDaemon) -> MicroUsd {
    let events = daemon.events("coder").into_iter();
    let costs = events.filter_map(|event| match event.body {
        Body::RequestEnded(ended) => ended.cost,
        _ => None,
    });
    costs.fold(MicroUsd::default(), MicroUsd::saturating_add)
}

/// The program reports the total of its session, also in a new process.
#[test]
fn the_cost_of_a_session_is_charged_once() {
    let daemon = TestDaemon::new();
    create(&daemon, "true");
    const USD: u64 = 1_000_000;
    daemon.completed("coder", "do: cost");
    assert_eq!(charged(&daemon), MicroUsd(USD));
    until("the charged total", || {
        let kept = fs::read_to_string(session_file(&daemon, "coder")).unwrap_or_default();
        kept.contains("\"charged\":1.0").then_some(())
    });
    daemon.kill_runtime("coder");
    daemon.completed("coder", "do: cost");
    assert_eq!(charged(&daemon), MicroUsd(2 * USD));
    assert_eq!(sessions(&daemon), ["new", "load"]);
    daemon.verify();
}

/// What a turn has used until it was interrupted counts, too.
#[test]
fn the_tokens_of_an_interrupted_turn_are_charged() {
    let daemon = TestDaemon::new();
    create(&daemon, "false");
    let sent = daemon.send("coder", "do: wait");
    begun(&daemon, "wait");
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Interrupted, "{answer:#?}");
    assert_eq!(answer.usage.input_tokens, 3);
    daemon.verify();
}

/// The same servers as those that `agentd mcp` can use.
#[test]
fn a_projects_server_gets_a_key_that_the_agents_env_names() {
    let daemon = TestDaemon::new();
    fs::create_dir(daemon.work().join(".git")).unwrap();
    let entry = json!({"command": "/bin/true", "env": {"KEY": "${ANTHROPIC_API_KEY}"}});
    let file = json!({"mcpServers": {"fake": entry}});
    fs::write(daemon.work().join(".mcp.json"), file.to_string()).unwrap();
    let trusted = daemon.cli(&["trust", &daemon.work().display().to_string()]);
    assert!(trusted.status.success(), "{trusted:?}");
    let mut naming = spec(&daemon, "acp-fragile.sh", FRAGILE);
    daemon.create_with("other", naming.clone());
    daemon.completed("other", "hello");
    naming
        .env
        .insert("TOKEN".to_owned(), "${ANTHROPIC_API_KEY}".to_owned());
    daemon.create_with("coder", naming);
    daemon.completed("coder", "hello");
    let begun = fs::read_to_string(daemon.work().join("begun")).unwrap();
    let has_server = |line: &str| line.contains(r#""name":"fake""#);
    let given: Vec<bool> = begun.lines().map(has_server).collect();
    assert_eq!(given, [false, true], "{begun}");
}
