//! `agentd tasks`.

use super::test_cli::{TestCli, ended, until};
use agentd_testkit::model::{FakeModel, Format};

#[test]
fn none_is_said() {
    let cli = TestCli::with_coder();
    assert_eq!(
        cli.ok(&["tasks", "coder"]),
        "coder has no background tasks\n"
    );
    assert_eq!(cli.ok(&["tasks"]), "no background tasks\n");
    assert_eq!(
        cli.ok(&["tasks", "stop", "coder"]),
        "coder has no background tasks\n"
    );
    assert_eq!(
        cli.json(&["tasks", "coder"])["tasks"],
        serde_json::json!([])
    );
}

/// An agent that has left a command running, which writes `begun` and goes on; the command's task.
fn with_task(cli: &TestCli, model: &FakeModel) -> String {
    let told = |args: &[&str]| {
        let mut command = cli.command(args);
        command
            .env("ANTHROPIC_API_KEY", "sk-of-this-test")
            .env("ANTHROPIC_BASE_URL", model.base_url(Format::Anthropic));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    told(&["create", "coder", "--provider", "anthropic", "--model", "m"]);
    let arguments =
        serde_json::json!({ "command": "echo begun; sleep 600", "run_in_background": true });
    told(&[
        "send",
        "coder",
        &format!("do: call shell {arguments} ;; say left"),
    ]);
    let tasks = cli.json(&["tasks", "coder"]);
    tasks["tasks"][0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn one_is_listed_followed_and_stopped() {
    let cli = TestCli::new();
    let model = FakeModel::start().unwrap();
    let task = with_task(&cli, &model);
    let output = until("its output", || {
        let out = cli.ok(&["logs", "coder", "--task", &task]);
        (!out.is_empty()).then_some(out)
    });
    assert_eq!(output, "begun\n");
    let listed = cli.ok(&["tasks"]);
    for words in [
        "TASK",
        "AGENT",
        "STATE",
        "AGE",
        "OUTPUT",
        "COMMAND",
        &task,
        "coder",
        "running",
        "6 bytes",
        "echo begun; sleep 600",
    ] {
        assert!(listed.contains(words), "{words}: {listed}");
    }
    // The beginning of an id is enough.
    let begins = &task[..13];
    assert_eq!(cli.ok(&["logs", "coder", "--task", begins]), "begun\n");
    let follower = cli.start(&["logs", "coder", "--task", &task, "-f"]);
    let stopped = cli.ok(&["tasks", "stop", begins]);
    assert!(
        stopped.contains(&task) && stopped.contains("coder"),
        "{stopped}"
    );
    assert_eq!(ended(follower).out, "begun\n");
    let unknown = cli.refused(7, &["tasks", "stop", &task]);
    assert!(unknown.contains("agentd tasks"), "{unknown}");
}

#[test]
fn rm_says_which_it_ended() {
    let cli = TestCli::new();
    let model = FakeModel::start().unwrap();
    let task = with_task(&cli, &model);
    let said = cli.ok(&["stop", "coder"]);
    assert!(
        said.contains(&format!("still running in the background: {task}")),
        "{said}"
    );
    let said = cli.ok(&["rm", "coder"]);
    assert!(said.contains(&format!("also ended: {task}")), "{said}");
}
