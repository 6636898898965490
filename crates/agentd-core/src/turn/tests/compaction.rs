//! When the window gets too small, a summary replaces its older part. It replaces nothing that it has not covered,
//! and a failed summary does not end the turn.

use super::harness::{Act, Rig, allowed, calls, fails, finishes, says, text, used};
use crate::event::{Body, FailureClass, Notice, NoticeCause, Purpose, StopReason};
use crate::message::{Block, CallOutcome};
use crate::turn::Input;

const OVERFLOW: FailureClass = FailureClass::ContextOverflow;

/// About 1,200 tokens.
fn long(word: &str) -> String {
    format!("{word:<3600}")
}

/// A rig with a model of 3,000 tokens, most of which are used when it is asked again.
fn nearly_full() -> Rig {
    let mut rig = Rig::with(|_, policy| policy.model_window = Some(3000));
    rig.prompt(&long("one")).ends_with("send 2.1");
    rig.on(says(&long("two"))).completes();
    rig.prompt("and then").does([
        "append turn_started, prompts_taken",
        "append request_sent 2.2 compact",
        "send 2.2",
    ]);
    rig
}

/// A rig with a model whose window is unknown, which has called two tools one after the other, and whose request with
/// the second result was too large.
fn overflowed() -> Rig {
    let mut rig = Rig::called(&["shell"]);
    rig.on(allowed("call_1_1_0"));
    rig.on(finishes("call_1_1_0", CallOutcome::Ok))
        .ends_with("send 1.2");
    rig.on(calls(&["shell"]));
    rig.on(allowed("call_1_2_0"));
    rig.on(finishes("call_1_2_0", CallOutcome::Ok))
        .ends_with("send 1.3");
    rig.on(fails(OVERFLOW)).does([
        "append request_ended failed context_overflow, note (ends 1.3)",
        "append request_sent 1.4 compact",
        "send 1.4",
    ]);
    rig
}

fn nothing() -> Act {
    Act::Replied {
        reply: Default::default(),
        stop: StopReason::EndTurn,
        usage: Some(used(1, 0)),
    }
}

fn said(rig: &Rig) -> Vec<Vec<Block>> {
    let (_, request) = rig.sent.last().unwrap();
    request.messages.iter().map(|m| m.blocks.clone()).collect()
}

fn summary(text: &str) -> Block {
    let text = format!("Summary of the conversation up to here:\n{text}");
    Block::Notice { text }
}

#[test]
fn near_the_limit_a_summary_comes_first_and_then_the_answer() {
    let mut rig = nearly_full();
    let two = rig.machine.window().items()[1].placed.seq;
    let compacted =
        format!("append request_ended completed, compacted through {two}, summary (ends 2.2)");
    rig.on(says("short"))
        .does([&compacted, "append request_sent 2.3", "send 2.3"]);
    assert_eq!(
        said(&rig),
        [vec![summary("short")], vec![Block::text("and then")]]
    );
    let conversation = rig.machine.agent().tree.current_conversation().unwrap();
    assert_eq!(conversation.compactions, 1);
    rig.on(says("answer")).completes();
}

#[test]
fn a_summary_is_asked_for_with_what_it_will_stand_for_and_calls_no_tool() {
    let rig = nearly_full();
    let (_, request) = rig.sent.last().unwrap();
    assert_eq!(request.purpose, Purpose::Compact);
    assert!(!request.may_call);
    let said = said(&rig);
    assert_eq!(said.len(), 3, "two messages and the instruction");
    assert_eq!(said[0], [Block::text(long("one"))]);
    assert_eq!(said[1], [Block::text(long("two"))]);
    assert!(
        !format!("{said:?}").contains("and then"),
        "what stays is not in it"
    );
}

/// The summary does not cover it, so the summary must not replace it.
#[test]
fn what_comes_while_the_summary_is_written_is_not_replaced_by_it() {
    let mut rig = nearly_full();
    let (cause, text) = (NoticeCause::TaskEnded, long("the build is done"));
    let notice = Notice { cause, text };
    rig.write(vec![notice.clone().into()]).does([]);
    rig.on(says("short"));
    let all = rig.machine.window().items();
    let last = &all.last().unwrap().entry;
    assert_eq!(*last, crate::window::Entry::Notice(notice.text));
    assert_eq!(all.len(), 3, "the summary, the prompt, the notice");
}

