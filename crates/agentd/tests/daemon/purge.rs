//! Text that was purged is nowhere in the home any more, not even in transcripts and files of tools.

use crate::test_daemon::TestDaemon;
use agentd_client::api::{Archive, Checkpoint, List, Purge, Reset};
use agentd_client::{Error, Kind as ProblemKind};
use agentd_core::event::{Event, Kind};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn a_transcript_is_made_when_needed_and_grows() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say one");
    let ask = Checkpoint::default();
    let set = daemon
        .block(daemon.client().checkpoint("coder", &ask))
        .unwrap();
    let path = PathBuf::from(&set.transcript);
    let count = || fs::read_to_string(&path).unwrap().lines().count();
    let before = count();
    assert!(before > 10);
    daemon.completed("coder", "do: say two");
    let events = daemon.events("coder");
    crate::test_daemon::until("the transcript", || (count() == events.len()).then_some(()));
    // A daemon that comes anew finds where it was, though a line was cut.
    daemon.kill_daemon();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() - 10]).unwrap();
    daemon.start_daemon();
    daemon.completed("coder", "do: say three");
    let events = daemon.events("coder");
    crate::test_daemon::until("the transcript", || (count() == events.len()).then_some(()));
    for (line, event) in fs::read_to_string(&path).unwrap().lines().zip(&events) {
        assert_eq!(&serde_json::from_str::<Event>(line).unwrap(), event);
    }
}

#[test]
fn a_transcript_that_was_deleted_is_made_again_with_all_its_events() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say one");
    let transcript = || {
        let ask = Checkpoint::default();
        let set = daemon.block(daemon.client().checkpoint("coder", &ask));
        PathBuf::from(set.unwrap().transcript)
    };
    let path = transcript();
    fs::remove_file(&path).unwrap();
    daemon.completed("coder", "do: say two");
    assert_eq!(transcript(), path);
    let events = daemon.events("coder");
    crate::test_daemon::until("the transcript", || {
        let text = fs::read_to_string(&path).unwrap();
        (text.lines().count() == events.len()).then_some(())
    });
    let text = fs::read_to_string(&path).unwrap();
    for (line, event) in text.lines().zip(&events) {
        assert_eq!(&serde_json::from_str::<Event>(line).unwrap(), event);
    }
}

#[test]
fn what_is_purged_is_in_no_file() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let call = serde_json::json!({ "command": "seq 100000 120000; echo xyzzy" });
    daemon.completed("coder", &format!("do: call shell {call} ;; say plugh"));
    let ask = Checkpoint::default();
    daemon
        .block(daemon.client().checkpoint("coder", &ask))
        .unwrap();
    let current = daemon.show("coder").conversation.unwrap().id;
    let purge = Purge {
        conversation: Some(current),
        dry_run: false,
    };
    let refused = daemon.block(daemon.client().purge("coder", &purge));
    let Err(Error::Problem(problem)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(problem.kind, ProblemKind::Conflict);
    let reset = Reset::default();
    daemon
        .block(daemon.client().reset("coder", &reset))
        .unwrap();
    assert!(!found(&daemon.home(), "110023").is_empty());
    daemon
        .block(daemon.client().purge("coder", &purge))
        .unwrap();
    assert_eq!(daemon.count("coder", Kind::Purged), 1);
    let undo = Reset {
        step: Some(agentd_core::event::Direction::Undo),
        ..Reset::default()
    };
    assert!(daemon.block(daemon.client().reset("coder", &undo)).is_err());
    daemon.completed("coder", "do: say next");
    for word in ["xyzzy", "plugh", "110023"] {
        assert_eq!(found(&daemon.home(), word), Vec::<PathBuf>::new(), "{word}");
    }
    daemon.verify();
}

