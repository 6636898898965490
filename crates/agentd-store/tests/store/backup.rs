//! Backups of the journal: what comes back is what was there at one moment, and nothing that was purged since.

use crate::lab::{Author, Lab, events_of, run};
use agentd_core::event::Event;
use agentd_core::id::AgentId;
use agentd_core::time::Timestamp;
use agentd_store::{
    BackedUp, BackupMark, BackupSink, Error, JournalRestore, Link, Options, SqliteStore, Store as _,
};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The parts of one backup.
#[derive(Clone, Default)]
struct Parts(Arc<Mutex<Vec<Vec<u8>>>>);

impl BackupSink for Parts {
    fn part(&mut self, part: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().push(part.to_vec());
        Ok(())
    }
}

/// A backup, and how far it goes.
struct Made {
    parts: Vec<Vec<u8>>,
    done: BackedUp,
}

async fn back_up(store: &SqliteStore, since: Option<BackupMark>) -> Result<Made, Error> {
    let parts = Parts::default();
    let done = store.back_up(Box::new(parts.clone()), since).await?;
    let parts = std::mem::take(&mut *parts.0.lock().unwrap());
    Ok(Made { parts, done })
}

/// Builds a journal from a chain, given with the first backup first.
fn restore(dir: &Path, chain: &[Made]) -> Result<SqliteStore, Error> {
    let options = Options::new(dir);
    let last = &chain.last().unwrap().done.mark;
    let mut journal = JournalRestore::begin(&options, last)?;
    for (n, made) in chain.iter().rev().enumerate() {
        let link = if n == 0 { Link::Last } else { Link::Earlier };
        for part in &made.parts {
            journal.part(link, part)?;
        }
    }
    journal.finish()?;
    let report = SqliteStore::inspect(&options)?;
    assert!(report.is_clean(), "{report:?}");
    SqliteStore::open(options)
}

async fn all(store: &SqliteStore, agents: &[AgentId]) -> Vec<Vec<Event>> {
    let mut found = Vec::new();
    for agent in agents {
        found.push(events_of(store, *agent).await);
    }
    found
}

fn has(dir: &Path, words: &str) -> bool {
    let files = std::fs::read_dir(dir).unwrap();
    files.flatten().any(|entry| {
        let bytes = std::fs::read(entry.path()).unwrap();
        bytes
            .windows(words.len())
            .any(|part| part == words.as_bytes())
    })
}

#[test]
fn everything_that_was_acknowledged_before_it_began_comes_back() {
    let (home, abroad) = (Lab::new(), tempfile::tempdir().unwrap());
    run(async {
        let store = home.open();
        let mut first = Author::create(&store, 1, "first").await;
        let mut second = Author::create(&store, 2, "second").await;
        let events = first.tool_turn("look", &"a long result ".repeat(5000), "seen");
        first.append(&store, events).await;
        let agents = [first.agent, second.agent];
        let before = all(&store, &agents).await;
        // One agent goes on while the backup is made.
        let writer = {
            let store = store.clone();
            tokio::spawn(async move {
                for n in 0..200 {
                    let events = second.turn("more", &format!("answer {n}"));
                    second.append(&store, events).await;
                }
            })
        };
        let made = back_up(&store, None).await.unwrap();
        writer.await.unwrap();
        assert_eq!(made.done.agents, 2);
        let restored = restore(abroad.path(), &[made]).unwrap();
        let after = all(&restored, &agents).await;
        assert_eq!(after[0], before[0]);
        assert!(after[1].starts_with(&before[1]));
        let now = all(&store, &agents).await;
        assert!(now[1].starts_with(&after[1]));
        // It can be written to.
        let mut again = Author::create(&restored, 3, "third").await;
        let events = again.turn("hello", "there");
        again.append(&restored, events).await;
        assert_eq!(restored.find("first").await.unwrap(), Some(agents[0]));
        assert!(restored.verify(None).await.unwrap().is_clean());
    });
}

/// After each round, the chain up to there is what the journal was.
#[test]
fn each_prefix_of_a_chain_is_the_journal_of_that_moment() {
    let home = Lab::new();
    run(async {
        let store = home.open();
        let mut authors = Vec::new();
        for n in 1..=3 {
            authors.push(Author::create(&store, n, &format!("agent-{n}")).await);
        }
        let agents: Vec<AgentId> = authors.iter().map(|author| author.agent).collect();
        let (mut chain, mut moments) = (Vec::<Made>::new(), Vec::new());
        let mut x: u64 = 0x9e37_79b9_7f4a_7c15;
        for round in 0..12 {
            for step in 0..4_u64 {
                x = x.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
                let author = &mut authors[(x >> 40) as usize % 3];
                let old = author.conversation;
                match (x >> 20) % 4 {
                    0 => {
                        let events = author.reset();
                        author.append(&store, events).await;
                        let at = Timestamp::from_millis(1);
                        store.purge(author.fence, old, at).await.unwrap();
                    }
                    1 => {
                        // The same long text in several agents is stored once.
                        let text = format!("text {} ", x % 3).repeat(4000);
                        let events = author.tool_turn("look", &text, "seen");
                        author.append(&store, events).await;
                    }
                    _ => {
                        let events = author.turn("say", &format!("round {round} step {step}"));
                        author.append(&store, events).await;
                    }
                }
            }
            let since = chain.last().map(|made| made.done.mark.clone());
            chain.push(back_up(&store, since).await.unwrap());
            moments.push(all(&store, &agents).await);
        }
        for (n, moment) in moments.iter().enumerate() {
            let dir = tempfile::tempdir().unwrap();
            let restored = restore(dir.path(), &chain[..=n]).unwrap();
            assert_eq!(&all(&restored, &agents).await, moment, "round {n}");
        }
        let sizes: Vec<usize> = chain
            .iter()
            .map(|made| made.parts.iter().map(Vec::len).sum())
            .collect();
        assert!(chain.len() == 12 && sizes.iter().all(|size| *size > 0));
    });
}

