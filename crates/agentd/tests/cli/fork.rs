//! `agentd fork`.

use super::test_cli::TestCli;

#[test]
fn another_goes_on_from_there() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `echo one`"]);
    cli.ok(&["checkpoint", "coder", "here"]);
    cli.ok(&["send", "coder", "run `echo two`"]);
    let out = cli.ok(&["fork", "coder", "other", "--at", "here"]);
    assert!(out.contains("agentd send other"), "{out}");
    cli.ok(&["send", "other", "run `echo three`"]);
    let id = "01a1de8c-1d87-731f-acc4-996921d41571";
    let args = ["fork", "coder", "third", "--at", "1", "--op", id];
    let first = cli.json(&args);
    assert_eq!(
        (&first["agent"]["id"], &first["repeated"]),
        (&id.into(), &false.into())
    );
    assert_eq!(cli.json(&args)["repeated"], true);
    cli.refused(3, &["fork", "coder", "other"]);
    assert_eq!(cli.json(&["list"])["total"], 3);
}
