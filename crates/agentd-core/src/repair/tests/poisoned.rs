//! Histories with which other programs could never send another request to a model; each test names the public
//! report. Here each history can be sent, and the repairs are named.

use super::{answers, calls, repaired, results, says, text_of, user};
use crate::fixture::{notice, result};
use crate::message::{Block, CallOutcome};

// goose#7684, goose#7914, claude-code#6836 (150+ reports): an unanswered call made every later request a
// 400.
#[test]
fn a_call_that_was_never_answered_is_answered_as_unknown() {
    let (messages, repairs) = repaired(vec![says("go"), calls(["q1"]), says("are you there?")]);
    assert_eq!(repairs, ["answered_call"]);
    let answer = messages[2].blocks[0].as_result().unwrap();
    assert_eq!(answer.outcome, CallOutcome::Unknown);
    assert_eq!(messages[3], says("are you there?"));
}

// opencode#10616: 311 orphans in one database.
#[test]
fn many_calls_that_were_never_answered_are_all_answered() {
    let mut history = vec![says("go")];
    for n in 0..311 {
        history.push(calls([&format!("q{n}")]));
        history.push(says("again"));
    }
    let (messages, repairs) = repaired(history);
    assert_eq!(repairs.len(), 311);
    assert!(repairs.iter().all(|name| *name == "answered_call"));
    assert_eq!(messages.len(), 1 + 3 * 311);
}

// pi#4189, copilot-cli#3183: killed in the middle of several tools, with some of the results there.
#[test]
fn of_several_calls_those_with_results_keep_them() {
    let history = vec![
        says("go"),
        calls(["a", "b", "c"]),
        results(["b"]),
        says("hi"),
    ];
    let (messages, repairs) = repaired(history);
    assert_eq!(repairs, ["answered_call", "answered_call"]);
    let outcomes: Vec<bool> = messages[2]
        .blocks
        .iter()
        .filter_map(Block::as_result)
        .map(|result| result.outcome.is_ok())
        .collect();
    assert_eq!(outcomes, [true, false, false]);
}

// goose#7827: the process died right after the model had called.
#[test]
fn a_history_that_ends_with_a_call_can_be_sent() {
    let (messages, repairs) = repaired(vec![says("go"), calls(["q1"])]);
    assert_eq!(repairs, ["answered_call"]);
    assert_eq!(messages.len(), 3);
}

// goose#7472, #9461, #12003: ordered by the clock, a result sorted before its request.
#[test]
fn a_result_before_its_call_is_quoted_and_the_call_is_answered() {
    let history = vec![says("go"), results(["q1"]), calls(["q1"]), says("hi")];
    let (messages, repairs) = repaired(history);
    assert_eq!(repairs, ["quoted_orphan_result", "answered_call"]);
    assert!(
        text_of(&messages).contains("result of q1"),
        "no word is lost"
    );
}

// claude-code#53821, #24304: a broken parent, or a torn start of the history, leaves results alone.
#[test]
fn a_result_without_a_call_keeps_its_words_as_a_notice() {
    let (messages, repairs) = repaired(vec![results(["gone"]), answers("so"), says("hi")]);
    assert_eq!(repairs, ["quoted_orphan_result"]);
    assert!(
        messages[0].blocks[0]
            == notice(
                "A result was recorded for the call `gone`, which is not in this conversation. It follows."
            )
    );
    assert_eq!(messages[0].blocks[1], Block::text("result of gone"));
}

// claude-code#39151, #69364: two writers interleaved one conversation.
#[test]
fn two_interleaved_writers_are_taken_apart() {
    let history = vec![
        says("one"),
        says("two"),
        calls(["a"]),
        calls(["b"]),
        results(["b"]),
        results(["a"]),
        answers("done one"),
        answers("done two"),
        says("hi"),
    ];
    let (messages, repairs) = repaired(history);
    assert!(repairs.contains(&"moved_result"), "{repairs:?}");
    assert!(repairs.contains(&"bridged_replies"), "{repairs:?}");
    let text = text_of(&messages);
    for words in [
        "one",
        "two",
        "result of a",
        "result of b",
        "done one",
        "done two",
    ] {
        assert!(text.contains(words), "{words}");
    }
}

// goose#11808, langgraph#7417: a tool that ran twice has two results; the first one counts.
#[test]
fn a_second_result_of_the_same_call_is_dropped_and_its_words_are_named() {
    let twice = user(vec![result("q1", "first"), result("q1", "second")]);
    let (messages, repairs) = super::repair(vec![says("go"), calls(["q1"]), twice]);
    assert_eq!(repairs.len(), 1);
    assert_eq!(repairs[0].name(), "dropped_duplicate_result");
    assert_eq!(repairs[0].words(), ["second"]);
    assert!(text_of(&messages).contains("first"));
    super::check(&messages);
}

// codex#2759, claude-code#24025: the turn was interrupted, and the reply is the last message.
#[test]
fn a_history_that_ends_with_a_reply_is_closed_by_us_and_not_in_the_user_s_name() {
    let (messages, repairs) = repaired(vec![says("go"), answers("I was")]);
    assert_eq!(repairs, ["inserted_closing"]);
    let last = messages.last().unwrap();
    assert!(matches!(last.blocks[..], [Block::Notice { .. }]));
}

// goose#7785: the turn's first messages were lost, so that the model speaks first.
#[test]
fn a_history_that_begins_with_a_reply_is_opened_by_us() {
    let (messages, repairs) = repaired(vec![answers("as I said"), says("hi")]);
    assert_eq!(repairs, ["inserted_opening"]);
    assert!(matches!(messages[0].blocks[..], [Block::Notice { .. }]));
    assert!(text_of(&messages).contains("as I said"));
}
