//! Old contents of files are deleted, the oldest first, and nothing else changes.

use crate::author::{Author, events_of};
use crate::subject::Subject;
use agentd_core::event::{
    Body, FileBefore, FileChange, FileKept, FilesPurged, KeptBy, KeptContent, Kind, NewEvent,
    ToolEnded, ToolStarted, TurnEnded, TurnStarted, TurnStatus,
};
use agentd_core::id::{CallId, Seq};
use agentd_core::message::CallOutcome;
use agentd_core::time::Timestamp;
use agentd_store::{Error, KeepFiles, Store};

const AT: Timestamp = Timestamp::from_millis(1_800_000_000_000);

const fn keep(bytes: u64) -> KeepFiles {
    let largest = u64::MAX;
    KeepFiles { bytes, largest }
}

/// A turn that changes a file of this content, which is kept in so many parts.
fn edit(author: &mut Author, content: &str, parts: u32) -> Vec<NewEvent> {
    let turn = Some(author.turn_id());
    let call = CallId::new(format!("edit-{}", author.head));
    let size = content.len() as u64;
    let mut events = vec![author.event(turn, TurnStarted::default())];
    for part in 0..parts {
        let kept = FileKept {
            by: KeptBy::Call { call: call.clone() },
            path: "/file".to_owned(),
            before: FileBefore::File {
                mode: 0o644,
                size,
                hash: "hash".to_owned(),
                content: KeptContent::Text {
                    text: format!("{content}{part}"),
                },
            },
            part,
            parts,
        };
        events.push(author.event(turn, kept));
    }
    let started = ToolStarted {
        call: call.clone(),
        tool: "edit_file".to_owned(),
        task: None,
        boot: None,
        change: Some(FileChange {
            file: None,
            before: None,
            after: "hash".to_owned(),
            kept_bytes: size,
            is_private: false,
        }),
        patched: Vec::new(),
        may_change_files: false,
    };
    events.push(author.event(turn, started));
    events.push(author.event(turn, ToolEnded::new(call, CallOutcome::Ok)));
    let ended = TurnEnded::with(TurnStatus::Completed);
    events.push(author.event(turn, ended));
    events
}

async fn kept_bytes(store: &dyn Store, author: &Author) -> u64 {
    let loaded = store.load(author.agent).await.unwrap();
    loaded.state.files.kept_bytes
}

/// The kept files: their numbers, and whether they have their content.
async fn kept(store: &dyn Store, author: &Author) -> Vec<(Seq, bool)> {
    let events = events_of(store, author.agent).await;
    let kept = events.iter().filter(|event| event.kind() == Kind::FileKept);
    let has_body = |body: &Body| !matches!(body, Body::Gone(_));
    kept.map(|event| (event.seq, has_body(&event.body)))
        .collect()
}

pub async fn the_oldest_contents_go_and_the_conversation_stays<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    // Long enough to be stored apart.
    let contents = ["first ", "second ", "third "].map(|word| word.repeat(4000));
    let mut firsts = Vec::new();
    for (content, parts) in contents.iter().zip([2, 1, 1]) {
        let events = edit(&mut author, content, parts);
        let (first, _) = author.append(&*store, events).await;
        firsts.push(first);
    }
    let before = store.load(author.agent).await.unwrap();
    let all: u64 = contents.iter().map(|it| it.len() as u64).sum();
    assert_eq!(before.state.files.kept_bytes, all);
    assert_eq!(
        store
            .purge_files(author.fence, keep(all), AT)
            .await
            .unwrap(),
        None
    );

    let left = contents[2].len() as u64;
    let purged = store
        .purge_files(author.fence, keep(left), AT)
        .await
        .unwrap();
    let purged = purged.unwrap();
    let Body::Purged(body) = &purged.body else {
        panic!("{purged:?}");
    };
    let through = Seq(firsts[1].0 + 1);
    let bytes = all - left;
    assert_eq!(body.files, Some(FilesPurged { through, bytes }));
    assert_eq!(body.events, 3, "a file in two parts, and another one");
    let has: Vec<bool> = kept(&*store, &author).await.iter().map(|it| it.1).collect();
    assert_eq!(has, [false, false, false, true]);

    let after = store.load(author.agent).await.unwrap();
    assert_eq!(after.state.files.kept_bytes, left);
    assert_eq!(after.state.files.purged_through, through);
    assert_eq!(after.state.head, purged.seq);
    assert!(after.state.tree.iter().all(|it| !it.purged));
    assert_eq!(after.window, before.window);
    assert!(store.verify(None).await.unwrap().is_clean());
    // The newest stays, whatever is to be kept.
    assert_eq!(
        store.purge_files(author.fence, keep(0), AT).await.unwrap(),
        None
    );
    assert_eq!(kept_bytes(&*store, &author).await, left);
    // Unless it alone is larger than the limit, which was lowered.
    let (bytes, largest) = (0, left - 1);
    let purged = store.purge_files(author.fence, KeepFiles { bytes, largest }, AT);
    assert!(purged.await.unwrap().is_some());
    assert_eq!(kept_bytes(&*store, &author).await, 0);
    assert!(store.verify(None).await.unwrap().is_clean());
}

