//! Hooks around calls: PreToolUse, PermissionRequest, PostToolUse, PostToolUseFailure.

use crate::hooks_fixture::*;
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Approve, Status};
use agentd_core::event::Body;
use agentd_core::state::Phase;
use serde_json::{Value, json};

fn specific(event: &str, more: Value) -> Value {
    let mut output = json!({"hookEventName": event});
    output
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    json!({"hookSpecificOutput": output})
}

fn call(command: &str) -> String {
    let call = json!({"command": command});
    format!("do: call shell {call} ;; say done")
}

fn asking(daemon: &TestDaemon) -> agentd_core::spec::AgentSpec {
    let rule = json!([{ "tool": "shell", "decision": "ask" }]);
    let mut spec = daemon.spec();
    spec.permissions = serde_json::from_value(rule).unwrap();
    spec
}

/// A hooks file that was written for another program: it blocks a dangerous command with exit status 2.
#[test]
fn a_file_written_for_another_tool_blocks_a_dangerous_command() {
    let daemon = TestDaemon::new();
    let file = r#"{
      "hooks": {
        "PreToolUse": [
          {
            "matcher": "Bash",
            "hooks": [
              {
                "type": "command",
                "command": "if grep -qE 'rm -rf|>> *effects'; then echo 'dangerous command' >&2; exit 2; fi"
              }
            ]
          }
        ]
      }
    }"#;
    std::fs::write(daemon.home().join("hooks.json"), file).unwrap();
    daemon.create("coder");
    daemon.completed("coder", &call("echo gone >> effects"));
    assert_eq!(daemon.effects().len(), 0);
    let request = last_request(&daemon).to_string();
    assert!(request.contains("dangerous command"), "{request}");
    daemon.completed("coder", &call("echo fine > safe"));
    assert!(daemon.work().join("safe").exists());
    all_ran(&daemon, "coder");
    daemon.verify();
}

/// Another such file: it adds context when a conversation was cleared.
#[test]
fn a_file_written_for_another_tool_seeds_context_after_a_clear() {
    let daemon = TestDaemon::new();
    let file = r#"{
      "hooks": {
        "SessionStart": [
          {
            "matcher": "clear",
            "hooks": [
              {
                "type": "command",
                "command": "cat \"$CLAUDE_PROJECT_DIR\"/NOTES.md",
                "timeout": 5
              }
            ]
          }
        ]
      }
    }"#;
    std::fs::write(daemon.home().join("hooks.json"), file).unwrap();
    std::fs::write(daemon.work().join("NOTES.md"), "Use tabs, not spaces.\n").unwrap();
    daemon.create("coder");
    daemon.completed("coder", "do: say one");
    assert!(!last_request(&daemon).to_string().contains("tabs"));
    reset(&daemon, "coder", &Default::default()).unwrap();
    daemon.completed("coder", "do: say two");
    assert!(
        last_request(&daemon)
            .to_string()
            .contains("Use tabs, not spaces.")
    );
}

#[test]
fn before_a_call_it_hears_what_is_to_run_and_may_allow_what_would_be_asked() {
    let daemon = TestDaemon::new();
    let allow = specific("PreToolUse", json!({"permissionDecision": "allow"}));
    user(&daemon, &file(&[("PreToolUse", says(&allow))]));
    daemon.create_with("coder", asking(&daemon));
    daemon.completed("coder", &call("echo ran >> effects"));
    assert_eq!(daemon.effects(), ["ran"]);
    let input = &heard_of(&daemon, "PreToolUse")[0];
    assert_eq!(input["tool_name"], "shell");
    assert_eq!(input["tool_input"]["command"], "echo ran >> effects");
    assert!(
        input["tool_use_id"].as_str().unwrap().starts_with("call"),
        "{input}"
    );
    assert!(input["agentd"]["turn"].is_string());
}

#[test]
fn it_may_deny_with_a_reason_and_the_strictest_prevails() {
    let daemon = TestDaemon::new();
    let allow = specific("PreToolUse", json!({"permissionDecision": "allow"}));
    let deny = specific(
        "PreToolUse",
        json!({"permissionDecision": "deny", "permissionDecisionReason": "no tools on Sundays"}),
    );
    user(
        &daemon,
        &file(&[("PreToolUse", says(&allow)), ("PreToolUse", says(&deny))]),
    );
    daemon.create("coder");
    daemon.completed("coder", &call("echo ran >> effects"));
    assert_eq!(daemon.effects().len(), 0);
    assert!(
        last_request(&daemon)
            .to_string()
            .contains("no tools on Sundays")
    );
}

#[test]
fn it_may_have_the_user_asked_and_that_is_told_too() {
    let daemon = TestDaemon::new();
    let ask = specific("PreToolUse", json!({"permissionDecision": "ask"}));
    user(
        &daemon,
        &file(&[
            ("PreToolUse", says(&ask)),
            ("PermissionRequest", keep_and("true")),
            ("Notification", keep_and("true")),
        ]),
    );
    daemon.create("coder");
    let sent = daemon.send("coder", &call("echo ran >> effects"));
    let agent = until("a question", || {
        let agent = daemon.show("coder");
        (agent.phase == Phase::AwaitingApproval).then_some(agent)
    });
    let input = until_heard(&daemon, "Notification");
    assert_eq!(input["notification_type"], "permission_prompt");
    assert_eq!(heard_of(&daemon, "PermissionRequest").len(), 1);
    // The answer outlives the process, and the hook is not asked again.
    daemon.kill_runtime("coder");
    let approval = agent.approvals[0].id;
    let allowed = daemon.client();
    daemon
        .block(allowed.approve("coder", approval, &Approve::default()))
        .unwrap();
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Completed
    );
    assert_eq!(daemon.effects(), ["ran"]);
    assert_eq!(heard_of(&daemon, "PreToolUse").len(), 1);
}

