//! `agentd send`.

use super::test_cli::{TestCli, ended, signal, until};
use rustix::process::Signal;

#[test]
fn the_answer_is_printed() {
    let cli = TestCli::with_coder();
    let out = cli.ok(&["send", "coder", "run `echo hello`"]);
    assert!(out.contains("hello"), "{out}");
    let result = cli.json(&["send", "coder", "run `echo again`"]);
    assert_eq!(result["status"], "completed");
}

#[test]
fn under_one_key_it_is_delivered_once() {
    let cli = TestCli::with_coder();
    let args = ["send", "coder", "--key", "k", "run `echo x >> effects`"];
    let first = cli.json(&args);
    assert_eq!(cli.json(&args)["turn"], first["turn"]);
    let text = std::fs::read_to_string(cli.work().join("effects")).unwrap();
    assert_eq!(text, "x\n");
}

#[test]
fn a_timeout_lets_go_of_a_turn_that_goes_on() {
    let cli = TestCli::with_coder();
    let text = cli.refused(
        124,
        &["send", "coder", "--timeout", "300ms", "run `sleep 1`"],
    );
    assert!(text.contains("agentd wait coder"), "{text}");
    cli.ok(&["wait", "coder"]);
    let agent = cli.json(&["show", "coder"]);
    assert_eq!(agent["last_turn"]["status"], "completed", "{agent}");
}

#[test]
fn ctrl_c_lets_go_of_a_turn_that_goes_on() {
    let cli = TestCli::with_coder();
    let child = cli.start(&["send", "coder", "run `sleep 1`"]);
    cli.until_tool("coder");
    signal(child.id(), Signal::INT);
    let ran = ended(child);
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    assert!(ran.err.contains("the turn continues"), "{ran:#?}");
    cli.ok(&["wait", "coder"]);
}

#[test]
fn it_waits_on_when_the_daemon_is_killed() {
    let cli = TestCli::with_coder();
    let child = cli.start(&[
        "send",
        "coder",
        "--json",
        "run `sleep 1; echo x >> effects`",
    ]);
    cli.until_tool("coder");
    signal(cli.daemon_pid().unwrap(), Signal::KILL);
    let ran = ended(child);
    assert_eq!(ran.code, Some(0), "{ran:#?}\n{}", cli.log());
    assert!(ran.out.contains("\"completed\""), "{ran:#?}");
    let text = std::fs::read_to_string(cli.work().join("effects")).unwrap();
    assert_eq!(text, "x\n");
}

#[test]
fn without_waiting_it_says_where_the_prompt_is() {
    let cli = TestCli::with_coder();
    let sent = cli.json(&["send", "coder", "--no-wait", "run `echo hello`"]);
    let prompt = sent["prompt"].as_str().unwrap();
    let out = cli.ok(&["wait", "coder", prompt]);
    assert!(out.contains("hello"), "{out}");
}

#[test]
fn an_interrupting_prompt_is_answered_next() {
    let cli = TestCli::with_coder();
    let child = cli.start(&["send", "coder", "run `sleep 100`"]);
    cli.until_tool("coder");
    let out = cli.ok(&["send", "coder", "--interrupt", "run `echo instead`"]);
    assert!(out.contains("instead"), "{out}");
    assert_eq!(ended(child).code, Some(130));
}

#[test]
fn a_prompt_that_a_reset_sets_aside_exits_with_3() {
    let cli = TestCli::with_coder();
    let first = cli.start(&["send", "coder", "run `sleep 100`"]);
    cli.until_tool("coder");
    let second = cli.start(&["send", "coder", "run `echo never`"]);
    until("the queue", || {
        let agent = cli.json(&["show", "coder"]);
        (agent["queued"] == 1).then_some(())
    });
    cli.ok(&["reset", "coder"]);
    let ran = ended(second);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert!(ran.err.contains("set aside"), "{ran:#?}");
    assert_eq!(ended(first).code, Some(130));
}

#[test]
fn behind_a_turn_that_waits_for_approval_it_says_so_and_exits_with_6() {
    let cli = super::approve::asking();
    let text = cli.refused(6, &["send", "coder", "count to 2"]);
    for part in [
        "in an earlier turn: the prompt is queued",
        "echo x >> effects",
        "agentd approve coder",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(cli.json(&["show", "coder"])["queued"], 1);
    cli.ok(&["approve", "coder"]);
    cli.ok(&["wait", "coder"]);
    assert_eq!(cli.json(&["show", "coder"])["queued"], 0);
}

/// The turn that waits for approval is over at once: it does not hold up the prompt that ends it.
#[test]
fn an_interrupting_prompt_does_not_wait_for_the_approval() {
    let cli = super::approve::asking();
    cli.ok(&["send", "coder", "--interrupt", "count to 2"]);
    assert!(!cli.work().join("effects").exists());
}
