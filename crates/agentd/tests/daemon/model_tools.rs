//! The tools of models that were trained on patches and on commands as words: the same rules, hooks and approvals apply.

use crate::test_daemon::{KEY, TestDaemon, until};
use agentd_client::api::Approve;
use agentd_core::event::Body;
use agentd_core::message::CallOutcome;
use agentd_core::spec::{AgentSpec, Decision, Rule};
use agentd_core::state::Phase;
use agentd_testkit::model::Format;
use serde_json::{Value, json};
use std::fs;

/// A daemon with an agent `coder` whose model has the OpenAI forms of tools.
fn daemon(change: impl FnOnce(&mut AgentSpec)) -> TestDaemon {
    let daemon = TestDaemon::new();
    let openai = daemon.model.base_url(Format::OpenaiResponses);
    daemon.caller_env("OPENAI_API_KEY", KEY);
    daemon.caller_env("OPENAI_BASE_URL", &openai);
    let mut spec = daemon.spec();
    (spec.provider, spec.model) = (Some("openai".to_owned()), Some("gpt-5".to_owned()));
    change(&mut spec);
    daemon.create_with("coder", spec);
    daemon
}

fn rule(tool: &str, pattern: &str, decision: Decision) -> Rule {
    Rule {
        tool: tool.to_owned(),
        pattern: Some(pattern.to_owned()),
        decision,
        needs: Vec::new(),
    }
}

fn patch(body: &str) -> Value {
    json!({"input": format!("*** Begin Patch\n{body}\n*** End Patch")})
}

/// The outcome and the text of the last result.
fn result(daemon: &TestDaemon) -> (CallOutcome, String) {
    let events = daemon.events("coder");
    let result = events.iter().rev().find_map(|event| match &event.body {
        Body::ResultAdded(result) => Some(result.clone()),
        _ => None,
    });
    let result = result.unwrap();
    let mut words = Vec::new();
    result.blocks.iter().for_each(|it| it.words(&mut words));
    (result.outcome, words.join("\n"))
}

fn call(daemon: &TestDaemon, tool: &str, arguments: &Value) -> (CallOutcome, String) {
    // A bar would separate the items of the script.
    let arguments = arguments.to_string().replace('|', "\\u007c");
    daemon.completed("coder", &format!("do: call {tool} {arguments} ;; say done"));
    result(daemon)
}

fn read(daemon: &TestDaemon, name: &str) {
    call(daemon, "read_file", &json!({"file_path": name}));
}

#[test]
fn a_patch_changes_files_that_were_read_and_nothing_if_a_hunk_does_not_fit() {
    let daemon = daemon(|_| {});
    let work = daemon.work();
    fs::write(work.join("a.txt"), "one\ntwo\n").unwrap();
    let change = patch("*** Update File: a.txt\n@@\n one\n-two\n+2\n*** Add File: new/b.txt\n+b");
    let unread = patch("*** Add File: new/b.txt\n+b\n*** Delete File: a.txt");
    let (outcome, text) = call(&daemon, "apply_patch", &unread);
    assert_eq!(outcome, CallOutcome::Error);
    assert!(text.contains("you have not read it"), "{text}");
    assert!(!work.join("new").exists());
    read(&daemon, "a.txt");
    // What was read is known to the next process.
    daemon.kill_runtime("coder");
    let (_, text) = call(&daemon, "apply_patch", &change);
    assert_eq!(text, "Updated a.txt (+1 -1).\nCreated new/b.txt (1 line).");
    assert_eq!(fs::read_to_string(work.join("a.txt")).unwrap(), "one\n2\n");
    let wrong = patch("*** Delete File: new/b.txt\n*** Update File: a.txt\n@@\n-tow\n+3");
    let (_, text) = call(&daemon, "apply_patch", &wrong);
    assert!(text.contains("Hunk 1 of a.txt does not fit"), "{text}");
    assert!(work.join("new/b.txt").exists());
    // What changed since is shown, also by the patch that wrote it, and also to another process.
    fs::write(work.join("a.txt"), "one\nzwei\n").unwrap();
    daemon.kill_runtime("coder");
    let (_, text) = call(
        &daemon,
        "apply_patch",
        &patch("*** Update File: a.txt\n-one"),
    );
    assert!(text.contains("a.txt has changed since"), "{text}");
    assert!(text.contains("\n one\n-2\n+zwei"), "{text}");
    let (_, text) = call(&daemon, "apply_patch", &patch("*** Delete File: new/b.txt"));
    assert_eq!(text, "Deleted new/b.txt.");
    daemon.verify();
}

#[test]
fn rules_and_approvals_see_the_line_and_every_path() {
    let daemon = daemon(|spec| {
        spec.permissions = vec![
            rule("shell", "rm *", Decision::Deny),
            rule("shell", "git push*", Decision::Ask),
            rule("edit_file", "*.lock", Decision::Deny),
            rule("write_file", "docs/*", Decision::Ask),
        ];
    });
    let effect = daemon.work().join("ran");
    for command in [
        json!(["rm", "ran"]),
        json!(["bash", "-lc", "true && rm ran"]),
        json!(["env", "rm", "ran"]),
        json!("rm ran"),
    ] {
        fs::write(&effect, "").unwrap();
        let (outcome, text) = call(&daemon, "shell", &json!({"command": command}));
        assert_eq!(outcome, CallOutcome::Denied, "{text}");
        assert!(effect.exists(), "{command}");
    }
    let words = json!({"command": ["sh", "-c", "echo \"$PWD\" | wc -l; echo 'a b'"]});
    let (outcome, text) = call(&daemon, "shell", &words);
    assert_eq!((outcome, text.trim()), (CallOutcome::Ok, "1\na b"));
    fs::create_dir(daemon.work().join("sub")).unwrap();
    fs::write(daemon.work().join("sub/a b"), "").unwrap();
    let there = json!({"command": ["ls", "a b"], "workdir": "sub", "timeout_ms": 60_000});
    let (_, text) = call(&daemon, "shell", &there);
    assert_eq!(text.trim(), "a b");
    let (outcome, text) = call(&daemon, "shell", &json!({"command": ["a\u{0}"]}));
    assert_eq!(outcome, CallOutcome::Error);
    assert!(text.contains("NUL byte"), "{text}");
    let locked = patch("*** Add File: ok.txt\n+x\n*** Add File: Cargo.lock\n+x");
    let (outcome, _) = call(&daemon, "apply_patch", &locked);
    assert_eq!(outcome, CallOutcome::Denied);
    assert!(!daemon.work().join("ok.txt").exists());
    // One path of the patch needs approval, so the whole patch waits.
    let docs = patch("*** Add File: docs/a.md\n+a\n*** Add File: other.md\n+b");
    daemon.send("coder", &format!("do: call apply_patch {docs} ;; say done"));
    let asked = until("the question", || {
        daemon.show("coder").approvals.into_iter().next()
    });
    let shown = daemon.cli(&["show", "coder"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("*** Add File: docs/a.md"), "{shown}");
    assert!(!daemon.work().join("docs").exists());
    let approve = Approve::default();
    daemon
        .block(daemon.client().approve("coder", asked.id, &approve))
        .unwrap();
    until("the end of the turn", || {
        (daemon.show("coder").phase == Phase::Idle).then_some(())
    });
    assert!(daemon.work().join("docs/a.md").exists());
    daemon.verify();
}
