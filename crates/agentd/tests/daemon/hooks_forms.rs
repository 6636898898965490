//! How hooks are written and how they answer: matchers, exit codes, and which hooks are invoked for which event.

use crate::hooks_fixture::*;
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::Status;
use agentd_core::event::{Body, HookOutcome, Kind};
use agentd_core::hook::HookEvent;
use agentd_core::spec::Restart as RestartPolicy;
use agentd_core::state::Phase;
use agentd_failpoint::plan::Role;
use serde_json::{Value, json};

fn call(command: &str) -> String {
    let call = json!({"command": command});
    format!("do: call shell {call} ;; say done")
}

fn noted(word: &str) -> Value {
    command(&format!("echo {word} >> effects"))
}

#[test]
fn a_matcher_is_everything_a_list_of_names_or_a_pattern() {
    let daemon = TestDaemon::new();
    let file = json!({"hooks": {"PreToolUse": [
        {"matcher": "*", "hooks": [noted("star")]},
        {"matcher": "", "hooks": [noted("empty")]},
        {"hooks": [noted("absent")]},
        {"matcher": "write_file|shell", "hooks": [noted("list")]},
        {"matcher": "Write, Bash", "hooks": [noted("other-names")]},
        {"matcher": "^sh.*l$", "hooks": [noted("pattern")]},
        {"matcher": "hel.", "hooks": [noted("anywhere")]},
        {"matcher": "she", "hooks": [noted("part-of-a-name")]},
        {"matcher": "read_file", "hooks": [noted("another")]},
        {"matcher": "^(read|write)_", "hooks": [noted("other-pattern")]},
    ]}});
    user(&daemon, &file);
    daemon.create("coder");
    daemon.completed("coder", &call("true"));
    let mut effects = daemon.effects();
    effects.sort();
    let expected = [
        "absent",
        "anywhere",
        "empty",
        "list",
        "other-names",
        "pattern",
        "star",
    ];
    assert_eq!(effects, expected);
    all_ran(&daemon, "coder");
}

/// Guards that were written for other tools look for the names of their inputs. A guard that finds none lets the call
/// pass.
#[test]
fn guards_for_other_tools_find_the_file_and_the_command() {
    let guard = |matcher: &str, field: &str, bad: &str| {
        let script = format!(
            "python3 -c 'import json,sys; i=json.load(sys.stdin)[\"tool_input\"]; \
             sys.exit(2 if \"{bad}\" in i.get(\"{field}\",\"\") else 0)'"
        );
        json!({"matcher": matcher, "hooks": [command(&script)]})
    };
    let daemon = TestDaemon::new();
    let file = json!({"hooks": {"PreToolUse": [
        guard("Write|Edit|MultiEdit", "file_path", ".env"),
        guard("Write", "content", "secret"),
        guard("Edit|replace", "new_string", "secret"),
        guard("Bash", "command", "curl"),
        guard("Read", "file_path", "id_rsa"),
    ]}});
    user(&daemon, &file);
    daemon.create("coder");
    std::fs::write(daemon.work().join("notes"), "old words").unwrap();
    std::fs::write(daemon.work().join("id_rsa"), "canary").unwrap();
    let refused = [
        ("write_file", json!({"file_path": ".env", "content": "x"})),
        ("write_file", json!({"file_path": "a", "content": "secret"})),
        (
            "edit_file",
            json!({"file_path": "notes", "old_string": "old", "new_string": "secret"}),
        ),
        (
            "shell",
            json!({"command": "curl example.invalid >> effects"}),
        ),
        ("read_file", json!({"file_path": "id_rsa"})),
    ];
    for (tool, input) in refused {
        daemon.completed("coder", &format!("do: call {tool} {input} ;; say done"));
        let requests = daemon.requests();
        let last = requests.last().unwrap().body.to_string();
        assert!(last.contains("A hook refused this call"), "{tool} {input}");
        assert!(!last.contains("canary"));
    }
    assert!(!daemon.work().join(".env").exists() && !daemon.work().join("a").exists());
    let allowed = json!({"file_path": "b", "content": "x", });
    daemon.completed(
        "coder",
        &format!("do: call write_file {allowed} ;; say done"),
    );
    assert!(daemon.work().join("b").exists());
    // The old names of inputs are invalid arguments: a model cannot use them to avoid a guard.
    let old = json!({"path": ".env", "content": "x"});
    daemon.completed("coder", &format!("do: call write_file {old} ;; say done"));
    assert!(!daemon.work().join(".env").exists());
}

