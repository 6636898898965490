//! The MCP servers of an editor: the agent has them while the session is open, and their values are nowhere on disk.

use crate::editor::{Editor, of_kind};
use crate::test_daemon::{AGENTD, TestDaemon, kill, until};
use agentd_core::event::Body;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const TOKEN: &str = "tok-of-the-editor-0123456789";
const HEADER: &str = "Bearer header-of-the-editor-9876";

fn fake(token: &str) -> Value {
    let program = Path::new(AGENTD).with_file_name("agentd-fake-mcp");
    let env = json!([{"name": "EDITOR_TOKEN", "value": token}]);
    json!({"name": "My fake", "command": program, "args": [], "env": env})
}

fn docs() -> Value {
    let headers = json!([{"name": "Authorization", "value": HEADER}]);
    // Nothing listens there.
    json!({"type": "http", "name": "docs", "url": "http://127.0.0.1:9/mcp", "headers": headers})
}

fn new_session(editor: &mut Editor, daemon: &TestDaemon, servers: &[Value]) -> String {
    let params = json!({"cwd": daemon.work(), "mcpServers": servers});
    let session = editor.ask("session/new", params);
    session["sessionId"].as_str().unwrap().to_owned()
}

fn agent_of(session: &str) -> String {
    session.split('.').next().unwrap().to_owned()
}

/// Calls the server's tool that returns the variable.
fn reads(editor: &mut Editor, session: &str) {
    let call = "do: call mcp__My-fake__read_environment {\"text\": \"EDITOR_TOKEN\"} ;; say done";
    let (stop, updates) = editor.answer(session, call);
    assert_eq!(stop, "end_turn", "{updates:#?}");
    let shown = Value::from_iter(updates).to_string();
    // The server has the value, and nothing of agentd shows it.
    assert!(shown.contains("[redacted by agentd]"), "{shown}");
    assert!(!shown.contains(TOKEN), "{shown}");
}

/// The tools of the newest request to the model.
fn has_fake(daemon: &TestDaemon) -> bool {
    let requests = daemon.requests();
    let tools = requests.last().unwrap().body["tools"].clone();
    tools.to_string().contains("mcp__My-fake__")
}

fn files(dir: &Path, all: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        match kind.is_dir() {
            true => files(&entry.path(), all),
            false if kind.is_file() => all.push(entry.path()),
            false => {}
        }
    }
}

fn is_nowhere(daemon: &TestDaemon) {
    let mut all = Vec::new();
    files(&daemon.root(), &mut all);
    assert!(all.iter().any(|path| path.ends_with("journal.db")));
    for path in all {
        // It may have been removed meanwhile.
        let bytes = fs::read(&path).unwrap_or_default();
        for secret in [TOKEN, "header-of-the-editor-9876"] {
            let mut windows = bytes.windows(secret.len());
            let is_there = windows.any(|it| it == secret.as_bytes());
            assert!(!is_there, "{secret} is in {}", path.display());
        }
    }
}

fn without_servers(daemon: &TestDaemon, agent: &str) {
    until("an agent without the servers", || {
        daemon.completed(agent, "do: say hello");
        (!has_fake(daemon)).then_some(())
    });
}

