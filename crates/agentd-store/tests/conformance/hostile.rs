//! Files that a stranger made: refused with a reason, or imported and held.

use crate::author::{Author, agent_id, events_of};
use crate::export_file::export;
use crate::subject::Subject;
use agentd_core::event::{
    AgentReleased, AgentStarted, Body, CheckpointSet, HeldPart, Kind, OpReceipt, OpVerb, Operation,
};
use agentd_core::state::Phase;
use agentd_core::time::Timestamp;
use agentd_store::{Error, Import, ImportAs, Imported, Store};

async fn import(store: &dyn Store, file: &[u8], order: Import) -> Result<Imported, Error> {
    let file = std::io::Cursor::new(file.to_vec());
    store.import(Box::new(file), order).await
}

fn order() -> Import {
    Import::at(Timestamp::from_millis(5))
}

fn operation(op: &str, digest: &str) -> Option<Operation> {
    Some(Operation {
        op: op.parse().unwrap(),
        verb: OpVerb::Import,
        digest: digest.to_owned(),
        receipt: OpReceipt::None,
    })
}

pub async fn names_and_labels_with_control_characters_are_refused<S: Subject>() {
    let (home, abroad) = (S::new().await, S::new().await);
    let (store, other) = (home.open().await, abroad.open().await);
    let named = Author::create(&*store, 1, "evil\u{1b}[2J").await;
    let mut labelled = Author::create(&*store, 2, "plain").await;
    let label = CheckpointSet {
        label: "a\u{202e}b".to_owned(),
        at: None,
    };
    let event = labelled.event(None, label);
    labelled.append(&*store, vec![event]).await;
    for agent in [named.agent, labelled.agent] {
        let file = export(&*store, agent).await;
        let refused = import(&*other, &file, order()).await;
        assert!(matches!(refused, Err(Error::BadName { .. })), "{refused:?}");
        // Nor under another name: the old one would be an alias.
        let under = ImportAs {
            name: "good".to_owned(),
            id: agent_id(9),
        };
        let under = Some(under);
        let refused = import(&*other, &file, Import { under, ..order() }).await;
        assert!(matches!(refused, Err(Error::BadName { .. })), "{refused:?}");
        let nothing = other.load(agent).await;
        assert!(matches!(nothing, Err(Error::NoSuchAgent { .. })));
    }
    let as_id = Author::create(&*store, 3, &agent_id(4).to_string()).await;
    let file = export(&*store, as_id.agent).await;
    let refused = import(&*other, &file, order()).await;
    assert!(
        matches!(refused, Err(Error::NameIsId { .. })),
        "{refused:?}"
    );
}

/// A file can say that it was released; what the import appends comes later.
pub async fn nothing_in_a_file_keeps_it_from_being_held<S: Subject>() {
    let (home, abroad) = (S::new().await, S::new().await);
    let (store, other) = (home.open().await, abroad.open().await);
    let mut author = Author::create(&*store, 1, "evil").await;
    let kept = HeldPart::ALL.to_vec();
    let released = author.event(None, AgentReleased { kept });
    let started = author.event(None, AgentStarted {});
    let (_, mut events) = author.prompt("run it");
    events.extend([released, started]);
    author.append(&*store, events).await;
    let file = export(&*store, author.agent).await;
    import(&*other, &file, order()).await.unwrap();
    let state = other.load(author.agent).await.unwrap().state;
    assert!(state.is_held() && !state.needs_process());
    assert_eq!(state.phase(), Phase::Stopped);
    assert!(other.is_listed(author.agent).await.unwrap());
    assert!(!other.is_listed(agent_id(7)).await.unwrap());
}

pub async fn the_same_op_imports_once_and_holds_once<S: Subject>() {
    for copy in [None, Some("copy")] {
        let (home, abroad) = (S::new().await, S::new().await);
        let (store, other) = (home.open().await, abroad.open().await);
        let author = Author::create(&*store, 1, "one").await;
        let file = export(&*store, author.agent).await;
        let order = |op: &str, digest: &str| Import {
            operation: operation(op, digest),
            under: copy.map(|name| ImportAs {
                name: name.to_owned(),
                id: agent_id(77),
            }),
            ..order()
        };
        // Where the agent is there, a copy is made.
        for there in [&*other, &*store] {
            if there.is_listed(author.agent).await.unwrap() && copy.is_none() {
                continue;
            }
            let first = import(there, &file, order("op", "d")).await.unwrap();
            let before = events_of(there, first.agent).await;
            let added = &before[before.len() - 2..];
            assert!(matches!(added[0].body, Body::AgentHeld(_)), "{added:?}");
            assert!(matches!(added[1].body, Body::Operation(_)), "{added:?}");
            let again = import(there, &file, order("op", "d")).await.unwrap();
            assert_eq!((again.agent, again.events), (first.agent, 0));
            assert_eq!(events_of(there, first.agent).await, before);
            let held = before
                .iter()
                .filter(|event| event.kind() == Kind::AgentHeld);
            assert_eq!(held.count(), 1);
            let refused = import(there, &file, order("op", "other")).await;
            assert!(matches!(refused, Err(Error::OtherOp { .. })), "{refused:?}");
            assert!(there.verify(None).await.unwrap().is_clean());
        }
    }
}

/// A file of a few kilobytes that unpacks to gigabytes is refused when it has unpacked to the first of them.
pub async fn a_small_file_does_not_unpack_to_a_large_one<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut out = zstd::stream::write::Encoder::new(Vec::new(), 19).unwrap();
    let agent = agent_id(1);
    let first = format!("{{\"line\":\"export\",\"format\":1,\"agent\":\"{agent}\"}}\n");
    std::io::Write::write_all(&mut out, first.as_bytes()).unwrap();
    let blank = vec![b' '; 1 << 20];
    for _ in 0..100 {
        std::io::Write::write_all(&mut out, &blank).unwrap();
    }
    let file = out.finish().unwrap();
    assert!(file.len() < 100_000);
    let refused = import(&*store, &file, order()).await;
    let Err(Error::ExportTooLarge { limit, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(limit <= 64 << 20);
}
