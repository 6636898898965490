//! `agentd prune`.

use super::test_cli::TestCli;
use serde_json::Value;

fn names(cli: &TestCli, args: &[&str]) -> Vec<Value> {
    let list = cli.json(&[&["list", "--by-name"], args].concat());
    let agents = list["agents"].as_array().unwrap().iter();
    agents.map(|agent| agent["name"].clone()).collect()
}

/// A persistent agent and two one-shots that have finished.
fn with_oneshots() -> TestCli {
    let cli = TestCli::with_coder();
    for n in 1..=2 {
        cli.ok(&[
            "run",
            "--provider",
            "demo",
            &format!("run `echo haystack{n}`"),
        ]);
    }
    assert_eq!(names(&cli, &[]).len(), 3);
    cli
}

#[test]
fn without_yes_it_only_says_what_it_would_do() {
    let cli = with_oneshots();
    let none = cli.ok(&["prune"]);
    assert!(none.contains("unused for 7d; --older-than 0s"), "{none}");
    let text = cli.ok(&["prune", "--older-than", "0s"]);
    assert!(
        text.starts_with("would archive 2 one-shot agents:\n"),
        "{text}"
    );
    assert!(
        text.contains("haystack1") && text.contains("haystack2"),
        "{text}"
    );
    assert!(!text.contains("coder"), "{text}");
    assert!(
        text.ends_with("nothing was changed; to do it, pass --yes\n"),
        "{text}"
    );
    let text = cli.ok(&["prune", "--older-than", "0s", "--purge"]);
    assert!(text.contains("permanently delete the content"), "{text}");
    let told = cli.json(&["prune", "--older-than", "0s"]);
    assert_eq!(told["dry_run"], true);
    assert_eq!(told["agents"].as_array().unwrap().len(), 2);
    assert_eq!(names(&cli, &[]).len(), 3);
}

#[test]
fn finished_oneshots_are_archived_and_with_purge_deleted() {
    let cli = with_oneshots();
    let done = cli.json(&["prune", "--older-than", "0s", "--yes"]);
    assert_eq!(done["dry_run"], false);
    for agent in done["agents"].as_array().unwrap() {
        assert_eq!(
            (&agent["archived"], &agent["purged"]),
            (&true.into(), &false.into())
        );
    }
    assert_eq!(names(&cli, &[]), ["coder"]);
    let archived = names(&cli, &["--archived"]);
    assert_eq!(archived.len(), 2);
    let log = |name: &Value| cli.ok(&["logs", name.as_str().unwrap(), "--all"]);
    assert!(log(&archived[0]).contains("haystack"));
    // What was archived before is purged, once.
    let text = cli.ok(&["prune", "--older-than", "0s", "--purge", "--yes"]);
    assert!(
        text.contains("permanently deleted the content of, 2 one-shot agents"),
        "{text}"
    );
    assert!(archived.iter().all(|name| !log(name).contains("haystack")));
    let again = cli.ok(&["prune", "--older-than", "0s", "--purge", "--yes"]);
    assert_eq!(again, "no one-shot agents to prune\n");
    // One that was not archived is archived first.
    cli.ok(&["run", "--provider", "demo", "run `echo haystack3`"]);
    let done = cli.json(&["prune", "--older-than", "0s", "--purge", "--yes"]);
    let agent = &done["agents"][0];
    assert_eq!(
        (&agent["archived"], &agent["purged"]),
        (&true.into(), &true.into())
    );
    assert!(!log(&agent["agent"]["name"]).contains("haystack"));
    assert_eq!(names(&cli, &[]), ["coder"]);
}

#[test]
fn a_oneshot_that_works_is_left_alone() {
    let cli = TestCli::new();
    cli.ok(&["run", "--provider", "demo", "--detach", "run `sleep 100`"]);
    let name = names(&cli, &[])[0].as_str().unwrap().to_owned();
    cli.until_tool(&name);
    let pruned = cli.ok(&["prune", "--older-than", "0s", "--yes"]);
    assert_eq!(pruned, "no one-shot agents to prune\n");
    assert_eq!(cli.ok(&["rm", "--oneshot", "--yes"]), "no such agents\n");
    cli.ok(&["interrupt", &name]);
}