#[test]
fn what_is_far_from_the_limit_is_left_alone() {
    let mut rig = Rig::with(|_, policy| policy.model_window = Some(30_000));
    rig.prompt(&long("one"));
    rig.on(says(&long("two")));
    rig.prompt("and then").ends_with("send 2.2");
    assert_eq!(rig.sent.last().unwrap().1.purpose, Purpose::Answer);
}

#[test]
fn a_long_system_prompt_does_not_make_every_step_a_summary() {
    let mut rig = Rig::with(|_, policy| {
        policy.model_window = Some(3000);
        policy.context.system = "s".repeat(8_000);
    });
    rig.prompt("hi").ends_with("send 2.1");
    assert_eq!(rig.sent[0].1.purpose, Purpose::Answer);
    rig.on(says("hello"));
    rig.prompt("again").ends_with("send 2.2");
    assert_eq!(rig.sent[1].1.purpose, Purpose::Answer);
}

#[test]
fn an_early_threshold_does_not_make_every_step_a_summary() {
    let mut rig = Rig::with(|spec, policy| {
        spec.compact_at = 0.1;
        policy.model_window = Some(24_000);
    });
    rig.prompt(&long("one"));
    rig.on(says(&long("two")));
    rig.prompt("and then").ends_with("send 2.2");
    rig.on(says("short")).ends_with("send 2.3");
    rig.on(says("answer"));
    rig.prompt("and on").ends_with("send 2.4");
    let purposes: Vec<Purpose> = rig.sent.iter().map(|(_, sent)| sent.purpose).collect();
    use Purpose::{Answer, Compact};
    assert_eq!(purposes, [Answer, Compact, Answer, Answer]);
}

#[test]
fn an_overflow_is_answered_with_a_summary_at_once() {
    let mut rig = overflowed();
    rig.on(says("short")).ends_with("send 1.5");
    assert_eq!(rig.sent.last().unwrap().1.purpose, Purpose::Answer);
    rig.on(says("answer")).completes();
}

#[test]
fn calls_and_their_results_are_summarised_together() {
    let mut rig = overflowed();
    rig.on(says("short"));
    let said = said(&rig);
    let calls = said.iter().flatten().filter_map(Block::as_call);
    let calls: Vec<&str> = calls.map(|call| call.id.as_str()).collect();
    let results = said.iter().flatten().filter_map(Block::as_result);
    let results: Vec<&str> = results.map(|result| result.call.as_str()).collect();
    assert_eq!((calls, results), (vec!["call_1_2_0"], vec!["call_1_2_0"]));
}

/// The prompt that is being answered, and the result that the model has not seen, are not shortened.
#[test]
fn the_open_turn_s_prompt_and_its_newest_result_follow_the_summary_word_for_word() {
    let mut rig = overflowed();
    rig.on(says("short")).ends_with("send 1.5");
    let said = said(&rig);
    assert_eq!(said[0], [summary("short")]);
    assert_eq!(said[1], [Block::text("hi")]);
    let last = said.last().unwrap()[0].as_result().unwrap();
    assert_eq!(last.blocks, [Block::text("output")]);
    assert_eq!(said.len(), 4, "the call stands before its result");
}

