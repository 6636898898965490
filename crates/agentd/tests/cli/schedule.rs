//! `agentd schedule`.

use super::test_cli::TestCli;

#[test]
fn a_schedule_is_added_in_each_form_and_listed_with_its_next_times() {
    let cli = TestCli::with_coder();
    let weekdays = ["schedule", "add", "coder", "0 9 * * 1-5", "--zone"];
    let weekdays = [&weekdays[..], &["Europe/Zurich", "run `echo hello`"]].concat();
    let added = cli.json(&weekdays);
    assert_eq!(added["name"], "s1");
    assert_eq!(added["when"]["zone"], "Europe/Zurich");
    assert_eq!(added["next"].as_array().unwrap().len(), 5);
    let every = [
        "schedule",
        "add",
        "coder",
        "--every",
        "90m",
        "--fresh",
        "run `echo hello`",
    ];
    let added = cli.json(&every);
    assert_eq!(added["when"]["every_ms"], 5_400_000);
    assert_eq!(added["name"], "s2");
    assert_eq!(added["action"], "fresh");
    let at = [
        "schedule",
        "add",
        "coder",
        "--at",
        "2099-12-24T18:30",
        "--zone",
    ];
    let added = cli.json(&[&at[..], &["Asia/Kathmandu", "--reset", "--name", "end"]].concat());
    assert_eq!(added["next"][0], "2099-12-24T12:45:00.000Z");
    assert_eq!(added["prompt"], serde_json::Value::Null);
    let all = cli.json(&["schedule", "list"]);
    let names: Vec<_> = all["schedules"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 3);
    assert_eq!(all, cli.json(&["schedule", "list", "coder"]));
    let text = cli.ok(&["schedule", "list"]);
    assert!(text.starts_with("AGENT  SCHEDULE"), "{text}");
    // In the zone of the schedule, whatever the zone of this computer is.
    let end = "once at 2099-12-24 18:30:00 Asia/Kathmandu";
    assert!(text.contains(end), "{text}");
    assert!(text.contains("every 1h 30m"), "{text}");
    assert!(text.contains("reset, then: run `echo hello`"), "{text}");
    let shown = cli.json(&["show", "coder"]);
    assert_eq!(shown["schedules"].as_array().unwrap().len(), 3);
    let listed = cli.json(&["list"]);
    assert!(listed["agents"][0]["next_due"].is_string(), "{listed:#}");
    assert!(cli.ok(&["list"]).contains("NEXT DUE"));
}

/// Regression: a zone without a name was stored as UTC.
#[test]
fn a_zone_without_a_name_is_refused() {
    let cli = TestCli::with_coder();
    let add = |zone: &str, more: &[&str]| {
        let args = [&["schedule", "add", "coder", "hello"], more].concat();
        let mut command = cli.command(&args);
        command.env("TZ", zone).output().unwrap()
    };
    for zone in ["/nowhere/zone", "CET-1CEST,M3.5.0,M10.5.0/3"] {
        let refused = add(zone, &["--at", "2099-12-24T18:30"]);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        let text = String::from_utf8_lossy(&refused.stderr);
        assert!(text.contains("TZ") && text.contains("--zone"), "{text}");
    }
    assert!(cli.ok(&["schedule", "list"]).starts_with("no schedules"));
    // These need no zone.
    let wants: [&[&str]; 3] = [
        &["--every", "2h"],
        &["--at", "2099-12-24T18:30:00+01:00"],
        &["--at", "2099-12-24T18:30", "--zone", "Asia/Tokyo"],
    ];
    for more in wants {
        let added = add("/nowhere/zone", more);
        assert!(added.status.success(), "{more:?}: {added:?}");
    }
    let added = add("Asia/Tokyo", &["--at", "2099-12-24T18:30"]);
    let text = String::from_utf8_lossy(&added.stdout);
    let expected = "next at 2099-12-24 18:30:00 Asia/Tokyo (in ";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_run_of_a_schedule_says_whether_the_agent_is_stopped() {
    let cli = TestCli::with_coder();
    let add = ["schedule", "add", "coder", "--every", "2h", "hello"];
    cli.ok(&add);
    cli.ok(&["stop", "coder"]);
    let said = cli.ok(&["schedule", "run", "coder", "s1"]);
    assert!(said.contains("sent prompt"), "{said}");
    assert!(said.contains("waits until `agentd start coder`"), "{said}");
    cli.ok(&["start", "coder"]);
    cli.ok(&["wait", "coder"]);
    let said = cli.ok(&["schedule", "run", "coder", "s1"]);
    assert!(!said.contains("agentd start"), "{said}");
    cli.ok(&["wait", "coder"]);
    // A reset does not wait.
    cli.ok(&["schedule", "add", "coder", "--every", "2h", "--reset"]);
    cli.ok(&["stop", "coder"]);
    let said = cli.ok(&["schedule", "run", "coder", "s2"]);
    assert!(said.contains("schedule s2 resets coder"), "{said}");
    assert!(!said.contains("agentd start"), "{said}");
}

#[test]
fn words_that_do_not_fit_the_options_are_explained() {
    let cli = TestCli::with_coder();
    let add = |more: &[&str]| {
        let args = [&["schedule", "add", "coder"], more].concat();
        cli.refused(2, &args)
    };
    let explained: [(&[&str], &str); 5] = [
        (&["0 9 * * *"], "a cron expression and a prompt"),
        (&["--reset"], "only a cron expression"),
        (&["0 9 * * *", "hello", "--every", "2h"], "only the prompt"),
        (
            &["hello", "--every", "2h", "--reset"],
            "nothing is expected",
        ),
        (&["--at", "soon", "hello"], "not a time"),
    ];
    for (more, expected) in explained {
        let text = add(more);
        assert!(text.contains(expected), "{more:?}: {text}");
    }
    // The daemon explains what it cannot use.
    let text = add(&["0 9 * *", "hello"]);
    assert!(text.contains("0 9 * * 1-5"), "{text}");
    let text = add(&["0 9 * * *", "hello", "--zone", "Europe/Nowhere"]);
    assert!(text.contains("Europe/Zurich"), "{text}");
    let text = cli.refused(7, &["schedule", "rm", "coder", "s1"]);
    assert!(text.contains("agentd schedule list coder"), "{text}");
    assert!(cli.ok(&["schedule", "list"]).starts_with("no schedules"));
}
