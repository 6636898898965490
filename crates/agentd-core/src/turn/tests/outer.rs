//! A program runs the turn: it is given each prompt once, and what it says is recorded.

use super::harness::{Act, Rig, allowed, calls, fails, finishes, prepared, says, used};
use crate::event::{
    After, Decision, FailureClass, LimitKind, Notice, NoticeCause, PromptMode, TurnStatus,
};
use crate::message::{Block, CallOutcome};
use crate::outer::{Delivery, Wanted};
use crate::spec::{Command, Runtime};
use crate::turn::{Input, Prepared};
use crate::usage::MicroUsd;

fn outer() -> Rig {
    Rig::with(|spec, _policy| {
        spec.runtime = Runtime::Command;
        spec.command = Some(Command {
            program: "x".to_owned(),
            ..Command::default()
        });
    })
}

fn delivery(rig: &Rig) -> Delivery {
    match rig.machine.wanted() {
        Some(Wanted::Deliver(delivery)) => delivery,
        other => panic!("{other:?}"),
    }
}

fn delivered(rig: &Rig) -> Vec<Block> {
    delivery(rig).prompts.into_iter().flatten().collect()
}

/// A hook adds to the conversation between two turns.
fn told_by_hook(rig: &mut Rig) {
    let (cause, text) = (NoticeCause::Hook, "by a hook".to_owned());
    rig.write(vec![Notice { cause, text }.into()]);
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
    rig.on(fails(FailureClass::ProgramFailed));
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
    let mut rig = asking();
    rig.give(Input::ChildGone("it is gone".to_owned()));
    assert_eq!(last_status(&rig), Some(TurnStatus::Failed));
    assert!(rig.machine.agent().approvals.waiting().next().is_none());
}

/// An agent whose program has asked about a call, which waits for the user.
fn asking() -> Rig {
    let mut rig = outer();
    rig.prompt("hi");
    rig.on(calls(&["look"]));
    rig.on(asks());
    assert!(rig.machine.agent().waits_for_user());
    rig
}

fn asks() -> Act {
    let why = "it asks".to_owned();
    prepared("call_2_1_0", Prepared::Ask(why))
}

#[test]
fn a_stop_waits_for_the_answer_to_the_program() {
    let mut rig = asking();
    rig.give(Input::Stop).does([]);
    assert!(rig.machine.agent().needs_process());
    rig.decide(Decision::Allow);
    rig.on(allowed("call_2_1_0"));
    rig.on(finishes("call_2_1_0", CallOutcome::Ok));
    let text = rig.on(says("done")).0.join("\n");
    assert!(text.contains("turn_ended completed"), "{text}");
    assert!(text.ends_with("stopped"), "{text}");
}

/// The daemon is ending: the program ends with this process.
#[test]
fn a_process_that_leaves_does_not_wait_for_the_user() {
    let mut rig = asking();
    rig.give(Input::Leave).does(["stopped"]);
    assert!(rig.machine.agent().needs_process(), "the turn must end");
    let text = rig.take_over(After::Restart, |_| {}).0.join("\n");
    assert!(text.contains("call_2_1_0 not_started"), "{text}");
    assert_eq!(last_status(&rig), Some(TurnStatus::Interrupted));
    assert!(!rig.machine.agent().needs_process());
}

/// The hooks of a call may take long. The program is not told to run it while its process ends.
#[test]
fn a_process_that_leaves_begins_no_call() {
    let mut rig = outer();
    rig.prompt("hi");
    rig.on(calls(&["look"]));
    rig.give(Input::Leave).does(["stopped"]);
    // What was decided meanwhile comes too late.
    let text = rig.on(allowed("call_2_1_0")).0.join("\n");
    assert!(!text.contains("tool_started"), "{text}");
    rig.take_over(After::Restart, |_| {});
    assert_eq!(last_status(&rig), Some(TurnStatus::Interrupted));
}

/// The call waits, so it needs no process: unlike a program's question, any process can start it later.
#[test]
fn an_approval_of_an_agents_own_call_needs_no_process() {
    let mut rig = Rig::called(&["shell"]);
    let why = "a rule".to_owned();
    rig.on(prepared("call_1_1_0", Prepared::Ask(why)));
    assert!(!rig.machine.agent().needs_process());
    rig.give(Input::Stop).does(["stopped"]);
}

#[test]
fn a_call_that_the_program_was_not_told_to_run_has_not_run() {
    let mut rig = asking();
    rig.decide(Decision::Allow);
    let text = rig.crash().0.join("\n");
    assert!(text.contains("call_2_1_0 not_started"), "{text}");
    assert_eq!(last_status(&rig), Some(TurnStatus::Interrupted));
}

