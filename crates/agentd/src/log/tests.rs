//! Tests with a log that cannot be written.

use super::file::LogFile;
use super::{LineStyle, Log, Message, write_lines};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};

/// A disk that is full for a while: it takes half of a line, and then nothing.
#[derive(Clone, Default)]
struct Disk {
    is_full: Arc<AtomicBool>,
    kept: Arc<Mutex<Vec<u8>>>,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = self.kept.lock().unwrap();
        if !self.is_full.load(Ordering::Relaxed) {
            kept.extend(bytes);
            return Ok(bytes.len());
        }
        match bytes.len() {
            0..2 => Err(io::ErrorKind::StorageFull.into()),
            length => {
                kept.extend(&bytes[..length / 2]);
                Err(io::ErrorKind::StorageFull.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn log(bound: usize) -> (Log, Receiver<Message>) {
    let (queue, lines) = sync_channel(bound);
    let dropped = Arc::default();
    let style = LineStyle::Plain;
    (
        Log {
            style,
            queue,
            dropped,
        },
        lines,
    )
}

#[test]
fn lines_that_a_full_disk_does_not_take_are_counted_and_the_next_begins_on_a_line_of_its_own() {
    let (log, lines) = log(16);
    let disk = Disk::default();
    let (dropped, file) = (Arc::clone(&log.dropped), LogFile::to(disk.clone()));
    let writer = std::thread::spawn(move || write_lines(&lines, &dropped, file));
    log.line(b"before\n");
    log.flush();
    disk.is_full.store(true, Ordering::Relaxed);
    log.line(b"lost-1\n");
    log.line(b"lost-2\n");
    log.flush();
    disk.is_full.store(false, Ordering::Relaxed);
    log.line(b"after\n");
    log.flush();
    drop(log);
    writer.join().unwrap();
    let kept = String::from_utf8(disk.kept.lock().unwrap().clone()).unwrap();
    let expected = "before\nlos\nlog lines dropped: 2 (could not be written)\nafter\n";
    assert_eq!(kept, expected);
}

#[test]
fn a_writer_that_hangs_blocks_no_caller() {
    // No thread reads the queue.
    let (log, lines) = log(2);
    for _ in 0..100 {
        log.line(b"a line\n");
    }
    assert_eq!(log.dropped.load(Ordering::Relaxed), 98);
    drop(lines);
    log.line(b"and one more\n");
    assert_eq!(log.dropped.load(Ordering::Relaxed), 99);
}

#[test]
fn a_line_for_the_journal_begins_with_its_priority() {
    let (plain, lines) = log(4);
    let log = Log {
        style: LineStyle::Journal,
        ..plain
    };
    let subscriber = tracing_subscriber::fmt()
        .with_writer(log)
        .with_ansi(false)
        .with_target(false)
        .with_level(false)
        .without_time()
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        tracing::warn!(agent = "coder", "append rejected");
        tracing::info!("daemon ready");
    });
    let mut text = |message| match message {
        Message::Line(line) => String::from_utf8(line).unwrap(),
        Message::Flush(_) => String::new(),
    };
    let written: Vec<String> = lines.try_iter().map(&mut text).collect();
    assert_eq!(
        written,
        ["<4>append rejected agent=\"coder\"\n", "<6>daemon ready\n"]
    );
}