/// A prompt that reached the threshold by itself used to be all that the summary covered. The model was then asked to
/// answer the summary alone.
#[test]
fn a_prompt_over_the_threshold_is_answered_and_never_summarised() {
    let mut rig = Rig::with(|spec, policy| {
        spec.compact_at = 0.1;
        policy.model_window = Some(12_000);
    });
    rig.prompt("hi").ends_with("send 2.1");
    rig.on(says("hello"));
    let large = long("look at this");
    rig.prompt(&large).ends_with("send 2.2");
    assert_eq!(rig.sent.last().unwrap().1.purpose, Purpose::Answer);
    assert_eq!(said(&rig).last().unwrap(), &[Block::text(&large)]);
    // After a call as well, and when the conversation before it is worth a summary.
    let mut rig = Rig::with(|spec, policy| {
        spec.compact_at = 0.1;
        policy.model_window = Some(24_000);
    });
    rig.prompt(&long("one")).ends_with("send 2.1");
    rig.on(says(&long("two")));
    rig.prompt(&large).ends_with("send 2.2");
    assert_eq!(rig.sent.last().unwrap().1.purpose, Purpose::Compact);
    rig.on(says("short")).ends_with("send 2.3");
    assert_eq!(
        said(&rig),
        [vec![summary("short")], vec![Block::text(&large)]]
    );
    rig.on(calls(&["shell"]));
    rig.on(allowed("call_2_3_0"));
    rig.on(finishes("call_2_3_0", CallOutcome::Ok))
        .ends_with("send 2.4");
    assert_eq!(rig.sent.last().unwrap().1.purpose, Purpose::Answer);
    assert_eq!(said(&rig)[1], [Block::text(&large)]);
}

#[test]
fn a_prompt_that_is_too_large_by_itself_ends_the_turn_with_an_error_of_its_own() {
    let mut rig = Rig::asked();
    rig.on(fails(OVERFLOW)).does([
        "append request_ended failed context_overflow, note (ends 1.1)",
        "append note, turn_ended failed turn_too_large, checkpoint_set",
    ]);
    assert_eq!(rig.sent.len(), 1, "no summary was asked for");
}

#[test]
fn a_provider_for_whom_everything_is_too_large_ends_the_turn() {
    let mut rig = overflowed();
    rig.on(says("short")).ends_with("send 1.5");
    rig.on(fails(OVERFLOW))
        .ends_with("append note, turn_ended failed turn_too_large, checkpoint_set");
    // The next prompt is still answered.
    rig.prompt("shorter").ends_with("send 1.6");
}

/// Each summary covers something that was not a summary before, so this ends.
#[test]
fn overflow_after_overflow_ends() {
    let mut rig = Rig::asked();
    for turn in 1..20 {
        rig.on(says(&format!("answer {turn}")));
        rig.prompt(&format!("question {turn}"));
    }
    let mut requests = 0;
    while rig.machine.agent().turn.is_some() {
        match rig.sent.last().unwrap().1.purpose {
            Purpose::Answer => rig.on(fails(OVERFLOW)),
            Purpose::Compact => rig.on(says("a summary that is as long as it can be")),
        };
        requests += 1;
        assert!(requests < 50, "it goes on and on");
    }
    let last = rig.machine.agent().last_turn.as_ref().unwrap();
    assert_eq!(last.failure, Some(FailureClass::TurnTooLarge));
}

#[test]
fn a_summary_that_fails_for_now_is_asked_for_again_and_not_the_answer_that_does_not_fit() {
    let mut rig = overflowed();
    rig.on(fails(FailureClass::Overloaded))
        .ends_with("back off 2");
    rig.give(Input::BackoffOver)
        .does(["append request_sent 1.5 compact", "send 1.5"]);
    rig.on(says("short")).ends_with("send 1.6");
    rig.on(says("answer")).completes();
}

/// Close to the limit is not over it.
#[test]
fn a_summary_that_is_refused_near_the_limit_does_not_end_the_turn() {
    for class in [FailureClass::Rejected, FailureClass::Refused, OVERFLOW] {
        let mut rig = nearly_full();
        rig.on(fails(class)).ends_with("send 2.3");
        assert_eq!(rig.sent.last().unwrap().1.purpose, Purpose::Answer);
        rig.on(says("answer")).completes();
    }
}

#[test]
fn but_an_answer_that_is_refused_after_it_does() {
    let mut rig = nearly_full();
    rig.on(fails(FailureClass::Rejected)).ends_with("send 2.3");
    rig.on(fails(FailureClass::Rejected))
        .ends_with("append turn_ended failed rejected, checkpoint_set");
}

