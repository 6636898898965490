//! `agentd checkpoint`.

use super::test_cli::TestCli;

#[test]
fn a_label_belongs_to_the_conversation() {
    let cli = TestCli::with_coder();
    let set = cli.json(&["checkpoint", "coder", "here"]);
    assert_eq!(set["label"], "here");
    let all = cli.json(&["conversations", "coder"]);
    assert!(all["conversations"][0]["labels"]["here"].is_u64(), "{all}");
    let out = cli.ok(&["checkpoint", "coder"]);
    assert!(out.starts_with("coder: event "), "{out}");
}

#[test]
fn a_label_is_not_called_as_something_else() {
    let cli = TestCli::with_coder();
    for label in [
        "init",
        "session-latest",
        "3",
        "0198c5a2-7d1e-7cc3-98c4-dc0c0c07398f",
    ] {
        let error = cli.refused(2, &["checkpoint", "coder", label]);
        assert!(
            error.contains(label) && error.contains("another label"),
            "{error}"
        );
    }
}

#[test]
fn a_branch_shows_the_labels_before_it() {
    let cli = TestCli::with_coder();
    cli.ok(&["checkpoint", "coder", "here"]);
    cli.ok(&["rewind", "coder", "--to", "here"]);
    let shown = cli.json(&["show", "coder", "--conversation", "2"]);
    assert!(shown["labels"]["here"].is_u64(), "{shown}");
}
