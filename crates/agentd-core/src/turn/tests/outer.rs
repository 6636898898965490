//! A program runs the turn: it is given each prompt once, and what it says is recorded.

use super::harness::{Rig, allowed, calls, fails, finishes, says};
use crate::event::{FailureClass, PromptMode, TurnStatus};
use crate::message::{Block, CallOutcome};
use crate::outer::Wanted;
use crate::spec::{Command, Runtime};
use crate::turn::Input;

fn outer() -> Rig {
    Rig::with(|spec, _policy| {
        spec.runtime = Runtime::Command;
        spec.command = Some(Command {
            program: "x".to_owned(),
            ..Command::default()
        });
    })
}

fn delivered(rig: &Rig) -> Vec<Block> {
    match rig.machine.wanted() {
        Some(Wanted::Deliver(delivery)) => delivery.prompts.into_iter().flatten().collect(),
        other => panic!("{other:?}"),
    }
}

fn last_status(rig: &Rig) -> Option<TurnStatus> {
    let agent = rig.machine.agent();
    assert!(agent.turn.is_none(), "the turn is over");
    agent.last_turn.as_ref().map(|turn| turn.status)
}

#[test]
fn it_is_given_the_prompt_and_then_listened_to() {
    let mut rig = outer();
    rig.prompt("hi");
    assert_eq!(delivered(&rig), [Block::text("hi")]);
    rig.on(calls(&["look"]));
    rig.on(allowed("call_2_1_0"));
    rig.on(finishes("call_2_1_0", CallOutcome::Ok));
    assert_eq!(rig.machine.wanted(), Some(Wanted::Listen));
    assert_eq!(rig.sent.len(), 2);
    rig.on(says("done")).completes();
    // The next turn is given its own prompt only.
    rig.prompt("and now?");
    assert_eq!(delivered(&rig), [Block::text("and now?")]);
}

#[test]
fn a_prompt_that_was_delivered_is_never_delivered_again() {
    let mut rig = outer();
    rig.prompt("hi");
    let seen = rig.crash();
    let text = seen.0.join("\n");
    assert!(text.contains("turn_ended interrupted"), "{text}");
    assert_eq!(last_status(&rig), Some(TurnStatus::Interrupted));
    assert_eq!(rig.sent.len(), 1);
    // The next prompt comes with what happened.
    rig.prompt("again?");
    let Some(Wanted::Deliver(delivery)) = rig.machine.wanted() else {
        panic!("nothing is delivered")
    };
    assert_eq!(delivery.prompts, [vec![Block::text("again?")]]);
    assert!(delivery.notices.concat().contains("not sent again"));
}

#[test]
fn a_call_that_a_crash_cut_off_is_unknown() {
    let mut rig = outer();
    rig.prompt("hi");
    rig.on(calls(&["look"]));
    rig.on(allowed("call_2_1_0"));
    let text = rig.crash().0.join("\n");
    assert!(text.contains("tool_ended call_2_1_0 unknown"), "{text}");
    assert_eq!(last_status(&rig), Some(TurnStatus::Interrupted));
    assert_eq!(rig.sent.len(), 1);
}

#[test]
fn a_failure_is_not_tried_again() {
    let mut rig = outer();
    rig.prompt("hi");
    rig.on(fails(FailureClass::Rejected));
    assert_eq!(last_status(&rig), Some(TurnStatus::Failed));
    assert_eq!(rig.sent.len(), 1);
}

#[test]
fn steering_waits_for_the_next_turn() {
    let mut rig = outer();
    rig.prompt("hi");
    rig.prompt_as(PromptMode::Steer, "shorter").does([]);
    let text = rig.on(says("long")).0.join("\n");
    assert!(text.contains("turn_ended completed"), "{text}");
    assert_eq!(delivered(&rig), [Block::text("shorter")]);
}

#[test]
fn a_stop_waits_for_the_end_of_the_turn() {
    let mut rig = outer();
    rig.prompt("hi");
    rig.give(Input::Stop).does([]);
    rig.on(calls(&["look"]));
    rig.on(allowed("call_2_1_0"));
    rig.on(finishes("call_2_1_0", CallOutcome::Ok));
    assert_eq!(rig.sent.len(), 2, "it listens to the rest");
    let text = rig.on(says("done")).0.join("\n");
    assert!(text.contains("turn_ended completed"), "{text}");
    assert!(text.ends_with("stopped"), "{text}");
}

#[test]
fn a_program_that_ends_while_the_user_is_asked_fails_the_turn() {
    let mut rig = outer();
    rig.prompt("hi");
    rig.on(calls(&["look"]));
    let asks = super::harness::prepared(
        "call_2_1_0",
        crate::turn::Prepared::Ask("it asks".to_owned()),
    );
    rig.on(asks);
    rig.give(Input::ChildGone("it is gone".to_owned()));
    assert_eq!(last_status(&rig), Some(TurnStatus::Failed));
    assert!(rig.machine.agent().approvals.waiting().next().is_none());
}

#[test]
fn the_next_prompt_names_the_calls_whose_outcome_is_unknown() {
    let mut rig = outer();
    rig.prompt("hi");
    rig.on(calls(&["look"]));
    rig.on(allowed("call_2_1_0"));
    // The program ends, and its process goes on.
    rig.on(finishes("call_2_1_0", CallOutcome::Unknown));
    rig.on(fails(FailureClass::Rejected));
    assert_eq!(last_status(&rig), Some(TurnStatus::Failed));
    rig.prompt("again?");
    let Some(Wanted::Deliver(delivery)) = rig.machine.wanted() else {
        panic!("nothing is delivered")
    };
    assert_eq!(delivery.prompts, [vec![Block::text("again?")]]);
    let [notice] = &delivery.notices[..] else {
        panic!("{:?}", delivery.notices)
    };
    assert!(notice.contains("is unknown"), "{notice}");
    assert!(notice.contains("look"), "{notice}");
    assert!(delivery.is_after_cut);
    // It is said once.
    rig.on(says("yes")).completes();
    rig.prompt("and now?");
    let Some(Wanted::Deliver(delivery)) = rig.machine.wanted() else {
        panic!("nothing is delivered")
    };
    assert!(delivery.notices.is_empty(), "{:?}", delivery.notices);
    assert!(!delivery.is_after_cut);
}