#[test]
fn a_summary_that_is_refused_over_the_limit_does() {
    for class in [FailureClass::Rejected, OVERFLOW] {
        let mut rig = overflowed();
        rig.on(fails(class))
            .ends_with("append turn_ended failed context_overflow, checkpoint_set");
        assert_eq!(rig.sent.len(), 4, "the same summary is not asked for again");
    }
}

#[test]
fn an_empty_summary_replaces_nothing_and_is_not_asked_for_again_in_this_turn() {
    let mut rig = nearly_full();
    rig.on(nothing()).does([
        "append request_ended completed, message superseded (ends 2.2)",
        "append request_sent 2.3",
        "send 2.3",
    ]);
    assert_eq!(said(&rig).len(), 3);
    rig.on(says("answer")).completes();
    rig.prompt("next turn").ends_with("send 2.4");
    assert_eq!(rig.sent.last().unwrap().1.purpose, Purpose::Compact);
}

#[test]
fn an_empty_summary_over_the_limit_ends_the_turn_without_asking_what_does_not_fit() {
    let mut rig = overflowed();
    rig.on(nothing()).does([
        "append request_ended completed, message superseded (ends 1.4)",
        "append turn_ended failed context_overflow, checkpoint_set",
    ]);
}

#[test]
fn a_summary_that_calls_a_tool_all_the_same_runs_nothing() {
    let mut rig = nearly_full();
    rig.on(calls(&["shell"])).ends_with("send 2.3");
    assert!(!rig.machine.window().has_open_calls());
}

#[test]
fn an_interrupt_of_a_summary_leaves_the_window_as_it_was() {
    let mut rig = nearly_full();
    let before = rig.machine.window().items().len();
    rig.give(Input::Interrupt).does(["cancel 2.2"]);
    let partial = text("half a summ");
    rig.on(Act::Cancelled { partial }).does([
        "append request_ended interrupted, message superseded (ends 2.2)",
        "append notice interrupted, turn_ended interrupted, checkpoint_set",
    ]);
    assert_eq!(rig.machine.window().items().len(), before + 1, "the notice");
}

#[test]
fn a_summary_that_came_before_the_cancel_is_kept() {
    let mut rig = nearly_full();
    rig.give(Input::Interrupt).does(["cancel 2.2"]);
    rig.on(says("short"))
        .ends_with("append notice interrupted, turn_ended interrupted, checkpoint_set");
    rig.prompt("other").ends_with("send 2.3");
    assert_eq!(said(&rig)[0], [summary("short")]);
}

/// The mark of a compaction survives an interrupt.
#[test]
fn a_mark_survives_an_interrupt_and_a_crash() {
    let mut rig = nearly_full();
    rig.on(says("short"));
    rig.give(Input::Interrupt);
    let partial = text("half");
    rig.on(Act::Cancelled { partial });
    rig.crash().does([]);
    rig.prompt("go on").ends_with("send 3.1");
    let said = said(&rig);
    assert_eq!(said[0], [summary("short")]);
    assert!(!format!("{said:?}").contains(&long("one")));
    let marks = |event: &&crate::event::Event| matches!(event.body, Body::Compacted(_));
    assert_eq!(rig.journal.events.iter().filter(marks).count(), 1);
}

#[test]
fn a_crash_in_a_summary_asks_for_it_again_and_shows_the_model_nothing_of_it() {
    let mut rig = nearly_full();
    let before = rig.machine.window().clone();
    let seen = rig.take_over(crate::event::After::Crash, |facts| {
        facts.draft = text("half a summ");
    });
    seen.does([
        "append incarnation_began, request_ended lost, message superseded (ends 2.2)",
        "append request_sent 3.1 compact",
        "send 3.1",
    ]);
    assert_eq!(*rig.machine.window(), before);
}

#[test]
fn a_crash_after_an_overflow_still_knows_of_it() {
    let mut rig = overflowed();
    rig.crash().does([
        "append incarnation_began, request_ended lost (ends 1.4)",
        "append request_sent 2.1 compact",
        "send 2.1",
    ]);
}
