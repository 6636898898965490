//! Sessions are conversations: new, load, list, close, delete, fork, settings and slash commands.

use crate::editor::{Editor, of_kind, text_of};
use crate::test_daemon::{TestDaemon, until};
use agentd_core::spec::{ApprovalMode, Reasoning, Sandbox};
use serde_json::json;

fn agent_of(session: &str) -> String {
    session.split('.').next().unwrap().to_owned()
}

#[test]
fn a_new_session_is_a_new_agent_of_the_directory() {
    let daemon = TestDaemon::new();
    let mut editor = Editor::start(&daemon, &[]);
    let one = editor.new_session(&daemon);
    let two = editor.new_session(&daemon);
    assert_ne!(agent_of(&one), agent_of(&two));
    let (one, two) = (daemon.show(&agent_of(&one)), daemon.show(&agent_of(&two)));
    assert_eq!(one.cwd.as_deref(), daemon.work().to_str());
    assert_eq!(two.name, format!("{}-2", one.name));
    let refused = editor.refused("session/new", json!({"cwd": "relative", "mcpServers": []}));
    assert_eq!(refused["code"], -32602, "{refused}");
}

#[test]
fn with_an_agent_a_new_session_resets_it_unless_it_is_empty() {
    let daemon = TestDaemon::new();
    let created = daemon.create("coder");
    let mut editor = Editor::start(&daemon, &["--agent", "coder"]);
    let first = editor.new_session(&daemon);
    assert_eq!(agent_of(&first), created.id.to_string());
    assert_eq!(editor.new_session(&daemon), first);
    editor.answer(&first, "do: say one");
    let second = editor.new_session(&daemon);
    assert_ne!(second, first);
    assert!(daemon.show("coder").generation > created.generation);
    // The first conversation is sealed: it continues in a fork, and each load leads to the same one.
    let agents = || {
        daemon
            .block(daemon.client().agents(&Default::default()))
            .unwrap()
            .total
    };
    let history = editor.load(&daemon, &first);
    assert_eq!(text_of(&history, "agent_message_chunk"), "one");
    assert_eq!(agents(), 2);
    editor.answer(&first, "do: say two");
    let history = editor.load(&daemon, &first);
    assert_eq!(text_of(&history, "agent_message_chunk"), "onetwo");
    assert_eq!(agents(), 2);
    // The agent itself is as it was.
    assert_eq!(daemon.show("coder").conversation.unwrap().turns, 0);
    let unknown = Editor::start(&daemon, &["--agent", "unknown-agent"]).refused(
        "session/new",
        json!({"cwd": daemon.work(), "mcpServers": []}),
    );
    assert_eq!(unknown["code"], -32002, "{unknown}");
}

#[test]
fn a_session_whose_agent_was_reset_by_another_client_continues_in_a_fork() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let mut editor = Editor::start(&daemon, &["--agent", "coder"]);
    let session = editor.new_session(&daemon);
    editor.answer(&session, "do: say one");
    assert!(daemon.cli(&["reset", "coder"]).status.success());
    daemon.completed("coder", "do: say elsewhere");
    let (stop, updates) = editor.answer(&session, "do: say two");
    assert_eq!(stop, "end_turn");
    let said = text_of(&updates, "agent_message_chunk");
    assert!(
        said.contains("continues in the agent") && said.ends_with("two"),
        "{said}"
    );
    assert!(!said.contains("elsewhere"), "{said}");
    let requests = daemon.requests();
    let last = format!("{:?}", requests.last().unwrap());
    assert!(
        last.contains("say one") && !last.contains("elsewhere"),
        "{last}"
    );
}

#[test]
fn a_fork_that_was_reset_as_well_is_forked_from_its_own_conversation() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let mut editor = Editor::start(&daemon, &["--agent", "coder"]);
    let session = editor.new_session(&daemon);
    editor.answer(&session, "do: say one");
    assert!(daemon.cli(&["reset", "coder"]).status.success());
    let (_, updates) = editor.answer(&session, "do: say two");
    let said = text_of(&updates, "agent_message_chunk");
    let (_, fork) = said.split_once("continues in the agent ").unwrap();
    let (fork, _) = fork.split_once('.').unwrap();
    assert!(daemon.cli(&["reset", fork]).status.success());
    daemon.completed(fork, "do: say elsewhere");
    // The open session, and one that is loaded later, continue what they show.
    for (text, is_loaded) in [("do: say three", false), ("do: say four", true)] {
        if is_loaded {
            editor = Editor::start(&daemon, &[]);
            editor.load(&daemon, &session);
        }
        let (stop, _) = editor.answer(&session, text);
        assert_eq!(stop, "end_turn");
        let requests = daemon.requests();
        let last = format!("{:?}", requests.last().unwrap());
        assert!(
            last.contains("say one") && last.contains("say two") && last.contains(text),
            "{last}"
        );
        assert!(!last.contains("elsewhere"), "{last}");
    }
}

