//! An interrupt ends the turn, whatever it is doing; then the next prompt is answered.

use super::harness::{Act, Rig, allowed, fails, finishes, prepared, says, text};
use crate::event::{Body, FailureClass, MessageStatus, PromptMode, TurnStatus};
use crate::message::{Block, CallOutcome, Role};
use crate::turn::{Input, Prepared};

const A: &str = "call_1_1_0";
const CLOSED: &str = "append notice interrupted, turn_ended interrupted, checkpoint_set";

fn last_status(rig: &Rig) -> Option<TurnStatus> {
    rig.machine
        .agent()
        .last_turn
        .as_ref()
        .map(|turn| turn.status)
}

/// goose#11996: nothing continues, and the next prompt is the end of the next request.
#[track_caller]
fn next_prompt_is_answered(mut rig: Rig) {
    assert_eq!(last_status(&rig), Some(TurnStatus::Interrupted));
    assert!(rig.machine.agent().turn.is_none());
    rig.holding = false;
    rig.prompt("something else");
    let (_, request) = rig.sent.last().unwrap();
    let last = request.messages.last().unwrap();
    assert_eq!(last.blocks, [Block::text("something else")]);
    rig.on(says("sure")).completes();
}

#[test]
fn without_a_turn_it_does_nothing() {
    let mut rig = Rig::new();
    rig.give(Input::Interrupt).does([]);
    rig.prompt("hi").ends_with("send 1.1");
    rig.on(says("hello")).completes();
    rig.give(Input::Interrupt).does([]);
    rig.prompt("again").ends_with("send 1.2");
}

/// claude-code#24025, codex#2759: the part that had arrived is kept and marked, and the model sees it.
#[test]
fn while_the_model_answers_its_words_are_kept() {
    let mut rig = Rig::asked();
    rig.give(Input::Interrupt).does(["cancel 1.1"]);
    let partial = text("I was about to");
    rig.on(Act::Cancelled { partial }).does([
        "append request_ended interrupted, message interrupted (ends 1.1)",
        CLOSED,
    ]);
    rig.prompt("go on").ends_with("send 1.2");
    let said = &rig.sent[1].1.messages;
    assert_eq!(said[1].role, Role::Assistant);
    assert_eq!(said[1].blocks, [Block::text("I was about to")]);
    rig.on(says("well")).completes();
}

#[test]
fn before_a_word_has_arrived_no_empty_message_is_kept() {
    let mut rig = Rig::asked();
    rig.give(Input::Interrupt);
    let partial = Default::default();
    rig.on(Act::Cancelled { partial })
        .does(["append request_ended interrupted (ends 1.1)", CLOSED]);
    next_prompt_is_answered(rig);
}

#[test]
fn while_a_turn_begins_it_ends_as_soon_as_it_has_begun() {
    let mut rig = Rig::new();
    rig.holding = true;
    rig.prompt("hi")
        .does(["append turn_started, prompts_taken"]);
    rig.give(Input::Interrupt).does([]);
    rig.commit().does([CLOSED]);
    rig.commit().does([]);
    assert_eq!(rig.sent.len(), 0);
    next_prompt_is_answered(rig);
}

#[test]
fn a_request_that_is_on_record_and_has_not_left_never_leaves() {
    let mut rig = Rig::new();
    rig.holding = true;
    rig.prompt("hi");
    rig.commit().does(["append context"]);
    rig.commit().does(["append request_sent 1.1"]);
    rig.give(Input::Interrupt).does([]);
    rig.commit().does([
        "append request_ended interrupted, notice interrupted, turn_ended interrupted, checkpoint_set (ends 1.1)",
    ]);
    rig.commit().does([]);
    assert_eq!(rig.sent.len(), 0);
    assert_eq!(rig.machine.agent().spending.lifetime.usage.total(), 0);
    next_prompt_is_answered(rig);
}

#[test]
fn while_a_context_is_written_down_nothing_is_asked() {
    let mut rig = Rig::new();
    rig.holding = true;
    rig.prompt("hi");
    rig.commit().does(["append context"]);
    rig.give(Input::Interrupt).does([]);
    rig.commit().does([CLOSED]);
    rig.commit().does([]);
    next_prompt_is_answered(rig);
}

/// goose#9938: after a cancel nothing new starts.
#[test]
fn a_call_that_is_being_prepared_is_let_go_of_and_never_runs() {
    let mut rig = Rig::called(&["shell", "shell"]);
    rig.give(Input::Interrupt).does([
        "append tool_ended call_1_1_0 interrupted, result, tool_ended call_1_1_1 interrupted, result, notice interrupted, turn_ended interrupted, checkpoint_set",
    ]);
    rig.on(allowed(A)).does([]);
    rig.on(prepared(A, Prepared::Ask(String::new()))).does([]);
    next_prompt_is_answered(rig);
}

