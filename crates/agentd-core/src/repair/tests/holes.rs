//! Four histories that goose's `fix_conversation` does not repair, or repairs wrongly: its holes (a) to (d).

use super::{answers, calls, repaired, results, says, text_of};

// goose fix_conversation hole (a): `A[Q1],U[R1],U hi`. Dropping the leading reply left an orphan R1,
// and a second pass changed more.
#[test]
fn hole_a_a_history_that_begins_with_a_call_keeps_call_and_result() {
    let history = vec![calls(["q1"]), results(["q1"]), says("hi")];
    let (messages, repairs) = repaired(history.clone());
    assert_eq!(repairs, ["inserted_opening"]);
    assert_eq!(messages[1..], history);
}

// goose fix_conversation hole (b): a re-used call id removed both calls and left an orphan.
#[test]
fn hole_b_a_call_id_that_is_used_again_keeps_both_calls_and_both_results() {
    let history = vec![
        says("go"),
        calls(["q1"]),
        results(["q1"]),
        calls(["q1"]),
        results(["q1"]),
        says("hi"),
    ];
    let (messages, repairs) = repaired(history.clone());
    assert_eq!(repairs, ["renamed_call"]);
    assert_eq!(messages.len(), history.len());
    assert_eq!(messages[..3], history[..3], "the first pair is as it was");
    let second = messages[3].calls().next().unwrap();
    assert_ne!(second.id.as_str(), "q1");
}

#[test]
fn hole_b_within_one_reply_too() {
    let (messages, repairs) = repaired(vec![says("go"), calls(["q", "q"]), results(["q", "q"])]);
    assert_eq!(repairs, ["renamed_call"]);
    assert_eq!(messages[1].calls().count(), 2);
}

#[test]
fn hole_b_a_result_behind_the_second_use_belongs_to_the_second() {
    let history = vec![
        says("go"),
        calls(["q1"]),
        says("still?"),
        calls(["q1"]),
        results(["q1"]),
    ];
    let (messages, repairs) = repaired(history);
    assert_eq!(repairs, ["renamed_call", "answered_call"]);
    let first = messages[2].blocks[0].as_result().unwrap();
    assert_eq!(first.outcome, crate::message::CallOutcome::Unknown);
    let second = messages[5].blocks[0].as_result().unwrap();
    assert!(second.outcome.is_ok());
}

// goose fix_conversation hole (c): `U,A[Q1],U b,U[R1]` passed though the result was not adjacent.
#[test]
fn hole_c_a_result_that_is_not_adjacent_is_moved_behind_its_call() {
    let history = vec![says("a"), calls(["q1"]), says("b"), results(["q1"])];
    let (messages, repairs) = repaired(history);
    assert_eq!(repairs, ["moved_result", "dropped_empty_message"]);
    let expected = [says("a"), calls(["q1"]), results(["q1"]), says("b")];
    assert_eq!(messages, expected);
}

// goose fix_conversation hole (d): an empty conversation stayed empty.
#[test]
fn hole_d_an_empty_conversation_is_something_that_can_be_sent() {
    let (messages, repairs) = repaired(vec![]);
    assert_eq!(repairs, ["inserted_closing"]);
    assert_eq!(messages.len(), 1);
}

#[test]
fn hole_d_and_so_is_one_of_nothing_but_blanks() {
    let (messages, repairs) = repaired(vec![says("  "), answers("\n")]);
    let expected = [
        "dropped_blank",
        "dropped_blank",
        "dropped_empty_message",
        "dropped_empty_message",
        "inserted_closing",
    ];
    assert_eq!(repairs, expected);
    assert_eq!(messages.len(), 1);
}

#[test]
fn a_sound_history_is_left_as_it_is() {
    let history = vec![
        says("go"),
        calls(["q1", "q2"]),
        results(["q2", "q1"]),
        answers("done"),
        says("more"),
        says("and more"),
    ];
    let (messages, repairs) = repaired(history.clone());
    assert_eq!(repairs, [""; 0]);
    assert_eq!(messages, history);
    assert!(text_of(&messages).contains("and more"));
}
