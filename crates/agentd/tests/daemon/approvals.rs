//! Calls that the user is asked about: what they see, what their answer is good for, and what runs afterwards.

use crate::house::{House, until};
use agentd_client::Kind;
use agentd_client::api::{Answered, Approval};
use agentd_core::event::{Body, Decision};
use agentd_core::spec::{self, AgentSpec, ApprovalMode, Network, Rule, Sandbox};
use agentd_core::state::Phase;
use serde_json::json;
use std::fs;

fn rule(tool: &str, pattern: Option<&str>, decision: spec::Decision) -> Rule {
    Rule {
        tool: tool.to_owned(),
        pattern: pattern.map(str::to_owned),
        decision,
    }
}

fn house(change: impl FnOnce(&mut AgentSpec)) -> House {
    let house = House::new();
    let mut spec = house.spec();
    change(&mut spec);
    house.create_with("coder", spec);
    house
}

fn sandboxed(change: impl FnOnce(&mut AgentSpec)) -> Option<House> {
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return None;
    }
    Some(house(|spec| {
        spec.sandbox = Some(Sandbox::WorkspaceWrite);
        change(spec);
    }))
}

/// The question about the call that is sent.
fn asked(house: &House, call: &str) -> Approval {
    house.send("coder", &format!("do: call {call} ;; say done"));
    until("the question", || {
        house.show("coder").approvals.into_iter().next()
    })
}

fn idle(house: &House) {
    until("the end of the turn", || {
        (house.show("coder").phase == Phase::Idle).then_some(())
    });
}

