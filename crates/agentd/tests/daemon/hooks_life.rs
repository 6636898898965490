//! Hooks for the life cycle of agents and of the daemon, and the environment of hooks.

use crate::hooks_fixture::*;
use crate::test_daemon::{KEY, TestDaemon, until};
use agentd_client::api::{Restart, Start, Stop};
use agentd_core::event::{Body, Kind};
use agentd_core::hook::HookEvent;
use rustix::process::Signal;
use serde_json::{Value, json};

#[test]
fn an_agent_starts_is_stopped_goes_on_and_is_restarted() {
    let daemon = TestDaemon::new();
    user(
        &daemon,
        &file(&[
            ("SessionStart", keep_and("echo hello there")),
            ("SessionEnd", keep_and("true")),
            ("AgentExit", keep_and("true")),
            ("AgentRestart", keep_and("true")),
        ]),
    );
    daemon.create("coder");
    daemon.completed("coder", "do: say one");
    let sources = |daemon: &TestDaemon| -> Vec<Value> {
        let told = heard_of(daemon, "SessionStart");
        told.iter().map(|input| input["source"].clone()).collect()
    };
    assert_eq!(sources(&daemon), ["startup"]);
    let first = last_request(&daemon)["messages"][0].to_string();
    assert!(first.contains("hello there"), "{first}");
    daemon
        .block(daemon.client().stop("coder", &Stop::default()))
        .unwrap();
    assert_eq!(until_heard(&daemon, "SessionEnd")["reason"], "stop");
    assert_eq!(until_heard(&daemon, "AgentExit")["reason"], "stopped");
    let env = daemon.caller();
    daemon
        .block(daemon.client().start("coder", &Start::with(env)))
        .unwrap();
    until("resume", || {
        (sources(&daemon) == ["startup", "resume"]).then_some(())
    });
    let pid = until("a process", || daemon.pid("coder"));
    daemon
        .block(daemon.client().restart("coder", &Restart::default()))
        .unwrap();
    until("another", || daemon.pid("coder").filter(|now| *now != pid));
    assert_eq!(sources(&daemon), ["startup", "resume", "resume"]);
    assert_eq!(until_heard(&daemon, "AgentRestart")["reason"], "restart");
    // Neither sleep nor a crash nor another daemon begins anything.
    daemon.kill_runtime("coder");
    daemon.completed("coder", "do: say two");
    until("a crash", || {
        let told = heard_of(&daemon, "AgentExit");
        told.iter()
            .any(|input| input["reason"] == "crashed")
            .then_some(())
    });
    daemon.kill_daemon();
    daemon.start_daemon();
    daemon.completed("coder", "do: say three");
    assert_eq!(sources(&daemon).len(), 3);
    all_ran(&daemon, "coder");
    daemon.verify();
}

#[test]
fn a_process_that_is_started_again_after_a_crash_is_told_of() {
    let daemon = TestDaemon::new();
    user(&daemon, &file(&[("AgentRestart", keep_and("true"))]));
    daemon.create("coder");
    let sent = daemon.send("coder", &format!("do: slowly 20 {}", "word ".repeat(100)));
    daemon.until_kind("coder", Kind::RequestSent);
    daemon.kill_runtime("coder");
    daemon.answer("coder", sent.prompt);
    let input = until_heard(&daemon, "AgentRestart");
    assert_eq!(
        (&input["reason"], &input["attempt"]),
        (&json!("crash"), &json!(1))
    );
}

