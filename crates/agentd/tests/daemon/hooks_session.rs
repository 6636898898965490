//! Hooks for conversations that begin, continue and end; their output is in the conversation once.

use crate::hooks_fixture::*;
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Archive, Create, Fork, Restart, Start, Status, Stop};
use agentd_core::event::{Body, Kind, NoticeCause};
use agentd_core::hook::HookEvent;
use agentd_core::id::TurnId;
use agentd_core::state::Phase;
use agentd_failpoint::plan::Role;
use serde_json::{Value, json};

fn fork_as(name: &str) -> Fork {
    Fork {
        name: Some(name.to_owned()),
        ..Fork::default()
    }
}

fn sources(daemon: &TestDaemon) -> Vec<String> {
    let told = heard_of(daemon, "SessionStart");
    let sources = told.iter().map(|input| input["source"].as_str().unwrap());
    sources.map(str::to_owned).collect()
}

fn until_sources(daemon: &TestDaemon, expected: &[&str]) {
    until(&format!("{expected:?}"), || {
        (sources(daemon) == expected).then_some(())
    });
}

/// How often the text occurs in what the model sees.
fn times(request: &Value, words: &str) -> usize {
    request.to_string().matches(words).count()
}

fn told_by_hooks(daemon: &TestDaemon, name: &str) -> Vec<String> {
    let events = daemon.events(name).into_iter();
    let notices = events.filter_map(|event| match event.body {
        Body::Notice(notice) if notice.cause == NoticeCause::Hook => Some(notice.text),
        _ => None,
    });
    notices.collect()
}

#[test]
fn a_fork_begins_with_what_its_hook_says_and_knows_whose_it_is() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say one");
    user(
        &daemon,
        &file(&[("SessionStart", keep_and("echo the code word is swordfish"))]),
    );
    let parent = daemon.show("coder").conversation.unwrap().id;
    daemon
        .block(daemon.client().fork("coder", &fork_as("other")))
        .unwrap();
    daemon.completed("other", "do: say mine");
    let [told] = &heard_of(&daemon, "SessionStart")[..] else {
        panic!("{:?}", heard(&daemon));
    };
    assert_eq!(told["source"], "fork");
    assert_eq!(told["parent_session_id"], json!(parent));
    let other = daemon.show("other").conversation.unwrap().id;
    assert_eq!(told["session_id"], json!(other));
    assert_eq!(told["agentd"]["agent"], "other");
    let request = last_request(&daemon);
    assert_eq!(times(&request, "swordfish"), 1, "{request}");
    assert_eq!(times(&request, "say one"), 1, "{request}");
    // The one it came from does not notice.
    daemon.completed("coder", "do: say two");
    assert_eq!(times(&last_request(&daemon), "swordfish"), 0);
    all_ran(&daemon, "other");
    daemon.verify();
}

#[test]
fn restore_and_restart_go_on_and_wake_adoption_and_recovery_do_not() {
    let daemon = TestDaemon::new();
    user(
        &daemon,
        &file(&[
            ("SessionStart", keep_and("echo hello there")),
            ("SessionEnd", keep_and("true")),
        ]),
    );
    let mut spec = daemon.spec();
    spec.idle_ms = 50;
    daemon.create_with("coder", spec);
    daemon.completed("coder", "do: say one");
    assert_eq!(sources(&daemon), ["startup"]);
    // It sleeps, and wakes.
    until("sleep", || daemon.pid("coder").is_none().then_some(()));
    daemon.completed("coder", "do: say two");
    // A crash in the middle of a turn, which goes on.
    let sent = daemon.send("coder", &format!("do: slowly 20 {}", "word ".repeat(60)));
    until("a request", || (daemon.requests().len() == 3).then_some(()));
    daemon.kill_runtime("coder");
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Completed
    );
    // Another daemon takes over a process in the middle of a turn.
    let sent = daemon.send("coder", &format!("do: slowly 20 {}", "word ".repeat(60)));
    until("a request", || (daemon.requests().len() >= 5).then_some(()));
    daemon.kill_daemon();
    daemon.start_daemon();
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Completed
    );
    assert_eq!(sources(&daemon), ["startup"]);
    // It is put away and taken out again.
    daemon
        .block(daemon.client().archive("coder", &Archive::default()))
        .unwrap();
    assert_eq!(until_heard(&daemon, "SessionEnd")["reason"], "stop");
    daemon
        .block(daemon.client().restore("coder", &Default::default()))
        .unwrap();
    until_sources(&daemon, &["startup", "resume"]);
    daemon.completed("coder", "do: say three");
    assert_eq!(times(&last_request(&daemon), "hello there"), 2);
    daemon
        .block(daemon.client().restart("coder", &Restart::default()))
        .unwrap();
    until_sources(&daemon, &["startup", "resume", "resume"]);
    daemon.completed("coder", "do: say four");
    assert_eq!(times(&last_request(&daemon), "hello there"), 3);
    all_ran(&daemon, "coder");
    daemon.verify();
}

