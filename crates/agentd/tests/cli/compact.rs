//! `agentd compact`.

use super::test_cli::TestCli;

#[test]
fn what_was_said_is_summed_up() {
    let cli = TestCli::with_coder();
    let nothing = cli.ok(&["compact", "coder"]);
    assert!(nothing.contains("nothing to compact"), "{nothing}");
    cli.ok(&["send", "coder", "run `echo one`"]);
    let out = cli.ok(&["compact", "coder", "--instructions", "keep the names"]);
    assert!(out.contains("coder was compacted to about "), "{out}");
    let id = "01a1de8c-1d87-731f-acc4-996921d41571";
    cli.ok(&["send", "coder", "run `echo two`"]);
    let made = cli.json(&["compact", "coder", "--op", id]);
    assert_eq!(
        (&made["outcome"], &made["op"]),
        (&"compacted".into(), &id.into())
    );
    let shown = cli.json(&["show", "coder", "--conversation", "1"]);
    assert_eq!(shown["compactions"], 2);
    cli.ok(&["stop", "coder"]);
    cli.refused(3, &["compact", "coder"]);
}