#[test]
fn the_daemon_tells_of_itself() {
    let daemon = TestDaemon::empty();
    let keep = r#"cat >> "$AGENTD_HOME/told"; echo >> "$AGENTD_HOME/told""#;
    user(
        &daemon,
        &file(&[
            ("DaemonStart", command(keep)),
            ("DaemonStop", command(keep)),
        ]),
    );
    daemon.start_daemon();
    let told = || -> Vec<Value> {
        let text = std::fs::read_to_string(daemon.home().join("told")).unwrap_or_default();
        let lines = text.lines().filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    until("its start", || (told().len() == 1).then_some(()));
    assert_eq!(told()[0]["hook_event_name"], "DaemonStart");
    daemon.signal_daemon(Signal::TERM);
    until("its end", || (told().len() == 2).then_some(()));
    assert_eq!(told()[1]["hook_event_name"], "DaemonStop");
    assert_eq!(told()[1]["reason"], "signal");
}

#[test]
fn they_have_what_they_need_and_never_a_key() {
    let daemon = TestDaemon::new();
    let line = format!(
        "env | sort > env; echo 'export GREETING=\"hi there\"' >> \"$CLAUDE_ENV_FILE\"; echo {KEY}"
    );
    user(&daemon, &file(&[("SessionStart", command(&line))]));
    let agent = daemon.create("coder");
    let call = json!({"command": "echo \"$GREETING\" >> effects"});
    daemon.completed("coder", &format!("do: call shell {call} ;; say done"));
    assert_eq!(daemon.effects(), ["hi there"]);
    let env = std::fs::read_to_string(daemon.work().join("env")).unwrap();
    let conversation = agent.conversation.unwrap().id;
    for line in [
        "AGENTD_AGENT=coder".to_owned(),
        format!("AGENTD_CONVERSATION={conversation}"),
        format!("CLAUDE_CODE_SESSION_ID={conversation}"),
        format!("AGENTD_HOME={}", daemon.home().display()),
        format!("AGENTD_PROJECT_DIR={}", daemon.work().display()),
        format!("CLAUDE_PROJECT_DIR={}", daemon.work().display()),
    ] {
        assert!(env.contains(&line), "{line} in {env}");
    }
    assert!(!env.contains(KEY) && !env.contains("ANTHROPIC"), "{env}");
    for event in daemon.events("coder") {
        let text = serde_json::to_string(&event).unwrap();
        assert!(!text.contains(KEY), "{text}");
    }
    // Another conversation has its own.
    user(&daemon, &file(&[]));
    reset(&daemon, "coder", &Default::default()).unwrap();
    daemon.completed("coder", &format!("do: call shell {call} ;; say done"));
    assert_eq!(daemon.effects(), ["hi there", ""]);
}

#[test]
fn a_first_prompt_a_word_to_the_user_and_what_nobody_waits_for() {
    let daemon = TestDaemon::new();
    let output = json!({"systemMessage": "hello, user", "hookSpecificOutput": {
        "hookEventName": "SessionStart", "initialUserMessage": "do: say good morning", "sessionTitle": "Mornings"}});
    let late = json!({"type": "command", "async": true,
        "command": "until test -e go; do sleep 0.02; done; echo late >> effects; exit 2"});
    user(
        &daemon,
        &file(&[("SessionStart", says(&output)), ("UserPromptSubmit", late)]),
    );
    daemon.create("coder");
    until("an answer", || {
        let summary = daemon.show("coder").summary;
        (summary.as_deref() == Some("good morning")).then_some(())
    });
    let said = daemon.until_kind("coder", Kind::HookOutput);
    let Body::HookOutput(said) = said.body else {
        panic!("an output")
    };
    assert_eq!(said.answer.message.as_deref(), Some("hello, user"));
    assert_eq!(said.answer.title.as_deref(), Some("Mornings"));
    std::fs::write(daemon.work().join("go"), "").unwrap();
    let ended = until_ended(&daemon, "coder", HookEvent::UserPromptSubmit);
    assert_eq!(ended.exit, Some(2));
    assert_eq!(daemon.effects(), ["late"]);
}

#[test]
fn with_arguments_it_is_a_program_and_no_line_for_a_shell() {
    let daemon = TestDaemon::new();
    let exec = json!({"type": "command", "command": "tee", "args": ["-a", "a file; not $two"]});
    user(&daemon, &file(&[("SessionStart", exec)]));
    daemon.create("coder");
    until_ended(&daemon, "coder", HookEvent::SessionStart);
    let text = std::fs::read_to_string(daemon.work().join("a file; not $two")).unwrap();
    assert!(text.contains("SessionStart"));
}
