//! Words that are purged are nowhere in the home any more: transcripts and the tools' files included.

use crate::house::House;
use agentd_client::api::{Archive, Checkpoint, List, Purge, Reset};
use agentd_client::{Error, Kind as ProblemKind};
use agentd_core::event::Kind;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn a_transcript_is_made_when_needed_and_grows() {
    let house = House::new();
    house.create("coder");
    house.completed("coder", "do: say one");
    let ask = Checkpoint::default();
    let set = house
        .block(house.client().checkpoint("coder", &ask))
        .unwrap();
    let path = PathBuf::from(&set.transcript);
    let count = || fs::read_to_string(&path).unwrap().lines().count();
    let before = count();
    assert!(before > 10);
    house.completed("coder", "do: say two");
    let events = house.events("coder");
    crate::house::until("the transcript", || (count() == events.len()).then_some(()));
    // A daemon that comes anew finds where it was, though a line was cut.
    house.kill_daemon();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() - 10]).unwrap();
    house.start_daemon();
    house.completed("coder", "do: say three");
    let events = house.events("coder");
    crate::house::until("the transcript", || (count() == events.len()).then_some(()));
    for (line, event) in fs::read_to_string(&path).unwrap().lines().zip(&events) {
        assert_eq!(line, serde_json::to_string(event).unwrap());
    }
}

#[test]
fn what_is_purged_is_in_no_file() {
    let house = House::new();
    house.create("coder");
    let call = serde_json::json!({ "command": "seq 100000 120000; echo xyzzy" });
    house.completed("coder", &format!("do: call shell {call} ;; say plugh"));
    let ask = Checkpoint::default();
    house
        .block(house.client().checkpoint("coder", &ask))
        .unwrap();
    let current = house.show("coder").conversation.unwrap().id;
    let purge = Purge {
        conversation: Some(current),
        dry_run: false,
    };
    let refused = house.block(house.client().purge("coder", &purge));
    let Err(Error::Problem(problem)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(problem.kind, ProblemKind::Conflict);
    let reset = Reset::default();
    house.block(house.client().reset("coder", &reset)).unwrap();
    assert!(!found(&house.home(), "110023").is_empty());
    house.block(house.client().purge("coder", &purge)).unwrap();
    assert_eq!(house.count("coder", Kind::Purged), 1);
    let undo = Reset {
        step: Some(agentd_core::event::Direction::Undo),
        ..Reset::default()
    };
    assert!(house.block(house.client().reset("coder", &undo)).is_err());
    house.completed("coder", "do: say next");
    for word in ["xyzzy", "plugh", "110023"] {
        assert_eq!(found(&house.home(), word), Vec::<PathBuf>::new(), "{word}");
    }
    house.verify();
}

#[test]
fn of_a_removed_agent_every_word_can_go() {
    let house = House::new();
    house.create("coder");
    house.completed("coder", "do: say xyzzy");
    house
        .block(house.client().reset("coder", &Reset::default()))
        .unwrap();
    house.completed("coder", "do: say plugh");
    let archive = Archive::default();
    house
        .block(house.client().archive("coder", &archive))
        .unwrap();
    let all = Purge::default();
    let purged = house.block(house.client().purge("coder", &all)).unwrap();
    assert_eq!(purged.conversations.len(), 2);
    for word in ["xyzzy", "plugh"] {
        assert_eq!(found(&house.home(), word), Vec::<PathBuf>::new(), "{word}");
    }
    let refused = house.block(
        house
            .client()
            .restore(&purged_id(&house), &Default::default()),
    );
    assert!(matches!(refused, Err(Error::Problem(_))), "{refused:?}");
    // Its name is free.
    house.create("coder");
    house.completed("coder", "do: say anew");
    house.verify();
}

#[test]
fn a_dry_run_says_what_a_purge_then_takes() {
    let house = House::new();
    house.create("coder");
    let call = serde_json::json!({ "command": "seq 100000 120000" });
    house.completed("coder", &format!("do: call shell {call} ;; say xyzzy"));
    let first = house.show("coder").conversation.unwrap().id;
    house
        .block(house.client().reset("coder", &Reset::default()))
        .unwrap();
    house.completed("coder", "do: say plugh");
    let purge = |conversation, dry_run| {
        let purge = Purge {
            conversation,
            dry_run,
        };
        house.block(house.client().purge("coder", &purge)).unwrap()
    };
    let would_go = purge(Some(first), true);
    assert!(would_go.events > 0, "{would_go:?}");
    // Nothing was done by saying so.
    assert_eq!(house.count("coder", Kind::Purged), 0);
    assert_eq!(purge(Some(first), false), would_go);
    // Nothing is left to go.
    assert_eq!(purge(Some(first), true).events, 0);

    let archive = Archive::default();
    house
        .block(house.client().archive("coder", &archive))
        .unwrap();
    let would_go = purge(None, true);
    assert!(would_go.events > 0, "{would_go:?}");
    assert_eq!(purge(None, false), would_go);
    house.verify();
}

#[test]
fn nothing_is_left_in_the_home_of_a_removed_agent_that_was_purged() {
    let house = House::new();
    house.create("coder");
    house.create("other");
    let call = serde_json::json!({ "command": "seq 100000 120000" });
    house.completed("coder", &format!("do: call shell {call} ;; say xyzzy"));
    house.completed("other", "do: say plugh");
    let id = house.show("coder").id.to_string();
    let other = house.show("other").id.to_string();
    let archive = Archive::default();
    house
        .block(house.client().archive("coder", &archive))
        .unwrap();
    assert!(!named(&house.home(), &id).is_empty());
    house
        .block(house.client().purge("coder", &Purge::default()))
        .unwrap();
    assert_eq!(named(&house.home(), &id), Vec::<PathBuf>::new());
    // Another one's are as they were.
    assert_eq!(named(&house.home(), &other).len(), 4);
    house.completed("other", "do: say still here");
    house.verify();
}

/// The files and directories that are called after an agent.
fn named(folder: &Path, id: &str) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with(id) {
            all.push(path);
        } else if path.is_dir() {
            all.extend(named(&path, id));
        }
    }
    all
}

fn purged_id(house: &House) -> String {
    let list = List {
        archived: true,
        ..List::default()
    };
    let agents = house.block(house.client().agents(&list)).unwrap().agents;
    agents[0].id.to_string()
}

fn found(folder: &Path, word: &str) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
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
