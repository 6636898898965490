//! What hooks hear of conversations that begin, go on and end; and that what they say is there, once.

use crate::hooks_stage::*;
use crate::house::{House, until};
use agentd_client::api::{Archive, Create, Fork, Restart, Start, Status, Stop};
use agentd_core::event::{Body, Kind, NoticeCause};
use agentd_core::hook::HookEvent;
use agentd_core::id::TurnId;
use agentd_core::state::Phase;
use agentd_process::failpoint::plan::Role;
use serde_json::{Value, json};

fn fork_as(name: &str) -> Fork {
    Fork {
        name: name.to_owned(),
        ..Fork::default()
    }
}

fn sources(house: &House) -> Vec<String> {
    let told = heard_of(house, "SessionStart");
    let sources = told.iter().map(|input| input["source"].as_str().unwrap());
    sources.map(str::to_owned).collect()
}

fn until_sources(house: &House, expected: &[&str]) {
    until(&format!("{expected:?}"), || {
        (sources(house) == expected).then_some(())
    });
}

/// How often the words are in what the model is shown.
fn times(request: &Value, words: &str) -> usize {
    request.to_string().matches(words).count()
}

fn told_by_hooks(house: &House, name: &str) -> Vec<String> {
    let events = house.events(name).into_iter();
    let notices = events.filter_map(|event| match event.body {
        Body::Notice(notice) if notice.cause == NoticeCause::Hook => Some(notice.text),
        _ => None,
    });
    notices.collect()
}

#[test]
fn a_fork_begins_with_what_its_hook_says_and_knows_whose_it_is() {
    let house = House::new();
    house.create("coder");
    house.completed("coder", "do: say one");
    user(
        &house,
        &file(&[("SessionStart", keep_and("echo the code word is swordfish"))]),
    );
    let parent = house.show("coder").conversation.unwrap().id;
    house
        .block(house.client().fork("coder", &fork_as("other")))
        .unwrap();
    house.completed("other", "do: say mine");
    let [told] = &heard_of(&house, "SessionStart")[..] else {
        panic!("{:?}", heard(&house));
    };
    assert_eq!(told["source"], "fork");
    assert_eq!(told["parent_session_id"], json!(parent));
    let other = house.show("other").conversation.unwrap().id;
    assert_eq!(told["session_id"], json!(other));
    assert_eq!(told["agentd"]["agent"], "other");
    let request = last_request(&house);
    assert_eq!(times(&request, "swordfish"), 1, "{request}");
    assert_eq!(times(&request, "say one"), 1, "{request}");
    // The one it came from does not notice.
    house.completed("coder", "do: say two");
    assert_eq!(times(&last_request(&house), "swordfish"), 0);
    all_ran(&house, "other");
    house.verify();
}

#[test]
fn restore_and_restart_go_on_and_wake_adoption_and_recovery_do_not() {
    let house = House::new();
    user(
        &house,
        &file(&[
            ("SessionStart", keep_and("echo hello there")),
            ("SessionEnd", keep_and("true")),
        ]),
    );
    let mut spec = house.spec();
    spec.idle_ms = 50;
    house.create_with("coder", spec);
    house.completed("coder", "do: say one");
    assert_eq!(sources(&house), ["startup"]);
    // It sleeps, and wakes.
    until("sleep", || house.pid("coder").is_none().then_some(()));
    house.completed("coder", "do: say two");
    // A crash in the middle of a turn, which goes on.
    let sent = house.send("coder", &format!("do: slowly 20 {}", "word ".repeat(60)));
    until("a request", || (house.requests().len() == 3).then_some(()));
    house.kill_runtime("coder");
    assert_eq!(house.answer("coder", sent.prompt).status, Status::Completed);
    // Another daemon takes over a process in the middle of a turn.
    let sent = house.send("coder", &format!("do: slowly 20 {}", "word ".repeat(60)));
    until("a request", || (house.requests().len() >= 5).then_some(()));
    house.kill_daemon();
    house.start_daemon();
    assert_eq!(house.answer("coder", sent.prompt).status, Status::Completed);
    assert_eq!(sources(&house), ["startup"]);
    // It is put away and taken out again.
    house
        .block(house.client().archive("coder", &Archive::default()))
        .unwrap();
    assert_eq!(until_heard(&house, "SessionEnd")["reason"], "stop");
    house
        .block(house.client().restore("coder", &Default::default()))
        .unwrap();
    until_sources(&house, &["startup", "resume"]);
    house.completed("coder", "do: say three");
    assert_eq!(times(&last_request(&house), "hello there"), 2);
    house
        .block(house.client().restart("coder", &Restart::default()))
        .unwrap();
    until_sources(&house, &["startup", "resume", "resume"]);
    house.completed("coder", "do: say four");
    assert_eq!(times(&last_request(&house), "hello there"), 3);
    all_ran(&house, "coder");
    house.verify();
}

