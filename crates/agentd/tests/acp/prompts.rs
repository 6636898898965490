//! Prompts: what the editor sees of a turn, and how it ends.

use crate::editor::{Editor, of_kind, text_of};
use crate::test_daemon::{TestDaemon, until};
use agentd_core::event::{Body, Kind};
use agentd_core::message::Block;
use agentd_core::state::Phase;
use serde_json::json;

#[test]
fn a_turn_streams_thoughts_text_and_tool_calls() {
    let daemon = TestDaemon::new();
    let mut editor = Editor::start(&daemon, &[]);
    let session = editor.new_session(&daemon);
    let (stop, updates) = editor.answer(
        &session,
        "do: think I should look | slowly 100 One moment please and then more | call shell {\"command\":\"echo hi >> effects; cat effects\"} ;; say All done now.",
    );
    assert_eq!(stop, "end_turn");
    assert_eq!(daemon.effects(), ["hi"]);
    assert_eq!(text_of(&updates, "agent_thought_chunk"), "I should look");
    assert_eq!(
        text_of(&updates, "agent_message_chunk"),
        "One moment please and then moreAll done now."
    );
    // It streams: the text comes in pieces.
    assert!(
        of_kind(&updates, "agent_message_chunk").len() > 2,
        "{updates:#?}"
    );
    let calls = of_kind(&updates, "tool_call");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["kind"], "execute");
    assert_eq!(calls[0]["title"], "$ echo hi >> effects; cat effects");
    let changes = of_kind(&updates, "tool_call_update");
    let last = changes.last().unwrap();
    assert_eq!(last["status"], "completed");
    assert_eq!(last["toolCallId"], calls[0]["toolCallId"]);
    let output = last["content"][0]["content"]["text"].as_str().unwrap();
    assert!(output.contains("hi"), "{output}");
    // The editor shows its own prompt itself.
    assert!(of_kind(&updates, "user_message_chunk").is_empty());
    daemon.requests();
    editor.quit();
}

#[test]
fn an_edit_is_a_diff_and_a_plan_is_a_plan() {
    let daemon = TestDaemon::new();
    std::fs::write(daemon.work().join("a.txt"), "old\n").unwrap();
    let mut editor = Editor::start(&daemon, &[]);
    let session = editor.new_session(&daemon);
    let plan = json!({"steps": [{"step": "edit", "state": "in_progress"}]});
    let path = daemon.work().join("a.txt");
    let read = json!({"file_path": path});
    let edit = json!({"file_path": path, "old_string": "old", "new_string": "new"});
    let (stop, updates) = editor.answer(
        &session,
        &format!(
            "do: call update_plan {plan} ;; call read_file {read} ;; call edit_file {edit} ;; say done"
        ),
    );
    assert_eq!(stop, "end_turn");
    let plans = of_kind(&updates, "plan");
    assert_eq!(plans.len(), 1, "{updates:#?}");
    assert_eq!(plans[0]["entries"][0]["content"], "edit");
    assert_eq!(plans[0]["entries"][0]["status"], "in_progress");
    let calls = of_kind(&updates, "tool_call");
    assert_eq!(calls[0]["kind"], "read");
    assert_eq!(calls[0]["locations"][0]["path"], path.to_str().unwrap());
    assert_eq!(calls[1]["kind"], "edit");
    let diff = &calls[1]["content"][0];
    assert_eq!(diff["type"], "diff");
    assert_eq!(
        (&diff["oldText"], &diff["newText"]),
        (&json!("old"), &json!("new"))
    );
    assert_eq!(diff["path"], path.to_str().unwrap());
    let changed = std::fs::read_to_string(path).unwrap();
    assert_eq!(changed, "new\n");
}

#[test]
fn cancel_interrupts_the_turn() {
    let daemon = TestDaemon::new();
    let mut editor = Editor::start(&daemon, &[]);
    let session = editor.new_session(&daemon);
    let prompt = editor.prompt(&session, "do: hang");
    let name = session.split('.').next().unwrap().to_owned();
    daemon.until_kind(&name, Kind::RequestSent);
    editor.notify("session/cancel", json!({"sessionId": session}));
    let (response, _) = editor.response(prompt);
    assert_eq!(response["result"]["stopReason"], "cancelled", "{response}");
    until("the end of the turn", || {
        (daemon.show(&name).phase == Phase::Idle).then_some(())
    });
    // The session goes on.
    let (stop, updates) = editor.answer(&session, "do: say here");
    assert_eq!(stop, "end_turn");
    assert_eq!(text_of(&updates, "agent_message_chunk"), "here");
}

#[test]
fn a_request_that_the_editor_cancels_interrupts_its_own_prompt_only() {
    let daemon = TestDaemon::new();
    let mut editor = Editor::start(&daemon, &[]);
    let session = editor.new_session(&daemon);
    let running = editor.prompt(&session, "do: hang");
    let name = session.split('.').next().unwrap().to_owned();
    daemon.until_kind(&name, Kind::RequestSent);
    let queued = editor.prompt(&session, "do: say here");
    until("two prompts", || {
        (daemon.count(&name, Kind::PromptQueued) == 2).then_some(())
    });
    editor.notify("$/cancel_request", json!({"requestId": running}));
    let (response, _) = editor.response(running);
    assert_eq!(response["result"]["stopReason"], "cancelled", "{response}");
    let (response, updates) = editor.response(queued);
    assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
    assert_eq!(text_of(&updates, "agent_message_chunk"), "here");
    // A request that was answered cannot be cancelled any more.
    editor.notify("$/cancel_request", json!({"requestId": queued}));
    let (stop, _) = editor.answer(&session, "do: say more");
    assert_eq!(stop, "end_turn");
}

