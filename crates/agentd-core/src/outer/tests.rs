//! What a child is given, and what its lines mean.

use super::*;
use serde_json::json;

fn all(pieces: &[&[u8]]) -> Vec<Said> {
    let mut lines = Lines::default();
    let mut said: Vec<Said> = pieces.iter().flat_map(|piece| lines.push(piece)).collect();
    said.extend(lines.finish());
    joined(said)
}

/// Adjacent texts as one.
fn joined(said: Vec<Said>) -> Vec<Said> {
    let mut all: Vec<Said> = Vec::new();
    for one in said {
        match (all.last_mut(), one) {
            (Some(Said::Text(known)), Said::Text(more)) => known.push_str(&more),
            (_, one) => all.push(one),
        }
    }
    all
}

fn text(text: &str) -> Said {
    Said::Text(text.to_owned())
}

const ANSWERED: Said = Said::Over(Over::Answered);

#[test]
fn text_is_text_and_a_nul_ends_it() {
    let said = all(&[b"one\ntwo\0three\n\0\0"]);
    let expected = [
        text("one\ntwo"),
        ANSWERED,
        text("three\n"),
        ANSWERED,
        ANSWERED,
    ];
    assert_eq!(said, expected);
    assert_eq!(
        all(&[b"{not json}\n{\"a\":1}\n"]),
        [text("{not json}\n{\"a\":1}\n")]
    );
}

#[test]
fn it_does_not_matter_how_the_output_is_divided() {
    let calls = json!({"kind": "message", "body": {"status": "complete", "blocks": [
        {"type": "text", "text": "Händel"},
        {"type": "tool_call", "id": "c1", "name": "shell", "arguments": {"object": {"command": "ls"}}},
    ]}});
    let output = format!(
        "{}\n{calls}\n{}\n{}\nräw\n{}\n\0",
        json!({"kind": "session", "v": 1}),
        json!({"kind": "tool_started", "body": {"call": "c1"}}),
        json!({"kind": "result", "body": {"call": "c1", "outcome": "ok", "blocks": [{"type": "text", "text": "a"}]}}),
        json!({"kind": "turn_result", "status": "completed", "text": "x",
            "usage": {"input_tokens": 3, "output_tokens": 4, "cost_usd": 0.0031}}),
    );
    let whole = all(&[output.as_bytes()]);
    assert!(whole.contains(&text("Händel")), "{whole:?}");
    assert!(whole.contains(&text("räw\n")), "{whole:?}");
    assert_eq!(whole.iter().filter(|one| **one == ANSWERED).count(), 1);
    let cost = Some(MicroUsd(3100));
    assert!(
        whole
            .iter()
            .any(|one| matches!(one, Said::Spent { cost: known, .. } if *known == cost))
    );
    for size in 1..output.len() {
        let pieces: Vec<&[u8]> = output.as_bytes().chunks(size).collect();
        assert_eq!(all(&pieces), whole, "in pieces of {size}");
    }
}

#[test]
fn a_message_brings_what_no_delta_has_brought() {
    let delta = json!({"kind": "delta", "type": "text", "text": "Hel"});
    let message = json!({"kind": "message", "body": {"status": "complete", "blocks": [{"type": "text", "text": "Hello"}]}});
    let result = json!({"kind": "turn_result", "status": "completed", "text": "Hello"});
    let said = all(&[format!("{delta}\n{message}\n{result}\n").as_bytes()]);
    assert_eq!(said, [text("Hello"), ANSWERED]);
    let alone = all(&[format!("{result}\n").as_bytes()]);
    assert_eq!(alone, [text("Hello"), ANSWERED]);
    let failed = json!({"kind": "turn_result", "status": "failed", "text": "", "error": "no key"});
    let said = all(&[format!("{failed}\n").as_bytes()]);
    let why = "the program's turn ended as failed: no key".to_owned();
    assert_eq!(said, [Said::Over(Over::Failed(why))]);
}
