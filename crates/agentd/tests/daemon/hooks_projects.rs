//! Hooks, denials and subagents that projects have for other programs: what runs, what is refused, and what waits.

use crate::hooks_fixture::*;
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Approve, HooksQuery, ProjectTrust, Status, Trust};
use agentd_core::event::{Body, HookOutcome};
use agentd_core::hook::{HookEvent, Layer};
use agentd_core::spec::{AgentSpec, ApprovalMode, Sandbox};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

const SETTINGS: &str = ".claude/settings.json";

fn write(daemon: &TestDaemon, below: &str, text: &str) {
    let path = daemon.work().join(below);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn trust(daemon: &TestDaemon) -> ProjectTrust {
    let ask = Trust {
        dir: daemon.work().display().to_string(),
        hash: None,
        trusted: true,
    };
    daemon.block(daemon.client().set_trust(&ask)).unwrap()
}

fn call(command: &str) -> String {
    let call = json!({"command": command});
    format!("do: call shell {call} ;; say done")
}

/// The result of the last call that the model got.
fn result(daemon: &TestDaemon) -> String {
    let events = daemon.events("coder");
    let blocks = events.iter().rev().find_map(|event| match &event.body {
        Body::ResultAdded(result) => Some(format!("{:?}", result.blocks)),
        _ => None,
    });
    blocks.unwrap_or_default()
}

fn sandboxed(daemon: &TestDaemon) -> Option<AgentSpec> {
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return None;
    }
    let mut spec = daemon.spec();
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    Some(spec)
}

fn guard(command: &str) -> Value {
    json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}]}})
}

/// Regression: the script of a guard is in the user's home, which the sandbox does not have. Its exit code 127 was ignored, and
/// the call that it would have refused ran.
#[test]
fn a_guard_that_is_not_in_the_sandbox_makes_the_call_wait() {
    let daemon = TestDaemon::new();
    let Some(spec) = sandboxed(&daemon) else {
        return;
    };
    let script = daemon.root().join("guard.sh");
    fs::write(&script, "#!/bin/sh\nexit 2\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    project(&daemon, &guard(&script.display().to_string()));
    trust(&daemon);
    daemon.create_with("coder", spec.clone());
    let sent = daemon.send("coder", &call("echo x >> effects"));
    let question = until("the question", || {
        daemon.show("coder").approvals.into_iter().next()
    });
    let why = question.why.unwrap();
    assert!(why.contains("could not run"), "{why}");
    assert!(daemon.effects().is_empty());
    let ended = until_ended(&daemon, "coder", HookEvent::PreToolUse);
    assert_eq!(
        (ended.outcome, ended.exit),
        (HookOutcome::NotRun, Some(127))
    );
    let client = daemon.client();
    daemon
        .block(client.approve("coder", question.id, &Approve::default()))
        .unwrap();
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Completed
    );
    assert_eq!(daemon.effects(), ["x"]);
    // An agent that never asks refuses the call.
    let never = AgentSpec {
        approval: Some(ApprovalMode::Never),
        ..spec
    };
    daemon.create_with("never", never);
    daemon.completed("never", &call("echo y >> effects"));
    assert_eq!(daemon.effects(), ["x"]);
}