#[test]
fn a_queued_prompt_is_cancelled_without_the_turn_before_it() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let mut editor = Editor::start(&daemon, &["--agent", "coder"]);
    let session = editor.new_session(&daemon);
    let running = daemon.send(
        "coder",
        "do: slowly 100 one two three four five six seven eight",
    );
    daemon.until_kind("coder", Kind::RequestSent);
    let prompt = editor.prompt(&session, "do: say never");
    until("two prompts", || {
        (daemon.count("coder", Kind::PromptQueued) == 2).then_some(())
    });
    editor.notify("session/cancel", json!({"sessionId": session}));
    let (response, _) = editor.response(prompt);
    assert_eq!(response["result"]["stopReason"], "cancelled", "{response}");
    let answer = daemon.answer("coder", running.prompt);
    assert!(answer.text.ends_with("eight"), "{answer:?}");
}

#[test]
fn images_and_resources_reach_the_model() {
    let daemon = TestDaemon::new();
    let mut editor = Editor::start(&daemon, &[]);
    let session = editor.new_session(&daemon);
    // A picture of one pixel.
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    let id = editor.request(
        "session/prompt",
        json!({"sessionId": session, "prompt": [
            {"type": "text", "text": "do: say seen "},
            {"type": "resource", "resource": {"uri": "file:///w/note.txt", "text": "remember the milk"}},
            {"type": "image", "mimeType": "image/png", "data": png},
            {"type": "resource_link", "name": "b.rs", "uri": "file:///w/b.rs"},
        ]}),
    );
    let (response, _) = editor.response(id);
    assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
    let name = session.split('.').next().unwrap();
    let prompt = daemon.until_kind(name, Kind::Prompt);
    let Body::Prompt(prompt) = prompt.body else {
        panic!("no prompt");
    };
    let attached = prompt.blocks.iter().filter_map(Block::as_attachment);
    let names: Vec<&str> = attached.map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["note.txt", "image-2.png"]);
    let sent = format!("{:?}", daemon.requests());
    assert!(
        sent.contains("remember the milk") && sent.contains(png),
        "{sent}"
    );
    let audio = json!([{"type": "audio", "mimeType": "audio/wav", "data": "aGk="}]);
    let refused = editor.refused(
        "session/prompt",
        json!({"sessionId": session, "prompt": audio}),
    );
    assert_eq!(refused["code"], -32602, "{refused}");
    assert!(refused["data"]["next"].is_string(), "{refused}");
}

#[test]
fn a_failed_turn_is_an_error_that_says_why() {
    let daemon = TestDaemon::new();
    let mut editor = Editor::start(&daemon, &[]);
    let session = editor.new_session(&daemon);
    let id = editor.prompt(&session, "do: fail 400");
    let (response, _) = editor.response(id);
    let error = &response["error"];
    assert_eq!(error["data"]["kind"], "failed", "{response}");
    assert!(
        error["message"].as_str().unwrap().contains("next:"),
        "{error}"
    );
}

#[test]
fn closing_the_editor_stops_nothing_and_load_shows_what_happened() {
    let daemon = TestDaemon::new();
    let mut editor = Editor::start(&daemon, &[]);
    let session = editor.new_session(&daemon);
    let name = session.split('.').next().unwrap().to_owned();
    editor.answer(&session, "do: say first");
    editor.prompt(&session, "do: slowly 50 one two three four five six");
    // It leaves at once: the prompt that it sent is accepted all the same.
    editor.quit();
    until("the second turn", || {
        (daemon.count(&name, Kind::TurnEnded) == 2).then_some(())
    });
    let mut editor = Editor::start(&daemon, &[]);
    let history = editor.load(&daemon, &session);
    let said = text_of(&history, "agent_message_chunk");
    assert_eq!(said, "firstone two three four five six");
    let asked = text_of(&history, "user_message_chunk");
    assert!(asked.starts_with("do: say first"), "{asked}");
    let (stop, updates) = editor.answer(&session, "do: say third");
    assert_eq!(
        (stop, text_of(&updates, "agent_message_chunk").as_str()),
        (json!("end_turn"), "third")
    );
    daemon.requests();
}

#[test]
fn a_prompt_survives_the_death_of_the_daemon() {
    let daemon = TestDaemon::new();
    let mut editor = Editor::start(&daemon, &[]);
    let session = editor.new_session(&daemon);
    let name = session.split('.').next().unwrap().to_owned();
    let prompt = editor.prompt(
        &session,
        "do: slowly 100 one two three four five six seven eight",
    );
    daemon.until_kind(&name, Kind::RequestSent);
    // The editor's process starts another one.
    daemon.kill_daemon();
    let (response, updates) = editor.response(prompt);
    assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
    let said = text_of(&updates, "agent_message_chunk");
    assert!(said.ends_with("eight"), "{said}");
    let history = editor.load(&daemon, &session);
    let said = text_of(&history, "agent_message_chunk");
    assert_eq!(said, "one two three four five six seven eight");
}
