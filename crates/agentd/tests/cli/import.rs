//! `agentd import`.

use super::test_cli::TestCli;
use std::fs;

#[test]
fn elsewhere_it_is_the_same_agent() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `echo hello`"]);
    cli.ok(&["stop", "coder"]);
    cli.ok(&["export", "coder", "agent.zst"]);
    let before = cli.json(&["show", "coder"]);
    let other = TestCli::new();
    fs::copy(cli.work().join("agent.zst"), other.work().join("agent.zst")).unwrap();
    let after = other.json(&["import", "agent.zst"]);
    for key in ["id", "name", "conversation", "usage"] {
        assert_eq!(after[key], before[key], "{key}");
    }
    assert_eq!(after["held"], true);
    assert!(other.ok(&["logs", "coder"]).contains("hello"));
}

/// Regression: an agent that already existed could not be imported at all.
#[test]
fn under_another_name_it_is_a_copy_with_an_id_of_its_own() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `echo hello`"]);
    cli.ok(&["export", "coder", "agent.zst"]);
    let text = cli.refused(3, &["import", "agent.zst"]);
    assert!(text.contains("--as NAME"), "{text}");
    let before = cli.json(&["show", "coder"]);
    let copy = cli.json(&["import", "agent.zst", "--as", "Copy"]);
    assert_eq!(copy["name"], "copy");
    assert_ne!(copy["id"], before["id"]);
    assert_eq!(copy["usage"], before["usage"]);
    assert!(cli.ok(&["logs", "copy"]).contains("hello"));
    let events = cli.lines(&["logs", "copy", "--all"]);
    let from = events
        .iter()
        .find(|event| event["kind"] == "agent_imported");
    assert_eq!(from.unwrap()["body"]["agent"], before["id"]);
    // Each goes on by itself.
    cli.refused(6, &["send", "copy", "run `echo early`"]);
    cli.ok(&["start", "copy", "--yes"]);
    cli.ok(&["send", "copy", "run `echo more`"]);
    assert_eq!(cli.json(&["show", "coder"])["head"], before["head"]);
    cli.ok(&["daemon", "stop"]);
    cli.ok(&["verify"]);
}

#[test]
fn twice_or_damaged_it_is_refused() {
    let cli = TestCli::with_coder();
    cli.ok(&["export", "coder", "agent.zst"]);
    cli.refused(3, &["import", "agent.zst"]);
    fs::write(cli.work().join("bad.zst"), "no export").unwrap();
    let ran = cli.run(&["import", "bad.zst"]);
    assert!(matches!(ran.code, Some(2)), "{ran:#?}");
    cli.refused(2, &["import", "missing.zst"]);
}

#[test]
fn without_a_file_or_a_session_the_next_step_is_named() {
    let cli = TestCli::new();
    let text = cli.refused(2, &["import", "--from", "claude-code"]);
    assert!(text.contains("--from claude-code --list"), "{text}");
    let text = cli.refused(2, &["import"]);
    assert!(text.contains("<FILE>"), "{text}");
}
