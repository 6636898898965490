//! Calls run in order, in parallel where that is safe, each at most once, each with one result.

use super::harness::{Act, Rig, allowed, calling, calls, finishes, prepared, says};
use crate::event::StopReason;
use crate::message::{Block, CallOutcome};
use crate::turn::{Finished, Prepared};

const A: &str = "call_1_1_0";
const B: &str = "call_1_1_1";
const C: &str = "call_1_1_2";

fn ok(call: &str) -> Act {
    finishes(call, CallOutcome::Ok)
}

/// The model calls these tools, with these arguments.
fn called_with(calls: &[(&str, &str)]) -> (Rig, Vec<String>) {
    let mut rig = Rig::asked();
    let seen = rig.on(Act::Replied {
        reply: calling(calls),
        stop: StopReason::ToolUse,
        usage: None,
    });
    (rig, seen.0)
}

#[test]
fn a_call_is_prepared_recorded_run_and_answered() {
    let mut rig = Rig::asked();
    rig.on(calls(&["shell"])).does([
        "append request_ended completed, message complete (ends 1.1)",
        "prepare call_1_1_0",
    ]);
    rig.on(allowed(A))
        .does(["append tool_started call_1_1_0", "run call_1_1_0"]);
    rig.on(ok(A)).does([
        "append tool_ended call_1_1_0 ok, result",
        "append request_sent 1.2",
        "send 1.2",
    ]);
    rig.on(says("done")).completes();
}

/// `tool_started` is durable before the tool runs.
#[test]
fn it_does_not_run_before_its_start_is_durable() {
    let mut rig = Rig::called(&["shell"]);
    rig.holding = true;
    rig.on(allowed(A)).does(["append tool_started call_1_1_0"]);
    rig.commit().does(["run call_1_1_0"]);
}

#[test]
fn tools_that_are_not_safe_beside_each_other_run_one_after_the_other() {
    let mut rig = Rig::called(&["shell", "shell"]);
    rig.on(allowed(A))
        .does(["append tool_started call_1_1_0", "run call_1_1_0"]);
    rig.on(ok(A)).does([
        "append tool_ended call_1_1_0 ok, result",
        "prepare call_1_1_1",
    ]);
    rig.on(allowed(B))
        .does(["append tool_started call_1_1_1", "run call_1_1_1"]);
    rig.on(ok(B)).ends_with("send 1.2");
}

#[test]
fn tools_that_are_safe_run_beside_each_other_and_each_result_is_kept_as_it_comes() {
    let mut rig = Rig::asked();
    rig.on(calls(&["read", "read"])).does([
        "append request_ended completed, message complete (ends 1.1)",
        "prepare call_1_1_0",
        "prepare call_1_1_1",
    ]);
    rig.on(allowed(B))
        .does(["append tool_started call_1_1_1", "run call_1_1_1"]);
    rig.on(allowed(A))
        .does(["append tool_started call_1_1_0", "run call_1_1_0"]);
    // The second one ends first; its result does not wait for the first.
    rig.on(ok(B))
        .does(["append tool_ended call_1_1_1 ok, result"]);
    rig.on(ok(A)).ends_with("send 1.2");
    let results = rig.sent[1].1.messages.last().unwrap();
    assert_eq!(
        results.blocks.len(),
        2,
        "all results of one reply are one message"
    );
}

#[test]
fn an_unsafe_call_waits_for_the_safe_ones_before_it_and_holds_back_those_behind_it() {
    let mut rig = Rig::asked();
    rig.on(calls(&["read", "shell", "read"]))
        .ends_with("prepare call_1_1_0");
    rig.on(allowed(A))
        .does(["append tool_started call_1_1_0", "run call_1_1_0"]);
    rig.on(ok(A)).does([
        "append tool_ended call_1_1_0 ok, result",
        "prepare call_1_1_1",
    ]);
    rig.on(allowed(B))
        .does(["append tool_started call_1_1_1", "run call_1_1_1"]);
    rig.on(ok(B)).does([
        "append tool_ended call_1_1_1 ok, result",
        "prepare call_1_1_2",
    ]);
    rig.on(allowed(C)).ends_with("run call_1_1_2");
    rig.on(ok(C)).ends_with("send 1.2");
}