/// The daemon dies directly after it recorded the hook's end: the hook's output is in the conversation, once.
#[test]
fn what_opens_a_conversation_is_not_lost_between_two_commits() {
    for point in ["before-hook_ended", "after-hook_ended"] {
        let daemon = TestDaemon::empty();
        daemon.daemon_has_keys();
        user(
            &daemon,
            &file(&[("SessionStart", keep_and("echo the code word is swordfish"))]),
        );
        daemon.hold(Role::Daemon, point);
        daemon.start_daemon();
        daemon.create_and_kill_when_held("coder");
        daemon.start_daemon();
        daemon.completed("coder", "do: say hello");
        assert_eq!(
            told_by_hooks(&daemon, "coder"),
            ["the code word is swordfish"]
        );
        let first = last_request(&daemon)["messages"][0].to_string();
        assert!(first.contains("swordfish"), "{first}");
        assert_eq!(sources(&daemon), ["startup"], "it ran once");
        daemon.verify();
    }
}

/// The daemon dies directly after it recorded the new agent, before it recorded that the hooks start.
#[test]
fn a_daemon_that_dies_right_after_the_agent_is_made_loses_no_startup() {
    let daemon = TestDaemon::empty();
    daemon.daemon_has_keys();
    user(
        &daemon,
        &file(&[("SessionStart", keep_and("echo the code word is swordfish"))]),
    );
    daemon.hold(Role::Daemon, "before-hook_started");
    daemon.start_daemon();
    daemon.create_and_kill_when_held("coder");
    assert_eq!(sources(&daemon).len(), 0, "nothing was told");
    daemon.start_daemon();
    daemon.completed("coder", "do: say hello");
    let first = last_request(&daemon)["messages"][0].to_string();
    assert!(first.contains("swordfish"), "{first}");
    daemon.completed("coder", "do: say again");
    assert_eq!(sources(&daemon), ["startup"], "it ran once");
    daemon.verify();
}

/// The same for a conversation that continues, with two hooks: the end of the last one adds the output of both.
#[test]
fn what_two_hooks_say_to_one_that_goes_on_is_there_once() {
    let daemon = TestDaemon::empty();
    daemon.daemon_has_keys();
    daemon.start_daemon();
    daemon.create("coder");
    daemon.completed("coder", "do: say one");
    daemon
        .block(daemon.client().stop("coder", &Stop::default()))
        .unwrap();
    let slow = "until test -e go; do sleep 0.02; done; echo swordfish";
    user(
        &daemon,
        &file(&[
            ("SessionStart", keep_and("echo plugh")),
            ("SessionStart", command(slow)),
        ]),
    );
    let env = daemon.caller();
    daemon
        .block(daemon.client().start("coder", &Start::with(env)))
        .unwrap();
    until_ended(&daemon, "coder", HookEvent::SessionStart);
    daemon.kill_daemon();
    std::fs::write(daemon.work().join("go"), "").unwrap();
    daemon.start_daemon();
    daemon.completed("coder", "do: say two");
    assert_eq!(told_by_hooks(&daemon, "coder"), ["plugh\nswordfish"]);
    assert_eq!(times(&last_request(&daemon), "swordfish"), 1);
    all_ran(&daemon, "coder");
}