#[test]
fn text_that_a_later_backup_knows_to_be_purged_is_never_written() {
    let (home, abroad) = (Lab::new(), tempfile::tempdir().unwrap());
    let secret = "zqxjvk-words-of-the-purged-conversation";
    run(async {
        let store = home.open();
        let mut author = Author::create(&store, 1, "coder").await;
        let events = author.turn("say", secret);
        author.append(&store, events).await;
        let full = back_up(&store, None).await.unwrap();
        let old = author.conversation;
        let events = author.reset();
        author.append(&store, events).await;
        let at = Timestamp::from_millis(1);
        store.purge(author.fence, old, at).await.unwrap();
        assert_eq!(
            store.purged_conversations().await.unwrap(),
            [(author.agent, old)]
        );
        let mark = full.done.mark.clone();
        let later = back_up(&store, Some(mark)).await.unwrap();
        let whole = tempfile::tempdir().unwrap();
        let chain = [full, later];
        drop(restore(whole.path(), &chain[..1]).unwrap());
        assert!(has(whole.path(), secret), "the first backup has it");
        drop(restore(abroad.path(), &chain).unwrap());
        assert!(!has(abroad.path(), secret));
        let purged = SqliteStore::purged_in(&Options::new(abroad.path()));
        assert_eq!(purged.unwrap(), [(author.agent, old)]);
    });
}

#[test]
fn a_journal_that_does_not_continue_the_earlier_one_is_refused() {
    let (home, other) = (Lab::new(), Lab::new());
    run(async {
        let mut marks = Vec::new();
        for lab in [&home, &other] {
            let store = lab.open();
            let mut author = Author::create(&store, 1, "coder").await;
            let events = author.turn("say", "hello");
            author.append(&store, events).await;
            marks.push(back_up(&store, None).await.unwrap().done.mark);
        }
        let store = home.open();
        let refused = back_up(&store, Some(marks.remove(1))).await;
        assert!(matches!(refused, Err(Error::OtherJournal)));
        back_up(&store, marks.pop()).await.unwrap();
    });
}

/// A sink that fails ends the backup, and the store goes on.
#[test]
fn a_backup_that_cannot_be_written_is_an_error_and_nothing_else() {
    struct Full;
    impl BackupSink for Full {
        fn part(&mut self, _: &[u8]) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }
    let home = Lab::new();
    run(async {
        let store = home.open();
        let mut author = Author::create(&store, 1, "coder").await;
        let refused = store.back_up(Box::new(Full), None).await;
        assert!(matches!(refused, Err(Error::BackupIo(_))), "{refused:?}");
        let events = author.turn("say", "hello");
        author.append(&store, events).await;
    });
}

/// Each part with one bit changed, or cut off: an error, or a journal that the check refuses, or the same journal.
#[test]
fn parts_that_were_changed_never_become_another_journal() {
    let home = Lab::new();
    run(async {
        let store = home.open();
        let mut author = Author::create(&store, 1, "coder").await;
        let events = author.turn("say", "hello");
        author.append(&store, events).await;
        let made = back_up(&store, None).await.unwrap();
        let events = events_of(&store, author.agent).await;
        for (n, part) in made.parts.iter().enumerate() {
            let step = (part.len() / 40).max(1);
            for at in (0..part.len()).step_by(step) {
                let mut parts = made.parts.clone();
                parts[n][at] ^= 1 << (at % 8);
                let done = made.done.clone();
                check_changed(&events, author.agent, Made { parts, done }).await;
                let mut parts = made.parts.clone();
                parts[n].truncate(at);
                let done = made.done.clone();
                check_changed(&events, author.agent, Made { parts, done }).await;
            }
        }
    });
}

async fn check_changed(events: &[Event], agent: AgentId, made: Made) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new(dir.path());
    let mut journal = JournalRestore::begin(&options, &made.done.mark).unwrap();
    for part in &made.parts {
        if let Err(error) = journal.part(Link::Last, part) {
            assert!(matches!(error, Error::BadBackup(_)), "{error:?}");
            return;
        }
    }
    if let Err(error) = journal.finish() {
        assert!(matches!(error, Error::BadBackup(_)), "{error:?}");
        return;
    }
    let Ok(report) = SqliteStore::inspect(&options) else {
        return;
    };
    if report.is_clean() {
        // Columns that the journal itself does not cover, such as who owned it.
        let store = SqliteStore::open(options).unwrap();
        assert_eq!(events_of(&store, agent).await, events);
    }
}