#[test]
fn a_request_for_leave_is_answered_by_a_hook() {
    let daemon = TestDaemon::new();
    let allow = json!({"decision": {"behavior": "allow"}});
    user(
        &daemon,
        &file(&[(
            "PermissionRequest",
            says(&specific("PermissionRequest", allow)),
        )]),
    );
    daemon.create_with("coder", asking(&daemon));
    daemon.completed("coder", &call("echo ran >> effects"));
    assert_eq!(daemon.effects(), ["ran"]);
    let deny = json!({"decision": {"behavior": "deny", "message": "never this"}});
    user(
        &daemon,
        &file(&[(
            "PermissionRequest",
            says(&specific("PermissionRequest", deny)),
        )]),
    );
    daemon.completed("coder", &call("echo ran >> effects"));
    assert_eq!(daemon.effects(), ["ran"]);
    assert!(last_request(&daemon).to_string().contains("never this"));
}

#[test]
fn other_arguments_are_on_record_before_the_call_runs_with_them() {
    let daemon = TestDaemon::new();
    let other = json!({"updatedInput": {"command": "echo other >> effects"}});
    user(
        &daemon,
        &file(&[("PreToolUse", says(&specific("PreToolUse", other)))]),
    );
    daemon.create("coder");
    daemon.completed("coder", &call("echo mine >> effects"));
    assert_eq!(daemon.effects(), ["other"]);
    let events = daemon.events("coder");
    let place = |is_it: fn(&Body) -> bool| events.iter().position(|event| is_it(&event.body));
    let revised = place(|body| matches!(body, Body::CallRevised(_))).unwrap();
    let started = place(|body| matches!(body, Body::ToolStarted(_))).unwrap();
    assert!(revised < started);
    // The model still sees what it said.
    assert!(last_request(&daemon).to_string().contains("echo mine"));
    daemon.verify();
}

#[test]
fn after_a_call_it_may_add_to_the_output_or_replace_it() {
    let daemon = TestDaemon::new();
    let more = specific(
        "PostToolUse",
        json!({"additionalContext": "the linter is happy"}),
    );
    user(&daemon, &file(&[("PostToolUse", says(&more))]));
    daemon.create("coder");
    daemon.completed("coder", &call("echo 42"));
    let input = &heard_of(&daemon, "PostToolUse")[0];
    assert!(
        input["tool_response"].as_str().unwrap().contains("42"),
        "{input}"
    );
    assert!(input["duration_ms"].is_u64());
    let request = last_request(&daemon).to_string();
    assert!(request.contains("the linter is happy") && request.contains("42"));
    let other = specific(
        "PostToolUse",
        json!({"updatedToolOutput": "nothing to see"}),
    );
    user(&daemon, &file(&[("PostToolUse", says(&other))]));
    reset(&daemon, "coder", &Default::default()).unwrap();
    daemon.completed("coder", &call("expr 22 + 22"));
    let request = last_request(&daemon).to_string();
    assert!(
        request.contains("nothing to see") && !request.contains("44"),
        "{request}"
    );
    let block = json!({"decision": "block", "reason": "run the formatter"});
    user(&daemon, &file(&[("PostToolUse", says(&block))]));
    daemon.completed("coder", &call("echo 45"));
    assert!(
        last_request(&daemon)
            .to_string()
            .contains("run the formatter")
    );
}

#[test]
fn a_call_that_failed_is_told_as_such() {
    let daemon = TestDaemon::new();
    user(
        &daemon,
        &file(&[
            ("PostToolUse", keep_and("true")),
            ("PostToolUseFailure", keep_and("true")),
        ]),
    );
    daemon.create("coder");
    daemon.completed("coder", &call("echo oh no; exit 3"));
    let input = &heard_of(&daemon, "PostToolUseFailure")[0];
    assert!(
        input["error"].as_str().unwrap().contains("oh no"),
        "{input}"
    );
    assert_eq!(input["is_interrupt"], false);
    assert_eq!(heard_of(&daemon, "PostToolUse").len(), 0);
    let sent = daemon.send("coder", &call("echo on >> effects; sleep 60"));
    until("the tool", || (daemon.effects().len() == 1).then_some(()));
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Interrupted
    );
    until("the second", || {
        let told = heard_of(&daemon, "PostToolUseFailure");
        (told.len() == 2).then(|| assert_eq!(told[1]["is_interrupt"], true))
    });
}

#[test]
fn it_may_end_the_turn() {
    let daemon = TestDaemon::new();
    let stop = json!({"continue": false, "stopReason": "out of budget"});
    user(&daemon, &file(&[("PreToolUse", says(&stop))]));
    daemon.create("coder");
    let answer = daemon.ask("coder", &call("echo ran >> effects"));
    assert_eq!(answer.status, Status::Interrupted);
    assert_eq!(daemon.effects().len(), 0);
    daemon.completed("coder", "do: say next");
    assert!(last_request(&daemon).to_string().contains("out of budget"));
}