/// Hooks may take long. A program that ends meanwhile waits for no answer.
#[test]
fn no_user_is_asked_for_a_program_that_ended_while_the_call_was_prepared() {
    let mut rig = outer();
    rig.prompt("hi");
    rig.on(calls(&["look"]));
    rig.give(Input::ChildGone("it is gone".to_owned())).does([]);
    let text = rig.on(asks()).0.join("\n");
    assert!(!text.contains("approval_requested"), "{text}");
    assert_eq!(last_status(&rig), Some(TurnStatus::Failed));
}

#[test]
fn what_a_failed_or_interrupted_turn_has_used_counts() {
    let mut rig = outer();
    let reported = || Input::Spent {
        usage: used(7, 3),
        cost: Some(MicroUsd(50)),
    };
    rig.prompt("hi");
    rig.give(reported());
    rig.on(fails(FailureClass::ProgramFailed));
    assert_eq!(last_status(&rig), Some(TurnStatus::Failed));
    rig.prompt("again");
    rig.give(Input::Interrupt);
    rig.give(reported());
    let partial = super::harness::text("");
    rig.on(Act::Cancelled { partial });
    assert_eq!(last_status(&rig), Some(TurnStatus::Interrupted));
    let spent = rig.machine.agent().last_turn.as_ref().unwrap().spent;
    assert_eq!((spent.usage, spent.cost), (used(7, 3), MicroUsd(50)));
    let all = rig.machine.agent().spending.lifetime;
    assert_eq!(all.usage, used(14, 6));
}

#[test]
fn the_next_prompt_names_the_calls_whose_outcome_is_unknown() {
    let mut rig = outer();
    rig.prompt("hi");
    rig.on(calls(&["look"]));
    rig.on(allowed("call_2_1_0"));
    // The program ends, and its process goes on.
    rig.on(finishes("call_2_1_0", CallOutcome::Unknown));
    rig.on(fails(FailureClass::ProgramFailed));
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

#[test]
fn a_notice_between_two_turns_does_not_hide_the_calls_whose_outcome_is_unknown() {
    let mut rig = outer();
    rig.prompt("hi");
    rig.on(calls(&["look"]));
    rig.on(allowed("call_2_1_0"));
    rig.on(finishes("call_2_1_0", CallOutcome::Unknown));
    rig.on(fails(FailureClass::ProgramFailed));
    told_by_hook(&mut rig);
    rig.prompt("again?");
    let delivery = delivery(&rig);
    let [unknown, hook] = &delivery.notices[..] else {
        panic!("{:?}", delivery.notices)
    };
    assert!(unknown.contains("look"), "{unknown}");
    assert_eq!(hook, "by a hook");
    assert!(delivery.is_after_cut);
}

#[test]
fn a_notice_between_two_turns_does_not_make_a_session_doubtful() {
    let mut rig = outer();
    rig.prompt("hi");
    rig.on(says("done")).completes();
    told_by_hook(&mut rig);
    rig.prompt("and now?");
    let healthy = delivery(&rig);
    assert_eq!(healthy.notices, ["by a hook"]);
    assert!(!healthy.is_after_cut);
    // After an interrupt it is doubtful, with such a notice too.
    rig.crash();
    assert_eq!(last_status(&rig), Some(TurnStatus::Interrupted));
    told_by_hook(&mut rig);
    rig.prompt("again?");
    let cut = delivery(&rig);
    assert_eq!(cut.notices.len(), 2, "{:?}", cut.notices);
    assert!(cut.is_after_cut);
}

/// Regression: such a turn failed, and could not be continued.
#[test]
fn a_turn_that_a_limit_of_the_program_ended_is_limited() {
    let mut rig = outer();
    rig.prompt("hi");
    rig.give(Input::ChildLimited(LimitKind::Iterations));
    rig.on(says("half"));
    assert_eq!(last_status(&rig), Some(TurnStatus::Limited));
    let last = rig.machine.agent().last_turn.as_ref();
    assert_eq!(
        last.and_then(|turn| turn.limit),
        Some(LimitKind::Iterations)
    );
    rig.prompt("again");
    rig.on(says("done")).completes();
}

/// Regression: the frames of a program had no id, so an old answer was taken for a new one.
#[test]
fn each_delivery_has_an_id_of_its_own() {
    let mut rig = outer();
    rig.prompt("hi");
    let first = delivery(&rig).id;
    assert_eq!(delivery(&rig).id, first, "it follows from the journal");
    rig.on(says("done")).completes();
    rig.prompt("and now?");
    assert_ne!(delivery(&rig).id, first);
}

/// Regression: the next prompt said that the program had ended, and the session became doubtful.
#[test]
fn a_completed_turn_with_an_unfinished_call_is_not_cut_off() {
    let mut rig = outer();
    rig.prompt("hi");
    rig.on(calls(&["look"]));
    rig.on(allowed("call_2_1_0"));
    rig.on(finishes("call_2_1_0", CallOutcome::Unknown));
    rig.on(says("done")).completes();
    rig.prompt("and now?");
    let next = delivery(&rig);
    assert_eq!(next.notices, [""; 0]);
    assert!(!next.is_after_cut);
}
