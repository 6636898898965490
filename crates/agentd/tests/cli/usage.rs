//! `agentd usage`.

use super::test_cli::TestCli;
use serde_json::Value;

fn rows(report: &Value) -> Vec<Value> {
    report["rows"].as_array().unwrap().clone()
}

#[test]
fn tokens_are_added_up_in_each_way() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `true`"]);
    cli.ok(&["reset", "coder"]);
    cli.ok(&["send", "coder", "run `true`"]);
    cli.ok(&["create", "other", "--provider", "demo"]);
    cli.ok(&["send", "other", "run `true`"]);
    cli.ok(&["create", "idle", "--provider", "demo"]);
    cli.ok(&["rm", "other"]);
    let by_agent = cli.json(&["usage"]);
    let total = by_agent["total"].clone();
    assert!(total["requests"].as_u64().unwrap() >= 3, "{by_agent}");
    assert!(
        total["usage"]["input_tokens"].as_u64().unwrap() > 0,
        "{by_agent}"
    );
    let mut names: Vec<_> = rows(&by_agent)
        .iter()
        .map(|row| row["agent"]["name"].clone())
        .collect();
    names.sort_by_key(ToString::to_string);
    // An archived agent has spent it all the same, and an agent that spent nothing has no row.
    assert_eq!(names, ["coder", "other"]);
    // Every way adds up to the same, whether it reads sums or requests.
    for args in [
        &["usage", "--by", "model"][..],
        &["usage", "--by", "day"],
        &["usage", "--by", "conversation"],
        &["usage", "--since", "1h"],
        &["usage", "--by", "conversation", "--since", "1h"],
    ] {
        assert_eq!(cli.json(args)["total"], total, "{args:?}");
    }
    let by_model = rows(&cli.json(&["usage", "--by", "model"]));
    assert_eq!((by_model.len(), &by_model[0]["model"]), (1, &"demo".into()));
    let by_day = rows(&cli.json(&["usage", "--by", "day"]));
    let day = by_day[0]["day"].as_str().unwrap();
    assert!(by_day.len() <= 2 && day.len() == 10, "{by_day:?}");
    let of_coder = rows(&cli.json(&["usage", "coder", "--by", "conversation"]));
    let ordinals: Vec<_> = of_coder.iter().map(|row| row["ordinal"].clone()).collect();
    assert_eq!(ordinals, [1, 2]);
    // The sums of the fold and those of the requests are the same.
    let mut since = rows(&cli.json(&["usage", "coder", "--by", "conversation", "--since", "1h"]));
    since.sort_by_key(|row| row["ordinal"].as_u64());
    assert_eq!(of_coder, since);
    let later = cli.json(&["usage", "--since", "2100-01-01"]);
    assert_eq!(
        (rows(&later).len(), &later["total"]["requests"]),
        (0, &0.into())
    );
}

#[test]
fn a_table_has_a_total_and_a_wrong_time_is_told() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `true`"]);
    let table = cli.ok(&["usage"]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(
        lines[0].starts_with("AGENT  REQUESTS  INPUT  OUTPUT  COST"),
        "{table}"
    );
    assert!(lines[1].starts_with("coder  "), "{table}");
    assert!(
        lines[2].starts_with("total  ") && lines[2].ends_with("$0"),
        "{table}"
    );
    assert!(
        cli.run(&["usage", "--since", "soon"])
            .err
            .contains("2026-11-16")
    );
    cli.refused(2, &["usage", "--since", "12"]);
    cli.refused(7, &["usage", "nobody"]);
}
