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
