//! Every output of the model becomes one message.

use super::harness::{Act, Rig, calling, says, text, used};
use crate::draft::{Change, Delta, Reply};
use crate::event::{Body, MessageAdded, MessageStatus, RequestEnded, StopReason};
use crate::message::{Arguments, Block};
use crate::turn::Input;
use crate::usage::{MicroUsd, Price, Usage};

fn replied(reply: Reply, stop: StopReason, usage: Option<Usage>) -> Act {
    Act::Replied { reply, stop, usage }
}

fn ended(rig: &Rig) -> RequestEnded {
    let bodies = rig.journal.events.iter().rev().map(|event| &event.body);
    let mut ended = bodies.filter_map(|body| match body {
        Body::RequestEnded(ended) => Some(ended.clone()),
        _ => None,
    });
    ended.next().unwrap()
}

fn messages(rig: &Rig) -> Vec<MessageAdded> {
    let bodies = rig.journal.events.iter().map(|event| &event.body);
    let messages = bodies.filter_map(|body| match body {
        Body::MessageAdded(message) => Some(message.clone()),
        _ => None,
    });
    messages.collect()
}

/// goose#7962: one streamed reply is one message.
#[test]
fn one_streamed_reply_is_one_message_whatever_the_deltas() {
    let mut reply = Reply::default();
    for letter in "many small pieces".chars() {
        let text = letter.to_string();
        let change = Change::Text { text };
        reply.apply(Delta { part: 0, change });
    }
    let mut rig = Rig::asked();
    rig.on(replied(reply, StopReason::EndTurn, None));
    let [message] = messages(&rig).try_into().unwrap();
    assert_eq!(message.blocks, [Block::text("many small pieces")]);
    assert_eq!(message.status, MessageStatus::Complete);
    assert_eq!(message.request, Some(rig.sent[0].0));
    assert_eq!(message.stop, Some(StopReason::EndTurn));
}

#[test]
fn what_it_used_is_written_down_with_its_cost_and_the_provider_s_id() {
    let mut rig = Rig::with(|_, policy| {
        policy.price = Some(Price {
            input: MicroUsd(3_000_000),
            output: MicroUsd(15_000_000),
            cache_read: MicroUsd(0),
            cache_write: MicroUsd(0),
            long_context: None,
        });
    });
    rig.prompt("hi");
    let usage = Some(used(100, 10));
    rig.on(replied(text("hello"), StopReason::EndTurn, usage));
    let ended = ended(&rig);
    assert_eq!(ended.usage, used(100, 10));
    assert!(!ended.estimated);
    assert_eq!(ended.cost, Some(MicroUsd(450)));
    assert_eq!(ended.provider_request.as_deref(), Some("req_1"));
}

/// A request that ends without usage is charged its estimated input and the size of its draft.
#[test]
fn without_usage_it_is_charged_what_was_granted_and_what_it_wrote() {
    let mut rig = Rig::asked();
    let granted = match rig.journal.events.last().map(|event| &event.body) {
        Some(Body::RequestSent(sent)) => sent.grant,
        other => panic!("{other:?}"),
    };
    rig.on(replied(text("nine byte"), StopReason::EndTurn, None));
    let ended = ended(&rig);
    assert!(ended.estimated);
    assert_eq!(ended.usage, used(granted.input_tokens, 3));
    assert_eq!(ended.cost, None, "no price, no cost");
}

#[test]
fn an_empty_reply_ends_the_turn_and_leaves_nothing_behind_for_the_model() {
    let mut rig = Rig::asked();
    rig.on(replied(Reply::default(), StopReason::EndTurn, None))
        .completes();
    rig.prompt("still there?").ends_with("send 1.2");
    assert_eq!(rig.sent[1].1.messages.len(), 2);
}

#[test]
fn a_reply_that_was_cut_by_max_tokens_in_a_call_is_told_so_and_runs_nothing() {
    let mut rig = Rig::asked();
    let half = calling(&[("shell", r#"{"command": "rm -r"#)]);
    rig.on(replied(half, StopReason::MaxTokens, None)).does([
        "append request_ended completed, message complete (ends 1.1)",
        "append tool_ended call_1_1_0 error, result",
        "append request_sent 1.2",
        "send 1.2",
    ]);
    let [message] = messages(&rig).try_into().unwrap();
    let call = message.blocks[0].as_call().unwrap();
    let raw = r#"{"command": "rm -r"#.to_owned();
    assert_eq!(call.arguments, Arguments::Malformed(raw));
}

#[test]
fn a_reply_to_another_request_changes_nothing() {
    let mut rig = Rig::asked();
    let late = |request| Input::Replied {
        request,
        reply: text("late"),
        stop: StopReason::EndTurn,
        usage: None,
        provider_request: None,
    };
    rig.give(late(crate::fixture::request(1, 7))).does([]);
    rig.give(late(crate::fixture::request(0, 1))).does([]);
    rig.on(says("hello"));
    // The same reply twice: its request has ended.
    rig.give(late(rig.sent[0].0)).does([]);
    assert_eq!(messages(&rig).len(), 1);
}

#[test]
fn two_calls_of_one_reply_have_ids_of_their_own_even_if_the_provider_gave_them_one() {
    let mut rig = Rig::asked();
    let twins = calling(&[("read", "{}"), ("read", "{}")]);
    rig.on(replied(twins, StopReason::ToolUse, None)).does([
        "append request_ended completed, message complete (ends 1.1)",
        "prepare call_1_1_0",
        "prepare call_1_1_1",
    ]);
}
