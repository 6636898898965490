//! What a child is given, and what its lines mean.

use super::*;
use serde_json::{Value, json};

fn all(pieces: &[&[u8]]) -> Vec<ChildEvent> {
    let mut lines = Lines::default();
    let mut said: Vec<ChildEvent> = pieces.iter().flat_map(|piece| lines.push(piece)).collect();
    said.extend(lines.finish());
    joined(said)
}

/// Adjacent texts as one.
fn joined(said: Vec<ChildEvent>) -> Vec<ChildEvent> {
    let mut all: Vec<ChildEvent> = Vec::new();
    for one in said {
        match (all.last_mut(), one) {
            (Some(ChildEvent::Text(known)), ChildEvent::Text(more)) => known.push_str(&more),
            (_, one) => all.push(one),
        }
    }
    all
}

fn text(text: &str) -> ChildEvent {
    ChildEvent::Text(text.to_owned())
}

const ANSWERED: ChildEvent = ChildEvent::Over(Over::Answered);

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
            .any(|one| matches!(one, ChildEvent::Spent { cost: known, .. } if *known == cost))
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
    assert_eq!(said, [ChildEvent::Over(Over::Failed(why))]);
}

#[test]
fn a_limit_of_the_program_is_a_limit() {
    let limited =
        json!({"kind": "turn_result", "status": "limited", "text": "half", "error": "iterations"});
    let said = all(&[format!("{limited}\n").as_bytes()]);
    let over = ChildEvent::Over(Over::Limited(LimitKind::Iterations));
    assert_eq!(said, [text("half"), over]);
    // One that has no name here.
    let limited = json!({"kind": "turn_result", "status": "limited", "error": "patience"});
    let said = all(&[format!("{limited}\n").as_bytes()]);
    let why = "the program's turn ended as limited: patience".to_owned();
    assert_eq!(said, [ChildEvent::Over(Over::Failed(why))]);
}

/// Regression: a program that was killed continued its turn when it was started again, and the next prompt was answered with
/// the text of that turn.
#[test]
fn what_belongs_to_an_earlier_delivery_is_late() {
    let old = [
        json!({"kind": "delta", "type": "text", "text": "old", "turn_id": "t1-0"}),
        json!({"kind": "message", "turn_id": "t1-0", "body": {"blocks": [{"type": "text", "text": "old"}]}}),
        json!({"kind": "approval_requested", "turn_id": "t1-0", "body": {"call": "c", "approval": "a"}}),
        json!({"kind": "turn_result", "turn_id": "t1-0", "status": "completed", "text": "old",
               "usage": {"input_tokens": 3, "output_tokens": 1}}),
    ];
    let new = [
        json!({"kind": "delta", "type": "text", "text": "ne", "turn_id": "t2-0"}),
        json!({"kind": "message", "turn_id": "t2-0", "body": {"blocks": [{"type": "text", "text": "new"}]}}),
        json!({"kind": "turn_result", "turn_id": "t2-0", "status": "completed", "text": "new"}),
    ];
    let mut lines = Lines::default();
    lines.expect("t2-0");
    let mut push = |events: &[Value]| {
        let output: String = events.iter().map(|event| format!("{event}\n")).collect();
        (lines.push(output.as_bytes()), lines.take_late())
    };
    let (said, late) = push(&old);
    assert!(
        matches!(&said[..], [ChildEvent::Spent { usage, .. }] if usage.input_tokens == 3),
        "{said:?}"
    );
    assert_eq!(late, ["t1-0"]);
    let (said, late) = push(&new);
    assert_eq!(said, [text("ne"), text("w"), ANSWERED]);
    assert_eq!(late, [""; 0]);
    // A program that repeats no ids is heard as before.
    let plain = json!({"kind": "turn_result", "status": "completed", "text": "plain"});
    assert_eq!(push(&[plain]).0, [text("plain"), ANSWERED]);
}