#[test]
fn a_title_is_taken_at_the_start_and_later_and_not_after_a_clear_or_a_compaction() {
    let daemon = TestDaemon::new();
    let titled = |title: &str| {
        says(&json!({"hookSpecificOutput": {
            "hookEventName": "SessionStart", "sessionTitle": title}}))
    };
    user(&daemon, &file(&[("SessionStart", titled("The review"))]));
    daemon.create("coder");
    daemon.completed("coder", "do: say one");
    assert_eq!(daemon.show("coder").title.as_deref(), Some("The review"));
    let shown = daemon.cli(&["show", "coder"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("The review"), "{shown}");
    let drawn = daemon.cli(&["conversations", "coder"]);
    let drawn = String::from_utf8_lossy(&drawn.stdout).into_owned();
    assert!(drawn.contains("The review"), "{drawn}");
    // One that goes on may be called otherwise, however long it is by then.
    for _ in 0..4 {
        daemon.completed("coder", "do: say more");
    }
    user(
        &daemon,
        &file(&[("SessionStart", titled("The second part"))]),
    );
    daemon
        .block(daemon.client().restart("coder", &Restart::default()))
        .unwrap();
    daemon.completed("coder", "do: say two");
    assert_eq!(
        daemon.show("coder").title.as_deref(),
        Some("The second part")
    );
    assert_eq!(
        heard_of(&daemon, "SessionStart")[1]["session_title"],
        "The review"
    );
    // After a compaction it is still the same conversation, and after a clear another.
    user(&daemon, &file(&[("SessionStart", titled("Not this"))]));
    daemon
        .block(daemon.client().compact("coder", &Default::default()))
        .unwrap();
    assert_eq!(sources(&daemon)[2..], ["compact"]);
    assert_eq!(
        daemon.show("coder").title.as_deref(),
        Some("The second part")
    );
    reset(&daemon, "coder", &Default::default()).unwrap();
    assert_eq!(sources(&daemon)[3..], ["clear"]);
    assert_eq!(daemon.show("coder").title, None);
}

#[test]
fn the_end_of_a_one_shot_agent_is_told_once() {
    let daemon = TestDaemon::new();
    user(
        &daemon,
        &file(&[
            ("SessionStart", keep_and("true")),
            ("SessionEnd", keep_and("true")),
        ]),
    );
    let create = Create {
        prompt: Some("do: say one".to_owned()),
        spec: daemon.spec(),
        env: daemon.caller(),
        ..Create::default()
    };
    let made = daemon.block(daemon.client().create(&create)).unwrap();
    let (name, prompt) = (made.agent.name, made.prompt.unwrap());
    assert_eq!(daemon.answer(&name, prompt).status, Status::Completed);
    let told = until_heard(&daemon, "SessionEnd");
    assert_eq!(told["reason"], "end");
    let conversation = daemon.show(&name).conversation.unwrap().id;
    assert_eq!(told["session_id"], json!(conversation));
    // Put away, it does not end again.
    daemon
        .block(daemon.client().archive(&name, &Archive::default()))
        .unwrap();
    all_ran(&daemon, &name);
    assert_eq!(heard_of(&daemon, "SessionEnd").len(), 1);
}

#[test]
fn they_are_told_what_the_agents_rules_come_to() {
    let daemon = TestDaemon::new();
    user(&daemon, &file(&[("SessionStart", keep_and("true"))]));
    let rules = [
        json!([]),
        json!([{"tool": "shell", "decision": "ask"}]),
        json!([{"tool": "*", "decision": "ask"}]),
        json!([{"tool": "*", "decision": "deny"}]),
    ];
    let modes = ["bypassPermissions", "acceptEdits", "default", "plan"];
    for (n, rules) in rules.into_iter().enumerate() {
        let mut spec = daemon.spec();
        spec.permissions = serde_json::from_value(rules).unwrap();
        daemon.create_with(&format!("agent-{n}"), spec);
        until("it", || (heard(&daemon).len() == n + 1).then_some(()));
        assert_eq!(heard(&daemon)[n]["permission_mode"], modes[n]);
    }
}

/// Hooks that run before a turn begins can be interrupted like the turn.
#[test]
fn a_prompt_that_waits_for_its_hook_is_interrupted_and_the_hook_is_ended() {
    let daemon = TestDaemon::new();
    let hang = "echo asked >> effects; sleep 1003 & sleep 1003";
    user(
        &daemon,
        &file(&[
            ("UserPromptSubmit", keep_and(hang)),
            ("Interrupt", keep_and("true")),
            ("Stop", keep_and("true")),
        ]),
    );
    daemon.create("coder");
    let sent = daemon.send("coder", "do: say xyzzy");
    until("the hook", || (daemon.effects().len() == 1).then_some(()));
    assert_eq!(daemon.show("coder").phase, Phase::Running);
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Interrupted);
    let told = until_heard(&daemon, "Interrupt");
    assert_eq!(told["agentd"]["turn"], json!(answer.turn));
    until_ended(&daemon, "coder", HookEvent::UserPromptSubmit);
    let left = || {
        let mut all = daemon.processes().into_iter();
        all.find(|(_, arguments)| arguments.contains("sleep 1003"))
    };
    until("their end", || left().is_none().then_some(()));
    assert_eq!(daemon.show("coder").phase, Phase::Idle);
    assert!(daemon.requests().is_empty(), "the model never sees it");
    user(&daemon, &file(&[("Stop", keep_and("true"))]));
    daemon.completed("coder", "do: say next");
    assert_eq!(times(&last_request(&daemon), "xyzzy"), 0);
    assert_eq!(heard_of(&daemon, "Stop").len(), 1);
    let turns: Vec<Option<TurnId>> = daemon
        .events("coder")
        .iter()
        .filter(|event| event.kind() == Kind::TurnEnded)
        .map(|event| event.turn)
        .collect();
    assert_eq!(turns.len(), 2);
    daemon.verify();
}
