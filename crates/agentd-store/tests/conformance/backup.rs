//! Backups: a store writes what it has, and only what is new when it is given a mark of its own.

use crate::author::Author;
use crate::subject::Subject;
use agentd_core::time::Timestamp;
use agentd_store::{BackedUp, BackupMark, BackupSink, Store};
use std::io;
use std::sync::{Arc, Mutex};

/// Counts the bytes of a backup.
#[derive(Clone, Default)]
struct Counted(Arc<Mutex<usize>>);

impl BackupSink for Counted {
    fn part(&mut self, part: &[u8]) -> io::Result<()> {
        assert!(part.len() <= agentd_store::MAX_PART);
        *self.0.lock().unwrap() += part.len();
        Ok(())
    }
}

async fn back_up(store: &dyn Store, since: Option<BackupMark>) -> (usize, BackedUp) {
    let counted = Counted::default();
    let done = store.back_up(Box::new(counted.clone()), since).await;
    let bytes = *counted.0.lock().unwrap();
    (bytes, done.unwrap())
}

pub async fn a_backup_after_a_mark_is_smaller_also_after_a_restart<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    for n in 0..50 {
        let events = author.turn("say", &format!("answer {n}"));
        author.append(&*store, events).await;
    }
    let (whole, first) = back_up(&*store, None).await;
    assert_eq!((first.agents, first.events), (1, author.head.0));
    drop(store);
    let store = subject.open().await;
    let (nothing, second) = back_up(&*store, Some(first.mark.clone())).await;
    assert_eq!(second.mark, first.mark);
    assert!(nothing < whole / 5, "{nothing} of {whole}");
    let mut author = Author::create(&*store, 2, "two").await;
    let events = author.turn("say", "more");
    author.append(&*store, events).await;
    let (more, third) = back_up(&*store, Some(second.mark)).await;
    assert!(nothing < more && more < whole, "{nothing} {more} {whole}");
    assert_ne!(third.mark, first.mark);
    assert_eq!(third.agents, 2);
}

pub async fn purged_conversations_are_listed_in_their_order<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    assert!(store.purged_conversations().await.unwrap().is_empty());
    let mut expected = Vec::new();
    for n in [2, 1] {
        let mut author = Author::create(&*store, n, &format!("agent-{n}")).await;
        let events = author.turn("say", "hello");
        author.append(&*store, events).await;
        let old = author.conversation;
        let events = author.reset();
        author.append(&*store, events).await;
        let at = Timestamp::from_millis(1);
        store.purge(author.fence, old, at).await.unwrap();
        expected.push((author.agent, old));
    }
    assert_eq!(store.purged_conversations().await.unwrap(), expected);
}
