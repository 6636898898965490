//! `agentd daemon`, and that others start it.

use super::place::{Place, ended};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn started_looked_at_and_stopped() {
    let place = Place::new();
    let text = place.refused(4, &["daemon", "status"]);
    assert!(text.contains("agentd daemon start"), "{text}");
    assert_eq!(place.ok(&["daemon", "stop"]), "no daemon runs\n");
    let started = place.json(&["daemon", "start"]);
    assert_eq!(place.json(&["daemon", "start"])["pid"], started["pid"]);
    assert_eq!(place.json(&["daemon", "status"])["pid"], started["pid"]);
    let stopped = place.json(&["daemon", "stop"]);
    assert_eq!(stopped["pid"], started["pid"]);
    place.refused(4, &["daemon", "status"]);
}

#[test]
fn many_that_come_at_once_start_one() {
    let place = Place::new();
    let children: Vec<_> = (0..8)
        .map(|_| place.start(&["daemon", "start", "--json"]))
        .collect();
    let mut pids: Vec<String> = children
        .into_iter()
        .map(|child| {
            let ran = ended(child);
            assert_eq!(ran.code, Some(0), "{ran:#?}");
            let daemon: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
            daemon["pid"].to_string()
        })
        .collect();
    pids.dedup();
    assert_eq!(pids.len(), 1, "{pids:?}");
}

#[test]
fn one_home_has_one_daemon() {
    let place = Place::new();
    place.ok(&["daemon", "start"]);
    let text = place.refused(3, &["daemon", "run"]);
    assert!(text.contains("another daemon runs"), "{text}");
}

#[test]
fn nobody_else_may_ask() {
    let place = Place::new();
    place.ok(&["daemon", "start"]);
    let mode = |path: &str| {
        let metadata = fs::metadata(place.home().join(path)).unwrap();
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode("run"), 0o700);
    assert_eq!(mode("run/api.sock"), 0o600);
    assert_eq!(mode("daemon.log"), 0o600);
}

#[test]
fn one_that_cannot_start_says_why() {
    let place = Place::new();
    // Where the journal should be there is something else.
    fs::create_dir(place.home().join("journal.db")).unwrap();
    let text = place.refused(4, &["list"]);
    assert!(text.contains("the daemon did not start"), "{text}");
    assert!(text.contains("why:"), "{text}");
    assert!(text.contains("daemon.log"), "{text}");
    fs::remove_dir(place.home().join("journal.db")).unwrap();
    place.ok(&["list"]);
}
