//! `agentd list`.

use super::test_cli::TestCli;

#[test]
fn an_empty_list_says_how_to_begin() {
    let cli = TestCli::new();
    assert!(cli.ok(&["list"]).contains("agentd create NAME"));
    let list = cli.json(&["list"]);
    assert_eq!(list["agents"], serde_json::json!([]));
    assert_eq!(list["total"], 0);
    assert!(list["next"].is_null());
}

#[test]
fn pages_follow_one_another() {
    let cli = TestCli::new();
    for name in ["a1", "a2", "a3", "b1"] {
        cli.ok(&["create", name, "--provider", "demo"]);
    }
    let first = cli.json(&["list", "--by-name", "-n", "2"]);
    assert_eq!(first["total"], 4);
    let next = first["next"].as_str().unwrap();
    let second = cli.json(&["list", "--by-name", "-n", "2", "--after", next]);
    let names = |list: &serde_json::Value| -> Vec<String> {
        let agents = list["agents"].as_array().unwrap().iter();
        agents
            .map(|agent| agent["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        [names(&first), names(&second)].concat(),
        ["a1", "a2", "a3", "b1"]
    );
    assert_eq!(names(&cli.json(&["list", "--prefix", "b"])), ["b1"]);
    let out = cli.ok(&["list", "-n", "1"]);
    assert!(out.contains("1 of 4 agents; more with --all"), "{out}");
    cli.ok(&["stop", "a2"]);
    assert_eq!(names(&cli.json(&["list", "--phase", "stopped"])), ["a2"]);
    assert_eq!(cli.run(&["list", "--phase", "asleep"]).code, Some(2));
}
