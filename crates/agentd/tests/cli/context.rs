//! `agentd context`.

use super::test_cli::TestCli;
use std::fs;

#[test]
fn it_shows_what_the_model_is_given_and_how_much_it_is() {
    let cli = TestCli::with_coder();
    fs::write(cli.work().join("AGENTS.md"), "The word is xyzzy.\n").unwrap();
    let before = cli.ok(&["context", "coder"]);
    assert!(
        before.contains("are added with the first request"),
        "{before}"
    );
    cli.ok(&["send", "coder", "run `true`"]);
    let shown = cli.ok(&["context", "coder"]);
    for text in [
        "system prompt",
        "tools",
        "prompts",
        "replies",
        "results",
        "AGENTS.md (19 bytes)",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert!(!shown.contains("xyzzy"), "{shown}");
    let full = cli.ok(&["context", "coder", "--full"]);
    assert!(
        full.contains("The word is xyzzy.") && full.contains("Tool shell"),
        "{full}"
    );
    let json = cli.json(&["context", "coder"]);
    let parts = json["parts"].as_array().unwrap();
    let sum: u64 = parts
        .iter()
        .filter_map(|part| part["tokens"].as_u64())
        .sum();
    assert_eq!(json["tokens"].as_u64(), Some(sum));
    assert!(json["system"].as_str().unwrap().contains("xyzzy"));
    assert_eq!(json["instructions"][0]["bytes"], 19);
}
