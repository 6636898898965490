//! The log of the daemon, and what becomes of a panic. Writing a log line never blocks, never fails and never
//! panics: lines go through a bounded queue to a thread of their own, which drops what it cannot write and says
//! later how many lines are missing. The file is capped: at its limit it is renamed to `.1` and begun anew.

mod file;

use file::LogFile;
use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;

/// Lines that wait for the thread. Past that they are dropped and counted.
const QUEUE: usize = 1024;
/// How long the end of the process waits for the last lines.
const LAST_LINES: Duration = Duration::from_millis(500);
/// The store's thread that writes: a daemon without it would refuse everything for ever. Another daemon has one.
const IRREPLACEABLE: &str = "store-writer";
/// The exit code of a Rust program that panicked.
const PANICKED: i32 = 101;

enum Message {
    Line(Vec<u8>),
    /// Answered once everything before it has been written, or dropped.
    Flush(SyncSender<()>),
}

/// The way to the thread that writes.
#[derive(Clone)]
pub struct Log {
    queue: SyncSender<Message>,
    /// Lines that were not written since the thread last said so.
    dropped: Arc<AtomicU64>,
}

impl Log {
    /// Logs to stderr from now on, panics included. Where stderr is the file at `path`, it is kept below `cap`
    /// bytes.
    pub fn start(level: tracing::Level, path: &Path, cap: u64) -> io::Result<Self> {
        let (queue, lines) = sync_channel(QUEUE);
        let log = Self {
            queue,
            dropped: Arc::default(),
        };
        let (file, dropped) = (LogFile::stderr(path, cap), Arc::clone(&log.dropped));
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_lines(&lines, &dropped, file))?;
        let subscriber = tracing_subscriber::fmt()
            .with_writer(log.clone())
            .with_ansi(false)
            .with_max_level(level)
            .with_target(false)
            // Otherwise a line that cannot be written would go to `eprintln!`, which panics.
            .log_internal_errors(false);
        // One that is there already is one of a test's.
        let _set_before = subscriber.try_init();
        let last = log.clone();
        std::panic::set_hook(Box::new(move |info| {
            let backtrace = std::backtrace::Backtrace::capture();
            tracing::error!("{}\n{backtrace}", described(info));
            if std::thread::current().name() == Some(IRREPLACEABLE) {
                last.flush();
                std::process::exit(PANICKED);
            }
        }));
        Ok(log)
    }

    fn line(&self, line: &[u8]) {
        if agentd_process::failpoint::injected_bug("log_panics") {
            write_or_panic(line);
            return;
        }
        match self.queue.try_send(Message::Line(line.to_vec())) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Waits a moment until what was logged is written.
    pub fn flush(&self) {
        let (done, is_done) = sync_channel(1);
        if self.queue.try_send(Message::Flush(done)).is_ok() {
            let _in_vain = is_done.recv_timeout(LAST_LINES);
        }
    }
}

/// An injected bug, for the lab: what a logger that falls back to `eprintln!` does. What a panic says is
/// not written that way: a second panic would end the process, and nothing would be left to be stuck.
#[expect(clippy::panic, reason = "an injected bug")]
fn write_or_panic(line: &[u8]) {
    if let Err(error) = io::stderr().write_all(line)
        && !std::thread::panicking()
    {
        panic!("failed printing to stderr: {error}");
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = LineWriter;

    fn make_writer(&'a self) -> LineWriter {
        LineWriter { log: self.clone() }
    }
}

/// Takes one event of the subscriber, which writes each in one piece.
pub struct LineWriter {
    log: Log,
}

impl Write for LineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.log.line(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_lines(lines: &Receiver<Message>, dropped: &AtomicU64, mut file: LogFile) {
    for message in lines {
        let line = match message {
            Message::Line(line) => line,
            Message::Flush(done) => {
                let _nobody_waits = done.try_send(());
                continue;
            }
        };
        let missing = dropped.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let note = format!("log lines missing here: {missing} (they could not be written)\n");
            if file.put(note.as_bytes()).is_err() {
                dropped.fetch_add(missing, Ordering::Relaxed);
            }
        }
        if file.put(&line).is_err() {
            dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What a panic has to say.
fn described(info: &PanicHookInfo<'_>) -> String {
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    let message = info.payload_as_str().unwrap_or("no message");
    match info.location() {
        Some(location) => format!("thread `{thread}` panicked at {location}: {message}"),
        None => format!("thread `{thread}` panicked: {message}"),
    }
}

/// For the process of one agent. All its tasks run on the thread that calls this: a panic on it ends the process,
/// for nobody would finish what the task had in hand. The daemon starts another process, which recovers. A panic on
/// another thread is an error of whoever waits for that thread.
pub fn end_at_panic(cap: u64) {
    let main = std::thread::current().id();
    std::panic::set_hook(Box::new(move |info| {
        let line = format!("{}\n", described(info));
        if file::stderr_length() < cap {
            // Where it cannot be written there is nobody left to tell.
            let _unheard = io::stderr().write_all(line.as_bytes());
        }
        if std::thread::current().id() == main {
            std::process::exit(PANICKED);
        }
    }));
}

#[cfg(test)]
mod tests;
