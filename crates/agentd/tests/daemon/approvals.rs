//! Calls that need approval: what the user sees, which call an answer applies to, and what runs afterwards.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::Kind;
use agentd_client::api::{Approval, Approve};
use agentd_core::event::Body;
use agentd_core::spec::{self, AgentSpec, ApprovalMode, Network, Rule, Sandbox};
use agentd_core::state::Phase;
use serde_json::json;
use std::fs;

fn rule(tool: &str, pattern: Option<&str>, decision: spec::Decision) -> Rule {
    Rule {
        tool: tool.to_owned(),
        pattern: pattern.map(str::to_owned),
        decision,
        needs: Vec::new(),
    }
}

fn daemon(change: impl FnOnce(&mut AgentSpec)) -> TestDaemon {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    change(&mut spec);
    daemon.create_with("coder", spec);
    daemon
}

fn sandboxed(change: impl FnOnce(&mut AgentSpec)) -> Option<TestDaemon> {
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return None;
    }
    Some(daemon(|spec| {
        spec.sandbox = Some(Sandbox::WorkspaceWrite);
        change(spec);
    }))
}

/// The pending approval of a call that the model makes.
fn asked(daemon: &TestDaemon, call: &str) -> Approval {
    daemon.send("coder", &format!("do: call {call} ;; say done"));
    until("the question", || {
        daemon.show("coder").approvals.into_iter().next()
    })
}

fn idle(daemon: &TestDaemon) {
    until("the end of the turn", || {
        (daemon.show("coder").phase == Phase::Idle).then_some(())
    });
}

/// The result of its last call that the model got.
fn result(daemon: &TestDaemon) -> String {
    let events = daemon.events("coder");
    let blocks = events.iter().rev().find_map(|event| match &event.body {
        Body::ResultAdded(result) => Some(result.blocks.clone()),
        _ => None,
    });
    let mut words = Vec::new();
    let blocks = blocks.unwrap();
    blocks.iter().for_each(|block| block.words(&mut words));
    words.join("\n")
}

