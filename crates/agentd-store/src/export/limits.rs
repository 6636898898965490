//! Limits on the size of an export that is read, and on what it may unpack to: the file is untrusted.

use crate::apart::MAX_EVENT_BYTES;
use crate::error::{Error, Result};
use crate::stored::StoredEvent;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub events: u64,
    /// Bytes of one event, or of a text that is stored separately: the same limit as for an append.
    pub event: u64,
    /// Bytes of one line. JSON escapes can make it longer than the event.
    pub line: u64,
    /// Bytes of all lines.
    pub expanded: u64,
    /// Unpacked bytes that are allowed for any file, however small.
    pub free: u64,
    /// Beyond that, how many bytes each compressed byte may become. Real conversations stay far below it; a file that
    /// was built to exhaust memory does not.
    pub ratio: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            events: 5_000_000,
            event: MAX_EVENT_BYTES as u64,
            line: 2 * MAX_EVENT_BYTES as u64,
            expanded: 4 * 1024 * 1024 * 1024,
            free: 64 * 1024 * 1024,
            ratio: 100,
        }
    }
}

impl Limits {
    /// For an injected bug.
    pub const NONE: Self = Self {
        events: u64::MAX,
        event: u64::MAX,
        line: u64::MAX - 1,
        expanded: u64::MAX,
        free: u64::MAX,
        ratio: 1,
    };

    pub fn check_events(&self, events: u64) -> Result<()> {
        within("the number of events", events, self.events)
    }

    pub fn check_line(&self, bytes: u64) -> Result<()> {
        within("the bytes of one line", bytes, self.line)
    }

    pub fn check_event(&self, row: &StoredEvent) -> Result<()> {
        let body = row.body.as_ref().map_or(0, String::len);
        let apart = row.apart.as_ref().map_or(0, String::len);
        within("the bytes of one event", (body + apart) as u64, self.event)
    }

    pub fn check_blob(&self, text: &str) -> Result<()> {
        within("the bytes of one event", text.len() as u64, self.event)
    }

    pub fn check_expanded(&self, bytes: u64, packed: &Count) -> Result<()> {
        within("the unpacked bytes", bytes, self.expanded)?;
        let ratio = packed.get().saturating_mul(self.ratio);
        within(
            "the unpacked bytes of a file of this size",
            bytes,
            ratio.max(self.free),
        )
    }
}

const fn within(what: &'static str, found: u64, limit: u64) -> Result<()> {
    match found > limit {
        true => Err(Error::ExportTooLarge { what, limit }),
        false => Ok(()),
    }
}

/// Counts the bytes that are read from the file.
pub struct Metered<R> {
    input: R,
    count: Count,
}

#[derive(Clone, Debug, Default)]
pub struct Count(Arc<AtomicU64>);

impl Count {
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl<R> Metered<R> {
    pub fn new(input: R) -> Self {
        let count = Count::default();
        Self { input, count }
    }

    pub fn count(&self) -> Count {
        self.count.clone()
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(into)?;
        self.count.0.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Checks, Error, Items, Limits};
    use std::io::Cursor;

    fn small() -> Limits {
        Limits {
            events: 3,
            event: 1000,
            line: 1000,
            expanded: 5000,
            free: 2000,
            ratio: 10,
        }
    }

    fn refusal(text: &str) -> (&'static str, u64) {
        let file = zstd::stream::encode_all(text.as_bytes(), 3).unwrap();
        let read = Items::open(Cursor::new(file), small(), Checks::All).and_then(|mut items| {
            while items.next()?.is_some() {}
            Ok(())
        });
        match read {
            Err(Error::ExportTooLarge { what, limit }) => (what, limit),
            Err(other) => panic!("{other}"),
            Ok(()) => panic!("it was read"),
        }
    }

    const FIRST: &str =
        "{\"line\":\"export\",\"format\":1,\"agent\":\"019b76da-a800-7000-8000-000000000005\"}\n";
    const JOURNAL: &str =
        "{\"line\":\"journal\",\"agent\":\"019b76da-a800-7000-8000-000000000005\"}\n";

    #[test]
    fn one_long_line_is_not_read_to_its_end() {
        let text = format!("{FIRST}{}", " ".repeat(100_000));
        assert_eq!(refusal(&text), ("the bytes of one line", 1000));
    }

    #[test]
    fn a_small_file_may_not_become_a_large_one() {
        let text = format!("{FIRST}{}", JOURNAL.repeat(10_000));
        let (what, limit) = refusal(&text);
        assert!(what.contains("unpacked bytes"), "{what}");
        assert!(limit <= 5000);
    }
}