/// Regression: the skills were commands only after the first request of a conversation.
#[test]
fn a_new_session_has_the_skills_of_the_agent_as_commands() {
    let daemon = TestDaemon::new();
    let home = daemon.root().join("users-home");
    let skill = home.join(".agents/skills/release");
    std::fs::create_dir_all(&skill).unwrap();
    let text = "---\ndescription: How to release\n---\nRelease it.\n";
    std::fs::write(skill.join("SKILL.md"), text).unwrap();
    daemon.caller_env("HOME", home.to_str().unwrap());
    let mut editor = Editor::start(&daemon, &[]);
    editor.new_session(&daemon);
    let commands = editor.until("the commands", |frame| {
        frame["params"]["update"]["sessionUpdate"] == "available_commands_update"
    });
    assert!(commands.to_string().contains("\"release\""), "{commands}");
}

#[test]
fn sessions_are_listed_closed_and_deleted() {
    let daemon = TestDaemon::new();
    let mut editor = Editor::start(&daemon, &[]);
    let session = editor.new_session(&daemon);
    editor.answer(&session, "do: say hello");
    let listed = editor.ask("session/list", json!({"cwd": daemon.work()}));
    let sessions = listed["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 1, "{listed}");
    assert_eq!(sessions[0]["sessionId"], session.as_str());
    assert!(sessions[0]["title"].as_str().unwrap().contains("say hello"));
    assert!(sessions[0]["updatedAt"].is_string());
    let elsewhere = editor.ask("session/list", json!({"cwd": "/"}));
    assert_eq!(elsewhere["sessions"], json!([]));
    editor.ask("session/close", json!({"sessionId": session}));
    let id = editor.prompt(&session, "do: say no");
    let (response, _) = editor.response(id);
    assert_eq!(response["error"]["code"], -32002, "{response}");
    editor.ask(
        "session/resume",
        json!({"sessionId": session, "cwd": daemon.work(), "mcpServers": []}),
    );
    let (_, updates) = editor.answer(&session, "do: say again");
    assert_eq!(text_of(&updates, "agent_message_chunk"), "again");
    let name = daemon.show(&agent_of(&session)).name;
    editor.ask("session/delete", json!({"sessionId": session}));
    assert!(daemon.cli(&["restore", &name]).status.success());
    let wrong = editor.refused(
        "session/load",
        json!({"sessionId": "x", "cwd": daemon.work(), "mcpServers": []}),
    );
    assert_eq!(wrong["code"], -32002, "{wrong}");
    assert!(wrong["data"]["next"].is_string(), "{wrong}");
}

#[test]
fn a_fork_is_another_session() {
    let daemon = TestDaemon::new();
    let mut editor = Editor::start(&daemon, &[]);
    let session = editor.new_session(&daemon);
    editor.answer(&session, "do: say one");
    let params = json!({"sessionId": session, "cwd": daemon.work(), "mcpServers": []});
    let forked = editor.ask("session/fork", params);
    let forked = forked["sessionId"].as_str().unwrap().to_owned();
    assert_ne!(forked, session);
    editor.answer(&forked, "do: say two");
    let history = editor.load(&daemon, &forked);
    assert_eq!(text_of(&history, "agent_message_chunk"), "onetwo");
    let history = editor.load(&daemon, &session);
    assert_eq!(text_of(&history, "agent_message_chunk"), "one");
}

#[test]
fn settings_are_changed_here_and_elsewhere() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let mut editor = Editor::start(&daemon, &["--agent", "coder"]);
    let params = json!({"cwd": daemon.work(), "mcpServers": []});
    let opened = editor.ask("session/new", params);
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(opened["modes"]["currentModeId"], "on-request");
    let ids: Vec<&str> = opened["configOptions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| option["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["approval", "sandbox", "model", "reasoning"]);
    editor.ask(
        "session/set_mode",
        json!({"sessionId": session, "modeId": "always"}),
    );
    for (id, value) in [("sandbox", "read-only"), ("reasoning", "high")] {
        let params = json!({"sessionId": session, "configId": id, "value": value});
        let set = editor.ask("session/set_config_option", params);
        let options = set["configOptions"].as_array().unwrap();
        let option = options.iter().find(|option| option["id"] == id).unwrap();
        assert_eq!(option["currentValue"], value);
    }
    let spec = daemon.block(daemon.client().spec("coder")).unwrap();
    assert_eq!(spec.approval, Some(ApprovalMode::Always));
    assert_eq!(spec.sandbox, Some(Sandbox::ReadOnly));
    assert_eq!(spec.reasoning, Some(Reasoning::High));
    let wrong = json!({"sessionId": session, "configId": "sandbox", "value": "none"});
    let refused = editor.refused("session/set_config_option", wrong);
    assert_eq!(refused["code"], -32602, "{refused}");
    let set = daemon.cli(&["set", "coder", "approval=never"]);
    assert!(set.status.success(), "{set:?}");
    editor.until("the new mode", |frame| {
        frame["params"]["update"]["currentModeId"] == "never"
    });
}