#[test]
fn the_servers_of_the_editor_are_used_while_the_session_is_open() {
    let daemon = TestDaemon::new();
    let mut editor = Editor::start(&daemon, &[]);
    let session = new_session(&mut editor, &daemon, &[fake(TOKEN), docs()]);
    let agent = agent_of(&session);
    reads(&mut editor, &session);
    let listed = daemon.cli(&["mcp", "list", &agent]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(
        listed.contains("My-fake") && listed.contains("editor"),
        "{listed}"
    );
    assert!(listed.contains("http://127.0.0.1:9/mcp"), "{listed}");
    is_nowhere(&daemon);
    let spec = daemon.block(daemon.client().spec(&agent)).unwrap();
    assert!(spec.mcp.is_empty());
    let fork = daemon.cli(&["fork", &agent, "forked"]);
    assert!(fork.status.success(), "{fork:?}");
    daemon.completed("forked", "do: say hello");
    assert!(!has_fake(&daemon), "a fork has them");
    editor.ask("session/close", json!({"sessionId": session}));
    without_servers(&daemon, &agent);
    is_nowhere(&daemon);
    daemon.verify();
}

/// After a restart the values are gone until the editor's connection supplies them again.
#[test]
fn the_next_daemon_and_the_next_process_get_the_servers_again() {
    let daemon = TestDaemon::new();
    let mut editor = Editor::start(&daemon, &[]);
    let session = new_session(&mut editor, &daemon, &[fake(TOKEN)]);
    let agent = agent_of(&session);
    reads(&mut editor, &session);
    daemon.kill_runtime(&agent);
    reads(&mut editor, &session);
    for with_runtime in [false, true] {
        daemon.kill_daemon();
        if with_runtime {
            let own = daemon.processes().into_iter();
            let own = own.filter(|(_, line)| line.contains(&agent) && !line.contains("acp"));
            for (pid, _) in own {
                kill(pid, Signal::KILL);
            }
        }
        daemon.start_daemon();
        until("the servers", || {
            daemon.completed(&agent, "do: say hello");
            has_fake(&daemon).then_some(())
        });
        reads(&mut editor, &session);
    }
    is_nowhere(&daemon);
    // The editor is killed, and says nothing.
    drop(editor);
    without_servers(&daemon, &agent);
    is_nowhere(&daemon);
}

#[test]
fn a_loaded_session_gets_its_servers_and_one_that_cannot_be_used_is_named() {
    let daemon = TestDaemon::new();
    let mut editor = Editor::start(&daemon, &[]);
    let session = editor.new_session(&daemon);
    editor.answer(&session, "do: say one");
    assert!(!has_fake(&daemon));
    let old = json!({"type": "sse", "name": "old", "url": "https://x", "headers": []});
    let params =
        json!({"sessionId": session, "cwd": daemon.work(), "mcpServers": [fake(TOKEN), old]});
    editor.ask("session/load", params);
    let named = editor.until("a notice", |frame| {
        frame["params"]["update"]
            .to_string()
            .contains("`old` of the editor is not used")
    });
    assert!(named.to_string().contains("SSE"), "{named}");
    reads(&mut editor, &session);
    // Other values are another server.
    let params = json!({"sessionId": session, "cwd": daemon.work(), "mcpServers": [fake("")]});
    editor.ask("session/load", params);
    let call = "do: call mcp__My-fake__read_environment {\"text\": \"EDITOR_TOKEN\"} ;; say done";
    let (_, updates) = editor.answer(&session, call);
    let calls = of_kind(&updates, "tool_call_update");
    assert!(
        !Value::from_iter(calls.into_iter().cloned())
            .to_string()
            .contains("redacted")
    );
    let events = daemon.events(&agent_of(&session));
    let mut settings = events.iter().filter_map(|event| match &event.body {
        Body::SpecSet(set) => Some(&set.spec),
        _ => None,
    });
    assert!(settings.all(|spec| spec.mcp.is_empty()));
}

/// The result of the newest call of the session's agent.
fn result(daemon: &TestDaemon, session: &str) -> String {
    let events = daemon.events(&agent_of(session));
    let result = events.iter().rev().find_map(|event| match &event.body {
        Body::ResultAdded(result) => Some(format!("{:?}", result.blocks)),
        _ => None,
    });
    result.unwrap()
}

#[test]
fn a_question_of_a_server_is_a_form_where_the_editor_has_forms() {
    let daemon = TestDaemon::new();
    let forms = json!({"elicitation": {"form": {}}});
    let mut editor = Editor::start_that_can(&daemon, &[], &forms);
    let session = new_session(&mut editor, &daemon, &[fake(TOKEN)]);
    for (reply, expected) in [
        (
            json!({"action": "accept", "content": {"name": "Ann"}}),
            "hello Ann",
        ),
        (json!({"action": "decline"}), "not answered: decline"),
    ] {
        let prompt = editor.prompt(&session, "do: call mcp__My-fake__ask {} ;; say done");
        let asked = editor.until("a form", |frame| frame["method"] == "elicitation/create");
        let params = &asked["params"];
        assert_eq!(
            (&params["mode"], &params["sessionId"]),
            (&json!("form"), &json!(session))
        );
        assert_eq!(params["message"], "My-fake: Who are you?");
        assert_eq!(params["requestedSchema"]["required"], json!(["name"]));
        editor.reply(&asked, reply);
        let (response, _) = editor.response(prompt);
        assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
        let result = result(&daemon, &session);
        assert!(result.contains(expected), "{result}");
    }
    // Another client was first: the form is withdrawn.
    editor.prompt(&session, "do: call mcp__My-fake__ask {} ;; say done");
    let asked = editor.until("a form", |frame| frame["method"] == "elicitation/create");
    let answered = daemon.cli(&["answer", &agent_of(&session), "name=Ben"]);
    assert!(answered.status.success(), "{answered:?}");
    let cancelled = editor.until("the end of the form", |frame| {
        frame["method"] == "$/cancel_request"
    });
    assert_eq!(cancelled["params"]["requestId"], asked["id"]);
    until("the result", || {
        result(&daemon, &session)
            .contains("hello Ben")
            .then_some(())
    });
}
