//! The export file: what is imported is what was exported, or nothing at all.

use crate::author::{Author, agent_id, events_of};
use crate::export_file::{export, family, import};
use crate::subject::Subject;
use crate::walk::Walk;
use agentd_core::event::{AgentArchived, Body, Direction, Event, HoldReason, Origin};
use agentd_core::id::AgentId;
use agentd_core::state::Phase;
use agentd_core::time::Timestamp;
use agentd_store::{AgentQuery, Append, Error, Import, ImportAs, Imported, Store};
use std::io::Read as _;

fn unpack(file: &[u8]) -> String {
    let mut text = String::new();
    let mut decoder = zstd::stream::read::Decoder::new(file).unwrap();
    decoder.read_to_string(&mut text).unwrap();
    text
}

fn pack(text: &str) -> Vec<u8> {
    zstd::stream::encode_all(text.as_bytes(), 3).unwrap()
}

/// What an agent is abroad: what it is at home, and held. The event that holds it.
async fn compare(home: &dyn Store, abroad: &dyn Store, agent: AgentId) -> Event {
    let mut events = events_of(abroad, agent).await;
    let held = events.pop().unwrap();
    assert!(matches!(&held.body, Body::AgentHeld(held) if held.reason == HoldReason::Imported));
    assert_eq!(events, events_of(home, agent).await);
    let mut expected = home.load(agent).await.unwrap();
    expected.state.apply(&held);
    assert!(expected.state.is_held());
    assert_eq!(abroad.load(agent).await.unwrap(), expected);
    held
}

/// Agents with branches into each other, large outputs, and one conversation that was purged.
async fn walked(store: &dyn Store, seed: u64) -> Walk {
    let mut walk = Walk::new(seed);
    for _ in 0..70 {
        let (at, events) = walk.step(store).await;
        for event in events {
            walk.append_one(store, at, event).await;
        }
    }
    walk
}

async fn import_as(
    store: &dyn Store,
    file: &[u8],
    name: &str,
    id: AgentId,
) -> Result<Imported, Error> {
    let file = std::io::Cursor::new(file.to_vec());
    let name = name.to_owned();
    let order = Import {
        under: Some(ImportAs { name, id }),
        ..Import::at(Timestamp::from_millis(77))
    };
    store.import(Box::new(file), order).await
}

pub async fn an_imported_agent_is_the_agent_that_was_exported<S: Subject>() {
    for seed in 1..=3 {
        let (home, abroad) = (S::new().await, S::new().await);
        let store = home.open().await;
        let mut walk = walked(&*store, seed).await;
        let agents: Vec<AgentId> = walk.authors.iter().map(|author| author.agent).collect();
        assert!(agents.len() > 2);
        let other = abroad.open().await;
        // The youngest first: it brings what it needs of its ancestors, and they come whole
        // afterwards.
        for agent in agents.iter().rev() {
            let file = export(&*store, *agent).await;
            let imported = import(&*other, &file).await.unwrap();
            assert_eq!(imported.agent, *agent);
            let held = compare(&*store, &*other, *agent).await;
            walk.model.add(held);
        }
        walk.compare_all(&*other).await;
        other.wait_caught_up().await.unwrap();
        walk.compare_all(&*other).await;
        let all = AgentQuery {
            limit: 100,
            ..AgentQuery::default()
        };
        let mut lists = [
            store.agents(all.clone()).await.unwrap().agents,
            other.agents(all).await.unwrap().agents,
        ];
        for list in &mut lists {
            list.sort_by_key(|line| line.id);
            // To the second at home, exact abroad.
            for line in list {
                line.updated_at = Timestamp::default();
                // Abroad they are held.
                line.phase = Phase::Stopped;
            }
        }
        assert_eq!(lists[0], lists[1]);
        // And it lives on there.
        let author = &mut walk.authors[0];
        author.head = author.head.next();
        author.fence = other.claim(author.agent, "abroad").await.unwrap().fence;
        let events = author.turn("here", "too");
        author.append(&*other, events).await;
        assert!(other.verify(None).await.unwrap().is_clean());
        assert!(store.verify(None).await.unwrap().is_clean());
    }
}