#[test]
fn the_whole_call_is_shown_and_the_answer_is_for_that_call_alone() {
    let daemon = daemon(|spec| {
        spec.permissions = vec![rule("shell", Some("echo *"), spec::Decision::Ask)];
    });
    let question = asked(&daemon, r#"shell {"command":"echo hi >> effects"}"#);
    let call = question.what.clone().unwrap();
    assert_eq!(call.tool, "shell");
    assert_eq!(call.input["command"], "echo hi >> effects");
    assert_eq!(call.cwd.as_deref(), daemon.work().to_str());
    assert!(question.why.unwrap().contains("ask shell echo *"));
    let shown = daemon.cli(&["show", "coder"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("echo hi >> effects"), "{shown}");
    let list = daemon.cli(&["list"]);
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(
        list.contains("is waiting for approval of shell: echo hi"),
        "{list}"
    );
    // An answer to something else that was shown under this id.
    let other = Approve {
        hash: Some("0".repeat(64)),
        ..Approve::default()
    };
    let refused = daemon.block(daemon.client().approve("coder", question.id, &other));
    let agentd_client::Error::Problem(problem) = refused.unwrap_err() else {
        panic!("no problem");
    };
    assert_eq!(problem.kind, Kind::Conflict);
    assert!(daemon.effects().is_empty());
    let out = daemon.cli(&["approve", "coder"]);
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(said.contains("approved shell:"), "{out:?}");
    assert!(said.contains("echo hi >> effects"), "{said}");
    idle(&daemon);
    assert_eq!(daemon.effects(), ["hi"]);
    let events = daemon.events("coder");
    let by = events.iter().find_map(|event| match &event.body {
        Body::ApprovalAnswered(answer) => answer.by.clone(),
        _ => None,
    });
    let by = by.unwrap();
    assert_eq!(by.caller, "user");
    assert_eq!(by.uid, rustix::process::getuid().as_raw());
    assert!(by.client.unwrap().starts_with("agentd/"));
}

#[test]
fn always_adds_a_rule_and_ask_beats_it() {
    let daemon = daemon(|spec| spec.approval = Some(ApprovalMode::Always));
    asked(&daemon, r#"shell {"command":"echo one >> effects"}"#);
    let out = daemon.cli(&["approve", "coder", "--always"]);
    assert!(out.status.success(), "{out:?}");
    idle(&daemon);
    // The same call asks no more, and another one does.
    daemon.completed(
        "coder",
        r#"do: call shell {"command":"echo one >> effects"} ;; say done"#,
    );
    assert_eq!(daemon.effects(), ["one", "one"]);
    asked(&daemon, r#"shell {"command":"echo *"}"#);
    let out = daemon.cli(&["approve", "coder", "--always"]);
    assert_eq!(out.status.code(), Some(2), "{out:?}");
    assert!(String::from_utf8_lossy(&out.stderr).contains("`*`"));
    daemon.cli(&["deny", "coder"]);
    idle(&daemon);
    let mut spec = daemon.block(daemon.client().spec("coder")).unwrap();
    spec.permissions
        .push(rule("shell", Some("date*"), spec::Decision::Ask));
    daemon
        .block(daemon.client().set_spec("coder", &spec))
        .unwrap();
    asked(&daemon, r#"shell {"command":"date"}"#);
    let out = daemon.cli(&["approve", "coder", "--always"]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("ask takes precedence over allow"));
}

#[test]
fn the_model_reads_why_a_call_was_denied() {
    let daemon = daemon(|spec| spec.approval = Some(ApprovalMode::Always));
    asked(&daemon, r#"shell {"command":"echo x >> effects"}"#);
    let out = daemon.cli(&["deny", "coder", "--reason", "use the other file"]);
    assert!(out.status.success(), "{out:?}");
    idle(&daemon);
    assert!(daemon.effects().is_empty());
    let requests = daemon.requests();
    let last = requests.last().unwrap().body.to_string();
    assert!(last.contains("use the other file"), "{last}");
    assert!(last.contains("denied this call"), "{last}");
}

#[test]
fn never_asks_nobody_and_tells_the_model() {
    let daemon = daemon(|spec| {
        spec.approval = Some(ApprovalMode::Never);
        spec.permissions = vec![rule("shell", Some("rm *"), spec::Decision::Ask)];
    });
    fs::write(daemon.work().join("kept"), "").unwrap();
    daemon.completed(
        "coder",
        r#"do: call shell {"command":"rm kept"} ;; say done"#,
    );
    assert!(daemon.work().join("kept").exists());
    assert!(
        result(&daemon).contains("approval: never"),
        "{}",
        result(&daemon)
    );
    daemon.completed(
        "coder",
        r#"do: call shell {"command":"echo ok >> effects"} ;; say done"#,
    );
    assert_eq!(daemon.effects(), ["ok"]);
}

/// A call inside the sandbox runs. A call that leaves the sandbox needs approval, for this call only, and closed paths
/// stay closed.
#[test]
fn an_approved_escalation_writes_outside_and_still_sees_no_state() {
    let Some(daemon) = sandboxed(|spec| spec.network = Some(Network::Off)) else {
        return;
    };
    let outside = tempfile::tempdir_in("/opt").or_else(|_| tempfile::tempdir_in("/srv"));
    let Ok(outside) = outside else {
        println!("skipped: nothing outside of the system's directories can be written");
        return;
    };
    let file = outside.path().join("written");
    let command = format!(
        "echo x > {}; ls {} | grep -c journal; head -c 6 {}/journal.db",
        file.display(),
        daemon.home().display(),
        daemon.home().display()
    );
    fs::write(daemon.work().join("leave.sh"), command).unwrap();
    daemon.completed(
        "coder",
        r#"do: call shell {"command":"sh leave.sh"} ;; say done"#,
    );
    assert!(!file.exists());
    let needs = format!("write:{}", outside.path().canonicalize().unwrap().display());
    let call =
        json!({"command": "sh leave.sh", "escalate": "the report belongs there", "needs": [needs]});
    let question = asked(&daemon, &format!("shell {call}"));
    assert!(question.why.unwrap().contains("leave the sandbox"));
    let out = daemon.cli(&["approve", "coder"]);
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(
        said.contains("the model's reason:\n  │ the report belongs there"),
        "{said}"
    );
    idle(&daemon);
    assert_eq!(fs::read_to_string(&file).unwrap(), "x\n");
    assert!(!result(&daemon).contains("SQLite"), "{}", result(&daemon));
    // For that call alone.
    fs::remove_file(&file).unwrap();
    daemon.completed(
        "coder",
        r#"do: call shell {"command":"sh leave.sh"} ;; say done"#,
    );
    assert!(!file.exists());
}

#[test]
fn an_allow_rule_skips_the_question_and_not_the_sandbox() {
    let Some(daemon) = sandboxed(|spec| {
        spec.approval = Some(ApprovalMode::Never);
        spec.permissions = vec![rule("shell", None, spec::Decision::Allow)];
    }) else {
        return;
    };
    let call =
        json!({"command": "echo x >> effects", "escalate": "because", "needs": ["git-config"]});
    daemon.completed("coder", &format!("do: call shell {call} ;; say done"));
    assert!(daemon.effects().is_empty());
    assert!(
        result(&daemon).contains("leave the sandbox"),
        "{}",
        result(&daemon)
    );
}

#[test]
fn a_file_tool_leaves_the_sandbox_once_the_user_has_approved_it() {
    let Some(daemon) = sandboxed(|_| {}) else {
        return;
    };
    let outside = tempfile::tempdir_in("/opt").or_else(|_| tempfile::tempdir_in("/srv"));
    let Ok(outside) = outside else {
        println!("skipped: nothing outside of the system's directories can be written");
        return;
    };
    let file = outside.path().join("report.txt");
    fs::write(&file, "one").unwrap();
    let write = json!({"file_path": file, "content": "two"});
    let read = json!({"file_path": file});
    let script = format!("do: call read_file {read} ;; call write_file {write} ;; say done");
    daemon.completed("coder", &script);
    assert_eq!(fs::read_to_string(&file).unwrap(), "one");
    assert!(
        result(&daemon).contains("`escalate`"),
        "{}",
        result(&daemon)
    );
    let needs = [format!("write:{}", file.canonicalize().unwrap().display())];
    let write = json!({"file_path": file, "content": "two", "escalate": "the report belongs there", "needs": needs});
    asked(&daemon, &format!("write_file {write}"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "one");
    daemon.cli(&["approve", "coder"]);
    idle(&daemon);
    assert_eq!(fs::read_to_string(&file).unwrap(), "two");
    let edit = json!({"file_path": file, "old_string": "two", "new_string": "three", "escalate": "a slip", "needs": needs});
    asked(&daemon, &format!("edit_file {edit}"));
    daemon.cli(&["deny", "coder"]);
    idle(&daemon);
    assert_eq!(fs::read_to_string(&file).unwrap(), "two");
}

#[test]
fn an_edit_that_cannot_be_carried_out_asks_nothing() {
    let daemon = daemon(|spec| spec.approval = Some(ApprovalMode::Always));
    let file = daemon.work().join("a.txt");
    fs::write(&file, "one\n").unwrap();
    let read = json!({"file_path": "a.txt"});
    let wrong = json!({"file_path": "a.txt", "old_string": "two", "new_string": "2"});
    let script = format!("do: call read_file {read} ;; call edit_file {wrong} ;; say done");
    daemon.completed("coder", &script);
    let said = result(&daemon);
    assert!(said.contains("is not in a.txt"), "{said}");
    let events = daemon.events("coder");
    let is_question = |body: &Body| matches!(body, Body::ApprovalRequested(_));
    assert!(!events.iter().any(|event| is_question(&event.body)));
    let right = json!({"file_path": "a.txt", "old_string": "one", "new_string": "1"});
    asked(&daemon, &format!("edit_file {right}"));
    daemon.cli(&["approve", "coder"]);
    idle(&daemon);
    assert_eq!(fs::read_to_string(&file).unwrap(), "1\n");
    daemon.verify();
}

#[test]
fn a_write_that_cannot_be_carried_out_asks_nothing() {
    let daemon = daemon(|spec| spec.approval = Some(ApprovalMode::Always));
    let (file, new) = (daemon.work().join("a.txt"), daemon.work().join("new.txt"));
    fs::write(&file, "one\n").unwrap();
    for (path, why) in [(".", "is a directory"), ("a.txt", "have not read it")] {
        let write = json!({"file_path": path, "content": "two\n"});
        daemon.completed("coder", &format!("do: call write_file {write} ;; say done"));
        let said = result(&daemon);
        assert!(said.contains(why), "{said}");
    }
    let events = daemon.events("coder");
    let is_question = |body: &Body| matches!(body, Body::ApprovalRequested(_));
    assert!(!events.iter().any(|event| is_question(&event.body)));
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\n");
    let write = json!({"file_path": "new.txt", "content": "two\n"});
    asked(&daemon, &format!("write_file {write}"));
    assert!(!new.exists());
    daemon.cli(&["approve", "coder"]);
    idle(&daemon);
    assert_eq!(fs::read_to_string(&new).unwrap(), "two\n");
    daemon.verify();
}
