//! `agentd export`.

use super::test_cli::TestCli;

#[test]
fn a_file_that_is_there_is_not_replaced() {
    let cli = TestCli::with_coder();
    cli.ok(&["export", "coder"]);
    let file = cli.work().join("coder.jsonl.zst");
    let first = std::fs::metadata(&file).unwrap().len();
    let text = cli.refused(3, &["export", "coder"]);
    assert!(text.contains("--force"), "{text}");
    cli.ok(&["send", "coder", "run `true`"]);
    cli.ok(&["export", "coder", "coder.jsonl.zst", "--force"]);
    assert!(std::fs::metadata(&file).unwrap().len() > first);
    cli.refused(2, &["export", "coder", "no/such/directory"]);
}

#[test]
fn to_standard_output_it_is_the_same() {
    let cli = TestCli::with_coder();
    let output = cli.command(&["export", "coder", "-"]).output().unwrap();
    let text = zstd::stream::decode_all(output.stdout.as_slice()).unwrap();
    assert!(String::from_utf8(text).unwrap().contains("agent_created"));
}

#[test]
fn one_conversation_is_written_alone() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `echo plugh`"]);
    cli.ok(&["reset", "coder"]);
    cli.ok(&["send", "coder", "run `echo xyzzy`"]);
    cli.ok(&["export", "coder", "--conversation", "2"]);
    let text = std::fs::read_to_string(cli.work().join("coder-2.jsonl")).unwrap();
    assert!(text.contains("xyzzy") && !text.contains("plugh"), "{text}");
    for line in text.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(event["seq"].is_u64());
    }
    cli.refused(7, &["export", "coder", "--conversation", "7"]);
}
