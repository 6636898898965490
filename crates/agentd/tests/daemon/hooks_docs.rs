//! The examples in `docs/hooks.md` work.

use crate::hooks_fixture::*;
use crate::test_daemon::{TestDaemon, until};
use agentd_core::hook::{Config, HookEvent};
use agentd_core::state::Phase;
use serde_json::json;

const DOC: &str = include_str!("../../../../docs/hooks.md");

fn example(name: &str) -> &'static str {
    let mark = format!("<!-- example: {name} -->\n```json\n");
    let rest = DOC.split(&mark).nth(1).unwrap();
    rest.split("```").next().unwrap()
}

fn daemon_with(name: &str) -> TestDaemon {
    let text = example(name);
    let config = Config::parse(text);
    assert_eq!(config.problems, [], "{name}");
    let daemon = TestDaemon::new();
    std::fs::write(daemon.home().join("hooks.json"), text).unwrap();
    daemon
}

#[test]
fn every_event_is_in_its_table() {
    for event in HookEvent::ALL {
        assert!(DOC.contains(&format!("`{event}`")), "{event}");
    }
}

/// They run outside the sandbox, in a directory that the model writes: git would run what its configuration there names.
#[test]
fn no_example_uses_the_work_tree_as_the_user() {
    for name in ["guard", "seed", "reset", "json"] {
        let text = example(name);
        assert!(!text.contains("git "), "{name}");
        assert!(
            !text.contains(">> ") || text.contains(">> \\\"$HOME/"),
            "{name}"
        );
    }
}

#[test]
fn the_guard_says_no() {
    let daemon = daemon_with("guard");
    daemon.create("coder");
    let call = json!({"command": "rm -rf effects"});
    daemon.completed("coder", &format!("do: call shell {call} ;; say done"));
    assert!(last_request(&daemon).to_string().contains("ask me first"));
}

#[test]
fn the_seed_opens_a_conversation() {
    let daemon = daemon_with("seed");
    daemon.create("coder");
    daemon.completed("coder", "do: say one");
    reset(&daemon, "coder", &Default::default()).unwrap();
    daemon.completed("coder", "do: say two");
    let request = last_request(&daemon)["messages"][0].to_string();
    assert!(request.contains("no notes yet"), "{request}");
}

#[test]
fn the_reset_is_refused_while_the_file_is_there() {
    let daemon = daemon_with("reset");
    let home = daemon.root().join("user");
    std::fs::create_dir(&home).unwrap();
    daemon.caller_env("HOME", &home.display().to_string());
    daemon.create("coder");
    std::fs::write(daemon.work().join(".busy"), "").unwrap();
    let problem = reset(&daemon, "coder", &Default::default()).unwrap_err();
    assert!(
        problem
            .detail
            .clone()
            .unwrap_or_default()
            .contains("a release is in progress"),
        "{problem}"
    );
    std::fs::remove_file(daemon.work().join(".busy")).unwrap();
    reset(&daemon, "coder", &Default::default()).unwrap();
    let ended = std::fs::read_to_string(home.join("ended.jsonl")).unwrap();
    assert!(ended.contains("next_session_id"), "{ended}");
}

#[test]
fn the_json_has_the_user_asked() {
    let daemon = daemon_with("json");
    daemon.create("coder");
    let call = json!({"file_path": "new.txt", "content": "x"});
    daemon.send("coder", &format!("do: call write_file {call} ;; say done"));
    until("a question", || {
        (daemon.show("coder").phase == Phase::AwaitingApproval).then_some(())
    });
    assert!(!daemon.work().join("new.txt").exists());
}
