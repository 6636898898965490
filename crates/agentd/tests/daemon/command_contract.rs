//! `agentd agent` itself as the program of an agent: the contract of docs/runtime.md.

use crate::acp_fixture::{processes, results};
use crate::command_agents::{reset, spec};
use crate::test_daemon::{AGENTD, TestDaemon, kill, until};
use agentd_client::api::{Purge, Status};
use agentd_core::event::{Direction, LimitKind};
use agentd_core::id::ConversationId;
use agentd_core::spec::{AgentSpec, Command, Contract, Sandbox};
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};

fn create(daemon: &TestDaemon) {
    create_with(daemon, |_| {});
}

fn create_with(daemon: &TestDaemon, change: impl FnOnce(&mut AgentSpec)) {
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
    change(&mut spec);
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

/// Regression: the program continued its old turn when it was started again, and each prompt got the answer of the one before.
#[test]
fn a_prompt_after_a_kill_of_the_program_gets_its_own_answer() {
    let daemon = TestDaemon::new();
    create(&daemon);
    daemon.completed("coder", "do: say hello");
    let before = daemon.requests().len();
    let sent = daemon.send("coder", "do: hang");
    until("the request of the program", || {
        (daemon.requests().len() > before).then_some(())
    });
    let programs = processes(&daemon, |arguments| arguments.contains("--checkpoint-dir"));
    assert_eq!(programs.len(), 1);
    kill(programs[0], Signal::KILL);
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Failed, "{answer:#?}");
    for word in ["A", "B"] {
        let answer = daemon.completed("coder", &format!("do: say {word}"));
        assert_eq!(answer.text, word);
    }
    daemon.verify();
}

/// Regression: the tools of the program could not create the namespaces of a sandbox in the sandbox of the program.
#[test]
fn the_shell_of_the_program_works_in_the_sandbox_around_it() {
    let daemon = TestDaemon::new();
    create_with(&daemon, |spec| {
        spec.sandbox = Some(Sandbox::WorkspaceWrite);
        let dir = Path::new(AGENTD).parent().unwrap();
        spec.readable.push(dir.display().to_string());
    });
    let answer = daemon.completed(
        "coder",
        "do: call shell {\"command\": \"echo made > made\"} ;; say done",
    );
    assert_eq!(answer.text, "done");
    let results = results(&daemon);
    let made = fs::read_to_string(daemon.work().join("made"));
    assert_eq!(made.ok().as_deref(), Some("made\n"), "{results:?}");
    daemon.verify();
}

/// Regression: the turn failed.
#[test]
fn a_limit_of_the_program_ends_the_turn_as_limited() {
    let daemon = TestDaemon::new();
    create_with(&daemon, |spec| {
        let command = spec.command.as_mut().unwrap();
        command.extra_args = vec!["--max-turn-tokens".to_owned(), "1".to_owned()];
    });
    let sent = daemon.send("coder", "do: say done");
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Limited, "{answer:#?}");
    let limits = daemon
        .events("coder")
        .into_iter()
        .filter_map(|event| match event.body {
            agentd_core::event::Body::TurnEnded(ended) => ended.limit,
            _ => None,
        });
    assert_eq!(limits.collect::<Vec<_>>(), [LimitKind::TurnTokens]);
    daemon.verify();
}
