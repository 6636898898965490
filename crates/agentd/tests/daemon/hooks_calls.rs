//! Hooks around calls: PreToolUse, PermissionRequest, PostToolUse, PostToolUseFailure.

use crate::hooks_stage::*;
use crate::house::{House, until};
use agentd_client::api::{Answered, Status};
use agentd_core::event::{Body, Decision};
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

fn asking(house: &House) -> agentd_core::spec::AgentSpec {
    let rule = json!([{ "tool": "shell", "decision": "ask" }]);
    let mut spec = house.spec();
    spec.permissions = serde_json::from_value(rule).unwrap();
    spec
}

/// A file as people have it for another tool: it blocks a dangerous command by exit 2.
#[test]
fn a_file_written_for_another_tool_blocks_a_dangerous_command() {
    let house = House::new();
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
    std::fs::write(house.home().join("hooks.json"), file).unwrap();
    house.create("coder");
    house.completed("coder", &call("echo gone >> effects"));
    assert_eq!(house.effects().len(), 0);
    let request = last_request(&house).to_string();
    assert!(request.contains("dangerous command"), "{request}");
    house.completed("coder", &call("echo fine > safe"));
    assert!(house.work().join("safe").exists());
    all_ran(&house, "coder");
    house.verify();
}

/// The other one: it seeds context when a conversation was cleared.
#[test]
fn a_file_written_for_another_tool_seeds_context_after_a_clear() {
    let house = House::new();
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
    std::fs::write(house.home().join("hooks.json"), file).unwrap();
    std::fs::write(house.work().join("NOTES.md"), "Use tabs, not spaces.\n").unwrap();
    house.create("coder");
    house.completed("coder", "do: say one");
    assert!(!last_request(&house).to_string().contains("tabs"));
    reset(&house, "coder", &Default::default()).unwrap();
    house.completed("coder", "do: say two");
    assert!(
        last_request(&house)
            .to_string()
            .contains("Use tabs, not spaces.")
    );
}

#[test]
fn before_a_call_it_hears_what_is_to_run_and_may_allow_what_would_be_asked() {
    let house = House::new();
    let allow = specific("PreToolUse", json!({"permissionDecision": "allow"}));
    user(&house, &file(&[("PreToolUse", says(&allow))]));
    house.create_with("coder", asking(&house));
    house.completed("coder", &call("echo ran >> effects"));
    assert_eq!(house.effects(), ["ran"]);
    let input = &heard_of(&house, "PreToolUse")[0];
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
    let house = House::new();
    let allow = specific("PreToolUse", json!({"permissionDecision": "allow"}));
    let deny = specific(
        "PreToolUse",
        json!({"permissionDecision": "deny", "permissionDecisionReason": "no tools on Sundays"}),
    );
    user(
        &house,
        &file(&[("PreToolUse", says(&allow)), ("PreToolUse", says(&deny))]),
    );
    house.create("coder");
    house.completed("coder", &call("echo ran >> effects"));
    assert_eq!(house.effects().len(), 0);
    assert!(
        last_request(&house)
            .to_string()
            .contains("no tools on Sundays")
    );
}

#[test]
fn it_may_have_the_user_asked_and_that_is_told_too() {
    let house = House::new();
    let ask = specific("PreToolUse", json!({"permissionDecision": "ask"}));
    user(
        &house,
        &file(&[
            ("PreToolUse", says(&ask)),
            ("PermissionRequest", keep_and("true")),
            ("Notification", keep_and("true")),
        ]),
    );
    house.create("coder");
    let sent = house.send("coder", &call("echo ran >> effects"));
    let agent = until("a question", || {
        let agent = house.show("coder");
        (agent.phase == Phase::AwaitingApproval).then_some(agent)
    });
    let input = until_heard(&house, "Notification");
    assert_eq!(input["notification_type"], "permission_prompt");
    assert_eq!(heard_of(&house, "PermissionRequest").len(), 1);
    // The answer outlives the process, and the hook is not asked again.
    house.kill_runtime("coder");
    let approval = agent.approvals[0].id;
    let allowed = house.client();
    house
        .block(allowed.decide("coder", approval, &Answered::new(Decision::Allow)))
        .unwrap();
    assert_eq!(house.answer("coder", sent.prompt).status, Status::Completed);
    assert_eq!(house.effects(), ["ran"]);
    assert_eq!(heard_of(&house, "PreToolUse").len(), 1);
}