pub async fn what_was_purged_stays_purged_and_what_is_kept_apart_comes_along<S: Subject>() {
    let (home, abroad) = (S::new().await, S::new().await);
    let store = home.open().await;
    let (parent, fork, _) = family(&*store).await;
    let text = unpack(&export(&*store, parent.agent).await);
    assert!(!text.contains("secret"));
    let other = abroad.open().await;
    import(&*other, &export(&*store, fork.agent).await)
        .await
        .unwrap();
    // The ancestor is there for the fork, and nowhere in the list.
    assert_eq!(other.find("parent").await.unwrap(), None);
    let query = AgentQuery {
        limit: 10,
        ..AgentQuery::default()
    };
    assert_eq!(other.agents(query).await.unwrap().total, 1);
    let file = export(&*store, parent.agent).await;
    import(&*other, &file).await.unwrap();
    assert_eq!(other.find("parent").await.unwrap(), Some(parent.agent));
    for agent in [parent.agent, fork.agent] {
        compare(&*store, &*other, agent).await;
    }
    assert!(other.verify(None).await.unwrap().is_clean());
}

/// An agent that was there could not be imported at all.
pub async fn an_agent_that_is_there_is_imported_as_a_copy_with_a_chain_of_its_own<S: Subject>() {
    let home = S::new().await;
    let store = home.open().await;
    let (_, mut fork, _) = family(&*store).await;
    // A rewind speaks of its own agent.
    let here = fork.here();
    let events = fork.rewind(here.conversation, here.seq);
    fork.append(&*store, events).await;
    let before = store.load(fork.agent).await.unwrap();
    let file = export(&*store, fork.agent).await;
    let copy = agent_id(77);
    let imported = import_as(&*store, &file, "copy", copy).await.unwrap();
    assert_eq!((imported.agent, imported.displaced), (copy, None));

    // The same events, but for the ids of the agent; and behind them where they come from.
    let (old, new) = (
        events_of(&*store, fork.agent).await,
        events_of(&*store, copy).await,
    );
    let (same, added) = new.split_at(old.len());
    for (old, new) in old.iter().zip(same) {
        assert_eq!((old.seq, old.at, old.kind()), (new.seq, new.at, new.kind()));
        assert_eq!(new.agent, copy);
        let text = serde_json::to_string(&old).unwrap();
        let text = text.replace(&fork.agent.to_string(), &copy.to_string());
        assert_eq!(text, serde_json::to_string(&new).unwrap());
    }
    let Body::AgentImported(from) = &added[0].body else {
        panic!("{added:?}");
    };
    assert_eq!((from.agent, from.seq), (fork.agent, before.state.head));
    assert_eq!(from.chain.len(), 64);
    assert!(matches!(&added[1].body, Body::AgentRenamed(to) if to.name == "copy"));
    assert!(matches!(&added[2].body, Body::AgentHeld(_)));
    assert_eq!(added.len(), 3);
    assert_eq!(store.find("copy").await.unwrap(), Some(copy));
    assert_eq!(store.find("fork").await.unwrap(), Some(fork.agent));
    let loaded = store.load(copy).await.unwrap();
    // The same window, but for the agent whose events it names.
    let window = serde_json::to_string(&before.window).unwrap();
    let window = window.replace(&fork.agent.to_string(), &copy.to_string());
    assert_eq!(serde_json::to_string(&loaded.window).unwrap(), window);
    assert_eq!(store.load(fork.agent).await.unwrap(), before);
    assert!(store.verify(None).await.unwrap().is_clean());

    // A file that was changed is refused as ever.
    let text = unpack(&file).replacen("fork", "firk", 1);
    let refused = import_as(&*store, &pack(&text), "other", agent_id(78)).await;
    assert!(matches!(refused, Err(Error::BadExport(_))), "{refused:?}");
    // Elsewhere it keeps its id.
    let abroad = S::new().await;
    let other = abroad.open().await;
    let imported = import_as(&*other, &file, "renamed", agent_id(79))
        .await
        .unwrap();
    assert_eq!(imported.agent, fork.agent);
    assert_eq!(other.find("renamed").await.unwrap(), Some(fork.agent));
    let report = other.verify(None).await.unwrap();
    // The words that the parent had purged are gone there too.
    assert!(report.damaged.is_empty(), "{report:?}");
}

