//! Hooks for subagents, and what these hooks may decide.

use crate::hooks_fixture::{file, heard_of, keep_and, until_heard, user};
use crate::subagents::{parent_spec, start, until_begun, until_go};
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Archive, Reset, Status};
use agentd_core::event::{Body, SubagentOutcome};
use serde_json::Value;

fn daemon(hooks: &[(&str, Value)]) -> TestDaemon {
    let daemon = TestDaemon::new();
    user(&daemon, &file(hooks));
    daemon.create_with("coder", parent_spec(&daemon));
    daemon
}

fn outcome(daemon: &TestDaemon) -> SubagentOutcome {
    let ended = daemon.until_event("coder", |body| matches!(body, Body::SubagentEnded(_)));
    let Body::SubagentEnded(ended) = ended.body else {
        panic!("{ended:?}");
    };
    ended.outcome
}

#[test]
fn its_beginning_and_its_end_are_told_once() {
    let hooks = ["SubagentStart", "SubagentStop", "Stop"].map(|event| (event, keep_and("true")));
    let daemon = daemon(&hooks);
    daemon.completed(
        "coder",
        &format!("do: {} ;; say done", start("do: say found it", false)),
    );
    let began = until_heard(&daemon, "SubagentStart");
    assert_eq!(
        (&began["subagent"], &began["background"]),
        (&"coder.1".into(), &false.into())
    );
    assert_eq!(began["agentd"]["agent"], "coder");
    let [ended] = &heard_of(&daemon, "SubagentStop")[..] else {
        panic!("{:?}", heard_of(&daemon, "SubagentStop"));
    };
    assert_eq!(
        (&ended["subagent"], &ended["outcome"]),
        (&"coder.1".into(), &"completed".into())
    );
    assert_eq!(ended["last_assistant_message"], "found it");
    assert_eq!(ended["agentd"]["agent"], "coder.1");
    // The parent's own end is the only other one.
    assert_eq!(heard_of(&daemon, "Stop").len(), 1);
    assert_eq!(heard_of(&daemon, "SubagentStart").len(), 1);
}

#[test]
fn a_hook_may_want_it_to_go_on() {
    let again =
        r#"case "$input" in *'"stop_hook_active":true'*) ;; *) echo look again >&2; exit 2;; esac"#;
    let daemon = daemon(&[("SubagentStop", keep_and(again))]);
    daemon.completed(
        "coder",
        &format!("do: {} ;; say done", start("do: say found it", false)),
    );
    assert_eq!(outcome(&daemon), SubagentOutcome::Completed);
    assert_eq!(heard_of(&daemon, "SubagentStop").len(), 2);
    let asked = daemon.requests().into_iter().map(|it| it.body.to_string());
    assert_eq!(asked.filter(|body| body.contains("look again")).count(), 1);
}

#[test]
fn other_ends_are_told_with_their_outcome() {
    for (outcome, word) in [
        (SubagentOutcome::Reset, "reset"),
        (SubagentOutcome::Deleted, "deleted"),
    ] {
        let daemon = daemon(&[("SubagentStop", keep_and("true"))]);
        let sent = daemon.send(
            "coder",
            &format!("do: {} ;; say done", start(&until_go(), false)),
        );
        until_begun(&daemon);
        match outcome {
            SubagentOutcome::Reset => {
                let ask = Reset::default();
                daemon
                    .block(daemon.client().reset("coder.1", &ask))
                    .unwrap();
            }
            _ => {
                let ask = Archive::default();
                daemon
                    .block(daemon.client().archive("coder.1", &ask))
                    .unwrap();
            }
        }
        assert_eq!(
            daemon.answer("coder", sent.prompt).status,
            Status::Completed
        );
        assert_eq!(until_heard(&daemon, "SubagentStop")["outcome"], word);
        until("the end of the hook", || {
            let open = daemon.processes();
            (!open.iter().any(|(_, line)| line.contains("heard"))).then_some(())
        });
        assert_eq!(heard_of(&daemon, "SubagentStop").len(), 1);
    }
}

#[test]
fn one_whose_prompt_a_hook_refuses_has_failed() {
    let refuse = r#"case "$input" in *'"agent":"coder.1"'*) exit 2;; esac"#;
    let daemon = daemon(&[("UserPromptSubmit", keep_and(refuse))]);
    let answer = daemon.completed(
        "coder",
        &format!("do: {} ;; say done", start("do: say x", false)),
    );
    assert_eq!(answer.text, "done");
    assert_eq!(outcome(&daemon), SubagentOutcome::Failed);
    assert_eq!(daemon.requests().len(), 2);
}
