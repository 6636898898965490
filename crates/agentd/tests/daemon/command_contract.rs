//! `agentd agent` itself as the program of an agent: the contract of docs/runtime.md.

use crate::command_agents::{reset, spec};
use crate::test_daemon::{AGENTD, TestDaemon};
use agentd_client::api::Purge;
use agentd_core::event::Direction;
use agentd_core::id::ConversationId;
use agentd_core::spec::{Command, Contract};
use std::fs;
use std::path::PathBuf;

fn create(daemon: &TestDaemon) {
    let own = Command {
        program: AGENTD.to_owned(),
        args: vec!["agent".to_owned()],
        contract: Some(Contract::Agent),
        ..Command::default()
    };
    let mut spec = spec(daemon, own);
    spec.provider = Some("anthropic".to_owned());
    spec.model = Some("some-model".to_owned());
    for name in ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"] {
        spec.env.insert(name.to_owned(), format!("${{{name}}}"));
    }
    daemon.create_with("coder", spec);
}

fn session(daemon: &TestDaemon, conversation: ConversationId) -> PathBuf {
    let agents = fs::read_dir(daemon.home().join("agents")).unwrap();
    let agent = agents.flatten().next().unwrap().path();
    let dir = agent.join("outer").join(conversation.to_string());
    dir.join("home/checkpoint/session-latest.json")
}

fn current(daemon: &TestDaemon) -> ConversationId {
    daemon.show("coder").conversation.unwrap().id
}

#[test]
fn agentd_agent_is_a_command_agent_with_a_checkpoint_directory_per_conversation() {
    let daemon = TestDaemon::new();
    create(&daemon);
    let answer = daemon.completed("coder", "do: say hello");
    assert_eq!(answer.text, "hello");
    assert!(answer.usage.input_tokens > 0, "{answer:#?}");
    let first = current(&daemon);
    assert!(session(&daemon, first).is_file());
    // The next process of the agent resumes it.
    daemon.kill_runtime("coder");
    daemon.completed("coder", "do: say once more");
    let seen = daemon.requests().last().unwrap().body.to_string();
    assert!(seen.contains("say hello"), "{seen}");
    reset(&daemon, None);
    let second = current(&daemon);
    daemon.completed("coder", "do: say fresh");
    let seen = daemon.requests().last().unwrap().body.to_string();
    assert!(!seen.contains("say hello"), "{seen}");
    assert!(session(&daemon, second).is_file());
    reset(&daemon, Some(Direction::Undo));
    daemon.completed("coder", "do: say back");
    let seen = daemon.requests().last().unwrap().body.to_string();
    assert!(
        seen.contains("say hello") && !seen.contains("say fresh"),
        "{seen}"
    );
    let purge = Purge {
        conversation: Some(second),
        dry_run: false,
    };
    let purged = daemon.block(daemon.client().purge("coder", &purge));
    purged.unwrap();
    assert!(!session(&daemon, second).exists());
    assert!(session(&daemon, first).is_file());
    daemon.verify();
}