pub async fn an_agent_that_is_there_or_a_name_that_is_taken_is_refused<S: Subject>() {
    let (home, abroad) = (S::new().await, S::new().await);
    let store = home.open().await;
    let (mut parent, fork, _) = family(&*store).await;
    let file = export(&*store, fork.agent).await;
    let exists = |answer: Result<Imported, Error>, wanted: AgentId| {
        let Err(Error::AgentExists { agent }) = &answer else {
            panic!("{answer:?}");
        };
        assert_eq!(*agent, wanted);
    };
    exists(import(&*store, &file).await, fork.agent);

    let other = abroad.open().await;
    Author::create(&*other, 7, "fork").await;
    let refused = import(&*other, &file).await;
    assert!(matches!(refused, Err(Error::NameTaken { name }) if name == "fork"));
    let nothing = other.load(parent.agent).await;
    assert!(matches!(nothing, Err(Error::NoSuchAgent { .. })));

    // An archived one needs no name.
    let archived = parent.event(None, AgentArchived {});
    parent.append(&*store, vec![archived]).await;
    Author::create(&*other, 8, "parent").await;
    let whole = export(&*store, parent.agent).await;
    import(&*other, &whole).await.unwrap();
    assert!(other.load(parent.agent).await.unwrap().state.archived);
    assert!(other.verify(None).await.unwrap().is_clean());
    exists(import(&*other, &whole).await, parent.agent);
}

pub async fn an_ancestor_that_lives_here_is_not_written_to_by_an_import<S: Subject>() {
    let (home, abroad) = (S::new().await, S::new().await);
    let store = home.open().await;
    let mut parent = Author::create(&*store, 1, "parent").await;
    let events = parent.turn("first", "answer");
    parent.append(&*store, events).await;
    let early = export(&*store, parent.agent).await;
    let events = parent.turn("second", "answer");
    parent.append(&*store, events).await;
    let mut fork = Author::claim(&*store, 2).await;
    let events = fork.forked("fork", parent.here());
    fork.append(&*store, events).await;
    let file = export(&*store, fork.agent).await;

    // It has been here since before the fork, and has lived on, or not.
    let other = abroad.open().await;
    import(&*other, &early).await.unwrap();
    let before = other.load(parent.agent).await.unwrap();
    let refused = import(&*other, &file).await;
    assert!(matches!(refused, Err(Error::AgentExists { agent }) if agent == parent.agent));
    assert_eq!(other.load(parent.agent).await.unwrap(), before);
    parent.fence = other.claim(parent.agent, "abroad").await.unwrap().fence;
    let events = parent.turn("something else", "answer");
    parent.append(&*other, events).await;
    let refused = import(&*other, &file).await;
    assert!(matches!(refused, Err(Error::AgentExists { agent }) if agent == parent.agent));
    let nothing = other.load(fork.agent).await;
    assert!(matches!(nothing, Err(Error::NoSuchAgent { .. })));
    assert!(other.verify(None).await.unwrap().is_clean());
}

pub async fn a_file_that_is_cut_changed_or_not_ours_imports_nothing<S: Subject>() {
    let (home, abroad) = (S::new().await, S::new().await);
    let store = home.open().await;
    let (_, fork, _) = family(&*store).await;
    let file = export(&*store, fork.agent).await;
    let text = unpack(&file);
    let other = abroad.open().await;
    let mut tried = 0;
    let mut bad: Vec<(String, Vec<u8>)> = Vec::new();
    // Cut off: in its packed bytes, and after each of its lines.
    for cut in (0..file.len()).step_by(file.len() / 40 + 1) {
        bad.push((format!("cut at {cut}"), file[..cut].to_vec()));
    }
    let lines: Vec<&str> = text.lines().collect();
    for kept in 0..lines.len() {
        bad.push((format!("{kept} lines"), pack(&lines[..kept].join("\n"))));
    }
    // One line is missing, twice there, or has another letter or digit.
    for at in 0..lines.len() {
        let mut less = lines.clone();
        less.remove(at);
        bad.push((format!("without line {at}"), pack(&less.join("\n"))));
        let line = lines[at];
        for (index, old) in line
            .char_indices()
            .filter(|(_, c)| c.is_ascii_alphanumeric())
        {
            if index % 29 == at % 29 {
                let new = if old == '1' { "2" } else { "1" };
                let changed = format!("{}{new}{}", &line[..index], &line[index + 1..]);
                let mut changed_lines = lines.clone();
                changed_lines[at] = &changed;
                let what = format!("line {at}: {changed}");
                bad.push((what, pack(&changed_lines.join("\n"))));
            }
        }
    }
    // Not ours at all.
    for foreign in [
        "",
        "{}",
        "[1, 2]\n",
        "hello there\n",
        "{\"line\":\"export\"}",
    ] {
        bad.push((foreign.to_owned(), pack(foreign)));
        bad.push((foreign.to_owned(), foreign.as_bytes().to_vec()));
    }
    let newer = text.replacen("\"format\":1", "\"format\":2", 1);
    bad.push(("newer".to_owned(), pack(&newer)));
    for (what, file) in bad {
        tried += 1;
        match import(&*other, &file).await {
            Err(Error::BadExport(reason)) => {
                assert!(what != "newer" || reason.contains("upgrade"), "{reason}");
            }
            Err(Error::AgentExists { .. } | Error::NameTaken { .. }) => {
                panic!("{what}: something was imported before")
            }
            refused => panic!("{what}: {refused:?}"),
        }
    }
    println!("{tried} bad files");
    let report = other.verify(None).await.unwrap();
    assert_eq!((report.agents, report.events), (0, 0));
    assert!(report.is_clean(), "{report:?}");
    // The good one is good.
    import(&*other, &file).await.unwrap();
}

