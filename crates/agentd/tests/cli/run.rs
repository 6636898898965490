//! `agentd run`.

use super::test_cli::{TestCli, ended, signal};
use rustix::process::Signal;
use std::fs;

#[test]
fn on_an_empty_home_it_works_at_once() {
    let cli = TestCli::new();
    fs::write(cli.work().join("notes.txt"), "a\nb\n").unwrap();
    let prompt = "list the files here and count the lines of the largest";
    let ran = cli.run(&["run", "--provider", "demo", prompt]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.out.contains("notes.txt"), "{ran:#?}");
    // Said once, however it came.
    assert_eq!(ran.out.matches("Files here:").count(), 1, "{ran:#?}");
    assert!(ran.err.contains("· list_files"), "{ran:#?}");
}

#[test]
fn the_result_is_one_object() {
    let cli = TestCli::new();
    let result = cli.json(&["run", "--provider", "demo", "run `echo hello`"]);
    assert_eq!(result["status"], "completed");
    assert!(
        result["text"].as_str().unwrap().contains("hello"),
        "{result}"
    );
    assert!(result["usage"]["input_tokens"].as_u64().unwrap() > 0);
    for key in ["agent", "conversation", "turn", "error"] {
        assert!(result.get(key).is_some(), "{key}: {result}");
    }
}

#[test]
fn a_long_reply_is_shown_whole() {
    let cli = TestCli::new();
    let out = cli.ok(&["run", "--provider", "demo", "count to 40"]);
    let expected: Vec<String> = (1..=40).map(|n| n.to_string()).collect();
    let found: Vec<&str> = out
        .lines()
        .filter(|line| line.parse::<u32>().is_ok())
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn detached_it_prints_the_name() {
    let cli = TestCli::new();
    let name = cli.ok(&["run", "--provider", "demo", "--detach", "run `echo hello`"]);
    cli.ok(&["wait", name.trim()]);
    assert_eq!(cli.json(&["show", name.trim()])["mode"], "oneshot");
}

#[test]
fn ctrl_c_interrupts_the_turn() {
    let cli = TestCli::new();
    let child = cli.start(&["run", "--provider", "demo", "run `sleep 100`"]);
    let name = super::test_cli::until("the agent", || {
        let list = cli.json(&["list"]);
        list["agents"][0]["name"].as_str().map(str::to_owned)
    });
    cli.until_tool(&name);
    signal(child.id(), Signal::INT);
    let ran = ended(child);
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    assert!(ran.err.contains("the turn was interrupted"), "{ran:#?}");
    let agent = cli.json(&["show", &name]);
    assert_eq!(agent["last_turn"]["status"], "interrupted", "{agent}");
}

#[test]
fn a_missing_key_is_waited_for() {
    let cli = TestCli::new();
    let text = cli.refused(
        6,
        &["run", "--provider", "anthropic", "--model", "x", "hello"],
    );
    assert!(text.contains("ANTHROPIC_API_KEY"), "{text}");
    assert!(text.contains("next: "), "{text}");
}

#[test]
fn without_a_provider_it_says_what_to_choose() {
    let cli = TestCli::new();
    let text = cli.refused(2, &["run", "hello"]);
    assert!(text.contains("--provider demo"), "{text}");
    let text = cli.refused(2, &["run", "--provider", "demo", "  "]);
    assert!(text.contains("the prompt is empty"), "{text}");
    let text = cli.refused(
        2,
        &["run", "--provider", "demo", "--cwd", "/nowhere", "hello"],
    );
    assert!(text.contains("/nowhere"), "{text}");
}