#[test]
fn changes_of_settings_that_are_sent_at_once_are_all_made() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let mut editor = Editor::start(&daemon, &["--agent", "coder"]);
    let session = editor.new_session(&daemon);
    let values = [
        ("approval", "always"),
        ("sandbox", "read-only"),
        ("reasoning", "high"),
    ];
    let sent = values.map(|(id, value)| {
        let params = json!({"sessionId": session, "configId": id, "value": value});
        editor.request("session/set_config_option", params)
    });
    for id in sent {
        let (response, _) = editor.response(id);
        assert!(response.get("error").is_none(), "{response}");
    }
    let spec = daemon.block(daemon.client().spec("coder")).unwrap();
    assert_eq!(spec.approval, Some(ApprovalMode::Always));
    assert_eq!(spec.sandbox, Some(Sandbox::ReadOnly));
    assert_eq!(spec.reasoning, Some(Reasoning::High));
}

#[test]
fn slash_commands_are_those_of_the_chat() {
    let daemon = TestDaemon::new();
    let commands = daemon.work().join(".claude/commands");
    std::fs::create_dir_all(&commands).unwrap();
    std::fs::write(commands.join("greet.md"), "do: say hello $1\n").unwrap();
    let mut editor = Editor::start(&daemon, &[]);
    let session = editor.new_session(&daemon);
    let available = editor.until("the commands", |frame| {
        frame["params"]["update"]["sessionUpdate"] == "available_commands_update"
    });
    let listed = available["params"]["update"]["availableCommands"].to_string();
    for name in ["reset", "undo", "compact", "greet"] {
        assert!(listed.contains(&format!("\"{name}\"")), "{listed}");
    }
    let (_, updates) = editor.answer(&session, "/greet Ada");
    assert_eq!(text_of(&updates, "agent_message_chunk"), "hello Ada");
    let (stop, updates) = editor.answer(&session, "/reset");
    assert_eq!(stop, "end_turn");
    assert!(
        text_of(&updates, "agent_message_chunk").contains("conversation 2"),
        "{updates:#?}"
    );
    let name = agent_of(&session);
    assert_eq!(daemon.show(&name).conversation.unwrap().ordinal, 2);
    // The session goes on in the new conversation, in the same agent.
    let (_, updates) = editor.answer(&session, "do: say fresh");
    assert_eq!(text_of(&updates, "agent_message_chunk"), "fresh");
    assert_eq!(daemon.show(&name).conversation.unwrap().turns, 1);
    let (_, updates) = editor.answer(&session, "/undo");
    assert!(text_of(&updates, "agent_message_chunk").contains("back in conversation 1"));
    let (_, updates) = editor.answer(&session, "/nothing");
    assert!(text_of(&updates, "agent_message_chunk").contains("no command /nothing"));
    assert!(of_kind(&updates, "tool_call").is_empty());
    daemon.requests();
}

#[test]
fn a_session_returns_after_the_daemon_was_stopped_and_started() {
    let daemon = TestDaemon::new();
    let mut editor = Editor::start(&daemon, &[]);
    let session = editor.new_session(&daemon);
    editor.answer(&session, "do: say one");
    assert!(daemon.cli(&["daemon", "stop"]).status.success());
    daemon.until_daemon_ends();
    daemon.start_daemon();
    let name = agent_of(&session);
    until("the daemon", || {
        daemon.block(daemon.client().agent(&name)).ok()
    });
    daemon.completed(&name, "do: say elsewhere");
    editor.until("what happened elsewhere", |frame| {
        let update = &frame["params"]["update"];
        let text = update["content"]["text"].as_str().unwrap_or_default();
        update["sessionUpdate"] == "user_message_chunk" && text.contains("elsewhere")
    });
    let (stop, _) = editor.answer(&session, "do: say two");
    assert_eq!(stop, "end_turn");
}
