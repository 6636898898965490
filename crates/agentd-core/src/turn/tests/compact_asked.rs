//! A compaction that the user requests: a turn that answers no prompt, makes one summary, and ends.

use super::harness::{Rig, fails, says};
use crate::event::{
    AgentStopped, Body, CompactionAsked, FailureClass, Instruction, Purpose, TurnStatus,
};
use crate::id::OpId;
use crate::state::{CompactionOutcome, Phase};
use crate::turn::Input;

const OP: OpId = OpId::from_bytes([4; 16]);

fn ask() -> Vec<Body> {
    let text = "keep the names".to_owned();
    vec![
        CompactionAsked { op: OP }.into(),
        Instruction { text }.into(),
    ]
}

/// An agent that has answered once.
fn answered() -> Rig {
    let mut rig = Rig::asked();
    rig.on(says("a long story")).completes();
    rig
}

fn outcome(rig: &Rig) -> Option<CompactionOutcome> {
    rig.machine.agent().compactions.outcome(OP)
}

#[test]
fn everything_is_summarized_and_no_prompt_is_answered() {
    let mut rig = answered();
    let last = rig.machine.agent().last_turn.clone();
    rig.write(ask()).does([
        "append turn_started",
        "append request_sent 1.2 compact",
        "send 1.2",
    ]);
    let (_, request) = rig.sent.last().unwrap();
    assert_eq!(request.purpose, Purpose::Compact);
    assert!(format!("{:?}", request.messages.last()).contains("keep the names"));
    assert_eq!(rig.machine.agent().phase(), Phase::Running);
    let through = rig.machine.window().items().last().unwrap().placed.seq;
    let made =
        format!("append request_ended completed, compacted through {through}, summary (ends 1.2)");
    rig.on(says("short"))
        .does([&made, "append turn_ended completed, checkpoint_set"]);
    assert_eq!(rig.machine.window().items().len(), 1, "the summary alone");
    assert_eq!(outcome(&rig), Some(CompactionOutcome::Compacted));
    let agent = rig.machine.agent();
    assert_eq!(
        agent.last_turn, last,
        "a compaction is not counted as a turn"
    );
    assert_eq!(agent.tree.current_conversation().unwrap().turns, 1);
    assert_eq!((agent.phase(), agent.anomalies), (Phase::Idle, 0));
    // The instruction for this compaction does not apply to the next one.
    rig.prompt("go on").ends_with("send 1.3");
    assert!(!format!("{:?}", rig.sent.last()).contains("keep the names"));
}

#[test]
fn of_nothing_there_is_nothing_to_sum_up() {
    let mut rig = Rig::new();
    rig.write(ask()).does([
        "append turn_started",
        "append turn_ended completed, checkpoint_set",
    ]);
    assert_eq!(outcome(&rig), Some(CompactionOutcome::Nothing));
}

#[test]
fn a_turn_ends_first_and_a_prompt_that_waits_comes_after() {
    let mut rig = Rig::asked();
    rig.write(ask()).does([]);
    rig.prompt("next").does([]);
    rig.on(says("done")).ends_with("send 1.2");
    assert_eq!(rig.sent.last().unwrap().1.purpose, Purpose::Compact);
    rig.on(says("short")).ends_with("send 1.3");
    assert_eq!(rig.sent.last().unwrap().1.purpose, Purpose::Answer);
}

#[test]
fn a_crash_in_it_makes_it_anew_and_tells_the_model_nothing() {
    let mut rig = answered();
    rig.write(ask());
    rig.crash().ends_with("send 2.1");
    assert_eq!(rig.sent.last().unwrap().1.purpose, Purpose::Compact);
    assert!(format!("{:?}", rig.sent.last()).contains("keep the names"));
    rig.on(says("short"));
    assert_eq!(outcome(&rig), Some(CompactionOutcome::Compacted));
    assert!(!format!("{:?}", rig.machine.window().items()).contains("restarted"));
}

#[test]
fn again_and_again_it_is_lost_and_the_agent_is_well() {
    let mut rig = answered();
    rig.write(ask());
    rig.crash();
    rig.crash();
    rig.crash();
    assert_eq!(outcome(&rig), Some(CompactionOutcome::Lost));
    let last = rig.machine.agent().last_turn.as_ref().unwrap();
    assert_eq!(last.status, TurnStatus::Completed);
    assert_eq!(rig.machine.agent().phase(), Phase::Idle);
    rig.prompt("hello").ends_with("send 4.1");
}

#[test]
fn interrupted_or_refused_everything_is_as_it_was() {
    let mut rig = answered();
    let before = rig.machine.window().items().to_vec();
    rig.write(ask());
    rig.give(Input::Interrupt);
    rig.on(super::harness::Act::Cancelled {
        partial: Default::default(),
    });
    assert_eq!(outcome(&rig), Some(CompactionOutcome::Interrupted));
    assert_eq!(rig.machine.window().items(), before);
    let op = OpId::from_bytes([5; 16]);
    rig.write(vec![CompactionAsked { op }.into()]);
    rig.on(fails(FailureClass::Rejected))
        .ends_with("append turn_ended failed rejected, checkpoint_set");
    let outcome = rig.machine.agent().compactions.outcome(op);
    assert_eq!(outcome, Some(CompactionOutcome::Failed));
    assert_eq!(rig.machine.window().items(), before);
    assert_eq!(rig.machine.agent().phase(), Phase::Idle);
}

#[test]
fn one_that_has_not_begun_goes_with_a_stop() {
    let mut rig = Rig::new();
    rig.give(Input::Stop);
    rig.write(ask());
    rig.write(vec![AgentStopped {}.into()]);
    let compactions = &rig.machine.agent().compactions;
    assert_eq!(
        compactions.outcome(OP),
        Some(CompactionOutcome::Interrupted)
    );
}
