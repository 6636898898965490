//! `agentd show`.

use super::test_cli::TestCli;

#[test]
fn the_words_that_scripts_rely_on() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `echo hello`"]);
    let agent = cli.json(&["show", "coder"]);
    for key in [
        "id",
        "name",
        "mode",
        "phase",
        "process",
        "generation",
        "conversation",
        "model",
        "usage",
        "started_at",
        "completed_at",
        "summary",
        "error",
    ] {
        assert!(agent.get(key).is_some(), "{key}: {agent}");
    }
    assert_eq!(agent["conversation"]["turns"], 1);
    let out = cli.ok(&["show", "coder"]);
    assert!(out.contains("phase         idle\n"), "{out}");
}

#[test]
fn the_spec_is_a_file_that_apply_takes() {
    let cli = TestCli::with_coder();
    let file = cli.work().join("coder.md");
    std::fs::write(&file, cli.ok(&["show", "coder", "--spec"])).unwrap();
    assert_eq!(cli.ok(&["apply", "-f", "coder.md"]), "coder: unchanged\n");
}