#[test]
fn a_call_whose_start_is_on_its_way_to_the_journal_does_not_run() {
    let mut rig = Rig::called(&["shell"]);
    rig.holding = true;
    rig.on(allowed(A)).does(["append tool_started call_1_1_0"]);
    rig.give(Input::Interrupt).does([]);
    rig.commit().does([
        "append tool_ended call_1_1_0 interrupted, result, notice interrupted, turn_ended interrupted, checkpoint_set",
    ]);
    rig.commit().does([]);
    next_prompt_is_answered(rig);
}

#[test]
fn a_running_tool_is_told_to_end_and_its_result_is_kept() {
    let mut rig = Rig::called(&["shell", "shell"]);
    rig.on(allowed(A));
    rig.give(Input::Interrupt).does(["cancel call_1_1_0"]);
    rig.give(Input::Interrupt).does([]);
    rig.on(finishes(A, CallOutcome::Interrupted)).does([
        "append tool_ended call_1_1_0 interrupted, result",
        "append tool_ended call_1_1_1 interrupted, result, notice interrupted, turn_ended interrupted, checkpoint_set",
    ]);
    next_prompt_is_answered(rig);
}

/// goose#7827, #7785, #11909: an interrupt in the third of three tools loses nothing.
#[test]
fn in_the_third_of_three_tools_it_keeps_the_first_two_results() {
    let mut rig = Rig::called(&["shell", "shell", "shell"]);
    for call in [A, "call_1_1_1"] {
        rig.on(allowed(call));
        rig.on(finishes(call, CallOutcome::Ok));
    }
    rig.on(allowed("call_1_1_2"));
    rig.give(Input::Interrupt).does(["cancel call_1_1_2"]);
    rig.on(finishes("call_1_1_2", CallOutcome::Interrupted));
    let outcomes: Vec<CallOutcome> = rig
        .journal
        .events
        .iter()
        .filter_map(|event| match &event.body {
            Body::ResultAdded(result) => Some(result.outcome),
            _ => None,
        })
        .collect();
    use CallOutcome::{Interrupted, Ok};
    assert_eq!(outcomes, [Ok, Ok, Interrupted]);
    next_prompt_is_answered(rig);
}

#[test]
fn tools_that_run_beside_each_other_are_all_told_and_all_waited_for() {
    let mut rig = Rig::called(&["read", "read"]);
    rig.on(allowed(A));
    rig.on(allowed("call_1_1_1"));
    rig.give(Input::Interrupt)
        .does(["cancel call_1_1_0", "cancel call_1_1_1"]);
    rig.on(finishes("call_1_1_1", CallOutcome::Interrupted))
        .does(["append tool_ended call_1_1_1 interrupted, result"]);
    assert!(rig.machine.agent().turn.is_some(), "one still runs");
    rig.on(finishes(A, CallOutcome::Interrupted))
        .does(["append tool_ended call_1_1_0 interrupted, result", CLOSED]);
    next_prompt_is_answered(rig);
}

#[test]
fn cancelling_does_not_wait_for_the_append_that_is_under_way() {
    let mut rig = Rig::called(&["read", "read"]);
    rig.on(allowed(A));
    rig.on(allowed("call_1_1_1"));
    rig.holding = true;
    rig.on(finishes(A, CallOutcome::Ok))
        .does(["append tool_ended call_1_1_0 ok, result"]);
    rig.give(Input::Interrupt).does(["cancel call_1_1_1"]);
    rig.commit().does([]);
    rig.on(finishes("call_1_1_1", CallOutcome::Interrupted))
        .does(["append tool_ended call_1_1_1 interrupted, result"]);
    rig.commit().does([CLOSED]);
    rig.commit().does([]);
    next_prompt_is_answered(rig);
}

#[test]
fn in_back_off_it_ends_the_turn_without_another_try() {
    let mut rig = Rig::asked();
    rig.on(fails(FailureClass::Overloaded))
        .ends_with("back off 1");
    rig.give(Input::Interrupt).does([CLOSED]);
    rig.give(Input::BackoffOver).does([]);
    next_prompt_is_answered(rig);
}

#[test]
fn a_back_off_that_ends_late_does_not_shorten_the_next_one() {
    let mut rig = Rig::asked();
    rig.on(fails(FailureClass::Overloaded));
    rig.give(Input::Interrupt);
    rig.prompt("again").ends_with("send 1.2");
    rig.holding = true;
    rig.on(fails(FailureClass::Overloaded));
    rig.give(Input::BackoffOver).does([]);
    rig.holding = false;
    rig.commit().does(["back off 1"]);
}

