//! What must hold whenever an agent was ended and continued, at any point.

use super::process::Ended;
use super::test_agent::TestAgent;
use agentd_core::event::{Body, Event, MessageStatus, Purpose, ResultAdded};
use agentd_core::id::TryId;
use agentd_core::message::{Block, CallOutcome};
use agentd_testkit::model::{Format, Recorded};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Checks everything after the last process has ended, and returns the journal.
pub fn judge(harness: &TestAgent, runs: &[&Ended]) -> Vec<Event> {
    accepted(harness);
    let events = harness.events();
    numbered(&events);
    answered_once(&events);
    one_message_a_request(&events);
    kept(&events, runs);
    at_most_once(harness);
    let report = harness.verify();
    assert_eq!(report.code, Some(0), "{report:?}");
    assert_eq!(report.lines[0]["clean"], true, "{report:?}");
    events
}

/// goose#7684, claude-code#6836: an unanswered call made every later request a 400.
pub fn accepted(harness: &TestAgent) {
    assert_eq!(refusals(harness), [""; 0]);
    for request in harness.model.requests() {
        assert!(!ends_in_a_reply(&request), "{:#}", request.body);
    }
}

fn refusals(harness: &TestAgent) -> Vec<String> {
    let refused = harness.model.refused().into_iter();
    refused
        .map(|request| format!("{:?}: {:#}", request.violations, request.body))
        .collect()
}

fn ends_in_a_reply(request: &Recorded) -> bool {
    let last = last_said(request);
    let role = last["role"].as_str();
    matches!(role, Some("assistant" | "model")) || last["type"] == "function_call"
}

/// The last message of a request.
pub fn last_said(request: &Recorded) -> Value {
    let list = match request.format {
        Format::Anthropic | Format::OpenaiChat => &request.body["messages"],
        Format::OpenaiResponses => &request.body["input"],
        Format::Gemini => &request.body["contents"],
    };
    list.as_array().unwrap().last().unwrap().clone()
}

fn numbered(events: &[Event]) {
    let numbers: Vec<u64> = events.iter().map(|event| event.seq.0).collect();
    let expected: Vec<u64> = (1..=events.len() as u64).collect();
    assert_eq!(numbers, expected);
}

/// Each call has one result, once its turn is over.
fn answered_once(events: &[Event]) {
    let calls: Vec<&str> = messages(events)
        .flat_map(|message| message.blocks.iter().filter_map(Block::as_call))
        .map(|call| call.id.as_str())
        .collect();
    let results: Vec<&str> = results(events).map(|result| result.call.as_str()).collect();
    let unique: BTreeSet<&str> = results.iter().copied().collect();
    assert_eq!(unique.len(), results.len(), "a call has two results");
    let is_over = !matches!(last_of_turns(events), Some(Body::TurnStarted(_)));
    if is_over {
        let calls: BTreeSet<&str> = calls.into_iter().collect();
        assert_eq!(unique, calls);
    }
}

fn last_of_turns(events: &[Event]) -> Option<&Body> {
    let bodies = events.iter().rev().map(|event| &event.body);
    let mut ends = bodies.filter(|body| matches!(body, Body::TurnStarted(_) | Body::TurnEnded(_)));
    ends.next()
}

/// goose#7962: saving each delta made every token a row.
fn one_message_a_request(events: &[Event]) {
    let requests: Vec<String> = messages(events)
        .filter_map(|message| message.request)
        .map(|request| request.to_string())
        .collect();
    let unique: BTreeSet<&String> = requests.iter().collect();
    assert_eq!(unique.len(), requests.len(), "{requests:?}");
}

/// claude-code#24025, codex#29058: what a reader has seen of a reply that was cut off is in the
/// journal, and marked.
fn kept(events: &[Event], runs: &[&Ended]) {
    for (request, seen) in received(runs) {
        let message = messages(events).find(|message| {
            let of = message.request.map(|request| request.to_string());
            of.as_deref() == Some(request.as_str())
        });
        let (text, status) = match message {
            Some(message) => (text_of(&message.blocks), Some(message.status)),
            // A summary that is whole is no message.
            None if purpose(events, &request) == Some(Purpose::Compact) => {
                (summaries(events), None)
            }
            None => panic!("`{seen}` was shown, and request {request} left no message"),
        };
        assert!(
            text.contains(&seen),
            "`{seen}` was shown, and `{text}` is kept ({status:?})"
        );
        // A superseded message belongs to a request whose end is recorded.
        if status == Some(MessageStatus::Superseded) {
            let retried = events.iter().any(|event| {
                matches!(&event.body, Body::RequestEnded(ended)
                    if ended.request.to_string() == request)
            });
            assert!(retried, "request {request} has no end");
        }
    }
}

/// The text that was shown, by request.
fn received(runs: &[&Ended]) -> BTreeMap<String, String> {
    let mut received = BTreeMap::<String, String>::new();
    for run in runs {
        for delta in run.of_kind("delta") {
            if delta["type"] == "text" {
                let request: TryId = serde_json::from_value(delta["request"].clone()).unwrap();
                let text = delta["text"].as_str().unwrap();
                received
                    .entry(request.to_string())
                    .or_default()
                    .push_str(text);
            }
        }
    }
    received.retain(|_, text| !text.is_empty());
    received
}

/// goose#11808, langgraph#7417: a tool that had run was run again.
fn at_most_once(harness: &TestAgent) {
    let mut effects = harness.effects();
    effects.sort();
    let count = effects.len();
    effects.dedup();
    assert_eq!(effects.len(), count, "something ran twice: {effects:?}");
}

pub fn messages(
    events: &[Event],
) -> impl DoubleEndedIterator<Item = &agentd_core::event::MessageAdded> {
    events.iter().filter_map(|event| match &event.body {
        Body::MessageAdded(message) => Some(message),
        _ => None,
    })
}

pub fn results(events: &[Event]) -> impl DoubleEndedIterator<Item = &ResultAdded> {
    events.iter().filter_map(|event| match &event.body {
        Body::ResultAdded(result) => Some(result),
        _ => None,
    })
}

pub fn outcomes(events: &[Event]) -> Vec<CallOutcome> {
    results(events).map(|result| result.outcome).collect()
}

pub fn text_of(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } | Block::Annotated { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

pub fn count(events: &[Event], kind: &str) -> usize {
    let kinds = events.iter().map(|event| event.kind().name());
    kinds.filter(|name| *name == kind).count()
}

fn purpose(events: &[Event], request: &str) -> Option<Purpose> {
    events.iter().find_map(|event| match &event.body {
        Body::RequestSent(sent) if sent.request.to_string() == request => Some(sent.purpose),
        _ => None,
    })
}

fn summaries(events: &[Event]) -> String {
    let texts = events.iter().filter_map(|event| match &event.body {
        Body::Summary(summary) => Some(summary.text.as_str()),
        _ => None,
    });
    texts.collect()
}
