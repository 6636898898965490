//! Export and import, past the store.

use crate::export_file::{Shelf, export, family, import};
use crate::lab::{Author, Lab, agent_id, run};
use agentd_core::id::Seq;
use agentd_core::time::Timestamp;
use agentd_store::{Error, Store as _};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

#[test]
fn words_that_were_purged_here_do_not_come_back_by_import() {
    let (home, abroad) = (Lab::new(), Lab::new());
    run(async {
        let store = home.open();
        let mut parent = Author::create(&store, 1, "parent").await;
        let events = parent.tool_turn("look", &"a secret ".repeat(2000), "seen");
        parent.append(&store, events).await;
        let origin = parent.here();
        let events = parent.reset();
        parent.append(&store, events).await;
        let mut fork = Author::claim(&store, 2).await;
        let events = fork.forked("fork", origin);
        fork.append(&store, events).await;
        let (whole, file) = (
            export(&store, parent.agent).await,
            export(&store, fork.agent).await,
        );
        let other = abroad.open();
        import(&other, &whole).await.unwrap();
        let fence = other.claim(parent.agent, "abroad").await.unwrap().fence;
        let at = Timestamp::from_millis(1);
        let done = other.purge(fence, origin.conversation, at).await.unwrap();
        assert_eq!(done.blobs, 1);
        let refused = import(&other, &file).await;
        assert!(
            matches!(refused, Err(Error::OriginPurged { .. })),
            "{refused:?}"
        );
        let texts: i64 = abroad
            .journal()
            .query_row(
                "SELECT count(*) FROM blob WHERE hash IS NOT NULL",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(texts, 0);
        assert!(other.verify(None).await.unwrap().is_clean());
    });
}

#[test]
fn a_damaged_agent_is_not_exported_as_if_it_were_whole() {
    let home = Lab::new();
    run(async {
        let (parent, fork, _) = family(&home.open()).await;
        home.journal()
            .execute("DELETE FROM event WHERE agent = 2 AND seq = 5", [])
            .unwrap();
        let store = home.open();
        let shelf = Shelf::default();
        let refused = store.export(fork.agent, Box::new(shelf)).await;
        assert!(matches!(refused, Err(Error::Damaged { seq: Seq(5), .. })));
        assert!(matches!(
            store.export(agent_id(99), Box::new(Shelf::default())).await,
            Err(Error::NoSuchAgent { .. })
        ));
        export(&store, parent.agent).await;
    });
}

/// A file that takes nothing until the gate is opened, by dropping its sender.
struct SlowFile {
    begun: UnboundedSender<()>,
    gate: Arc<Mutex<mpsc::Receiver<()>>>,
}

impl Write for SlowFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _gone = self.begun.send(());
        let _opened = self.gate.lock().unwrap().recv();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The daemon's watchdog asks for the end: a daemon with two long exports is alive.
#[test]
fn the_end_can_be_read_while_exports_occupy_all_readers() {
    let home = Lab::new();
    run(async {
        let store = home.open();
        let agent = Author::create(&store, 1, "agent").await.agent;
        let (begun, mut begins) = unbounded_channel();
        let (open, gate) = mpsc::channel();
        let gate = Arc::new(Mutex::new(gate));
        let mut exports = Vec::new();
        for _ in 0..home.options().readers {
            let file = SlowFile {
                begun: begun.clone(),
                gate: Arc::clone(&gate),
            };
            let store = store.clone();
            exports.push(tokio::spawn(async move {
                store.export(agent, Box::new(file)).await
            }));
            // It has a reader now, and keeps it.
            begins.recv().await.unwrap();
        }
        let end = tokio::time::timeout(Duration::from_secs(60), store.end()).await;
        drop(open);
        assert!(end.is_ok(), "the end waited for an export");
        for export in exports {
            export.await.unwrap().unwrap();
        }
    });
}
