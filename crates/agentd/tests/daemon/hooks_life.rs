//! Hooks of an agent's life and the daemon's, and what they are given to work with.

use crate::hooks_stage::*;
use crate::house::{House, KEY, until};
use agentd_client::api::{Restart, Start, Stop};
use agentd_core::event::{Body, Kind};
use agentd_core::hook::HookEvent;
use rustix::process::Signal;
use serde_json::{Value, json};

#[test]
fn an_agent_starts_is_stopped_goes_on_and_is_restarted() {
    let house = House::new();
    user(
        &house,
        &file(&[
            ("SessionStart", keep_and("echo hello there")),
            ("SessionEnd", keep_and("true")),
            ("AgentExit", keep_and("true")),
            ("AgentRestart", keep_and("true")),
        ]),
    );
    house.create("coder");
    house.completed("coder", "do: say one");
    let sources = |house: &House| -> Vec<Value> {
        let told = heard_of(house, "SessionStart");
        told.iter().map(|input| input["source"].clone()).collect()
    };
    assert_eq!(sources(&house), ["startup"]);
    let first = last_request(&house)["messages"][0].to_string();
    assert!(first.contains("hello there"), "{first}");
    house
        .block(house.client().stop("coder", &Stop::default()))
        .unwrap();
    assert_eq!(until_heard(&house, "SessionEnd")["reason"], "stop");
    assert_eq!(until_heard(&house, "AgentExit")["reason"], "stopped");
    let env = house.caller();
    house
        .block(house.client().start("coder", &Start::with(env)))
        .unwrap();
    until("resume", || {
        (sources(&house) == ["startup", "resume"]).then_some(())
    });
    let pid = until("a process", || house.pid("coder"));
    house
        .block(house.client().restart("coder", &Restart::default()))
        .unwrap();
    until("another", || house.pid("coder").filter(|now| *now != pid));
    assert_eq!(sources(&house), ["startup", "resume", "resume"]);
    assert_eq!(until_heard(&house, "AgentRestart")["reason"], "restart");
    // Neither sleep nor a crash nor another daemon begins anything.
    house.kill_runtime("coder");
    house.completed("coder", "do: say two");
    until("a crash", || {
        let told = heard_of(&house, "AgentExit");
        told.iter()
            .any(|input| input["reason"] == "crashed")
            .then_some(())
    });
    house.kill_daemon();
    house.start_daemon();
    house.completed("coder", "do: say three");
    assert_eq!(sources(&house).len(), 3);
    all_ran(&house, "coder");
    house.verify();
}

#[test]
fn a_process_that_is_started_again_after_a_crash_is_told_of() {
    let house = House::new();
    user(&house, &file(&[("AgentRestart", keep_and("true"))]));
    house.create("coder");
    let sent = house.send("coder", &format!("do: slowly 20 {}", "word ".repeat(100)));
    house.until_kind("coder", Kind::RequestSent);
    house.kill_runtime("coder");
    house.answer("coder", sent.prompt);
    let input = until_heard(&house, "AgentRestart");
    assert_eq!(
        (&input["reason"], &input["attempt"]),
        (&json!("crash"), &json!(1))
    );
}

#[test]
fn the_daemon_tells_of_itself() {
    let house = House::empty();
    let keep = r#"cat >> "$AGENTD_HOME/told"; echo >> "$AGENTD_HOME/told""#;
    user(
        &house,
        &file(&[
            ("DaemonStart", command(keep)),
            ("DaemonStop", command(keep)),
        ]),
    );
    house.start_daemon();
    let told = || -> Vec<Value> {
        let text = std::fs::read_to_string(house.home().join("told")).unwrap_or_default();
        let lines = text.lines().filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    until("its start", || (told().len() == 1).then_some(()));
    assert_eq!(told()[0]["hook_event_name"], "DaemonStart");
    house.signal_daemon(Signal::TERM);
    until("its end", || (told().len() == 2).then_some(()));
    assert_eq!(told()[1]["hook_event_name"], "DaemonStop");
    assert_eq!(told()[1]["reason"], "signal");
}

#[test]
fn they_have_what_they_need_and_never_a_key() {
    let house = House::new();
    let line = format!(
        "env | sort > env; echo 'export GREETING=\"hi there\"' >> \"$CLAUDE_ENV_FILE\"; echo {KEY}"
    );
    user(&house, &file(&[("SessionStart", command(&line))]));
    let agent = house.create("coder");
    let call = json!({"command": "echo \"$GREETING\" >> effects"});
    house.completed("coder", &format!("do: call shell {call} ;; say done"));
    assert_eq!(house.effects(), ["hi there"]);
    let env = std::fs::read_to_string(house.work().join("env")).unwrap();
    let conversation = agent.conversation.unwrap().id;
    for line in [
        "AGENTD_AGENT=coder".to_owned(),
        format!("AGENTD_CONVERSATION={conversation}"),
        format!("CLAUDE_CODE_SESSION_ID={conversation}"),
        format!("AGENTD_HOME={}", house.home().display()),
        format!("AGENTD_PROJECT_DIR={}", house.work().display()),
        format!("CLAUDE_PROJECT_DIR={}", house.work().display()),
    ] {
        assert!(env.contains(&line), "{line} in {env}");
    }
    assert!(!env.contains(KEY) && !env.contains("ANTHROPIC"), "{env}");
    for event in house.events("coder") {
        let text = serde_json::to_string(&event).unwrap();
        assert!(!text.contains(KEY), "{text}");
    }
    // Another conversation has its own.
    user(&house, &file(&[]));
    reset(&house, "coder", &Default::default()).unwrap();
    house.completed("coder", &format!("do: call shell {call} ;; say done"));
    assert_eq!(house.effects(), ["hi there", ""]);
}

#[test]
fn a_first_prompt_a_word_to_the_user_and_what_nobody_waits_for() {
    let house = House::new();
    let output = json!({"systemMessage": "hello, user", "hookSpecificOutput": {
        "hookEventName": "SessionStart", "initialUserMessage": "do: say good morning", "sessionTitle": "Mornings"}});
    let late = json!({"type": "command", "async": true,
        "command": "until test -e go; do sleep 0.02; done; echo late >> effects; exit 2"});
    user(
        &house,
        &file(&[("SessionStart", says(&output)), ("UserPromptSubmit", late)]),
    );
    house.create("coder");
    until("an answer", || {
        let summary = house.show("coder").summary;
        (summary.as_deref() == Some("good morning")).then_some(())
    });
    let said = house.until_kind("coder", Kind::HookOutput);
    let Body::HookOutput(said) = said.body else {
        panic!("an output")
    };
    assert_eq!(said.answer.message.as_deref(), Some("hello, user"));
    assert_eq!(said.answer.title.as_deref(), Some("Mornings"));
    std::fs::write(house.work().join("go"), "").unwrap();
    let ended = until_ended(&house, "coder", HookEvent::UserPromptSubmit);
    assert_eq!(ended.exit, Some(2));
    assert_eq!(house.effects(), ["late"]);
}

#[test]
fn with_arguments_it_is_a_program_and_no_line_for_a_shell() {
    let house = House::new();
    let exec = json!({"type": "command", "command": "tee", "args": ["-a", "a file; not $two"]});
    user(&house, &file(&[("SessionStart", exec)]));
    house.create("coder");
    until_ended(&house, "coder", HookEvent::SessionStart);
    let text = std::fs::read_to_string(house.work().join("a file; not $two")).unwrap();
    assert!(text.contains("SessionStart"));
}
