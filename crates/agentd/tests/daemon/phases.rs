//! A runtime is killed before and after each write of a turn: the turn continues by itself, and no tool runs twice.

use crate::test_daemon::{TestDaemon, kill, until};
use agentd_client::api::Status;
use agentd_core::event::Kind;
use rustix::process::Signal;

const PLACES: [&str; 17] = [
    "before-incarnation_began",
    "after-incarnation_began",
    "before-turn_started",
    "after-turn_started",
    "after-context",
    "before-request_sent",
    "after-request_sent",
    "after-draft",
    "before-message",
    "after-message",
    "before-tool_started",
    "after-tool_started",
    "before-result",
    "after-result",
    "before-turn_ended",
    "after-turn_ended",
    "after-checkpoint_set",
];

#[test]
fn killed_at_each_place_of_a_turn() {
    for place in PLACES {
        let daemon = TestDaemon::empty();
        daemon.daemon_has_keys();
        daemon.hold_runtime(place);
        daemon.start_daemon();
        daemon.create("coder");
        let call = serde_json::json!({ "command": "echo once >> effects" });
        let words = "word ".repeat(10);
        let sent = daemon.send(
            "coder",
            &format!("do: call shell {call} ;; slowly 20 {words}"),
        );
        daemon.until_held();
        let pid = until("a process", || daemon.pid("coder"));
        kill(pid, Signal::KILL);
        let answer = daemon.answer("coder", sent.prompt);
        assert_eq!(answer.status, Status::Completed, "{place}: {answer:#?}");
        assert!(!answer.text.is_empty(), "{place}");
        // A call that had not begun is told as not started: the model decides. It never runs again by itself.
        let effects = daemon.effects();
        assert!(effects.len() <= 1, "{place}: {effects:?}");
        assert_eq!(daemon.count("coder", Kind::TurnEnded), 1, "{place}");
        daemon.requests();
        daemon.verify();
    }
}