/// Regression: hooks of other programs found no reply of the model in the transcript. One that keeps the agent working until
/// it says a certain word then let it end at once.
#[test]
fn a_stop_hook_that_reads_the_transcript_keeps_the_agent_working() {
    let daemon = TestDaemon::new();
    let script = r#"
import json, sys
path = json.load(sys.stdin)["transcript_path"]
last = [line for line in open(path) if '"role":"assistant"' in line][-1]
text = "\n".join(part["text"] for part in json.loads(last)["message"]["content"] if part["type"] == "text")
if "COMPLETE" not in text:
    print(json.dumps({"decision": "block", "reason": "go on"}))
"#;
    write(&daemon, ".claude/hooks/loop.py", script);
    let file = file(&[(
        "Stop",
        command(r#"python3 "$CLAUDE_PROJECT_DIR"/.claude/hooks/loop.py"#),
    )]);
    user(&daemon, &file);
    daemon.create("coder");
    daemon.completed("coder", "do: say not yet ;; say COMPLETE");
    let kept = daemon.events("coder").into_iter().filter(|event| {
        matches!(&event.body, Body::Notice(notice) if notice.text.contains("A hook asks you to continue"))
    });
    assert_eq!(kept.count(), 1);
    all_ran(&daemon, "coder");
}

/// Regression: `.claude/settings.json` was not read.
#[test]
fn settings_of_another_program_deny_and_guard_once_they_are_trusted() {
    let daemon = TestDaemon::new();
    let file = json!({
        "permissions": {"allow": ["Bash(*)"], "deny": ["Bash(rm:*)", "Read(./.env)", "WebSearch"]},
        "env": {"SECRET": "x"},
        "hooks": {
            "PreToolUse": [{"matcher": "Bash", "hooks": [
                {"type": "command", "command": "echo 'no pushes' >&2; exit 2", "if": "Bash(git push *)"},
                {"type": "command", "command": "printf '%s' '{\"hookSpecificOutput\": {\"hookEventName\": \"PreToolUse\", \"permissionDecision\": \"allow\"}}'"},
            ]}],
        },
    });
    write(&daemon, SETTINGS, &file.to_string());
    write(&daemon, ".env", "the secret");
    let mut spec = daemon.spec();
    spec.permissions = serde_json::from_value(json!([
        {"tool": "shell", "pattern": "mv *", "decision": "ask"}
    ]))
    .unwrap();
    daemon.create_with("early", spec.clone());
    daemon.completed("early", &call("git push; echo early >> effects"));
    assert_eq!(
        daemon.effects(),
        ["early"],
        "it does not count before it is trusted"
    );
    assert!(
        daemon
            .show("early")
            .untrusted_hooks
            .unwrap()
            .ends_with(SETTINGS)
    );
    let trusted = trust(&daemon);
    assert_eq!(
        trusted.unused,
        [
            ".claude/settings.json: not used: env, permissions.allow".to_owned(),
            ".claude/settings.json: not used: the rule \"WebSearch\" of permissions.deny: agentd has no tool `WebSearch`"
                .to_owned(),
        ]
    );
    daemon.create_with("coder", spec);
    daemon.completed("coder", &call("rm -f effects"));
    assert!(
        result(&daemon).contains("permission rules"),
        "{}",
        result(&daemon)
    );
    daemon.completed(
        "coder",
        r#"do: call read_file {"file_path":".env"} ;; say done"#,
    );
    assert!(
        !result(&daemon).contains("the secret"),
        "{}",
        result(&daemon)
    );
    daemon.completed(
        "coder",
        &call("cd . && git push --force; echo late >> effects"),
    );
    assert!(result(&daemon).contains("no pushes"), "{}", result(&daemon));
    daemon.completed("coder", &call("echo fine >> effects"));
    assert_eq!(daemon.effects(), ["early", "fine"]);
    // Its hook allows everything, and that does not count.
    daemon.send("coder", &call("mv effects elsewhere"));
    until("the question", || {
        daemon.show("coder").approvals.into_iter().next()
    });
    let query = HooksQuery {
        agent: Some("coder".to_owned()),
        cwd: None,
    };
    let list = daemon.block(daemon.client().hooks(&query)).unwrap();
    assert!(list.hooks.iter().all(|hook| hook.layer == Layer::Project));
}

#[test]
fn hooks_of_such_settings_run_in_the_sandbox() {
    let daemon = TestDaemon::new();
    let Some(spec) = sandboxed(&daemon) else {
        return;
    };
    let script = format!(
        "cat >/dev/null; echo ran >> ran; echo x > {}/outside",
        daemon.root().display()
    );
    write(
        &daemon,
        SETTINGS,
        &file(&[("Stop", command(&script))]).to_string(),
    );
    trust(&daemon);
    daemon.create_with("coder", spec);
    daemon.completed("coder", "do: say one");
    assert!(daemon.work().join("ran").exists());
    assert!(!daemon.root().join("outside").exists());
}

/// Regression: the subagents in `.claude/agents` could not be started.
#[test]
fn a_projects_agents_are_kinds_of_subagents_once_they_are_trusted() {
    let daemon = TestDaemon::empty();
    daemon.daemon_has_keys();
    daemon.start_daemon();
    let text = "---\nname: reviewer\ndescription: Reviews code. Examples: user: \"review\"\ntools: Read, Grep\nmodel: sonnet\n---\n\nYou review the code.\n";
    write(&daemon, ".claude/agents/reviewer.md", text);
    daemon.create("coder");
    let start = json!({"kind": "reviewer", "prompt": "do: say reviewed"});
    let ask = format!("do: call agent {start} ;; say done");
    daemon.completed("coder", &ask);
    assert!(!result(&daemon).contains("reviewed"), "{}", result(&daemon));
    trust(&daemon);
    daemon.create("parent");
    daemon.completed("parent", &ask);
    let requests = daemon.requests();
    let of_child = requests.iter().rev().find(|it| {
        let body = it.body.to_string();
        body.contains("You review the code.")
    });
    let body = &of_child.unwrap().body;
    let tools: Vec<String> = body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            tool["name"]
                .as_str()
                .or(tool["function"]["name"].as_str())
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(tools, ["read_file", "search_files"]);
}