/// The daemon dies right after it is on record how the hook ended: what it said is there all the same, once.
#[test]
fn what_opens_a_conversation_is_not_lost_between_two_commits() {
    for point in ["before-hook_ended", "after-hook_ended"] {
        let house = House::empty();
        house.daemon_has_keys();
        user(
            &house,
            &file(&[("SessionStart", keep_and("echo the code word is swordfish"))]),
        );
        house.hold(Role::Daemon, point);
        house.start_daemon();
        house.create_and_kill_when_held("coder");
        house.start_daemon();
        house.completed("coder", "do: say hello");
        assert_eq!(
            told_by_hooks(&house, "coder"),
            ["the code word is swordfish"]
        );
        let first = last_request(&house)["messages"][0].to_string();
        assert!(first.contains("swordfish"), "{first}");
        assert_eq!(sources(&house), ["startup"], "it ran once");
        house.verify();
    }
}

/// The daemon dies right after the agent is on record, before anything says that its hooks were told.
#[test]
fn a_daemon_that_dies_right_after_the_agent_is_made_loses_no_startup() {
    let house = House::empty();
    house.daemon_has_keys();
    user(
        &house,
        &file(&[("SessionStart", keep_and("echo the code word is swordfish"))]),
    );
    house.hold(Role::Daemon, "before-hook_started");
    house.start_daemon();
    house.create_and_kill_when_held("coder");
    assert_eq!(sources(&house).len(), 0, "nothing was told");
    house.start_daemon();
    house.completed("coder", "do: say hello");
    let first = last_request(&house)["messages"][0].to_string();
    assert!(first.contains("swordfish"), "{first}");
    house.completed("coder", "do: say again");
    assert_eq!(sources(&house), ["startup"], "it ran once");
    house.verify();
}

/// The same for one that goes on, and with two of them: the last to end brings what both said.
#[test]
fn what_two_hooks_say_to_one_that_goes_on_is_there_once() {
    let house = House::empty();
    house.daemon_has_keys();
    house.start_daemon();
    house.create("coder");
    house.completed("coder", "do: say one");
    house
        .block(house.client().stop("coder", &Stop::default()))
        .unwrap();
    let slow = "until test -e go; do sleep 0.02; done; echo swordfish";
    user(
        &house,
        &file(&[
            ("SessionStart", keep_and("echo plugh")),
            ("SessionStart", command(slow)),
        ]),
    );
    let env = house.caller();
    house
        .block(house.client().start("coder", &Start::with(env)))
        .unwrap();
    until_ended(&house, "coder", HookEvent::SessionStart);
    house.kill_daemon();
    std::fs::write(house.work().join("go"), "").unwrap();
    house.start_daemon();
    house.completed("coder", "do: say two");
    assert_eq!(told_by_hooks(&house, "coder"), ["plugh\nswordfish"]);
    assert_eq!(times(&last_request(&house), "swordfish"), 1);
    all_ran(&house, "coder");
}

