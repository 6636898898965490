//! Each check finds what is wrong.

use super::*;
use agentd_core::event::{Context, Purpose};
use agentd_core::message::{Arguments, CallOutcome, ToolCall, ToolResult, Wire};
use agentd_core::repair::Repair;

fn seqs(numbers: &[u64]) -> Vec<Seq> {
    numbers.iter().copied().map(Seq).collect()
}

fn call(id: &str) -> Block {
    Block::ToolCall(ToolCall {
        id: CallId::new(id),
        name: "multiply".to_owned(),
        arguments: Arguments::parse(""),
        signature: None,
    })
}

fn result(id: &str) -> Block {
    Block::ToolResult(ToolResult {
        call: CallId::new(id),
        outcome: CallOutcome::Ok,
        blocks: vec![Block::text("391")],
    })
}

fn request(messages: Vec<Message>) -> Request {
    Request {
        purpose: Purpose::Answer,
        context: Context {
            provider: "test".to_owned(),
            wire: Wire::AnthropicMessages,
            model: "test".to_owned(),
            system: String::new(),
            kept: None,
            tools: Vec::new(),
            server_tools: Vec::new(),
            max_output_tokens: 100,
            temperature: None,
            thinking_tokens: None,
            effort: None,
            verbosity: None,
            fast: false,
            omits: Vec::new(),
        },
        may_call: true,
        messages,
        omissions: Vec::new(),
        repairs: Vec::new(),
    }
}

fn user(blocks: impl Into<Vec<Block>>) -> Message {
    Message::user(blocks.into())
}

fn reply(blocks: impl Into<Vec<Block>>) -> Message {
    Message::assistant(blocks.into())
}

#[test]
fn an_event_that_was_lost_or_doubled_is_found() {
    let journal = seqs(&[1, 2, 3]);
    assert_eq!(each_once(&journal, &journal), Ok("3 events".to_owned()));
    for shown in [
        &[][..],
        &[1, 2],
        &[1, 3],
        &[1, 2, 2, 3],
        &[1, 2, 3, 3],
        &[1, 3, 2],
    ] {
        assert!(each_once(&seqs(shown), &journal).is_err(), "{shown:?}");
    }
    assert!(each_once(&[], &[]).is_err());
}

#[test]
fn a_gap_is_found() {
    assert_eq!(without_gaps(&seqs(&[1, 2, 3])), Ok("1 to 3".to_owned()));
    for broken in [&[][..], &[2, 3], &[1, 3], &[1, 1, 2], &[1, 3, 2]] {
        assert!(without_gaps(&seqs(broken)).is_err(), "{broken:?}");
    }
}

#[test]
fn counting_that_skips_or_repeats_is_found() {
    assert!(counts_to(5, &["1 2 3 ", "4 5 "]).is_ok());
    for broken in [
        &["1 2 3 ", "5 "][..],
        &["1 2 3 ", "3 4 5 "],
        &["1 2 3 4 "],
        &["1 2 3 4 5 6 "],
        &["2 3 4 5 "],
        &[],
    ] {
        assert!(counts_to(5, broken).is_err(), "{broken:?}");
    }
}

#[test]
fn a_request_that_a_provider_would_refuse_is_found() {
    let hi = || user([Block::text("hi")]);
    let good = [
        vec![hi()],
        vec![hi(), reply([call("a")]), user([result("a")])],
        vec![hi(), reply([Block::text("yes?")]), hi()],
    ];
    for messages in good {
        assert!(is_valid(&request(messages.clone())).is_ok(), "{messages:?}");
    }
    let bad = [
        vec![],
        vec![reply([Block::text("hi")]), hi()],
        vec![hi(), reply([Block::text("yes?")])],
        vec![hi(), reply([call("a")]), hi()],
        vec![hi(), reply([call("a")]), hi(), user([result("a")])],
        vec![hi(), user([result("a")])],
        vec![hi(), reply([call("a")]), user([result("a"), result("a")])],
        vec![user([Block::text(" ")])],
    ];
    for messages in bad {
        assert!(
            is_valid(&request(messages.clone())).is_err(),
            "{messages:?}"
        );
    }
    let repaired = Request {
        repairs: vec![Repair::BridgedReplies],
        ..request(vec![hi()])
    };
    assert!(is_valid(&repaired).is_err());
}

#[test]
fn one_byte_makes_a_difference() {
    assert_eq!(same_bytes(b"abc", b"abc"), Ok("3 bytes".to_owned()));
    let found = same_bytes(b"abc", b"abd").unwrap_err();
    assert!(found.contains("byte 2"), "{found}");
    assert!(same_bytes(b"abc", b"abcd").is_err());
}
