//! `agentd completions`.

use super::test_cli::{Ran, TestCli};

fn complete(cli: &TestCli, words: &[&str]) -> Vec<String> {
    let mut command = cli.command(&[&["--"], words].concat());
    let last = words.len() - 1;
    let ran: Ran = command
        .env("AGENTD_COMPLETE", "bash")
        .env("_CLAP_IFS", "\n")
        .env("_CLAP_COMPLETE_INDEX", last.to_string())
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    ran.out.lines().map(str::to_owned).collect()
}

#[test]
fn verbs_and_the_names_of_agents_are_completed() {
    let cli = TestCli::new();
    assert_eq!(complete(&cli, &["agentd", "sta"]), ["start", "status"]);
    // A Tab key starts no daemon.
    assert!(complete(&cli, &["agentd", "send", "co"]).is_empty());
    assert!(cli.daemon_pid().is_none());
    for name in ["coder", "cook", "other"] {
        cli.ok(&["create", name, "--provider", "demo"]);
    }
    assert_eq!(complete(&cli, &["agentd", "send", "co"]), ["coder", "cook"]);
    assert_eq!(complete(&cli, &["agentd", "logs", "ot"]), ["other"]);
}
