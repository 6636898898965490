//! Each repair by itself. None of them drops text silently.

use super::*;
use crate::fixture::{call_of, notice, thinking};
use crate::id::CallId;
use crate::message::{CallOutcome, CutBlock, ToolResult, Wire};
use crate::repair::{unique_call_id, valid_call_id};

fn image(media_type: &str, data: &str) -> Block {
    Block::Image {
        media_type: media_type.to_owned(),
        data: data.to_owned(),
    }
}

fn names(messages: Vec<Message>) -> Vec<&'static str> {
    repaired(messages).1
}

#[test]
fn blocks_in_the_wrong_role_are_dropped_and_named_with_their_words() {
    let wrong = [
        (Role::User, call("a")),
        (Role::User, thinking("hm", Wire::Gemini)),
        (Role::Assistant, result("a", "out")),
        (Role::Assistant, notice("psst")),
        (Role::Assistant, image("image/png", "aGk=")),
    ];
    for (role, block) in wrong {
        let mut words = Vec::new();
        block.words(&mut words);
        let blocks = vec![Block::text("beside it"), block];
        let (_, repairs) = repair(vec![says("go"), Message { role, blocks }, says("hi")]);
        assert_eq!(repairs[0].name(), "dropped_unsendable");
        assert_eq!(repairs[0].words(), words);
    }
}

#[test]
fn what_was_cut_off_is_never_sent() {
    let (what, text) = (CutBlock::ToolCall, "shell {".to_owned());
    let reply = vec![Block::text("so"), Block::Cut { what, text }];
    let (messages, repairs) = repair(vec![says("go"), Message::assistant(reply), says("hi")]);
    assert_eq!(repairs[0].words(), ["shell {"]);
    assert!(!text_of(&messages).contains("shell {"));
}

#[test]
fn unsigned_thinking_is_never_sent() {
    let (text, signature) = ("hm".to_owned(), None);
    let thought = Block::Thinking { text, signature };
    let reply = Message::assistant(vec![thought, Block::text("so")]);
    assert_eq!(
        names(vec![says("go"), reply, says("hi")]),
        ["dropped_unsendable"]
    );
}

#[test]
fn images_that_a_provider_would_refuse_are_dropped() {
    let good = user(vec![image("image/webp", "aGk+/w==")]);
    assert_eq!(names(vec![good]), [""; 0]);
    for bad in [
        image("image/tiff", "aGk="),
        image("image/png", ""),
        image("image/png", "not base64!"),
    ] {
        let blocks = vec![Block::text("look"), bad];
        assert_eq!(names(vec![user(blocks)]), ["dropped_unsendable"]);
    }
}

#[test]
fn results_hold_text_and_images_alone() {
    let odd = ToolResult {
        call: CallId::new("a"),
        outcome: CallOutcome::Ok,
        blocks: vec![notice("psst"), image("image/png", "aGk="), Block::text(" ")],
    };
    let history = vec![says("go"), calls(["a"]), user(vec![Block::ToolResult(odd)])];
    assert_eq!(names(history), ["dropped_unsendable", "dropped_blank"]);
}

#[test]
fn an_empty_result_says_so() {
    let empty = ToolResult {
        call: CallId::new("a"),
        outcome: CallOutcome::Ok,
        blocks: vec![],
    };
    let history = vec![
        says("go"),
        calls(["a"]),
        user(vec![Block::ToolResult(empty)]),
    ];
    let (messages, repairs) = repaired(history);
    assert_eq!(repairs, ["filled_empty_result"]);
    assert!(text_of(&messages).contains("(no output)"));
}

#[test]
fn tool_names_are_made_such_that_every_provider_takes_them() {
    let long = "x".repeat(70);
    for (from, to) in [
        ("a b/c", "a_b_c"),
        ("", "_"),
        ("9lives", "_9lives"),
        ("größe", "gr__e"),
        (long.as_str(), &long[..64]),
    ] {
        let reply = Message::assistant(vec![call_of(from, "a")]);
        let (messages, repairs) = repaired(vec![says("go"), reply, results(["a"])]);
        assert_eq!(repairs, ["cleaned_tool_name"]);
        assert_eq!(messages[1].calls().next().unwrap().name, to);
    }
}