pub async fn a_count_that_does_not_match_is_corrected<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    let mut events = edit(&mut author, "content", 1);
    for event in &mut events {
        if let Body::ToolStarted(started) = &mut event.body {
            started.change.as_mut().unwrap().kept_bytes = 1_000_000;
        }
    }
    author.append(&*store, events).await;
    let purged = store
        .purge_files(author.fence, keep(100), AT)
        .await
        .unwrap();
    assert!(purged.is_some());
    assert_eq!(kept_bytes(&*store, &author).await, 7);
    assert_eq!(
        store
            .purge_files(author.fence, keep(100), AT)
            .await
            .unwrap(),
        None
    );
}

pub async fn an_owner_of_yesterday_purges_no_files<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    for content in ["one", "two"] {
        let events = edit(&mut author, content, 1);
        author.append(&*store, events).await;
    }
    store.claim(author.agent, "another").await.unwrap();
    let refused = store.purge_files(author.fence, keep(0), AT).await;
    assert!(
        matches!(refused, Err(Error::StaleFence { .. })),
        "{refused:?}"
    );
    let has = kept(&*store, &author).await;
    assert!(has.iter().all(|it| it.1), "{has:?}");
}

pub async fn a_purge_of_a_conversation_takes_its_files_along<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    let events = edit(&mut author, "first", 1);
    author.append(&*store, events).await;
    let first = author.conversation;
    let events = author.reset();
    author.append(&*store, events).await;
    let events = edit(&mut author, "second", 1);
    author.append(&*store, events).await;
    assert_eq!(kept_bytes(&*store, &author).await, 11);
    store.purge(author.fence, first, AT).await.unwrap();
    assert_eq!(kept_bytes(&*store, &author).await, 6);
    let has: Vec<bool> = kept(&*store, &author).await.iter().map(|it| it.1).collect();
    assert_eq!(has, [false, true]);
    assert!(store.verify(None).await.unwrap().is_clean());
}

pub async fn what_was_purged_is_exported_imported_and_forked_without_it<S: Subject>() {
    let (subject, other) = (S::new().await, S::new().await);
    let store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    for content in ["first", "second"] {
        let events = edit(&mut author, content, 1);
        author.append(&*store, events).await;
    }
    let purged = store.purge_files(author.fence, keep(6), AT).await.unwrap();
    author.head = purged.unwrap().seq;
    let mut fork = Author::claim(&*store, 2).await;
    let events = fork.forked("forked", author.here());
    fork.append(&*store, events).await;
    assert!(store.verify(None).await.unwrap().is_clean());

    let file = crate::export_file::export(&*store, author.agent).await;
    let imported = other.open().await;
    crate::export_file::import(&*imported, &file).await.unwrap();
    let loaded = imported.load(author.agent).await.unwrap();
    assert_eq!(loaded.state.files.kept_bytes, 6);
    assert!(imported.verify(None).await.unwrap().is_clean());
}
