//! Background tasks: their start is recorded with the call's result, and their end is reported once, at a boundary.

use super::harness::{Rig, Seen, allowed, calls, finishes, says};
use crate::event::{TaskExit, TaskStarted};
use crate::id::{BootId, CallId, TaskId};
use crate::message::{Block, CallOutcome};
use crate::recover::CallFact;
use crate::turn::{Finished, Input};
use uuid::Uuid;

const A: &str = "call_1_1_0";

fn task() -> TaskId {
    TaskId::new(Uuid::from_u128(77))
}

fn left_running() -> Finished {
    Finished {
        background: Some(TaskStarted {
            task: task(),
            call: CallId::new(A),
            tool: "shell".into(),
            boot: BootId::new(Uuid::from_u128(1)),
        }),
        ..Finished::new(CallOutcome::Ok, vec![Block::text("started")])
    }
}

fn ends(rig: &mut Rig) -> Seen {
    rig.give(Input::TaskEnded {
        task: task(),
        exit: TaskExit::Code { code: 0 },
        text: "the build is done".into(),
    })
}

/// A rig whose model has started a task and has been asked again.
fn started() -> Rig {
    let mut rig = Rig::called(&["shell"]);
    rig.on(allowed(A));
    let (call, finished) = (CallId::new(A), left_running());
    rig.give(Input::ToolFinished { call, finished }).does([
        "append task_started, tool_ended call_1_1_0 ok, result",
        "append request_sent 1.2",
        "send 1.2",
    ]);
    rig
}

#[test]
fn the_end_of_a_task_is_told_between_turns() {
    let mut rig = started();
    rig.on(says("it runs"));
    ends(&mut rig).does(["append task_ended, notice task_ended"]);
    assert_eq!(rig.machine.agent().tasks.running().len(), 0);
    rig.prompt("and now?").ends_with("send 1.3");
    let (_, request) = rig.sent.last().unwrap();
    assert!(format!("{request:?}").contains("the build is done"));
}

/// A turn that has to wait does not keep the ends of tasks waiting.
#[test]
fn a_process_that_may_begin_no_turn_records_the_end_of_a_task() {
    let mut rig = started();
    rig.give(Input::HoldTurns).does([]);
    // The turn that has begun continues.
    rig.on(says("it runs"));
    assert!(rig.machine.agent().turn.is_none());
    rig.prompt("and now?").does([]);
    ends(&mut rig).does(["append task_ended, notice task_ended"]);
    rig.give(Input::Continue).does([]);
    assert_eq!(rig.machine.agent().inbox.waiting().len(), 1);
    rig.give(Input::BeginTurns).ends_with("send 1.3");
}

/// Between a request and its reply it would change what the provider has seen.
#[test]
fn while_the_model_answers_it_waits_and_then_the_model_hears_of_it_in_the_same_turn() {
    let mut rig = started();
    ends(&mut rig).does([]);
    rig.on(says("it runs")).does([
        "append request_ended completed, message complete (ends 1.2)",
        "append task_ended, notice task_ended",
        "append request_sent 1.3",
        "send 1.3",
    ]);
}

#[test]
fn while_a_call_runs_it_waits_for_the_result() {
    let mut rig = started();
    rig.on(calls(&["shell"]));
    rig.on(allowed("call_1_2_0"));
    ends(&mut rig).does([]);
    rig.on(finishes("call_1_2_0", CallOutcome::Ok)).does([
        "append tool_ended call_1_2_0 ok, result",
        "append task_ended, notice task_ended",
        "append request_sent 1.3",
        "send 1.3",
    ]);
}

#[test]
fn it_is_told_once_and_only_of_tasks_that_are_ours() {
    let mut rig = started();
    ends(&mut rig).does([]);
    ends(&mut rig).does([]);
    rig.on(says("it runs"));
    rig.on(says("it is done")).completes();
    ends(&mut rig).does([]);
}

#[test]
fn a_task_whose_start_was_found_after_a_crash_is_on_record() {
    let mut rig = Rig::called(&["shell"]);
    rig.on(allowed(A));
    rig.crash_in_call(A, CallFact::Ended(left_running()))
        .ends_with("send 2.1");
    assert_eq!(rig.machine.agent().tasks.running().len(), 1);
}