#[test]
fn a_title_is_taken_at_the_start_and_later_and_not_after_a_clear_or_a_compaction() {
    let house = House::new();
    let titled = |title: &str| {
        says(&json!({"hookSpecificOutput": {
            "hookEventName": "SessionStart", "sessionTitle": title}}))
    };
    user(&house, &file(&[("SessionStart", titled("The review"))]));
    house.create("coder");
    house.completed("coder", "do: say one");
    assert_eq!(house.show("coder").title.as_deref(), Some("The review"));
    let shown = house.cli(&["show", "coder"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("The review"), "{shown}");
    let drawn = house.cli(&["conversations", "coder"]);
    let drawn = String::from_utf8_lossy(&drawn.stdout).into_owned();
    assert!(drawn.contains("The review"), "{drawn}");
    // One that goes on may be called otherwise, however long it is by then.
    for _ in 0..4 {
        house.completed("coder", "do: say more");
    }
    user(
        &house,
        &file(&[("SessionStart", titled("The second part"))]),
    );
    house
        .block(house.client().restart("coder", &Restart::default()))
        .unwrap();
    house.completed("coder", "do: say two");
    assert_eq!(
        house.show("coder").title.as_deref(),
        Some("The second part")
    );
    assert_eq!(
        heard_of(&house, "SessionStart")[1]["session_title"],
        "The review"
    );
    // After a compaction it is still the same conversation, and after a clear another.
    user(&house, &file(&[("SessionStart", titled("Not this"))]));
    house
        .block(house.client().compact("coder", &Default::default()))
        .unwrap();
    assert_eq!(sources(&house)[2..], ["compact"]);
    assert_eq!(
        house.show("coder").title.as_deref(),
        Some("The second part")
    );
    reset(&house, "coder", &Default::default()).unwrap();
    assert_eq!(sources(&house)[3..], ["clear"]);
    assert_eq!(house.show("coder").title, None);
}

#[test]
fn the_end_of_a_one_shot_agent_is_told_once() {
    let house = House::new();
    user(
        &house,
        &file(&[
            ("SessionStart", keep_and("true")),
            ("SessionEnd", keep_and("true")),
        ]),
    );
    let create = Create {
        prompt: Some("do: say one".to_owned()),
        spec: house.spec(),
        env: house.caller(),
        ..Create::default()
    };
    let made = house.block(house.client().create(&create)).unwrap();
    let (name, prompt) = (made.agent.name, made.prompt.unwrap());
    assert_eq!(house.answer(&name, prompt).status, Status::Completed);
    let told = until_heard(&house, "SessionEnd");
    assert_eq!(told["reason"], "end");
    let conversation = house.show(&name).conversation.unwrap().id;
    assert_eq!(told["session_id"], json!(conversation));
    // Put away, it does not end again.
    house
        .block(house.client().archive(&name, &Archive::default()))
        .unwrap();
    all_ran(&house, &name);
    assert_eq!(heard_of(&house, "SessionEnd").len(), 1);
}

#[test]
fn they_are_told_what_the_agents_rules_come_to() {
    let house = House::new();
    user(&house, &file(&[("SessionStart", keep_and("true"))]));
    let rules = [
        json!([]),
        json!([{"tool": "shell", "decision": "ask"}]),
        json!([{"tool": "*", "decision": "ask"}]),
        json!([{"tool": "*", "decision": "deny"}]),
    ];
    let modes = ["bypassPermissions", "acceptEdits", "default", "plan"];
    for (n, rules) in rules.into_iter().enumerate() {
        let mut spec = house.spec();
        spec.permissions = serde_json::from_value(rules).unwrap();
        house.create_with(&format!("agent-{n}"), spec);
        until("it", || (heard(&house).len() == n + 1).then_some(()));
        assert_eq!(heard(&house)[n]["permission_mode"], modes[n]);
    }
}

/// What hooks are asked before a turn begins can be interrupted like the turn.
#[test]
fn a_prompt_that_waits_for_its_hook_is_interrupted_and_the_hook_is_ended() {
    let house = House::new();
    let hang = "echo asked >> effects; sleep 1003 & sleep 1003";
    user(
        &house,
        &file(&[
            ("UserPromptSubmit", keep_and(hang)),
            ("Interrupt", keep_and("true")),
            ("Stop", keep_and("true")),
        ]),
    );
    house.create("coder");
    let sent = house.send("coder", "do: say xyzzy");
    until("the hook", || (house.effects().len() == 1).then_some(()));
    assert_eq!(house.show("coder").phase, Phase::Running);
    house.block(house.client().interrupt("coder")).unwrap();
    let answer = house.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Interrupted);
    let told = until_heard(&house, "Interrupt");
    assert_eq!(told["agentd"]["turn"], json!(answer.turn));
    until_ended(&house, "coder", HookEvent::UserPromptSubmit);
    let left = || {
        let mut all = house.processes().into_iter();
        all.find(|(_, arguments)| arguments.contains("sleep 1003"))
    };
    until("their end", || left().is_none().then_some(()));
    assert_eq!(house.show("coder").phase, Phase::Idle);
    assert!(house.requests().is_empty(), "the model never sees it");
    user(&house, &file(&[("Stop", keep_and("true"))]));
    house.completed("coder", "do: say next");
    assert_eq!(times(&last_request(&house), "xyzzy"), 0);
    assert_eq!(heard_of(&house, "Stop").len(), 1);
    let turns: Vec<Option<TurnId>> = house
        .events("coder")
        .iter()
        .filter(|event| event.kind() == Kind::TurnEnded)
        .map(|event| event.turn)
        .collect();
    assert_eq!(turns.len(), 2);
    house.verify();
}