#[test]
fn an_acp_call_has_one_beginning_and_one_end() {
    let mut updates = acp::Updates::default();
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "list", "kind": "execute",
        "status": "pending", "rawInput": {"command": "ls"}});
    let began = updates.read(&call);
    assert!(
        matches!(&began[..], [ChildEvent::Call { name, arguments, .. }]
        if name == "execute" && arguments["command"] == "ls" && arguments["title"] == "list")
    );
    assert!(updates.read(&call).is_empty(), "it is reported once");
    let content = json!([{"type": "diff", "path": "a.txt", "oldText": "x", "newText": "y"}]);
    let more = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "content": content});
    assert!(updates.read(&more).is_empty());
    let ended =
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"});
    let ended = updates.read(&ended);
    let [
        ChildEvent::CallEnded {
            outcome, blocks, ..
        },
    ] = &ended[..]
    else {
        panic!("{ended:?}")
    };
    assert_eq!(*outcome, CallOutcome::Ok);
    assert!(
        matches!(&blocks[..], [Block::Text { text }] if text.contains("a.txt") && text.contains("+++ after\ny"))
    );
    let unknown = json!({"sessionUpdate": "something_new", "x": 1});
    assert!(updates.read(&unknown).is_empty());
}

#[test]
fn the_cost_of_a_session_is_reported_as_differences() {
    let mut updates = acp::Updates::default();
    let report = |amount: f64| json!({"sessionUpdate": "usage_update", "cost": {"amount": amount, "currency": "USD"}});
    let cost = |said: Vec<ChildEvent>| match &said[..] {
        [ChildEvent::Spent { cost, .. }] => *cost,
        _ => panic!("{said:?}"),
    };
    assert_eq!(cost(updates.read(&report(0.5))), Some(MicroUsd(500_000)));
    updates.costs.charge();
    assert_eq!(cost(updates.read(&report(0.75))), Some(MicroUsd(250_000)));
}

#[test]
fn a_permission_is_given_for_one_call_if_possible() {
    let options = json!([
        {"optionId": "a", "kind": "allow_always"},
        {"optionId": "b", "kind": "allow_once"},
        {"optionId": "c", "kind": "reject_always"},
    ]);
    let choose = |allowed| acp::choice(&options, allowed);
    assert_eq!(choose(acp::Allowed::Yes).as_deref(), Some("b"));
    assert_eq!(choose(acp::Allowed::No).as_deref(), Some("c"));
    assert_eq!(acp::choice(&json!([]), acp::Allowed::Yes), None);
}

/// As opencode reports a call: the arguments come after the report, and the question after the beginning.
#[test]
fn an_acp_call_is_completed_by_what_follows() {
    let mut updates = acp::Updates::default();
    let first = json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "bash", "kind": "execute",
        "status": "pending", "rawInput": {"cwd": "/w"}});
    assert!(
        matches!(&updates.read(&first)[..], [ChildEvent::Call { is_pending, .. }] if *is_pending)
    );
    let begun = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "in_progress",
        "title": "echo hi", "rawInput": {"command": "echo hi", "cwd": "/w"}});
    let said = updates.read(&begun);
    assert!(
        matches!(&said[..], [ChildEvent::CallChanged { arguments, .. }, ChildEvent::CallBegan { .. }]
        if arguments["command"] == "echo hi" && arguments["title"] == "echo hi")
    );
    let asks = json!({"toolCall": {"toolCallId": "t", "kind": "other", "rawInput": {"command": "echo ho"}}});
    let asks = updates.asks(&asks, "q".to_owned()).unwrap();
    assert!(matches!(&asks, ChildEvent::Asks { name, arguments, .. }
        if name == "execute" && arguments["command"] == "echo ho" && arguments["cwd"] == "/w"));
}

/// As goose and pi report calls: no kind, or the output beside the content.
#[test]
fn an_acp_call_without_a_kind_and_one_with_a_terminal() {
    let mut updates = acp::Updates::default();
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "shell", "rawInput": {"command": "ls"}});
    let said = updates.read(&call);
    assert!(
        matches!(&said[..], [ChildEvent::Call { name, is_pending, .. }] if name == "execute" && !*is_pending)
    );
    for data in ["one\n", "two\n"] {
        let more = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "in_progress",
            "_meta": {"terminal_output": {"data": data}}});
        updates.read(&more);
    }
    let ended =
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"});
    let said = updates.read(&ended);
    assert!(matches!(&said[..], [ChildEvent::CallEnded { blocks, .. }]
        if blocks == &[Block::text("one\ntwo\n")]));
    // An update after the end begins nothing.
    assert!(
        updates
            .read(&json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "x"}))
            .is_empty()
    );
    let reused = updates.read(&call);
    assert!(matches!(&reused[..], [ChildEvent::Call { .. }]));
}