#[test]
fn a_paused_turn_can_be_interrupted() {
    let mut rig = Rig::asked();
    let reason = crate::event::PauseReason::MissingKey;
    rig.on(fails(FailureClass::Overloaded));
    rig.write(vec![crate::event::TurnPaused { reason }.into()])
        .does([]);
    rig.give(Input::Interrupt).does([CLOSED]);
    next_prompt_is_answered(rig);
}

/// goose#9037, #9042: a queued prompt is not lost on an interrupt.
#[test]
fn prompts_that_wait_are_answered_after_it() {
    let mut rig = Rig::asked();
    rig.prompt("queued").does([]);
    rig.give(Input::Interrupt);
    let partial = Default::default();
    rig.on(Act::Cancelled { partial }).does([
        "append request_ended interrupted (ends 1.1)",
        CLOSED,
        "append turn_started, prompts_taken",
        "append request_sent 1.2",
        "send 1.2",
    ]);
}

#[test]
fn a_prompt_that_interrupts_is_answered_before_those_that_waited() {
    let mut rig = Rig::called(&["shell"]);
    rig.on(allowed(A));
    rig.prompt("queued").does([]);
    rig.prompt_as(PromptMode::Interrupt, "this first")
        .does(["cancel call_1_1_0"]);
    rig.on(finishes(A, CallOutcome::Interrupted))
        .ends_with("send 1.2");
    let last = rig.sent[1].1.messages.last().unwrap();
    assert_eq!(last.blocks, [Block::text("this first")]);
    assert_eq!(rig.machine.agent().inbox.waiting().len(), 1);
}

#[test]
fn a_prompt_that_interrupts_while_a_turn_begins_ends_it_and_is_next() {
    let mut rig = Rig::new();
    rig.holding = true;
    rig.prompt("first");
    rig.prompt_as(PromptMode::Interrupt, "second").does([]);
    rig.commit().does([CLOSED]);
    rig.holding = false;
    rig.commit().ends_with("send 1.1");
    let last = rig.sent[0].1.messages.last().unwrap();
    assert_eq!(last.blocks, [Block::text("second")]);
}

/// The model gets one notice for each interruption, never as the user's text.
#[test]
fn the_model_is_told_once_in_a_role_of_its_own() {
    let mut rig = Rig::asked();
    rig.give(Input::Interrupt);
    let partial = text("half");
    rig.on(Act::Cancelled { partial });
    rig.prompt("next");
    let blocks = rig.sent[1].1.messages.iter().flat_map(|m| &m.blocks);
    let notices = blocks.filter(|block| matches!(block, Block::Notice { .. }));
    assert_eq!(notices.count(), 1);
}

#[test]
fn what_was_cut_off_in_the_middle_of_a_call_is_kept_for_people_and_runs_nothing() {
    let mut rig = Rig::asked();
    rig.give(Input::Interrupt);
    let partial = super::harness::calling(&[("shell", r#"{"comm"#)]);
    rig.on(Act::Cancelled { partial }).does([
        "append request_ended interrupted, message interrupted (ends 1.1)",
        CLOSED,
    ]);
    assert!(!rig.machine.window().has_open_calls());
    let words: Vec<String> = rig
        .journal
        .events
        .iter()
        .flat_map(|e| e.body.words())
        .collect();
    assert!(words.contains(&r#"shell {"comm"#.to_owned()));
    next_prompt_is_answered(rig);
}

#[test]
fn an_interrupted_reply_is_marked_so() {
    let mut rig = Rig::asked();
    rig.give(Input::Interrupt);
    let partial = text("half");
    rig.on(Act::Cancelled { partial });
    let marked = |event: &&crate::event::Event| matches!(&event.body, Body::MessageAdded(m) if m.status == MessageStatus::Interrupted);
    assert_eq!(rig.journal.events.iter().filter(marked).count(), 1);
}

/// The first interrupt must not keep the machine from cancelling the second turn.
#[test]
fn one_turn_after_the_other_can_be_interrupted() {
    let mut rig = Rig::asked();
    for n in 1..4 {
        let cancel = format!("cancel 1.{n}");
        rig.give(Input::Interrupt).does([&cancel]);
        let partial = text("half");
        rig.on(Act::Cancelled { partial }).ends_with(CLOSED);
        let send = format!("send 1.{}", n + 1);
        rig.prompt("again").ends_with(&send);
    }
}
