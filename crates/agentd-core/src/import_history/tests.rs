//! Tests of the rules that all formats share. `agentd-testkit/tests/imports.rs` has those of whole histories.

use super::{Left, Program, Reading, Record, Report};
use crate::event::{Body, Event, TurnStatus};
use crate::message::{Block, CallOutcome};
use crate::spec::AgentSpec;
use crate::time::Timestamp;
use serde_json::{Value, json};

fn convert(program: Program, records: &[Value]) -> (Vec<Event>, Report) {
    let lines: Vec<String> = records.iter().map(Value::to_string).collect();
    let mut reading = Reading::new(program);
    for line in &lines {
        reading.record(Record::Text(line.as_bytes()));
    }
    let found = reading.finish("file");
    let mut conversion = found.convert("name", &AgentSpec::default(), Timestamp(5));
    let mut events = Vec::new();
    for line in &lines {
        events.extend(conversion.record(Record::Text(line.as_bytes())));
    }
    let (last, report) = conversion.finish();
    events.extend(last);
    (events, report)
}

fn prompt(text: &str) -> Value {
    let content = json!([{"type": "input_text", "text": text}]);
    json!({"type": "response_item", "payload": {"type": "message", "role": "user", "content": content}})
}

fn item(payload: &Value) -> Value {
    json!({"type": "response_item", "payload": payload})
}

fn call(id: &str) -> Value {
    item(&json!({"type": "function_call", "call_id": id, "name": "shell", "arguments": "{}"}))
}

fn output(id: &str, text: &str) -> Value {
    item(&json!({"type": "function_call_output", "call_id": id, "output": text}))
}

fn prompts(events: &[Event]) -> Vec<String> {
    let prompts = events.iter().filter_map(|event| match &event.body {
        Body::Prompt(prompt) => prompt.blocks.first(),
        _ => None,
    });
    let texts = prompts.map(|block| match block {
        Block::Text { text } => text.clone(),
        other => format!("{other:?}"),
    });
    texts.collect()
}

fn outcomes(events: &[Event]) -> Vec<CallOutcome> {
    let results = events.iter().filter_map(|event| match &event.body {
        Body::ResultAdded(result) => Some(result.outcome),
        _ => None,
    });
    results.collect()
}

#[test]
fn the_same_id_of_two_calls_means_two_calls() {
    let records = [
        prompt("a"),
        call("1"),
        output("1", "one"),
        call("1"),
        output("1", "two"),
    ];
    let (events, report) = convert(Program::Codex, &records);
    assert_eq!(outcomes(&events), [CallOutcome::Ok; 2]);
    assert_eq!(
        (report.calls, report.count(Left::ResultWithoutCall)),
        (2, 0)
    );
}

#[test]
fn a_result_that_comes_much_too_late_is_left_out() {
    let mut records = vec![prompt("a"), call("1")];
    for n in 0..20 {
        records.extend([
            prompt("more"),
            call(&format!("c{n}")),
            output(&format!("c{n}"), "x"),
        ]);
    }
    records.push(output("1", "late"));
    let (events, report) = convert(Program::Codex, &records);
    assert_eq!(report.count(Left::CallWithoutResult), 1);
    assert_eq!(report.count(Left::ResultWithoutCall), 1);
    assert_eq!(outcomes(&events).first(), Some(&CallOutcome::Unknown));
}

#[test]
fn prompts_without_an_answer_in_between_share_a_turn() {
    let (events, _) = convert(Program::Codex, &[prompt("a"), prompt("b")]);
    let ends = events.iter().filter_map(|event| match &event.body {
        Body::TurnEnded(ended) => Some(ended.status),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), [TurnStatus::Interrupted]);
    assert_eq!(prompts(&events), ["a", "b"]);
}

fn said(n: u32, parent: Option<u32>, text: &str) -> Value {
    json!({
        "type": "user", "uuid": format!("u{n}"), "parentUuid": parent.map(|n| format!("u{n}")),
        "isSidechain": false, "sessionId": "s", "message": {"role": "user", "content": text},
    })
}

/// A line is damaged: what came before it is not lost with it.
#[test]
fn a_missing_parent_is_replaced_by_the_record_before() {
    let records = [
        said(1, None, "one"),
        said(2, Some(1), "two"),
        said(4, Some(3), "four"),
    ];
    let (events, _) = convert(Program::ClaudeCode, &records);
    assert_eq!(prompts(&events), ["one", "two", "four"]);
}

#[test]
fn records_that_name_each_other_do_not_loop() {
    let records = [said(1, Some(2), "one"), said(2, Some(1), "two")];
    let (events, _) = convert(Program::ClaudeCode, &records);
    assert_eq!(prompts(&events), ["one", "two"]);
}

#[test]
fn a_custom_command_is_the_prompt_that_it_stands_for() {
    let command = "<command-message>review</command-message>\n<command-name>/review</command-name>\n\
                   <command-args>all</command-args>";
    let mut expanded = said(2, Some(1), "Review everything");
    expanded["isMeta"] = json!(true);
    let (events, _) = convert(Program::ClaudeCode, &[said(1, None, command), expanded]);
    assert_eq!(prompts(&events), ["/review all\n\nReview everything"]);
}

#[test]
fn a_name_says_what_it_is_about_and_is_valid() {
    for (text, begins) in [
        ("Fix the *parser*, please!", "fix-the-parser-please-"),
        ("東京", "codex-"),
        ("", "codex-"),
    ] {
        let mut reading = Reading::new(Program::Codex);
        reading.record(Record::Text(prompt(text).to_string().as_bytes()));
        let name = reading.finish("file").name();
        assert!(name.starts_with(begins) && name.len() < 64, "{name}");
    }
}

#[test]
fn what_is_nothing_gives_an_empty_conversation() {
    for program in Program::ALL {
        let (events, report) = convert(
            program,
            &[json!({}), json!({"type": 5}), json!({"role": []})],
        );
        assert_eq!(report.prompts + report.replies, 0);
        assert!(
            events
                .iter()
                .any(|event| matches!(event.body, Body::ConversationBegan(_)))
        );
        let mut reading = Reading::new(program);
        reading.record(Record::TooLong);
        assert!(reading.finish("file").is_empty());
    }
}
