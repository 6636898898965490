//! `agentd rewind`.

use super::test_cli::TestCli;

#[test]
fn to_a_turn_and_back_again() {
    let cli = TestCli::with_coder();
    for word in ["one", "two"] {
        cli.ok(&["send", "coder", &format!("run `echo {word}`")]);
    }
    let before = cli.json(&["show", "coder"])["conversation"]["id"].clone();
    let out = cli.ok(&["rewind", "coder", "--to", "1"]);
    assert!(
        out.starts_with("coder is back at 1, in conversation 2\n"),
        "{out}"
    );
    assert!(out.contains("agentd reset coder --undo"), "{out}");
    let shown = cli.json(&["show", "coder", "--conversation", "2"]);
    assert_eq!(
        (&shown["source"], &shown["parent"]),
        (&"rewind".into(), &before)
    );
    assert_eq!(shown["ended"].as_array().unwrap().len(), 1);
    assert_eq!(cli.json(&["reset", "coder", "--undo"])["new"], before);
    let receipt = cli.json(&["rewind", "coder", "--to", "init", "--conversation", "2"]);
    assert_eq!(receipt["old"], before);
    let drawn = cli.ok(&["conversations", "coder"]);
    assert!(drawn.contains("rewind"), "{drawn}");
}

#[test]
fn what_cannot_be_is_refused() {
    let cli = TestCli::with_coder();
    let text = cli.refused(7, &["rewind", "coder", "--to", "nowhere"]);
    assert!(
        text.contains("agentd show coder --conversation 1"),
        "{text}"
    );
    cli.refused(
        3,
        &["rewind", "coder", "--to", "init", "--if-generation", "9"],
    );
    let usage = cli.run(&["rewind", "coder"]);
    assert_eq!(usage.code, Some(2));
}
