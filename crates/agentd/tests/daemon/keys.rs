//! A provider's key that only the caller's shell has.

use crate::test_daemon::{KEY, TestDaemon, until};
use agentd_client::api::{Create, Send, Status};
use agentd_core::event::Kind;
use agentd_core::state::Phase;
use std::fs;
use std::path::Path;

#[test]
fn a_key_of_the_callers_works_though_the_daemon_has_none() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    assert_eq!(daemon.completed("coder", "do: say hello").text, "hello");
    // And still after the daemon was killed: the runtime gives it back.
    daemon.kill_daemon();
    daemon.start_daemon();
    let send = Send {
        text: "do: say again".to_owned(),
        ..Send::default()
    };
    let sent = daemon.block(daemon.client().send("coder", &send)).unwrap();
    assert_eq!(daemon.answer("coder", sent.prompt).text, "again");
    // The next process gets it from the daemon that was given it back.
    daemon.kill_runtime("coder");
    let sent = daemon.block(daemon.client().send("coder", &send)).unwrap();
    assert_eq!(daemon.answer("coder", sent.prompt).text, "again");
}

/// goose#12133: a turn that cannot continue says why.
#[test]
fn an_agent_without_its_key_waits_and_says_so() {
    let daemon = TestDaemon::new();
    let mut env = daemon.caller();
    env.remove("ANTHROPIC_API_KEY");
    let create = Create {
        name: Some("coder".to_owned()),
        spec: daemon.spec(),
        env: env.clone(),
        ..Create::default()
    };
    daemon.block(daemon.client().create(&create)).unwrap();
    let send = Send {
        text: "do: say hello".to_owned(),
        env,
        ..Send::default()
    };
    let sent = daemon.block(daemon.client().send("coder", &send)).unwrap();
    let agent = until("waiting", || {
        let agent = daemon.show("coder");
        (agent.phase == Phase::Waiting).then_some(agent)
    });
    assert!(agent.error.unwrap().contains("ANTHROPIC_API_KEY"));
    assert_eq!(daemon.model.requests().len(), 0);
    // A second process is no crash either.
    daemon.kill_runtime("coder");
    assert_eq!(daemon.show("coder").phase, Phase::Waiting);
    // A client that supplies the key lets the turn continue; both prompts are answered.
    let second = daemon.send("coder", "do: say both");
    assert_eq!(daemon.answer("coder", sent.prompt).text, "hello");
    assert_eq!(daemon.answer("coder", second.prompt).text, "both");
    assert_eq!(daemon.count("coder", Kind::TurnPaused), 1);
}

/// An agent whose turn waits for its key, and the prompt of that turn.
fn without_its_key(daemon: &TestDaemon) -> agentd_core::id::PromptId {
    let mut env = daemon.caller();
    env.remove("ANTHROPIC_API_KEY");
    let create = Create {
        name: Some("coder".to_owned()),
        spec: daemon.spec(),
        prompt: Some("do: say hello".to_owned()),
        env,
        ..Create::default()
    };
    let created = daemon.block(daemon.client().create(&create)).unwrap();
    daemon.until_kind("coder", Kind::TurnPaused);
    created.prompt.unwrap()
}

/// Regression: `wait` told the user to set the key, although the caller had it.
#[test]
fn whoever_waits_brings_the_key() {
    for with_prompt in [false, true] {
        let daemon = TestDaemon::new();
        let prompt = without_its_key(&daemon).to_string();
        let mut args = vec!["wait", "coder"];
        args.extend(with_prompt.then_some(prompt.as_str()));
        let waited = daemon.cli(&args);
        assert_eq!(waited.status.code(), Some(0), "{waited:?}");
        assert_eq!(
            daemon.show("coder").last_turn.unwrap().status,
            agentd_core::event::TurnStatus::Completed
        );
    }
}

/// Regression: `start` told the user to continue the agent, which continued by itself.
#[test]
fn a_start_with_the_key_says_that_the_turn_goes_on() {
    let daemon = TestDaemon::new();
    let prompt = without_its_key(&daemon);
    let started = daemon.cli(&["start", "coder"]);
    assert_eq!(started.status.code(), Some(0), "{started:?}");
    let out = String::from_utf8(started.stdout).unwrap();
    assert!(!out.contains("continue"), "{out}");
    assert_eq!(daemon.answer("coder", prompt).text, "hello");
}

#[test]
fn a_key_is_nowhere_on_disk_and_in_no_tools_environment() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let call = serde_json::json!({ "command": "env; cat /proc/self/environ" });
    let answer = daemon.completed("coder", &format!("do: call shell {call} ;; say looked"));
    assert_eq!(answer.status, Status::Completed);
    daemon.kill_daemon();
    let mut looked_at = 0;
    look(&daemon.home(), &mut looked_at);
    assert!(looked_at > 5);
    for (pid, arguments) in daemon.processes() {
        assert!(!arguments.contains(KEY));
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        assert!(!contains(&environment, KEY.as_bytes()), "{arguments}");
    }
}

fn look(dir: &Path, looked_at: &mut usize) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            look(&path, looked_at);
        } else if kind.is_file() {
            *looked_at += 1;
            let bytes = fs::read(&path).unwrap_or_default();
            assert!(!contains(&bytes, KEY.as_bytes()), "{}", path.display());
        }
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|found| found == part)
}
