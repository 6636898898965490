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

#[test]
fn what_belongs_to_an_agent_is_completed() {
    let cli = super::approve::asking();
    cli.ok(&["checkpoint", "coder", "before-it"]);
    let agent = cli.json(&["show", "coder"]);
    let approval = agent["approvals"][0]["id"].as_str().unwrap();
    assert_eq!(
        complete(&cli, &["agentd", "approve", "coder", &approval[..4]]),
        [approval]
    );
    cli.ok(&["deny", "coder"]);
    cli.run(&["wait", "coder"]);
    let rewind = complete(&cli, &["agentd", "rewind", "coder", "--to", "bef"]);
    assert_eq!(rewind, ["before-it"]);
    assert_eq!(
        complete(&cli, &["agentd", "logs", "coder", "--turn", ""]),
        ["1"]
    );
    cli.ok(&["reset", "coder"]);
    let shown = complete(&cli, &["agentd", "show", "coder", "--conversation", ""]);
    assert_eq!(shown, ["2", "1"]);
    // The turns of the conversation that was named.
    let at = [
        "agentd",
        "fork",
        "coder",
        "x",
        "--conversation",
        "1",
        "--at",
        "",
    ];
    let found = complete(&cli, &at);
    assert_eq!(
        (found.first(), found.last()),
        (Some(&"before-it".to_owned()), Some(&"1".to_owned())),
        "{found:?}"
    );
    assert_eq!(
        complete(&cli, &["agentd", "search", "--agent", "co"]),
        ["coder"]
    );
    // Without an agent there is nothing to complete.
    assert!(complete(&cli, &["agentd", "logs", "nobody", "--turn", ""]).is_empty());
}
