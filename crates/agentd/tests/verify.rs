//! `agentd verify` on whole, missing and damaged journals.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in what it calls too"
)]

#[path = "fixture/journal.rs"]
mod journal;
#[path = "fixture/program.rs"]
mod program;

use journal::create_agent;
use program::{agentd, stderr, stdout};
use serde_json::Value;
use std::fs;

/// Changes one byte of the words in the journal's file.
fn damage(dir: &std::path::Path) {
    let path = dir.join("journal.db");
    let mut bytes = fs::read(&path).unwrap();
    let words = journal::WORDS.as_bytes();
    let at = bytes.windows(words.len()).position(|found| found == words);
    bytes[at.unwrap()] ^= 1;
    fs::write(&path, bytes).unwrap();
}

#[test]
fn a_whole_journal_is_clean() {
    let dir = tempfile::tempdir().unwrap();
    create_agent(dir.path());
    let output = agentd(dir.path(), &["verify"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let home = dir.path().display();
    let expected = format!("✓ {home}: 1 agent, 4 events, no damage\n");
    assert_eq!(stdout(&output), expected);
    assert_eq!(stderr(&output), "");
}

#[test]
fn the_report_is_one_json_object() {
    let dir = tempfile::tempdir().unwrap();
    create_agent(dir.path());
    let output = agentd(dir.path(), &["verify", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(report["clean"], true);
    assert_eq!(report["agents"], 1);
    assert_eq!(report["events"], 4);
    assert_eq!(report["damaged"], serde_json::json!([]));
    assert_eq!(stdout(&output).lines().count(), 1);
}

#[test]
fn damage_is_named_and_exits_with_1() {
    let dir = tempfile::tempdir().unwrap();
    let agent = create_agent(dir.path());
    damage(dir.path());
    let output = agentd(dir.path(), &["verify"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let line = format!(
        "agent {agent}: events 4 to 4 cannot be used: its body does not match its checksum"
    );
    assert!(stdout(&output).contains(&line), "{output:?}");
    assert!(
        stderr(&output).contains("next: copy the directory"),
        "{output:?}"
    );
}

#[test]
fn damage_is_in_the_json_report_too() {
    let dir = tempfile::tempdir().unwrap();
    let agent = create_agent(dir.path());
    damage(dir.path());
    let output = agentd(dir.path(), &["verify", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(report["clean"], false);
    assert_eq!(report["damaged"][0]["agent"]["id"], agent.to_string());
    assert_eq!(report["damaged"][0]["from"], 4);
}

#[test]
fn a_home_without_a_journal_is_said_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("nothing-here");
    let output = agentd(&home, &["verify"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(stderr(&output).contains("has no journal"), "{output:?}");
    assert!(
        stderr(&output).contains("next: set AGENTD_HOME"),
        "{output:?}"
    );
    assert!(!home.exists());
}

#[test]
fn a_file_that_is_no_journal_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    let letter = "Dear diary, this is not a database at all. ".repeat(40);
    fs::write(&path, &letter).unwrap();
    let output = agentd(dir.path(), &["verify"]);
    assert_ne!(output.status.code(), Some(0), "{output:?}");
    assert!(stderr(&output).contains("cannot be checked"), "{output:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), letter);
}

/// Writes an agent, and cuts the journal's file in half.
fn cut(dir: &std::path::Path) {
    create_agent(dir);
    let path = dir.join("journal.db");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
}

#[test]
fn repair_recovers_what_is_readable_and_keeps_the_damaged_file() {
    let dir = tempfile::tempdir().unwrap();
    cut(dir.path());
    let damaged = fs::read(dir.path().join("journal.db")).unwrap();
    let output = agentd(dir.path(), &["verify"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    // It is in the half that is left.
    let found = "1 agent, 4 events, 1 problem";
    assert!(stdout(&output).contains(found), "{output:?}");
    assert!(stderr(&output).contains("verify --repair"), "{output:?}");

    let output = agentd(dir.path(), &["verify", "--repair"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let kept = dir.path().join("damaged-1");
    assert!(
        stdout(&output).contains(&format!("kept in {}", kept.display())),
        "{output:?}"
    );
    assert_eq!(fs::read(kept.join("journal.db")).unwrap(), damaged);
    // The journal is whole, whatever was lost.
    let output = agentd(dir.path(), &["verify", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(
        (&report["clean"], &report["head"]),
        (&true.into(), &"good".into())
    );
    // There is nothing left to repair.
    let output = agentd(dir.path(), &["verify", "--repair", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(
        (&report["repaired"], &report["kept"]),
        (&false.into(), &Value::Null)
    );
}

#[test]
fn a_repair_says_as_json_what_was_lost() {
    let dir = tempfile::tempdir().unwrap();
    let agent = create_agent(dir.path());
    fs::remove_file(dir.path().join("journal.db")).unwrap();
    let output = agentd(dir.path(), &["verify"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        stderr(&output).contains("is missing or empty"),
        "{output:?}"
    );
    assert!(!dir.path().join("journal.db").exists());

    let output = agentd(dir.path(), &["verify", "--repair", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(report["lost"][0]["agent"]["id"], agent.to_string());
    assert_eq!(
        (
            &report["lost"][0]["recovered"],
            &report["lost"][0]["through"]
        ),
        (&0.into(), &4.into())
    );
    let output = agentd(dir.path(), &["verify"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn a_repair_is_refused_while_a_daemon_holds_the_home() {
    let dir = tempfile::tempdir().unwrap();
    cut(dir.path());
    let before = fs::read(dir.path().join("journal.db")).unwrap();
    fs::create_dir_all(dir.path().join("run")).unwrap();
    let lock = fs::File::create(dir.path().join("run/daemon.lock")).unwrap();
    lock.try_lock().unwrap();
    let output = agentd(dir.path(), &["verify", "--repair"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(stderr(&output).contains("is in use"), "{output:?}");
    assert!(stderr(&output).contains("agentd daemon stop"), "{output:?}");
    assert_eq!(fs::read(dir.path().join("journal.db")).unwrap(), before);
    assert!(!dir.path().join("damaged-1").exists());
}
