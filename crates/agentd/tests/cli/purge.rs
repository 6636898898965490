//! `agentd purge`.

use super::test_cli::TestCli;

#[test]
fn it_says_what_first_and_asks() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `echo hello`"]);
    let text = cli.refused(3, &["purge", "coder", "--yes"]);
    assert!(text.contains("agentd rm coder"), "{text}");
    cli.ok(&["rm", "coder"]);
    let dry = cli.json(&["purge", "coder", "--dry-run"]);
    assert_eq!(dry["conversations"].as_array().unwrap().len(), 1, "{dry}");
    let ran = cli.run(&["purge", "coder"]);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert!(
        ran.err
            .contains("permanently deletes from coder: 1 conversation"),
        "{ran:#?}"
    );
    assert!(ran.err.contains("pass --yes"), "{ran:#?}");
    assert!(cli.ok(&["logs", "coder", "--all"]).contains("hello"));
}

#[test]
fn one_conversation_is_gone_for_good() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `echo hello`"]);
    let old = cli.json(&["reset", "coder"])["old"].clone();
    let old = old.as_str().unwrap();
    let gone = cli.json(&["purge", "coder", "--conversation", old, "--yes"]);
    assert_eq!(gone["conversations"][0], old);
    assert!(!cli.ok(&["logs", "coder", "--all"]).contains("hello"));
    cli.refused(3, &["reset", "coder", "--undo"]);
}
