//! Updates as real agents send them.

use super::*;

fn said(updates: &mut Updates, text: &str) -> Vec<ChildEvent> {
    updates.read(&serde_json::from_str(text).unwrap())
}

/// Codex reports a call with a terminal, and its output as differences, the last one with the end of the call.
#[test]
fn codex_sends_the_output_of_a_command_in_differences() {
    let mut updates = Updates::default();
    let begun = said(
        &mut updates,
        r#"{"sessionUpdate":"tool_call","toolCallId":"call_1_0","name":"exec_command","kind":"execute",
        "title":"echo hi-there >> effects; cat effects","status":"in_progress",
        "content":[{"type":"terminal","terminalId":"call_1_0"}],
        "rawInput":{"command":"echo hi-there >> effects; cat effects","cwd":"/w"},
        "_meta":{"terminal_info":{"cwd":"/w","terminal_id":"call_1_0"}}}"#,
    );
    assert!(
        matches!(&begun[..], [ChildEvent::Call { name, .. }, ChildEvent::CallBegan { .. }] if name == "execute"),
        "{begun:?}"
    );
    let more = said(
        &mut updates,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"call_1_0","status":"in_progress",
        "_meta":{"terminal_output_delta":{"data":"hi-","terminal_id":"call_1_0"}}}"#,
    );
    assert!(
        matches!(&more[..], [ChildEvent::CallBegan { .. }]),
        "{more:?}"
    );
    let ended = said(
        &mut updates,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"call_1_0","name":"exec_command","status":"completed",
        "_meta":{"terminal_output_delta":{"data":"there\n","terminal_id":"call_1_0"},
        "terminal_exit":{"exit_code":0,"signal":null,"terminal_id":"call_1_0"}}}"#,
    );
    let [
        ChildEvent::CallEnded {
            outcome, blocks, ..
        },
    ] = &ended[..]
    else {
        panic!("{ended:?}")
    };
    assert_eq!(*outcome, CallOutcome::Ok);
    assert_eq!(blocks, &[Block::text("hi-there\n")]);
}

/// Gemini CLI asks about a call that it has not reported, and reports its end only.
#[test]
fn gemini_reports_a_call_by_its_question() {
    let mut updates = Updates::default();
    let request = r#"{"toolCall":{"toolCallId":"run_1","status":"pending","title":"echo hi","content":[],
        "locations":[],"kind":"execute"}}"#;
    let asked = updates.asks(&serde_json::from_str(request).unwrap(), "0".to_owned());
    assert!(
        matches!(&asked, Some(ChildEvent::Asks { name, arguments, .. })
            if name == "execute" && arguments["title"] == "echo hi"),
        "{asked:?}"
    );
    let ended = said(
        &mut updates,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"run_1","status":"failed",
        "content":[{"type":"content","content":{"type":"text","text":"forkpty(3) failed."}}],"kind":"execute"}"#,
    );
    assert!(
        matches!(&ended[..], [ChildEvent::CallEnded { outcome: CallOutcome::Error, blocks, .. }]
            if blocks == &[Block::text("forkpty(3) failed.")]),
        "{ended:?}"
    );
}

/// The options are those of pi.
#[test]
fn changed_settings_are_told_once() {
    let mut updates = Updates::default();
    let report = |model: &str| {
        json!({"sessionUpdate": "config_option_update", "configOptions": [
            {"type": "select", "id": "model", "category": "model", "name": "Model", "currentValue": model,
                "options": [{"value": "fake/fake", "name": "fake/fake", "description": null}]},
            {"type": "select", "id": "thought_level", "name": "Thinking", "currentValue": "off", "options": []},
            {"type": "boolean", "id": "fast", "currentValue": true},
            {"id": "odd", "currentValue": {"a": 1}}, {"currentValue": "x"}, 5,
        ]})
    };
    let told = |text: &str| [ChildEvent::Thinking(text.to_owned())];
    assert_eq!(
        updates.read(&report("fake/fake")),
        told("\nSetting: Model: fake/fake\nSetting: Thinking: off\nSetting: fast: true\n")
    );
    assert!(updates.read(&report("fake/fake")).is_empty());
    assert_eq!(
        updates.read(&report("fake/other")),
        told("\nSetting: Model: fake/other\n")
    );
}

#[test]
fn endless_settings_are_bounded() {
    let mut updates = Updates::default();
    let long = "x".repeat(10_000);
    for n in 0..1_000 {
        let option = json!({"id": format!("{n}{long}"), "currentValue": long});
        updates.read(&json!({"sessionUpdate": "config_option_update", "configOptions": [option]}));
    }
    assert!(format!("{updates:?}").len() < 64 * 1024);
}

/// An agent that uses the client's terminals names one in its call, and releases it before the call ends.
#[test]
fn the_result_of_a_call_has_what_its_terminal_shows() {
    let shown = |id: &str| (id == "terminal-1").then(|| "hi-there\n".to_owned());
    let mut updates = Updates::default();
    let call = json!({
        "sessionUpdate": "tool_call", "toolCallId": "c", "kind": "execute", "status": "in_progress",
        "rawInput": {"command": "echo hi-there"},
        "content": [
            {"type": "terminal", "terminalId": "terminal-1"}, {"type": "terminal", "terminalId": "other"},
            {"type": "terminal", "terminalId": "terminal-1"},
        ],
    });
    updates.read_with(&call, &shown);
    let end =
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"});
    let ended = updates.read_with(&end, &shown);
    let [ChildEvent::CallEnded { blocks, .. }] = &ended[..] else {
        panic!("{ended:?}")
    };
    assert_eq!(blocks, &[Block::text("hi-there\n")]);
    // Content that comes later takes the place of the terminal.
    updates.read_with(&call, &shown);
    let end = json!({
        "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed",
        "content": [{"type": "content", "content": {"type": "text", "text": "summary"}}],
    });
    let ended = updates.read_with(&end, &shown);
    let [ChildEvent::CallEnded { blocks, .. }] = &ended[..] else {
        panic!("{ended:?}")
    };
    assert_eq!(blocks, &[Block::text("summary")]);
}