#[test]
fn a_request_for_leave_is_answered_by_a_hook() {
    let house = House::new();
    let allow = json!({"decision": {"behavior": "allow"}});
    user(
        &house,
        &file(&[(
            "PermissionRequest",
            says(&specific("PermissionRequest", allow)),
        )]),
    );
    house.create_with("coder", asking(&house));
    house.completed("coder", &call("echo ran >> effects"));
    assert_eq!(house.effects(), ["ran"]);
    let deny = json!({"decision": {"behavior": "deny", "message": "never this"}});
    user(
        &house,
        &file(&[(
            "PermissionRequest",
            says(&specific("PermissionRequest", deny)),
        )]),
    );
    house.completed("coder", &call("echo ran >> effects"));
    assert_eq!(house.effects(), ["ran"]);
    assert!(last_request(&house).to_string().contains("never this"));
}

#[test]
fn other_arguments_are_on_record_before_the_call_runs_with_them() {
    let house = House::new();
    let other = json!({"updatedInput": {"command": "echo other >> effects"}});
    user(
        &house,
        &file(&[("PreToolUse", says(&specific("PreToolUse", other)))]),
    );
    house.create("coder");
    house.completed("coder", &call("echo mine >> effects"));
    assert_eq!(house.effects(), ["other"]);
    let events = house.events("coder");
    let place = |is_it: fn(&Body) -> bool| events.iter().position(|event| is_it(&event.body));
    let revised = place(|body| matches!(body, Body::CallRevised(_))).unwrap();
    let started = place(|body| matches!(body, Body::ToolStarted(_))).unwrap();
    assert!(revised < started);
    // The model still sees what it said.
    assert!(last_request(&house).to_string().contains("echo mine"));
    house.verify();
}

#[test]
fn after_a_call_it_may_add_to_the_output_or_replace_it() {
    let house = House::new();
    let more = specific(
        "PostToolUse",
        json!({"additionalContext": "the linter is happy"}),
    );
    user(&house, &file(&[("PostToolUse", says(&more))]));
    house.create("coder");
    house.completed("coder", &call("echo 42"));
    let input = &heard_of(&house, "PostToolUse")[0];
    assert!(
        input["tool_response"].as_str().unwrap().contains("42"),
        "{input}"
    );
    assert!(input["duration_ms"].is_u64());
    let request = last_request(&house).to_string();
    assert!(request.contains("the linter is happy") && request.contains("42"));
    let other = specific(
        "PostToolUse",
        json!({"updatedToolOutput": "nothing to see"}),
    );
    user(&house, &file(&[("PostToolUse", says(&other))]));
    reset(&house, "coder", &Default::default()).unwrap();
    house.completed("coder", &call("expr 22 + 22"));
    let request = last_request(&house).to_string();
    assert!(
        request.contains("nothing to see") && !request.contains("44"),
        "{request}"
    );
    let block = json!({"decision": "block", "reason": "run the formatter"});
    user(&house, &file(&[("PostToolUse", says(&block))]));
    house.completed("coder", &call("echo 45"));
    assert!(
        last_request(&house)
            .to_string()
            .contains("run the formatter")
    );
}

#[test]
fn a_call_that_failed_is_told_as_such() {
    let house = House::new();
    user(
        &house,
        &file(&[
            ("PostToolUse", keep_and("true")),
            ("PostToolUseFailure", keep_and("true")),
        ]),
    );
    house.create("coder");
    house.completed("coder", &call("echo oh no; exit 3"));
    let input = &heard_of(&house, "PostToolUseFailure")[0];
    assert!(
        input["error"].as_str().unwrap().contains("oh no"),
        "{input}"
    );
    assert_eq!(input["is_interrupt"], false);
    assert_eq!(heard_of(&house, "PostToolUse").len(), 0);
    let sent = house.send("coder", &call("echo on >> effects; sleep 60"));
    until("the tool", || (house.effects().len() == 1).then_some(()));
    house.block(house.client().interrupt("coder")).unwrap();
    assert_eq!(
        house.answer("coder", sent.prompt).status,
        Status::Interrupted
    );
    until("the second", || {
        let told = heard_of(&house, "PostToolUseFailure");
        (told.len() == 2).then(|| assert_eq!(told[1]["is_interrupt"], true))
    });
}

#[test]
fn it_may_end_the_turn() {
    let house = House::new();
    let stop = json!({"continue": false, "stopReason": "out of budget"});
    user(&house, &file(&[("PreToolUse", says(&stop))]));
    house.create("coder");
    let answer = house.ask("coder", &call("echo ran >> effects"));
    assert_eq!(answer.status, Status::Interrupted);
    assert_eq!(house.effects().len(), 0);
    house.completed("coder", "do: say next");
    assert!(last_request(&house).to_string().contains("out of budget"));
}
