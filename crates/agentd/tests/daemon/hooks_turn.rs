//! Hooks in the course of a turn: UserPromptSubmit, Stop, StopFailure, PreCompact, PostCompact, Interrupt.

use crate::hooks_fixture::*;
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::Status;
use agentd_core::event::{Body, Kind};
use agentd_core::state::Phase;
use serde_json::json;

#[test]
fn a_prompt_is_heard_of_first_and_may_be_refused() {
    let daemon = TestDaemon::new();
    let judge = format!(
        "{KEEP}; case \"$input\" in *password*) echo 'no passwords' >&2; exit 2;; *) echo it is Monday;; esac"
    );
    user(&daemon, &file(&[("UserPromptSubmit", command(&judge))]));
    daemon.create("coder");
    let answer = daemon.ask("coder", "do: say the password is xyzzy");
    assert_eq!(answer.status, Status::Failed);
    let error = answer.error.unwrap();
    assert!(error.contains("no passwords"), "{error}");
    assert!(daemon.requests().is_empty(), "the model never sees it");
    assert_eq!(daemon.show("coder").phase, Phase::Idle);
    daemon.completed("coder", "do: say hello");
    let request = last_request(&daemon).to_string();
    assert!(
        request.contains("it is Monday") && !request.contains("xyzzy"),
        "{request}"
    );
    let told = heard_of(&daemon, "UserPromptSubmit");
    assert_eq!(told[1]["prompt"], "do: say hello");
    daemon.verify();
}

#[test]
fn a_turn_goes_on_until_the_hook_lets_it_end() {
    let daemon = TestDaemon::new();
    let judge =
        format!("{KEEP}; test -e ok || {{ touch ok; echo 'run the tests first' >&2; exit 2; }}");
    user(&daemon, &file(&[("Stop", command(&judge))]));
    daemon.create("coder");
    daemon.completed("coder", "do: say done ;; say really done");
    let told = heard_of(&daemon, "Stop");
    assert_eq!(told.len(), 2);
    assert_eq!(told[0]["stop_hook_active"], false);
    assert_eq!(told[0]["last_assistant_message"], "done");
    assert_eq!(told[0]["background_tasks"], json!([]));
    assert_eq!(told[1]["stop_hook_active"], true);
    let request = last_request(&daemon).to_string();
    assert!(request.contains("run the tests first"), "{request}");
    assert_eq!(daemon.count("coder", Kind::TurnEnded), 1);
    daemon.verify();
}

#[test]
fn one_that_never_lets_it_end_is_heard_eight_times() {
    let daemon = TestDaemon::new();
    user(
        &daemon,
        &file(&[("Stop", keep_and("echo more >&2; exit 2"))]),
    );
    daemon.create("coder");
    daemon.completed("coder", "go on and on");
    assert_eq!(heard_of(&daemon, "Stop").len(), 9);
    assert_eq!(daemon.requests().len(), 9);
}

#[test]
fn a_turn_that_fails_and_one_that_is_interrupted_are_told_as_such() {
    let daemon = TestDaemon::new();
    user(
        &daemon,
        &file(&[
            ("Stop", keep_and("true")),
            ("StopFailure", keep_and("true")),
            ("Interrupt", keep_and("true")),
        ]),
    );
    daemon.create("coder");
    assert_eq!(daemon.ask("coder", "do: fail 400").status, Status::Failed);
    let input = until_heard(&daemon, "StopFailure");
    assert!(input["error"].is_string(), "{input}");
    let sent = daemon.send("coder", "do: hang");
    until("a request", || (daemon.requests().len() == 2).then_some(()));
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Interrupted
    );
    let input = until_heard(&daemon, "Interrupt");
    assert_eq!(
        input["agentd"]["turn"],
        json!(daemon.show("coder").last_turn.unwrap().id)
    );
    assert_eq!(heard_of(&daemon, "Stop").len(), 0);
    all_ran(&daemon, "coder");
}

fn small_window(daemon: &TestDaemon) {
    std::fs::write(
        daemon.home().join("config.toml"),
        "[models.\"some-model\"]\nwindow = 9000\n",
    )
    .unwrap();
}

#[test]
fn a_conversation_is_shortened_with_their_leave_and_they_may_open_it_again() {
    let daemon = TestDaemon::new();
    small_window(&daemon);
    user(
        &daemon,
        &file(&[
            ("PreCompact", keep_and("true")),
            ("PostCompact", keep_and("true")),
            ("SessionStart", keep_and("echo the code word is swordfish")),
        ]),
    );
    daemon.create("coder");
    daemon.completed(
        "coder",
        &format!("remember this: {}", "many words ".repeat(1000)),
    );
    daemon.completed("coder", "do: say more");
    assert!(daemon.count("coder", Kind::Compacted) > 0);
    let input = &heard_of(&daemon, "PreCompact")[0];
    assert_eq!(input["trigger"], "auto");
    assert_eq!(input["custom_instructions"], "");
    let input = &heard_of(&daemon, "PostCompact")[0];
    assert!(input["compact_summary"].is_string());
    let sources: Vec<_> = heard_of(&daemon, "SessionStart")
        .iter()
        .map(|input| input["source"].clone())
        .collect();
    assert_eq!(sources, ["startup", "compact"]);
    let request = last_request(&daemon).to_string();
    assert!(request.contains("swordfish"), "{request}");
    daemon.verify();
}

#[test]
fn a_hook_may_keep_it_from_being_shortened() {
    let daemon = TestDaemon::new();
    small_window(&daemon);
    user(&daemon, &file(&[("PreCompact", keep_and("exit 2"))]));
    daemon.create("coder");
    daemon.completed(
        "coder",
        &format!("remember this: {}", "many words ".repeat(1000)),
    );
    daemon.completed("coder", "do: say more");
    assert_eq!(daemon.count("coder", Kind::Compacted), 0);
    assert!(!heard_of(&daemon, "PreCompact").is_empty());
}

#[test]
fn a_process_that_dies_while_hooks_are_asked_does_not_ask_again() {
    let daemon = TestDaemon::new();
    let slow = "echo asked >> effects; until test -e go; do sleep 0.02; done; echo it is Monday";
    user(&daemon, &file(&[("UserPromptSubmit", command(slow))]));
    daemon.create("coder");
    let sent = daemon.send("coder", "do: say hello");
    until("the hook", || (daemon.effects().len() == 1).then_some(()));
    daemon.kill_runtime("coder");
    std::fs::write(daemon.work().join("go"), "").unwrap();
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Completed
    );
    assert_eq!(daemon.effects(), ["asked"]);
    assert!(last_request(&daemon).to_string().contains("it is Monday"));
    daemon.verify();
}

#[test]
fn a_long_context_is_cut_and_the_rest_is_in_a_file() {
    let daemon = TestDaemon::new();
    let long = "head -c 12000 /dev/zero | tr '\\0' x";
    user(&daemon, &file(&[("UserPromptSubmit", command(long))]));
    daemon.create("coder");
    daemon.completed("coder", "do: say hello");
    let notice = daemon.until_kind("coder", Kind::Notice);
    let Body::Notice(notice) = notice.body else {
        panic!("a notice")
    };
    assert_eq!(notice.text.matches('x').count() / 1000, 10);
    let path = notice
        .text
        .rsplit(' ')
        .next()
        .unwrap()
        .trim_end_matches(']');
    assert_eq!(std::fs::read_to_string(path).unwrap().len(), 12_000);
}