#[test]
fn what_is_matched_is_the_source_the_reason_the_trigger_or_the_type() {
    let daemon = TestDaemon::new();
    let file = json!({"hooks": {
        "SessionStart": [
            {"matcher": "startup", "hooks": [noted("startup")]},
            {"matcher": "clear", "hooks": [noted("clear")]},
        ],
        "SessionEnd": [
            {"matcher": "stop", "hooks": [noted("stop")]},
            {"matcher": "clear", "hooks": [noted("cleared")]},
        ],
        "Notification": [
            {"matcher": "permission_prompt", "hooks": [noted("asked")]},
            {"matcher": "waiting", "hooks": [noted("waits")]},
        ],
    }});
    user(&daemon, &file);
    let mut spec = daemon.spec();
    let rule = json!([{"tool": "shell", "decision": "ask"}]);
    spec.permissions = serde_json::from_value(rule).unwrap();
    daemon.create_with("coder", spec);
    daemon.send("coder", &call("true"));
    until("a question", || {
        (daemon.show("coder").phase == Phase::AwaitingApproval).then_some(())
    });
    until_ended(&daemon, "coder", HookEvent::Notification);
    reset(&daemon, "coder", &Default::default()).unwrap();
    assert_eq!(daemon.effects(), ["startup", "asked", "cleared", "clear"]);
}

/// Exit status 0 is success, 2 blocks whatever the output is, and any other is a warning unless the output is JSON.
#[test]
fn what_an_exit_code_means() {
    let daemon = TestDaemon::new();
    let deny = json!({"decision": "block", "reason": "says the JSON"});
    let allow = json!({"hookSpecificOutput":
        {"hookEventName": "PreToolUse", "permissionDecision": "allow"}});
    let cases = [
        // Two is a no, though JSON says otherwise.
        (
            format!("printf '%s' '{allow}'; echo 'says two' >&2; exit 2"),
            Some("says two"),
        ),
        // Another code is a warning, and the call is made.
        ("echo broken >&2; exit 7".to_owned(), None),
        // Unless JSON says what is meant.
        (
            format!("printf '%s' '{deny}'; exit 7"),
            Some("says the JSON"),
        ),
        // What is no JSON is a warning.
        ("printf '{not json'".to_owned(), None),
        // Plain words are no context for a call.
        ("echo some words".to_owned(), None),
    ];
    daemon.create("coder");
    for (n, (line, refused)) in cases.iter().enumerate() {
        user(&daemon, &file(&[("PreToolUse", command(line))]));
        let before = daemon.effects().len();
        daemon.completed("coder", &call(&format!("echo ran-{n} >> effects")));
        let request = last_request(&daemon).to_string();
        assert_eq!(
            daemon.effects().len() == before,
            refused.is_some(),
            "{line}"
        );
        if let Some(reason) = refused {
            assert!(request.contains(reason), "{line}: {request}");
        }
        assert!(!request.contains("some words"), "{request}");
    }
    let events = daemon.events("coder");
    let warnings: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::HookOutput(output) => output.answer.warning.as_deref(),
            _ => None,
        })
        .collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("exit code 7") && warnings[0].contains("broken"));
    assert!(warnings[1].contains("not valid JSON"));
}

/// The user answers later. The call waits without a time limit.
#[test]
fn a_call_may_be_deferred() {
    let daemon = TestDaemon::new();
    let defer = json!({"hookSpecificOutput":
        {"hookEventName": "PreToolUse", "permissionDecision": "defer"}});
    let allow = json!({"hookSpecificOutput":
        {"hookEventName": "PreToolUse", "permissionDecision": "allow"}});
    user(
        &daemon,
        &file(&[
            ("PreToolUse", command(&format!("printf '%s' '{defer}'"))),
            ("PreToolUse", command(&format!("printf '%s' '{allow}'"))),
        ]),
    );
    daemon.create("coder");
    daemon.send("coder", &call("echo ran >> effects"));
    until("a question", || {
        (daemon.show("coder").phase == Phase::AwaitingApproval).then_some(())
    });
    assert_eq!(daemon.effects().len(), 0);
}

#[test]
fn whoever_is_needed_is_called_by_the_kind_of_need() {
    let daemon = TestDaemon::new();
    user(&daemon, &file(&[("Notification", keep_and("true"))]));
    // A key is missing: the turn waits.
    let spec = daemon.spec();
    let create = agentd_client::api::Create {
        name: Some("keyless".to_owned()),
        spec,
        prompt: Some("do: say one".to_owned()),
        ..Default::default()
    };
    daemon.block(daemon.client().create(&create)).unwrap();
    let told = until_heard(&daemon, "Notification");
    assert_eq!(told["notification_type"], "waiting");
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("ANTHROPIC_API_KEY"), "{message}");
    assert_eq!(told["agentd"]["agent"], "keyless");
    // Its process dies, and no other is to take its place.
    let mut spec = daemon.spec();
    spec.restart = RestartPolicy::Never;
    daemon.create_with("mortal", spec);
    daemon.send("mortal", &format!("do: slowly 20 {}", "word ".repeat(200)));
    daemon.until_kind("mortal", Kind::RequestSent);
    daemon.kill_runtime("mortal");
    let told = until("the second", || {
        let told = heard_of(&daemon, "Notification");
        told.into_iter()
            .find(|told| told["notification_type"] == "agent_failed")
    });
    assert_eq!(told["agentd"]["agent"], "mortal");
}

