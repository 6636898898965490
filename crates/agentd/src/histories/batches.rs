//! Reads the records of a session on another thread, so that Ctrl-C ends the command meanwhile.

use super::{Source, unreadable};
use crate::error::{Error, Exit};
use agentd_core::import_history::Record;
use std::thread;
use tokio::sync::mpsc;

/// The bytes of records that are passed on together.
const BATCH: usize = 256 * 1024;
/// What a record costs besides its text.
const RECORD: usize = 64;

enum Owned {
    Text(Vec<u8>),
    TooLong,
}

type Batch = Result<Vec<Owned>, Error>;

impl Source {
    /// Passes on its records, one at a time. If the future is dropped, the rest is read and passed over, at most until
    /// the process ends.
    pub async fn each_record(&self, each: &mut dyn FnMut(Record<'_>)) -> Result<(), Error> {
        let (sender, mut receiver) = mpsc::channel::<Batch>(1);
        let source = self.clone();
        let reader = thread::Builder::new()
            .name("history".to_owned())
            .spawn(move || source.send_batches(&sender))
            .map_err(|error| unreadable(&self.path, &error))?;
        while let Some(batch) = receiver.recv().await {
            for record in batch? {
                each(match &record {
                    Owned::Text(text) => Record::Text(text),
                    Owned::TooLong => Record::TooLong,
                });
            }
            // The next batch may be there already, and Ctrl-C must not wait for the last one.
            tokio::task::yield_now().await;
        }
        // A thread that panicked has not passed on everything.
        let ended = reader.join();
        ended.map_err(|_| Error::new(Exit::Failed, "the history cannot be read to its end"))
    }

    fn send_batches(&self, sender: &mpsc::Sender<Batch>) {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let read = self.records(&mut |record| {
            if sender.is_closed() {
                return;
            }
            let record = match record {
                Record::Text(text) => {
                    bytes += text.len();
                    Owned::Text(text.to_vec())
                }
                Record::TooLong => Owned::TooLong,
            };
            bytes += RECORD;
            batch.push(record);
            if bytes >= BATCH {
                bytes = 0;
                let _closed = sender.blocking_send(Ok(std::mem::take(&mut batch)));
            }
        });
        let _closed = sender.blocking_send(read.map(|()| batch));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Storage;
    use super::*;

    fn source(dir: &tempfile::TempDir, lines: usize) -> Source {
        let path = dir.path().join("session.jsonl");
        std::fs::write(
            &path,
            format!("{{\"a\":\"{}\"}}\n", "x".repeat(1000)).repeat(lines),
        )
        .unwrap();
        let storage = Storage::Lines;
        Source { path, storage }
    }

    #[tokio::test]
    async fn every_record_is_passed_on() {
        let dir = tempfile::tempdir().unwrap();
        for lines in [0, 1, 1000] {
            let mut found = 0;
            let source = source(&dir, lines);
            source.each_record(&mut |_| found += 1).await.unwrap();
            assert_eq!(found, lines);
        }
        let mut missing = source(&dir, 1);
        missing.path = dir.path().join("missing");
        assert!(missing.each_record(&mut |_| ()).await.is_err());
    }

    #[tokio::test]
    async fn other_work_has_its_turn_before_the_last_record() {
        let dir = tempfile::tempdir().unwrap();
        let source = source(&dir, 3000);
        let interrupt = async {
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        };
        let mut found = 0;
        let mut count = |_: Record<'_>| found += 1;
        let is_interrupted = tokio::select! {
            biased;
            () = interrupt => true,
            _ = source.each_record(&mut count) => false,
        };
        assert!(is_interrupted && found < 3000, "{found}");
    }
}
