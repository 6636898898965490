//! A runtime is killed at each place of a turn where it has just written something, or is about to: the turn
//! goes on by itself, and no tool runs twice.

use crate::house::{House, kill, until};
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
        let house = House::empty();
        house.daemon_has_keys();
        house.hold_runtime(place);
        house.start_daemon();
        house.create("coder");
        let call = serde_json::json!({ "command": "echo once >> effects" });
        let words = "word ".repeat(10);
        let sent = house.send(
            "coder",
            &format!("do: call shell {call} ;; slowly 20 {words}"),
        );
        house.until_held();
        let pid = until("a process", || house.pid("coder"));
        kill(pid, Signal::KILL);
        let answer = house.answer("coder", sent.prompt);
        assert_eq!(answer.status, Status::Completed, "{place}: {answer:#?}");
        assert!(!answer.text.is_empty(), "{place}");
        // A call that had not begun is told as not started: the model decides. It never runs again by itself.
        let effects = house.effects();
        assert!(effects.len() <= 1, "{place}: {effects:?}");
        assert_eq!(house.count("coder", Kind::TurnEnded), 1, "{place}");
        house.requests();
        house.verify();
    }
}