#[test]
fn results_that_come_during_an_append_go_into_the_next_one_together() {
    let mut rig = Rig::called(&["read", "read", "read"]);
    for call in [A, B, C] {
        rig.on(allowed(call));
    }
    rig.holding = true;
    rig.on(ok(A))
        .does(["append tool_ended call_1_1_0 ok, result"]);
    rig.on(ok(B)).does([]);
    rig.on(ok(C)).does([]);
    rig.commit()
        .does(["append tool_ended call_1_1_1 ok, result, tool_ended call_1_1_2 ok, result"]);
    rig.commit().does(["append request_sent 1.2"]);
}

#[test]
fn a_failed_tool_is_a_result_and_no_failure_of_the_turn() {
    let mut rig = Rig::called(&["shell"]);
    rig.on(allowed(A));
    rig.on(finishes(A, CallOutcome::Error)).does([
        "append tool_ended call_1_1_0 error, result",
        "append request_sent 1.2",
        "send 1.2",
    ]);
}

#[test]
fn a_call_that_is_refused_has_a_result_and_never_runs() {
    let mut rig = Rig::called(&["shell"]);
    let refused = Prepared::Refuse {
        outcome: CallOutcome::Denied,
        blocks: vec![Block::text("a rule forbids it")],
    };
    rig.on(prepared(A, refused)).does([
        "append tool_ended call_1_1_0 denied, result",
        "append request_sent 1.2",
        "send 1.2",
    ]);
}

#[test]
fn a_tool_without_output_says_so() {
    let mut rig = Rig::called(&["shell"]);
    rig.on(allowed(A));
    rig.give(crate::turn::Input::ToolFinished {
        call: crate::id::CallId::new(A),
        finished: Finished::new(CallOutcome::Ok, vec![Block::text("  \n")]),
    });
    let results = rig.sent[1].1.messages.last().unwrap().clone();
    let result = results.blocks[0].as_result().unwrap();
    assert_eq!(result.blocks, [Block::text("(no output)")]);
}

#[test]
fn malformed_arguments_run_nothing_and_are_told_to_the_model() {
    let (rig, seen) = called_with(&[("shell", "not json")]);
    assert_eq!(seen[1], "append tool_ended call_1_1_0 error, result");
    assert_eq!(seen.last().unwrap(), "send 1.2");
    let results = rig.sent[1].1.messages.last().unwrap();
    let result = results.blocks[0].as_result().unwrap();
    assert!(
        matches!(&result.blocks[0], Block::Text { text } if text.contains("not a JSON object"))
    );
}

/// The earlier valid call was marked as being prepared, but the effect that prepares it was lost.
#[test]
fn malformed_arguments_behind_a_good_call_do_not_lose_it() {
    let (mut rig, seen) = called_with(&[("read", "{}"), ("read", "[1]")]);
    let after = [
        "prepare call_1_1_0",
        "append tool_ended call_1_1_1 error, result",
    ];
    assert_eq!(seen[1..], after);
    rig.on(allowed(A)).ends_with("run call_1_1_0");
    rig.on(ok(A)).ends_with("send 1.2");
}

#[test]
fn malformed_arguments_behind_a_call_that_starts_do_not_lose_it_either() {
    let (mut rig, seen) = called_with(&[("shell", "{}"), ("shell", "oops"), ("shell", "{}")]);
    assert_eq!(
        seen.last().unwrap(),
        "append tool_ended call_1_1_1 error, result"
    );
    rig.on(allowed(A)).ends_with("run call_1_1_0");
    rig.on(ok(A)).ends_with("prepare call_1_1_2");
}

#[test]
fn late_and_repeated_news_of_a_call_change_nothing() {
    let mut rig = Rig::called(&["shell"]);
    rig.on(ok("call_9_9_9")).does([]);
    rig.on(allowed("call_9_9_9")).does([]);
    rig.on(allowed(A)).ends_with("run call_1_1_0");
    rig.on(allowed(A)).does([]);
    rig.on(ok(A)).ends_with("send 1.2");
    rig.on(ok(A)).does([]);
}

/// goose#11808, langgraph#7417: a result counts once; the harness checks that nothing runs twice.
#[test]
fn three_tools_have_three_results_and_ran_once_each() {
    let mut rig = Rig::called(&["shell", "shell", "shell"]);
    for call in [A, B, C] {
        rig.on(allowed(call));
        rig.on(ok(call));
    }
    let results = rig.sent[1].1.messages.last().unwrap();
    assert_eq!(results.blocks.len(), 3);
}
