//! `agentd edit`.

use super::test_cli::{Ran, TestCli};

fn edit(cli: &TestCli, editor: &str) -> Ran {
    let mut command = cli.command(&["edit", "coder"]);
    command.env("EDITOR", editor).output().unwrap().into()
}

#[test]
fn what_the_editor_leaves_is_stored() {
    let cli = TestCli::with_coder();
    let ran = edit(&cli, "sed -i 's/^provider: demo$/&\\non_crash: wait/'");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(cli.json(&["show", "coder", "--spec"])["on_crash"], "wait");
    let ran = edit(&cli, "true");
    assert_eq!(ran.out, "no changes\n", "{ran:#?}");
}

#[test]
fn what_is_no_spec_is_kept_for_another_try() {
    let cli = TestCli::with_coder();
    let ran = edit(&cli, "sed -i 's/^provider/providr/'");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.err.contains("did you mean `provider`?"), "{ran:#?}");
    let path = ran.err.split("your edits are in ").nth(1).unwrap();
    let path = path.split(": ").next().unwrap();
    assert!(std::fs::read_to_string(path).unwrap().contains("providr"));
    assert_eq!(cli.json(&["show", "coder", "--spec"])["provider"], "demo");
}

#[test]
fn an_editor_that_fails_changes_nothing() {
    let cli = TestCli::with_coder();
    for editor in ["false", "/no/such/editor"] {
        let ran = edit(&cli, editor);
        assert_eq!(ran.code, Some(4), "{ran:#?}");
        assert!(ran.err.contains("set EDITOR"), "{ran:#?}");
    }
}
