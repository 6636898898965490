//! The retention policy: off by default, what it would delete is shown first, and what is current or needed stays.

use crate::backup::{back_up, file_of, restore, stdout};
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Create, Reset};
use agentd_core::event::{Direction, Kind, Mode};
use agentd_core::id::AgentId;
use agentd_failpoint as failpoint;
use serde_json::Value;
use std::fs;

const DAY_MS: i64 = 86_400_000;

/// A daemon with this configuration, an agent that has left one conversation, and a one-shot agent that has finished.
fn used(text: &str) -> (TestDaemon, AgentId) {
    used_at(text, 0)
}

/// The same with the clock so many milliseconds ahead.
fn used_at(text: &str, off_ms: i64) -> (TestDaemon, AgentId) {
    let daemon = TestDaemon::empty();
    fs::write(daemon.home().join("config.toml"), text).unwrap();
    daemon.daemon_has_keys();
    daemon.set_clock(off_ms);
    daemon.start_daemon();
    daemon.create("coder");
    daemon.completed("coder", "do: say plugh");
    let reset = Reset::default();
    daemon
        .block(daemon.client().reset("coder", &reset))
        .unwrap();
    daemon.completed("coder", "do: say hello");
    let create = Create {
        spec: daemon.spec(),
        mode: Some(Mode::Oneshot),
        prompt: Some("do: say xyzzy".to_owned()),
        env: daemon.caller(),
        ..Create::default()
    };
    let created = daemon.block(daemon.client().create(&create)).unwrap();
    let once = created.agent.id;
    daemon.until_kind(&once.to_string(), Kind::TurnEnded);
    (daemon, once)
}

