//! A provider's key: in the caller's shell alone, and nowhere else.

use crate::house::{House, KEY, until};
use agentd_client::api::{Create, Send, Status};
use agentd_core::event::Kind;
use agentd_core::state::Phase;
use std::fs;
use std::path::Path;

#[test]
fn a_key_of_the_callers_works_though_the_daemon_has_none() {
    let house = House::new();
    house.create("coder");
    assert_eq!(house.completed("coder", "do: say hello").text, "hello");
    // And still after the daemon was killed: the runtime gives it back.
    house.kill_daemon();
    house.start_daemon();
    let send = Send {
        text: "do: say again".to_owned(),
        ..Send::default()
    };
    let sent = house.block(house.client().send("coder", &send)).unwrap();
    assert_eq!(house.answer("coder", sent.prompt).text, "again");
    // The next process gets it from the daemon that was given it back.
    house.kill_runtime("coder");
    let sent = house.block(house.client().send("coder", &send)).unwrap();
    assert_eq!(house.answer("coder", sent.prompt).text, "again");
}

/// goose#12133: a turn that cannot go on says why.
#[test]
fn an_agent_without_its_key_waits_and_says_so() {
    let house = House::new();
    let mut env = house.caller();
    env.remove("ANTHROPIC_API_KEY");
    let create = Create {
        name: Some("coder".to_owned()),
        spec: house.spec(),
        env: env.clone(),
        ..Create::default()
    };
    house.block(house.client().create(&create)).unwrap();
    let send = Send {
        text: "do: say hello".to_owned(),
        env,
        ..Send::default()
    };
    let sent = house.block(house.client().send("coder", &send)).unwrap();
    let agent = until("waiting", || {
        let agent = house.show("coder");
        (agent.phase == Phase::Waiting).then_some(agent)
    });
    assert!(agent.error.unwrap().contains("ANTHROPIC_API_KEY"));
    assert_eq!(house.model.requests().len(), 0);
    // A second process is no crash either.
    house.kill_runtime("coder");
    assert_eq!(house.show("coder").phase, Phase::Waiting);
    // Whoever brings the key sets it going; both are answered.
    let second = house.send("coder", "do: say both");
    assert_eq!(house.answer("coder", sent.prompt).text, "hello");
    assert_eq!(house.answer("coder", second.prompt).text, "both");
    assert_eq!(house.count("coder", Kind::TurnPaused), 1);
}

/// An agent whose turn waits for its key, and the prompt of that turn.
fn without_its_key(house: &House) -> agentd_core::id::PromptId {
    let mut env = house.caller();
    env.remove("ANTHROPIC_API_KEY");
    let create = Create {
        name: Some("coder".to_owned()),
        spec: house.spec(),
        prompt: Some("do: say hello".to_owned()),
        env,
        ..Create::default()
    };
    let created = house.block(house.client().create(&create)).unwrap();
    house.until_kind("coder", Kind::TurnPaused);
    created.prompt.unwrap()
}

/// `wait` said to set the key, which the caller had.
#[test]
fn whoever_waits_brings_the_key() {
    for with_prompt in [false, true] {
        let house = House::new();
        let prompt = without_its_key(&house).to_string();
        let mut args = vec!["wait", "coder"];
        args.extend(with_prompt.then_some(prompt.as_str()));
        let waited = house.cli(&args);
        assert_eq!(waited.status.code(), Some(0), "{waited:?}");
        assert_eq!(
            house.show("coder").last_turn.unwrap().status,
            agentd_core::event::TurnStatus::Completed
        );
    }
}

/// `start` said to continue the agent, which went on by itself.
#[test]
fn a_start_with_the_key_says_that_the_turn_goes_on() {
    let house = House::new();
    let prompt = without_its_key(&house);
    let started = house.cli(&["start", "coder"]);
    assert_eq!(started.status.code(), Some(0), "{started:?}");
    let out = String::from_utf8(started.stdout).unwrap();
    assert!(!out.contains("continue"), "{out}");
    assert_eq!(house.answer("coder", prompt).text, "hello");
}

#[test]
fn a_key_is_nowhere_on_disk_and_in_no_tools_environment() {
    let house = House::new();
    house.create("coder");
    let call = serde_json::json!({ "command": "env; cat /proc/self/environ" });
    let answer = house.completed("coder", &format!("do: call shell {call} ;; say looked"));
    assert_eq!(answer.status, Status::Completed);
    house.kill_daemon();
    let mut looked_at = 0;
    look(&house.home(), &mut looked_at);
    assert!(looked_at > 5);
    for (pid, arguments) in house.processes() {
        assert!(!arguments.contains(KEY));
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        assert!(!contains(&environment, KEY.as_bytes()), "{arguments}");
    }
}

fn look(folder: &Path, looked_at: &mut usize) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
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