/// An Interrupt hook is ended after one second, and the daemon does not wait for it.
#[test]
fn an_interrupts_hook_has_a_second() {
    let daemon = TestDaemon::new();
    user(&daemon, &file(&[("Interrupt", keep_and("sleep 1005"))]));
    daemon.create("coder");
    let sent = daemon.send("coder", "do: hang");
    daemon.until_kind("coder", Kind::RequestSent);
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Interrupted
    );
    let ended = until_ended(&daemon, "coder", HookEvent::Interrupt);
    assert!(ended.timed_out);
    assert_eq!(ended.outcome, HookOutcome::Ran);
}

#[test]
fn tasks_in_the_background_stand_at_the_top() {
    let daemon = TestDaemon::new();
    user(
        &daemon,
        &file(&[
            ("Stop", keep_and("true")),
            ("SessionStart", keep_and("true")),
        ]),
    );
    daemon.create("coder");
    let call =
        json!({"command": "until test -e go; do sleep 0.02; done", "run_in_background": true});
    daemon.completed("coder", &format!("do: call shell {call} ;; say done"));
    let task = daemon
        .block(daemon.client().tasks("coder"))
        .unwrap()
        .tasks
        .remove(0)
        .id;
    reset(&daemon, "coder", &Default::default()).unwrap();
    let told = [
        heard_of(&daemon, "Stop").remove(0),
        heard_of(&daemon, "SessionStart").remove(1),
    ];
    for told in told {
        let [only] = &told["background_tasks"].as_array().unwrap()[..] else {
            panic!("{told}");
        };
        assert_eq!(only["id"], json!(task));
        assert_eq!(only["tool"], "shell");
        assert!(only["started_at"].is_u64(), "{only}");
    }
    std::fs::write(daemon.work().join("go"), "").unwrap();
}

/// A turn that is lost after repeated crashes is reported to StopFailure hooks.
#[test]
fn a_turn_that_is_lost_is_told_as_a_failure() {
    let daemon = TestDaemon::new();
    user(
        &daemon,
        &file(&[
            ("StopFailure", keep_and("true")),
            ("Stop", keep_and("true")),
        ]),
    );
    daemon.create("coder");
    let sent = daemon.send("coder", "do: hang");
    for n in 1..=3 {
        until("a request", || (daemon.requests().len() >= n).then_some(()));
        daemon.kill_runtime("coder");
    }
    assert_eq!(daemon.answer("coder", sent.prompt).status, Status::Lost);
    let told = until_heard(&daemon, "StopFailure");
    assert!(
        told["error"].as_str().unwrap().contains("died repeatedly"),
        "{told}"
    );
    assert_eq!(heard_of(&daemon, "Stop").len(), 0);
}

#[test]
fn the_daemon_says_why_it_ends() {
    let daemon = TestDaemon::empty();
    let keep = r#"cat >> "$AGENTD_HOME/told"; echo >> "$AGENTD_HOME/told""#;
    user(&daemon, &file(&[("DaemonStop", command(keep))]));
    daemon.start_daemon();
    daemon.cli(&["daemon", "stop"]);
    let told = until("its end", || {
        let text = std::fs::read_to_string(daemon.home().join("told")).ok()?;
        serde_json::from_str::<Value>(text.trim()).ok()
    });
    assert_eq!(told["hook_event_name"], "DaemonStop");
    assert_eq!(told["reason"], "stop");
}

/// The daemon dies after it recorded the start of a SessionEnd hook, before the hook has begun.
#[test]
fn one_that_never_began_says_so_in_the_receipt() {
    let daemon = TestDaemon::empty();
    daemon.daemon_has_keys();
    user(&daemon, &file(&[("SessionEnd", noted("ran"))]));
    daemon.hold(Role::Daemon, "after-hook_started");
    daemon.start_daemon();
    daemon.create("coder");
    let client = daemon.client();
    let asked = daemon.spawn(async move { client.reset("coder", &Default::default()).await });
    daemon.until_held();
    daemon.kill_daemon();
    let _whatever = daemon.block(asked);
    daemon.start_daemon();
    daemon.until_kind("coder", Kind::ResetEnded);
    let ended = until_ended(&daemon, "coder", HookEvent::SessionEnd);
    assert_eq!(ended.outcome, HookOutcome::NotRun);
    assert_eq!(daemon.effects().len(), 0);
    daemon.verify();
}