fn policy(daemon: &TestDaemon, args: &[&str]) -> Value {
    let output = daemon.cli(&[&["prune", "--policy", "--json"], args].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn lengths(pruned: &Value) -> (usize, usize) {
    let length = |key: &str| pruned[key].as_array().unwrap().len();
    (length("agents"), length("conversations"))
}

/// Regression: it said that the policy deletes nothing now.
#[test]
fn the_absence_of_a_policy_is_said() {
    let daemon = TestDaemon::new();
    let said = || {
        let output = daemon.cli(&["prune", "--policy"]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let without = said();
    assert!(
        without.contains("there is no policy") && without.contains("config.toml"),
        "{without}"
    );
    let text = "[retention]\noneshots = \"30d\"\n";
    fs::write(daemon.home().join("config.toml"), text).unwrap();
    let with = said();
    assert!(with.contains("deletes nothing now"), "{with}");
}

#[test]
fn it_is_off_by_default() {
    let (daemon, _) = used("");
    daemon.set_clock(1000 * DAY_MS);
    assert_eq!(lengths(&policy(&daemon, &["--yes"])), (0, 0));
    assert_eq!(daemon.count("coder", Kind::Purged), 0);
}

#[test]
fn what_it_would_delete_is_shown_and_deleted_only_on_request() {
    let (daemon, once) = used("[retention]\noneshots = \"7d\"\nconversations = \"30d\"\n");
    assert_eq!(lengths(&policy(&daemon, &[])), (0, 0));
    daemon.set_clock(8 * DAY_MS);
    assert_eq!(lengths(&policy(&daemon, &[])), (1, 0));
    daemon.set_clock(31 * DAY_MS);
    let shown = policy(&daemon, &[]);
    assert_eq!(lengths(&shown), (1, 1), "{shown:#}");
    assert_eq!(shown["dry_run"], true);
    assert_eq!(shown["conversations"][0]["ordinal"], 1);
    assert_eq!(daemon.count("coder", Kind::Purged), 0);
    let done = policy(&daemon, &["--yes"]);
    assert_eq!(lengths(&done), (1, 1), "{done:#}");
    assert_eq!(daemon.count("coder", Kind::Purged), 1);
    assert_eq!(lengths(&policy(&daemon, &["--yes"])), (0, 0));
    // The current conversation is as it was.
    assert_eq!(daemon.completed("coder", "do: say more").text, "more");
    let once = once.to_string();
    assert_eq!(daemon.count(&once, Kind::AgentArchived), 1);
    assert_eq!(daemon.count(&once, Kind::Purged), 1);
    daemon.verify();
}

/// A conversation that another one was forked off stays for as long as the fork.
#[test]
fn a_conversation_that_a_fork_needs_stays() {
    let (daemon, _) = used("[retention]\nconversations = \"30d\"\n");
    let undo = Reset {
        step: Some(Direction::Undo),
        ..Reset::default()
    };
    daemon.block(daemon.client().reset("coder", &undo)).unwrap();
    let forked = daemon.cli(&["fork", "coder", "copy"]);
    assert!(forked.status.success(), "{forked:?}");
    let redo = Reset {
        step: Some(Direction::Redo),
        ..Reset::default()
    };
    daemon.block(daemon.client().reset("coder", &redo)).unwrap();
    daemon.set_clock(31 * DAY_MS);
    assert_eq!(lengths(&policy(&daemon, &["--yes"])), (0, 0));
    assert_eq!(daemon.count("coder", Kind::Purged), 0);
}

/// Regression: such an agent was archived, and its purge was refused each hour.
#[test]
fn a_oneshot_that_a_fork_needs_stays_as_it_is() {
    let (daemon, once) = used("[retention]\noneshots = \"7d\"\n");
    let once = once.to_string();
    let forked = daemon.cli(&["fork", &once, "copy"]);
    assert!(forked.status.success(), "{forked:?}");
    daemon.set_clock(8 * DAY_MS);
    let all: [&[&str]; 2] = [&[], &["--yes"]];
    for args in all {
        assert_eq!(lengths(&policy(&daemon, args)), (0, 0));
    }
    assert_eq!(daemon.count(&once, Kind::AgentArchived), 0);
    // The fork is gone: so is the reason.
    for verb in ["rm", "purge"] {
        let done = daemon.cli(&[verb, "copy", "--yes"]);
        assert!(done.status.success(), "{done:?}");
    }
    assert_eq!(lengths(&policy(&daemon, &["--yes"])), (1, 0));
}

#[test]
fn the_daemon_applies_it_by_itself() {
    let (daemon, _) = used("[retention]\nconversations = \"30d\"\n");
    daemon.kill_daemon();
    daemon.set_clock(31 * DAY_MS);
    daemon.start_daemon();
    assert_eq!(daemon.completed("coder", "do: say more").text, "more");
    daemon.kill_daemon();
    // The first round is not an hour later.
    daemon.mistake("retention_at_once");
    daemon.start_daemon();
    until("the purge", || {
        (daemon.count("coder", Kind::Purged) == 1).then_some(())
    });
    assert_eq!(daemon.completed("coder", "do: say again").text, "again");
}

/// Regression: a daemon on a machine that boots with its clock ahead deleted everything, because all of it was old.
#[test]
fn a_clock_that_is_ahead_of_every_use_deletes_nothing() {
    let hook = "[notify.webhooks.team]\nurl = \"http://127.0.0.1:9/\"\nsecret = \"TEAM_HOOK\"\n";
    let text = format!("[retention]\noneshots = \"7d\"\nconversations = \"30d\"\n{hook}");
    let (daemon, once) = used(&text);
    daemon.kill_daemon();
    daemon.mistake("retention_at_once");
    daemon.set_clock(400 * DAY_MS);
    daemon.start_daemon();
    let troubles = daemon.home().join("outbox/trouble.list.json");
    until("the trouble", || {
        let text = fs::read_to_string(&troubles).ok()?;
        text.contains("retention_skipped").then_some(())
    });
    assert_eq!(daemon.count("coder", Kind::Purged), 0);
    assert_eq!(daemon.count(&once.to_string(), Kind::AgentArchived), 0);
    // The user decides.
    assert_eq!(lengths(&policy(&daemon, &["--yes"])), (1, 1));
}

/// Regression: the first command in a home that was restored from an old backup deleted what the user wanted to get back.
#[test]
fn what_was_restored_counts_as_used_when_it_was_restored() {
    let (daemon, _) = used_at("[retention]\nconversations = \"30d\"\n", -400 * DAY_MS);
    let made = back_up(&daemon, &[]);
    daemon.kill_daemon();
    // The restore has the clock of the machine.
    let (home, _) = restore(&daemon, &file_of(&made), "restored");
    let pruned = |off_ms: i64| {
        daemon.set_clock(off_ms);
        let mut command = daemon.command();
        command.env("AGENTD_HOME", &home).envs(daemon.caller());
        command.env(failpoint::VARIABLE, daemon.root());
        let args = ["prune", "--policy", "--yes", "--json"];
        lengths(&stdout(&command.args(args).output().unwrap()))
    };
    assert_eq!(pruned(0), (0, 0));
    assert_eq!(pruned(29 * DAY_MS), (0, 0));
    assert_eq!(pruned(31 * DAY_MS), (0, 1));
    stdout(&daemon.cli_at(&home, &["daemon", "stop", "--json"]));
}
