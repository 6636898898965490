//! A program that waits for the user's answer keeps its process: no other process could pass the answer on.

use crate::acp_fixture::{asked, children, results, scripted, sessions};
use crate::hooks_fixture::{file, heard_of, says, user};
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Create, Status};
use agentd_core::event::{Kind, Mode};
use agentd_core::message::CallOutcome;
use agentd_core::spec::{AgentSpec, Decision};
use serde_json::json;

const IDLE_MS: u64 = 100;

/// Waits until an agent that has nothing to do has gone to sleep: one that began to be idle before it would sleep, too.
fn idle_time_passes(daemon: &TestDaemon) {
    let spec = AgentSpec {
        idle_ms: IDLE_MS,
        ..daemon.spec()
    };
    daemon.create_with("other", spec);
    daemon.completed("other", "do: say done");
    until("sleep", || daemon.pid("other").is_none().then_some(()));
}

#[test]
fn a_program_that_waits_for_the_user_does_not_go_to_sleep() {
    let daemon = TestDaemon::new();
    let spec = AgentSpec {
        idle_ms: IDLE_MS,
        ..scripted(&daemon, "false")
    };
    daemon.create_with("coder", spec);
    let sent = daemon.send("coder", "do: ask");
    let approval = asked(&daemon, "coder").id.to_string();
    let (pid, programs) = (daemon.pid("coder"), children(&daemon));
    idle_time_passes(&daemon);
    assert_eq!(daemon.pid("coder"), pid);
    assert_eq!(children(&daemon), programs);
    let approved = daemon.cli(&["approve", "coder", &approval]);
    assert!(approved.status.success(), "{approved:?}");
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Completed, "{answer:#?}");
    assert_eq!(answer.text, "allowed");
    // With nothing to do it sleeps, and its program ends.
    until("sleep", || daemon.pid("coder").is_none().then_some(()));
    until("no program", || children(&daemon).is_empty().then_some(()));
    daemon.verify();
}

/// A one-shot agent has no idle time at all.
#[test]
fn a_one_shot_agent_waits_for_the_user() {
    let daemon = TestDaemon::new();
    let create = Create {
        mode: Some(Mode::Oneshot),
        spec: scripted(&daemon, "false"),
        prompt: Some("do: ask".to_owned()),
        env: daemon.caller(),
        ..Create::default()
    };
    let created = daemon.block(daemon.client().create(&create)).unwrap();
    let name = created.agent.name.as_str();
    let approval = asked(&daemon, name).id.to_string();
    let pid = daemon.pid(name);
    idle_time_passes(&daemon);
    assert_eq!(daemon.pid(name), pid);
    let approved = daemon.cli(&["approve", name, &approval]);
    assert!(approved.status.success(), "{approved:?}");
    let answer = daemon.answer(name, created.prompt.unwrap());
    assert_eq!(answer.status, Status::Completed, "{answer:#?}");
    assert_eq!(answer.text, "allowed");
}

/// A rule changes the settings, and new settings need a new process. The turn ends in the old one, which knows the rule.
#[test]
fn always_in_the_middle_of_a_turn_does_not_lose_the_turn() {
    let daemon = TestDaemon::new();
    daemon.create_with("coder", scripted(&daemon, "true"));
    let sent = daemon.send("coder", "do: thrice");
    let first = asked(&daemon, "coder");
    let pid = daemon.pid("coder");
    let always = daemon.cli(&["approve", "coder", "--always"]);
    assert!(always.status.success(), "{always:?}");
    let second = until("another approval", || {
        let waiting = daemon.show("coder").approvals;
        waiting.into_iter().find(|it| it.id != first.id)
    });
    assert_eq!(second.what.unwrap().input["command"], "touch made");
    assert_eq!(daemon.pid("coder"), pid);
    let approved = daemon.cli(&["approve", "coder", &second.id.to_string()]);
    assert!(approved.status.success(), "{approved:?}");
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Completed, "{answer:#?}");
    assert_eq!(answer.text, "said yes yes yes");
    let spec = daemon.block(daemon.client().spec("coder")).unwrap();
    let rule = spec.permissions.last().unwrap();
    assert_eq!(
        (rule.tool.as_str(), rule.decision),
        ("execute", Decision::Allow)
    );
    assert_eq!(rule.pattern.as_deref(), Some("ls"));
    // The next process has the rule, too.
    assert_eq!(daemon.completed("coder", "do: ask").text, "allowed");
    assert_eq!(daemon.count("coder", Kind::ApprovalRequested), 2);
    assert_eq!(sessions(&daemon), ["new", "load"]);
    assert_eq!(daemon.effects(), ["thrice", "ask"]);
    daemon.verify();
}

/// The program died with the runtime: no answer can reach it, so the turn ends without waiting for one.
#[test]
fn an_approval_is_withdrawn_when_the_runtime_dies() {
    let daemon = TestDaemon::new();
    daemon.create_with("coder", scripted(&daemon, "false"));
    let sent = daemon.send("coder", "do: ask");
    asked(&daemon, "coder");
    daemon.kill_runtime("coder");
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Interrupted, "{answer:#?}");
    assert!(daemon.show("coder").approvals.is_empty());
    let outcomes: Vec<CallOutcome> = results(&daemon).into_iter().map(|(it, _)| it).collect();
    assert_eq!(outcomes, [CallOutcome::NotStarted]);
    assert_eq!(daemon.effects(), ["ask"]);
    daemon.verify();
}

/// The program would run `ls`, whatever the hook says.
#[test]
fn a_call_with_arguments_that_a_hook_has_changed_is_refused() {
    let daemon = TestDaemon::new();
    let other = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "updatedInput": {"command": "true"},
    }});
    user(&daemon, &file(&[("PreToolUse", says(&other))]));
    daemon.create_with("coder", scripted(&daemon, "false"));
    assert_eq!(daemon.completed("coder", "do: ask").text, "refused");
    assert_eq!(daemon.count("coder", Kind::CallRevised), 0);
    assert_eq!(daemon.count("coder", Kind::ApprovalRequested), 0);
    assert_eq!(heard_of(&daemon, "PreToolUse").len(), 1);
    // A call that the program does not ask about runs already: no hook could refuse it.
    daemon.completed("coder", "do: tool");
    assert_eq!(heard_of(&daemon, "PreToolUse").len(), 1);
    let outcomes: Vec<CallOutcome> = results(&daemon).into_iter().map(|(it, _)| it).collect();
    assert_eq!(outcomes, [CallOutcome::Denied, CallOutcome::Ok]);
    daemon.verify();
}