#[test]
fn of_a_removed_agent_every_word_can_go() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say xyzzy");
    daemon
        .block(daemon.client().reset("coder", &Reset::default()))
        .unwrap();
    daemon.completed("coder", "do: say plugh");
    let archive = Archive::default();
    daemon
        .block(daemon.client().archive("coder", &archive))
        .unwrap();
    let all = Purge::default();
    let purged = daemon.block(daemon.client().purge("coder", &all)).unwrap();
    assert_eq!(purged.conversations.len(), 2);
    for word in ["xyzzy", "plugh"] {
        assert_eq!(found(&daemon.home(), word), Vec::<PathBuf>::new(), "{word}");
    }
    let refused = daemon.block(
        daemon
            .client()
            .restore(&purged_id(&daemon), &Default::default()),
    );
    assert!(matches!(refused, Err(Error::Problem(_))), "{refused:?}");
    // Its name is free.
    daemon.create("coder");
    daemon.completed("coder", "do: say anew");
    daemon.verify();
}

#[test]
fn a_dry_run_says_what_a_purge_then_takes() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let call = serde_json::json!({ "command": "seq 100000 120000" });
    daemon.completed("coder", &format!("do: call shell {call} ;; say xyzzy"));
    let first = daemon.show("coder").conversation.unwrap().id;
    daemon
        .block(daemon.client().reset("coder", &Reset::default()))
        .unwrap();
    daemon.completed("coder", "do: say plugh");
    let purge = |conversation, dry_run| {
        let purge = Purge {
            conversation,
            dry_run,
        };
        daemon
            .block(daemon.client().purge("coder", &purge))
            .unwrap()
    };
    let would_go = purge(Some(first), true);
    assert!(would_go.events > 0, "{would_go:?}");
    // Nothing was done by saying so.
    assert_eq!(daemon.count("coder", Kind::Purged), 0);
    assert_eq!(purge(Some(first), false), would_go);
    // Nothing is left to go.
    assert_eq!(purge(Some(first), true).events, 0);

    let archive = Archive::default();
    daemon
        .block(daemon.client().archive("coder", &archive))
        .unwrap();
    let would_go = purge(None, true);
    assert!(would_go.events > 0, "{would_go:?}");
    assert_eq!(purge(None, false), would_go);
    daemon.verify();
}

#[test]
fn nothing_is_left_in_the_home_of_a_removed_agent_that_was_purged() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.create("other");
    let call = serde_json::json!({ "command": "seq 100000 120000" });
    daemon.completed("coder", &format!("do: call shell {call} ;; say xyzzy"));
    daemon.completed("other", "do: say plugh");
    let id = daemon.show("coder").id.to_string();
    let other = daemon.show("other").id.to_string();
    let archive = Archive::default();
    daemon
        .block(daemon.client().archive("coder", &archive))
        .unwrap();
    assert!(!named(&daemon.home(), &id).is_empty());
    daemon
        .block(daemon.client().purge("coder", &Purge::default()))
        .unwrap();
    assert_eq!(named(&daemon.home(), &id), Vec::<PathBuf>::new());
    // Another one's are as they were.
    assert_eq!(named(&daemon.home(), &other).len(), 4);
    daemon.completed("other", "do: say still here");
    daemon.verify();
}

/// The files and directories that have the agent's id in their names.
fn named(dir: &Path, id: &str) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with(id) {
            all.push(path);
        } else if path.is_dir() {
            all.extend(named(&path, id));
        }
    }
    all
}

fn purged_id(daemon: &TestDaemon) -> String {
    let list = List {
        archived: true,
        ..List::default()
    };
    let agents = daemon.block(daemon.client().agents(&list)).unwrap().agents;
    agents[0].id.to_string()
}

fn found(dir: &Path, word: &str) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(found(&path, word));
        } else if entry.file_type().unwrap().is_file() {
            let bytes = fs::read(&path).unwrap_or_default();
            if bytes.windows(word.len()).any(|it| it == word.as_bytes()) {
                all.push(path);
            }
        }
    }
    all
}