/// What the model was told of its last call.
fn result(house: &House) -> String {
    let events = house.events("coder");
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
    let house = house(|spec| {
        spec.permissions = vec![rule("shell", Some("echo *"), spec::Decision::Ask)];
    });
    let question = asked(&house, r#"shell {"command":"echo hi >> effects"}"#);
    let call = question.what.clone().unwrap();
    assert_eq!(call.tool, "shell");
    assert_eq!(call.input["command"], "echo hi >> effects");
    assert_eq!(call.cwd.as_deref(), house.work().to_str());
    assert!(question.why.unwrap().contains("ask shell echo *"));
    let shown = house.cli(&["show", "coder"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("echo hi >> effects"), "{shown}");
    let list = house.cli(&["list"]);
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(
        list.contains("asks for approval of shell: echo hi"),
        "{list}"
    );
    // An answer to something else that was shown under this id.
    let other = Answered {
        hash: Some("0".repeat(64)),
        ..Answered::new(Decision::Allow)
    };
    let refused = house.block(house.client().decide("coder", question.id, &other));
    let agentd_client::Error::Problem(problem) = refused.unwrap_err() else {
        panic!("no problem");
    };
    assert_eq!(problem.kind, Kind::Conflict);
    assert!(house.effects().is_empty());
    let out = house.cli(&["approve", "coder"]);
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(said.contains("approved shell:"), "{out:?}");
    assert!(said.contains("echo hi >> effects"), "{said}");
    idle(&house);
    assert_eq!(house.effects(), ["hi"]);
    let events = house.events("coder");
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
    let house = house(|spec| spec.approval = Some(ApprovalMode::Always));
    asked(&house, r#"shell {"command":"echo one >> effects"}"#);
    let out = house.cli(&["approve", "coder", "--always"]);
    assert!(out.status.success(), "{out:?}");
    idle(&house);
    // The same call asks no more, and another one does.
    house.completed(
        "coder",
        r#"do: call shell {"command":"echo one >> effects"} ;; say done"#,
    );
    assert_eq!(house.effects(), ["one", "one"]);
    asked(&house, r#"shell {"command":"echo *"}"#);
    let out = house.cli(&["approve", "coder", "--always"]);
    assert_eq!(out.status.code(), Some(2), "{out:?}");
    assert!(String::from_utf8_lossy(&out.stderr).contains("`*`"));
    house.cli(&["deny", "coder"]);
    idle(&house);
    let mut spec = house.block(house.client().spec("coder")).unwrap();
    spec.permissions
        .push(rule("shell", Some("date*"), spec::Decision::Ask));
    house
        .block(house.client().set_spec("coder", &spec))
        .unwrap();
    asked(&house, r#"shell {"command":"date"}"#);
    let out = house.cli(&["approve", "coder", "--always"]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("ask beats allow"));
}

#[test]
fn the_model_reads_why_a_call_was_denied() {
    let house = house(|spec| spec.approval = Some(ApprovalMode::Always));
    asked(&house, r#"shell {"command":"echo x >> effects"}"#);
    let out = house.cli(&["deny", "coder", "--reason", "use the other file"]);
    assert!(out.status.success(), "{out:?}");
    idle(&house);
    assert!(house.effects().is_empty());
    let requests = house.requests();
    let last = requests.last().unwrap().body.to_string();
    assert!(last.contains("use the other file"), "{last}");
    assert!(last.contains("did not allow this call"), "{last}");
}

#[test]
fn never_asks_nobody_and_tells_the_model() {
    let house = house(|spec| {
        spec.approval = Some(ApprovalMode::Never);
        spec.permissions = vec![rule("shell", Some("rm *"), spec::Decision::Ask)];
    });
    fs::write(house.work().join("kept"), "").unwrap();
    house.completed(
        "coder",
        r#"do: call shell {"command":"rm kept"} ;; say done"#,
    );
    assert!(house.work().join("kept").exists());
    assert!(
        result(&house).contains("approval: never"),
        "{}",
        result(&house)
    );
    house.completed(
        "coder",
        r#"do: call shell {"command":"echo ok >> effects"} ;; say done"#,
    );
    assert_eq!(house.effects(), ["ok"]);
}

/// Inside it runs; leaving the sandbox asks, for one call, and never opens what must stay closed.
#[test]
fn an_approved_escalation_writes_outside_and_still_sees_no_state() {
    let Some(house) = sandboxed(|spec| spec.network = Some(Network::Off)) else {
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
        house.home().display(),
        house.home().display()
    );
    fs::write(house.work().join("leave.sh"), command).unwrap();
    house.completed(
        "coder",
        r#"do: call shell {"command":"sh leave.sh"} ;; say done"#,
    );
    assert!(!file.exists());
    let call = json!({"command": "sh leave.sh", "escalate": "the report belongs there"});
    let question = asked(&house, &format!("shell {call}"));
    assert!(question.why.unwrap().contains("leave the sandbox"));
    // A rule never leaves the sandbox.
    let out = house.cli(&["approve", "coder", "--always"]);
    assert_eq!(out.status.code(), Some(2), "{out:?}");
    let out = house.cli(&["approve", "coder"]);
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(
        said.contains("the model's reason: the report belongs there"),
        "{said}"
    );
    idle(&house);
    assert_eq!(fs::read_to_string(&file).unwrap(), "x\n");
    assert!(!result(&house).contains("SQLite"), "{}", result(&house));
    // For that call alone.
    fs::remove_file(&file).unwrap();
    house.completed(
        "coder",
        r#"do: call shell {"command":"sh leave.sh"} ;; say done"#,
    );
    assert!(!file.exists());
}

#[test]
fn an_allow_rule_skips_the_question_and_not_the_sandbox() {
    let Some(house) = sandboxed(|spec| {
        spec.approval = Some(ApprovalMode::Never);
        spec.permissions = vec![rule("shell", None, spec::Decision::Allow)];
    }) else {
        return;
    };
    let call = json!({"command": "echo x >> effects", "escalate": "because"});
    house.completed("coder", &format!("do: call shell {call} ;; say done"));
    assert!(house.effects().is_empty());
    assert!(
        result(&house).contains("leave the sandbox"),
        "{}",
        result(&house)
    );
}

#[test]
fn a_file_tool_leaves_the_sandbox_once_the_user_has_approved_it() {
    let Some(house) = sandboxed(|_| {}) else {
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
    house.completed("coder", &format!("do: call write_file {write} ;; say done"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "one");
    assert!(result(&house).contains("`escalate`"), "{}", result(&house));
    let write =
        json!({"file_path": file, "content": "two", "escalate": "the report belongs there"});
    asked(&house, &format!("write_file {write}"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "one");
    house.cli(&["approve", "coder"]);
    idle(&house);
    assert_eq!(fs::read_to_string(&file).unwrap(), "two");
    let edit = json!({"file_path": file, "old_string": "two", "new_string": "three", "escalate": "a slip"});
    asked(&house, &format!("edit_file {edit}"));
    house.cli(&["deny", "coder"]);
    idle(&house);
    assert_eq!(fs::read_to_string(&file).unwrap(), "two");
}
