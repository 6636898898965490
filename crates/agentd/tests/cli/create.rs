//! `agentd create`.

use super::test_cli::TestCli;
use std::fs;

#[test]
fn it_works_in_the_directory_it_was_created_in() {
    let cli = TestCli::with_coder();
    let agent = cli.json(&["show", "coder"]);
    let work = cli.work().canonicalize().unwrap();
    assert_eq!(agent["cwd"], work.display().to_string());
    assert_eq!(agent["mode"], "persistent");
    assert_eq!(agent["phase"], "idle");
}

#[test]
fn a_file_says_what_it_is() {
    let cli = TestCli::new();
    let file = "---\nprovider: demo\nlimits:\n  max_iterations: 3\n---\n\nYou are brief.\n";
    fs::write(cli.work().join("a.md"), file).unwrap();
    let created = cli.json(&["create", "coder", "-f", "a.md", "--prompt", "run `echo hi`"]);
    assert!(created["prompt"].is_string(), "{created}");
    cli.ok(&["wait", "coder"]);
    let spec = cli.json(&["show", "coder", "--spec"]);
    assert_eq!(spec["system"], "You are brief.");
    assert_eq!(spec["limits"]["max_iterations"], 3);
}

#[test]
fn a_name_is_taken_once() {
    let cli = TestCli::with_coder();
    let text = cli.refused(3, &["create", "coder", "--provider", "demo"]);
    assert!(text.contains("coder"), "{text}");
}

#[test]
fn a_bad_name_or_file_is_refused() {
    let cli = TestCli::new();
    let ran = cli.run(&["create", "a/b", "--provider", "demo"]);
    assert!(matches!(ran.code, Some(2)), "{ran:#?}");
    fs::write(cli.work().join("a.md"), "---\nmodle: x\n---\n").unwrap();
    let text = cli.refused(2, &["create", "coder", "-f", "a.md"]);
    assert!(text.contains("did you mean `model`?"), "{text}");
    assert_eq!(cli.json(&["list"])["total"], 0);
}