#[test]
fn hostile_sizes_are_bounded() {
    let mut updates = acp::Updates::default();
    let long = "x".repeat(LONGEST_ID + 1);
    let call = |id: &str, input: Value| json!({"sessionUpdate": "tool_call", "toolCallId": id, "rawInput": input, "title": "t"});
    assert!(updates.read(&call(&long, json!({}))).is_empty());
    let huge = "x".repeat(1024 * 1024);
    let said = updates.read(&call("a", json!({"data": huge})));
    let [ChildEvent::Call { arguments, .. }] = &said[..] else {
        panic!("{said:?}")
    };
    assert!(size(&said[0]) < 1024, "{}", size(&said[0]));
    assert!(arguments["not_recorded"].is_string() && arguments["title"] == "t");
    let ended = ChildEvent::CallEnded {
        id: "a".to_owned(),
        outcome: CallOutcome::Ok,
        blocks: vec![Block::text(&huge), Block::text("more")],
    };
    assert!(size(&bounded(ended)) < 512 * 1024);
    // Thousands of open calls do not fill the memory.
    for n in 0..10_000 {
        updates.read(&call(&n.to_string(), json!({"data": "y"})));
    }
    assert!(format!("{updates:?}").len() < 128 * 1024);
}

#[test]
fn servers_are_passed_on_as_far_as_the_agent_can_use_them() {
    use crate::mcp::{Server, Source, Transport};
    let server = |name: &str, transport| Server {
        name: name.to_owned(),
        source: Source::Agent,
        transport,
        read_only: std::collections::BTreeSet::new(),
        timeout_ms: 1,
        settings: String::new(),
    };
    let env = std::collections::BTreeMap::from([("KEY".to_owned(), "v".to_owned())]);
    let stdio = |cwd: Option<&str>| Transport::Stdio {
        command: "serve".to_owned(),
        args: vec!["-x".to_owned()],
        env: env.clone(),
        cwd: cwd.map(str::to_owned),
    };
    let http = Transport::Http {
        url: "http://x/".to_owned(),
        headers: env.clone(),
    };
    let all = [
        server("a", Ok(stdio(None))),
        server("b", Ok(stdio(Some("/d")))),
        server("c", Ok(http)),
        server("d", Err("KEY is missing".to_owned())),
    ];
    let pairs = json!([{"name": "KEY", "value": "v"}]);
    let without = acp::servers(&all, &acp::Capabilities::default());
    assert_eq!(without.len(), 2);
    assert_eq!(
        without[0],
        json!({"name": "a", "command": "serve", "args": ["-x"], "env": pairs})
    );
    assert_eq!(
        without[1]["args"],
        json!(["-c", "cd \"$0\" && exec \"$@\"", "/d", "serve", "-x"])
    );
    let capabilities = acp::Capabilities {
        http_servers: true,
        ..acp::Capabilities::default()
    };
    let with = acp::servers(&all, &capabilities);
    assert_eq!(
        with[2],
        json!({"type": "http", "name": "c", "url": "http://x/", "headers": pairs})
    );
    assert!(acp::check_version(&json!({"protocolVersion": 1})).is_ok());
    assert!(
        acp::check_version(&json!({"protocolVersion": 2}))
            .unwrap_err()
            .contains("version 2")
    );
}

#[test]
fn the_arguments_of_a_call_may_be_plain() {
    let given = |arguments: Value| {
        let call = json!({"type": "tool_call", "id": "c", "name": "look", "arguments": arguments});
        let line = json!({"kind": "message", "body": {"status": "complete", "blocks": [call]}});
        let said = all(&[format!("{line}\n").as_bytes()]);
        let found = said.into_iter().find_map(|said| match said {
            ChildEvent::Call { arguments, .. } => Some(Value::Object(arguments)),
            _ => None,
        });
        found.unwrap()
    };
    let plain = json!({"path": "x"});
    assert_eq!(given(plain.clone()), plain);
    assert_eq!(given(json!({ "object": plain })), plain);
    assert_eq!(given(json!(plain.to_string())), plain);
    assert_eq!(given(Value::Null), json!({}));
    // An argument that is called `object`: alone, it must not be written plainly.
    let plain = json!({"object": {"id": 1}, "path": "x"});
    assert_eq!(given(plain.clone()), plain);
    let only = json!({"object": {"id": 1}});
    assert_eq!(given(only.clone()), json!({"id": 1}));
    assert_eq!(given(json!({ "object": only })), only);
}