#[test]
fn thinking_that_nothing_follows_is_dropped_and_named() {
    let thought = || thinking("and then", Wire::AnthropicMessages);
    let reply = Message::assistant(vec![thought(), Block::text("so"), thought(), thought()]);
    let (messages, repairs) = repair(vec![says("go"), reply, says("hi")]);
    assert_eq!(repairs.len(), 2);
    assert!(
        repairs
            .iter()
            .all(|r| r.name() == "dropped_trailing_thinking")
    );
    assert_eq!(repairs[0].words(), ["and then"]);
    assert_eq!(messages[1].blocks.len(), 2);
}

#[test]
fn a_result_that_shares_its_message_with_words_stays_in_front_of_them() {
    let shared = user(vec![result("a", "out"), Block::text("go on")]);
    let history = vec![says("go"), calls(["a"]), shared];
    let (messages, repairs) = repaired(history.clone());
    assert_eq!(repairs, [""; 0]);
    assert_eq!(messages, history);
    let behind = user(vec![Block::text("go on"), result("a", "out")]);
    let (messages, repairs) = repaired(vec![says("go"), calls(["a"]), behind]);
    assert_eq!(repairs, ["moved_result"]);
    assert_eq!(
        messages[2..],
        [user(vec![result("a", "out")]), says("go on")]
    );
}

#[test]
fn call_ids_that_a_provider_would_refuse_are_renamed_with_their_results() {
    let long = "y".repeat(80);
    for id in ["", "has space", "ünï", long.as_str()] {
        let (messages, repairs) = repaired(vec![says("go"), calls([id]), results([id])]);
        assert_eq!(repairs, ["renamed_call"], "{id:?}");
        let call = messages[1].calls().next().unwrap();
        assert!(valid_call_id(call.id.as_str()));
    }
}

#[test]
fn a_call_id_that_is_free_and_valid_stays_and_any_other_gets_the_nearest_that_is() {
    let id = |id: &str| CallId::new(id);
    let taken = [id("a"), id("a-2"), id("b")];
    let unique = |wish: &str| unique_call_id(&id(wish), |id| taken.contains(id));
    assert_eq!(unique("c"), id("c"));
    assert_eq!(unique("a"), id("a-3"));
    assert_eq!(unique("b"), id("b-2"));
    assert_eq!(unique("c d"), id("c_d"));
    assert_eq!(unique(""), id("call"));
    let longest = "z".repeat(64);
    assert_eq!(unique(&longest), id(&longest));
    assert!(valid_call_id(unique(&"z".repeat(65)).as_str()));
}

#[test]
fn two_replies_in_a_row_are_bridged_by_us() {
    let (messages, repairs) = repaired(vec![says("go"), answers("a"), answers("b"), says("hi")]);
    assert_eq!(repairs, ["bridged_replies"]);
    assert!(matches!(messages[2].blocks[..], [Block::Notice { .. }]));
}

#[test]
fn every_repair_has_the_name_it_is_listed_under() {
    let id = CallId::new("a");
    let call = || id.clone();
    let words = Vec::new;
    let (from, to) = (call(), call());
    let (clean_from, clean_to) = ("a".to_owned(), "b".to_owned());
    let all = [
        Repair::DroppedUnsendable {
            what: "cut",
            words: words(),
        },
        Repair::DroppedBlank,
        Repair::DroppedTrailingThinking { words: words() },
        Repair::FilledEmptyResult { call: call() },
        Repair::CleanedToolName {
            from: clean_from,
            to: clean_to,
        },
        Repair::RenamedCall { from, to },
        Repair::MovedResult { call: call() },
        Repair::AnsweredCall { call: call() },
        Repair::DroppedDuplicateResult {
            call: call(),
            words: words(),
        },
        Repair::QuotedOrphanResult { call: call() },
        Repair::DroppedEmptyMessage,
        Repair::InsertedOpening,
        Repair::BridgedReplies,
        Repair::InsertedClosing,
    ];
    assert_eq!(all.each_ref().map(Repair::name), Repair::NAMES);
}