pub async fn a_flipped_bit_in_the_packed_file_is_refused_or_changes_nothing<S: Subject>() {
    let home = S::new().await;
    let store = home.open().await;
    let (_, fork, _) = family(&*store).await;
    let file = export(&*store, fork.agent).await;
    let mut whole = 0;
    let mut abroad = S::new().await;
    let mut other = abroad.open().await;
    for flip in 0..120_u64 {
        let bit = flip * 2_654_435_761 % (file.len() as u64 * 8);
        let mut changed = file.clone();
        changed[(bit / 8) as usize] ^= 1 << (bit % 8);
        match import(&*other, &changed).await {
            Ok(_) => {
                whole += 1;
                compare(&*store, &*other, fork.agent).await;
                abroad = S::new().await;
                other = abroad.open().await;
            }
            Err(Error::BadExport(_) | Error::ExportTooLarge { .. }) => {}
            Err(error) => panic!("bit {bit}: {error}"),
        }
    }
    println!("{whole} bits meant nothing");
}

pub async fn a_branch_in_the_same_agent_is_exported_with_it<S: Subject>() {
    let (home, abroad) = (S::new().await, S::new().await);
    let store = home.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    let events = author.turn("first", "answer");
    author.append(&*store, events).await;
    let Origin {
        conversation, seq, ..
    } = author.here();
    let events = author.reset();
    author.append(&*store, events).await;
    let events = author.rewind(conversation, seq);
    author.append(&*store, events).await;
    let events = author.turn("second", "answer");
    author.append(&*store, events).await;
    let other = abroad.open().await;
    let file = export(&*store, author.agent).await;
    import(&*other, &file).await.unwrap();
    author.fence = other.claim(author.agent, "abroad").await.unwrap().fence;
    let loaded = other.load(author.agent).await.unwrap();
    assert_eq!(loaded.window.items().len(), 4);
    let to = loaded.state.tree.undo_target().unwrap();
    let events = author.move_to(to, Direction::Undo);
    other
        .append(Append::new(author.fence, events))
        .await
        .unwrap();
    // A purge knows of the branch there, too.
    let at = Timestamp::from_millis(1);
    let refused = other.purge(author.fence, conversation, at).await;
    assert!(
        matches!(refused, Err(Error::PurgeNeeded { .. })),
        "{refused:?}"
    );
}

pub async fn a_branch_of_text_that_was_purged_here_is_not_imported<S: Subject>() {
    let (home, abroad) = (S::new().await, S::new().await);
    let store = home.open().await;
    let mut parent = Author::create(&*store, 1, "parent").await;
    let events = parent.turn("a secret", "kept");
    parent.append(&*store, events).await;
    let origin = parent.here();
    let events = parent.reset();
    parent.append(&*store, events).await;
    let mut fork = Author::claim(&*store, 2).await;
    let events = fork.forked("fork", origin);
    fork.append(&*store, events).await;
    let whole = export(&*store, parent.agent).await;
    let file = export(&*store, fork.agent).await;

    let other = abroad.open().await;
    import(&*other, &whole).await.unwrap();
    let fence = other.claim(parent.agent, "abroad").await.unwrap().fence;
    let at = Timestamp::from_millis(1);
    other.purge(fence, origin.conversation, at).await.unwrap();
    let before = events_of(&*other, parent.agent).await;
    let refused = import(&*other, &file).await;
    assert!(
        matches!(refused, Err(Error::OriginPurged { conversation }) if conversation == origin.conversation),
        "{refused:?}"
    );
    assert_eq!(events_of(&*other, parent.agent).await, before);
    assert!(!other.is_listed(fork.agent).await.unwrap());
    assert!(other.verify(None).await.unwrap().is_clean());
}
