//! The log of the daemon, and the handling of panics. Writing a log line never blocks, never fails and never
//! panics: lines go through a bounded queue to a separate thread, which drops what it cannot write and later logs
//! how many lines are missing. The size is limited: at the limit the file is renamed to `.1` and a new one begins.

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

/// Lines that may wait for the thread. Further lines are dropped and counted.
const QUEUE: usize = 1024;
/// How long the process waits for the last lines before it exits.
const LAST_LINES: Duration = Duration::from_millis(500);
/// The store's writer thread: without it the daemon would refuse every change, so a panic on it ends the daemon, and a
/// new one takes over.
const IRREPLACEABLE: &str = "store-writer";
/// The exit code of a Rust program that panicked.
const PANICKED: i32 = 101;

enum Message {
    Line(Vec<u8>),
    /// Answered once everything before it has been written, or dropped.
    Flush(SyncSender<()>),
}

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineStyle {
    Plain,
    /// For systemd's journal: each line begins with its priority.
    Journal,
}

/// The sending side of the queue to the thread that writes.
#[derive(Clone)]
pub struct Log {
    style: LineStyle,
    queue: SyncSender<Message>,
    /// Lines that were dropped since the thread last logged their number.
    dropped: Arc<AtomicU64>,
}

impl Log {
    /// Logs to stderr from now on, panics included. Where stderr is the file at `path`, it is kept below `cap`
    /// bytes.
    pub fn start(
        level: tracing::Level,
        style: LineStyle,
        path: &Path,
        cap: u64,
    ) -> io::Result<Self> {
        let (queue, lines) = sync_channel(QUEUE);
        let log = Self {
            style,
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
        // A test may have set a subscriber before.
        let _set_before = match style {
            LineStyle::Plain => subscriber.try_init(),
            // The journal has its own times and levels.
            LineStyle::Journal => subscriber.without_time().with_level(false).try_init(),
        };
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
        if agentd_failpoint::injected_bug("log_panics") {
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
            let _timed_out = is_done.recv_timeout(LAST_LINES);
        }
    }
}

/// An injected bug, for the lab: behaves like a logger that falls back to `eprintln!`. The message of a panic is not
/// written in this way: a second panic would end the process, and the lab needs a daemon that is stuck.
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
        LineWriter {
            log: self.clone(),
            priority: "",
        }
    }

    fn make_writer_for(&'a self, meta: &tracing::Metadata<'_>) -> LineWriter {
        LineWriter {
            log: self.clone(),
            priority: match self.style {
                LineStyle::Plain => "",
                LineStyle::Journal => priority(*meta.level()),
            },
        }
    }
}

/// The prefix by which systemd's journal knows the priority of a line.
const fn priority(level: tracing::Level) -> &'static str {
    match level {
        tracing::Level::ERROR => "<3>",
        tracing::Level::WARN => "<4>",
        tracing::Level::INFO => "<6>",
        _ => "<7>",
    }
}

/// Takes one event of the subscriber, which writes each in one piece.
pub struct LineWriter {
    log: Log,
    priority: &'static str,
}

impl Write for LineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.priority {
            "" => self.log.line(line),
            priority => self.log.line(&[priority.as_bytes(), line].concat()),
        }
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
                let _no_waiter = done.try_send(());
                continue;
            }
        };
        let missing = dropped.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let note = format!("log lines dropped: {missing} (could not be written)\n");
            if file.put(note.as_bytes()).is_err() {
                dropped.fetch_add(missing, Ordering::Relaxed);
            }
        }
        if file.put(&line).is_err() {
            dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The message of a panic, with its thread and location.
fn described(info: &PanicHookInfo<'_>) -> String {
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    let message = info.payload_as_str().unwrap_or("no message");
    match info.location() {
        Some(location) => format!("thread `{thread}` panicked at {location}: {message}"),
        None => format!("thread `{thread}` panicked: {message}"),
    }
}

/// For the process of one agent. All its async tasks run on the thread that calls this: a panic on it ends the process,
/// because no other task would finish the work of the one that panicked. The daemon starts another process, which
/// recovers. A panic on another thread becomes an error of the code that waits for that thread.
pub fn end_at_panic(cap: u64) {
    let main = std::thread::current().id();
    std::panic::set_hook(Box::new(move |info| {
        let line = format!("{}\n", described(info));
        if file::stderr_length() < cap {
            // If stderr cannot be written, the panic cannot be reported.
            let _ignored = io::stderr().write_all(line.as_bytes());
        }
        if std::thread::current().id() == main {
            std::process::exit(PANICKED);
        }
    }));
}

#[cfg(test)]
mod tests;
