//! Automatic resets: off unless the spec enables them, and otherwise like any other reset.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Reset, Status, Stop};
use agentd_core::event::{Body, Direction, Event, Kind, ResetBegan, ResetSource};
use agentd_core::spec::AutoReset;
use agentd_core::state::Phase;

fn daemon_with(auto_reset: AutoReset) -> TestDaemon {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.auto_reset = auto_reset;
    daemon.create_with("coder", spec);
    daemon
}

fn began(daemon: &TestDaemon) -> Vec<ResetBegan> {
    let events = daemon.events("coder").into_iter();
    let began = events.filter_map(|event| match event.body {
        Body::ResetBegan(began) => Some(began),
        _ => None,
    });
    began.collect()
}

fn until_reset(daemon: &TestDaemon, n: usize) -> ResetBegan {
    until("a reset", || {
        (daemon.count("coder", Kind::ResetEnded) == n).then_some(())
    });
    began(daemon).pop().unwrap()
}

fn notes(daemon: &TestDaemon) -> String {
    let events: Vec<Event> = daemon.events("coder");
    let notes = events.iter().filter_map(|event| match &event.body {
        Body::Note(note) => Some(note.text.as_str()),
        _ => None,
    });
    notes.collect::<Vec<_>>().join("\n")
}

fn last_request(daemon: &TestDaemon) -> String {
    daemon.requests().last().unwrap().body.to_string()
}

#[test]
fn none_of_them_unless_the_spec_says_so() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let call = serde_json::json!({ "reason": "why not" });
    daemon.completed(
        "coder",
        &format!("do: call reset_conversation {call} ;; say done"),
    );
    let request = &daemon.requests()[0].body["tools"].to_string();
    assert!(!request.contains("reset_conversation"), "{request}");
    assert_eq!(daemon.show("coder").generation, 1);
    assert_eq!(began(&daemon), []);
}

#[test]
fn by_its_own_tool_at_the_end_of_the_turn() {
    let daemon = daemon_with(AutoReset {
        by_tool: true,
        ..AutoReset::default()
    });
    let call = serde_json::json!({ "reason": "I am confused" });
    let script = format!("do: call reset_conversation {call} ;; say last words");
    let sent = daemon.send("coder", &script);
    let waiting = daemon.send("coder", "do: say waited");
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (Status::Completed, "last words")
    );
    let reset = until_reset(&daemon, 1);
    assert_eq!(reset.source, ResetSource::Tool);
    assert!(notes(&daemon).contains("I am confused"));
    // What waited goes along, and is answered there.
    let answer = daemon.answer("coder", waiting.prompt);
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (Status::Completed, "waited")
    );
    assert_ne!(
        Some(answer.conversation),
        daemon.events("coder").first().map(|it| it.conversation)
    );
    assert!(!last_request(&daemon).contains("last words"));
    let undo = Reset {
        step: Some(Direction::Undo),
        ..Reset::default()
    };
    let receipt = daemon.block(daemon.client().reset("coder", &undo)).unwrap();
    assert_eq!(receipt.source, ResetSource::User);
    assert_eq!(daemon.show("coder").summary.as_deref(), Some("last words"));
    daemon.verify();
}

#[test]
fn over_a_size_before_the_next_prompt_is_taken() {
    let daemon = daemon_with(AutoReset {
        over_tokens: Some(1),
        ..AutoReset::default()
    });
    daemon.completed("coder", "do: say one");
    let next = daemon.completed("coder", "do: say two");
    let reset = until_reset(&daemon, 2);
    assert_eq!(reset.source, ResetSource::ContextSize);
    assert!(notes(&daemon).contains("over_tokens"));
    let all = daemon
        .block(daemon.client().conversations("coder"))
        .unwrap();
    assert_eq!(all.conversations[1].id, next.conversation);
    assert_eq!(all.conversations.len(), 3);
    // Taken back, it stays so until something more is said.
    let undo = Reset {
        step: Some(Direction::Undo),
        ..Reset::default()
    };
    let receipt = daemon.block(daemon.client().reset("coder", &undo)).unwrap();
    assert_eq!(receipt.new, next.conversation);
    assert_eq!(daemon.show("coder").phase, Phase::Idle);
    assert_eq!(daemon.count("coder", Kind::ResetBegan), 3);
    daemon.completed("coder", "do: say three");
    until_reset(&daemon, 4);
    daemon.requests();
}

/// The reset happens when it is due, without a prompt, and also if no daemon ran at that time.
#[test]
fn after_a_silence_whether_or_not_a_prompt_comes() {
    let daemon = daemon_with(AutoReset {
        idle_ms: Some(300),
        ..AutoReset::default()
    });
    daemon.completed("coder", "do: say one");
    let reset = until_reset(&daemon, 1);
    assert_eq!(reset.source, ResetSource::Idle);
    assert!(notes(&daemon).contains("idle_ms"));
    // Nothing was said in the new one: it stays.
    daemon.completed("coder", "do: say two");
    daemon.kill_daemon();
    daemon.start_daemon();
    until_reset(&daemon, 2);
    assert_eq!(daemon.show("coder").generation, 3);
    let agent = daemon.show("coder");
    assert_eq!(
        (agent.phase, agent.conversation.unwrap().turns),
        (Phase::Idle, 0)
    );
    // A stopped agent is left alone.
    daemon.completed("coder", "do: say three");
    daemon
        .block(daemon.client().stop("coder", &Stop::default()))
        .unwrap();
    let resets = began(&daemon).len();
    let begin = std::time::Instant::now();
    until("a while", || {
        (begin.elapsed().as_millis() > 600).then_some(())
    });
    assert_eq!(began(&daemon).len(), resets);
    daemon.verify();
}

/// The daemon dies at the end of the turn that requested the reset: the next daemon carries it out.
#[test]
fn a_daemon_that_dies_before_it_is_made_makes_it_after() {
    let daemon = daemon_with(AutoReset {
        by_tool: true,
        ..AutoReset::default()
    });
    let call = serde_json::json!({});
    let script = format!("do: call reset_conversation {call} ;; slowly 20 some last words here");
    daemon.send("coder", &script);
    daemon.until_kind("coder", Kind::ResetScheduled);
    daemon.kill_daemon();
    daemon.start_daemon();
    let reset = until_reset(&daemon, 1);
    assert_eq!(reset.source, ResetSource::Tool);
    assert_eq!(daemon.show("coder").generation, 2);
    daemon.completed("coder", "do: say next");
    assert!(!last_request(&daemon).contains("last words"));
    daemon.verify();
}

/// Regression: the second reset was half a minute late, because its agent had just been reset.
#[test]
fn each_silence_has_its_own_at_its_time() {
    let daemon = daemon_with(AutoReset {
        idle_ms: Some(300),
        ..AutoReset::default()
    });
    let begin = std::time::Instant::now();
    for n in 1..=3 {
        daemon.completed("coder", "do: say something");
        until_reset(&daemon, n);
    }
    assert!(begin.elapsed().as_secs() < 25, "{:?}", begin.elapsed());
}
