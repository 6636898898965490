//! The live view in line mode: on an ordinary terminal, among the lines of other commands. A separate thread writes, so
//! that a terminal that is stopped does not keep the command from handling Ctrl-C.

use super::line::Line;
use super::rows::{Kind, Piece, Rows};
use super::view::{Moment, Options, View};
use crate::error::Error;
use crate::follow::Seen;
use crate::terminal;
use agentd_core::event::Event;
use agentd_daemon::clock;
use std::io;
use std::sync::mpsc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Interval, MissedTickBehavior, interval};

const TICK: Duration = Duration::from_millis(100);
/// How long to wait for the last lines to be written.
const LAST_LINES: Duration = Duration::from_secs(5);
/// The size of a terminal that does not say its size.
const USUAL: (usize, usize) = (80, 24);
/// A smaller terminal has no rows at the bottom: it would break them, or they would not fit, and they could not be erased.
const NARROWEST: usize = 20;
const LOWEST: usize = 3;
/// Rows that the growing text may take at most.
const GROWING: usize = 12;

enum Write {
    Pieces(Vec<Piece>),
    Done(mpsc::Sender<()>),
}

pub struct LineMode {
    view: View,
    rows: Rows,
    writer: mpsc::Sender<Write>,
    ticks: Interval,
    resized: Signal,
}

impl LineMode {
    pub fn new(options: Options) -> Result<Self, Error> {
        let (writer, queue) = mpsc::channel();
        std::thread::spawn(move || write(&queue));
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Ok(Self {
            view: View::new(options),
            rows: Rows::new(Kind::of(|name| std::env::var(name).ok())),
            writer,
            ticks,
            resized: signal(SignalKind::window_change()).map_err(Error::no_runtime)?,
        })
    }

    /// Takes notice of an event that happened before.
    pub fn prime(&mut self, event: &Event) {
        self.view.prime(event, moment());
    }

    /// Shows what was seen. `number` is that of the conversation that an event begins.
    pub fn seen(&mut self, seen: &Seen, number: Option<u32>) {
        let moment = moment();
        let lines = match seen {
            Seen::Event(event) => self.view.event(event, number, moment),
            Seen::Delta(delta) => self.view.delta(delta, moment),
            Seen::Progress(progress) => {
                self.view.progress(progress);
                Vec::new()
            }
            Seen::CaughtUp | Seen::Lost | Seen::Found => Vec::new(),
        };
        self.draw(&lines);
    }

    /// Why the turn of the prompt cannot begin yet. The next change shows it.
    pub fn set_waits(&mut self, why: Option<&str>) {
        self.view.set_waits(why);
    }

    /// Shows the answer, unless it was shown already.
    pub fn answer(&mut self, text: &str) {
        let lines = self.view.answer(text, moment().width);
        self.draw(&lines);
    }

    /// Returns when the status line is due, or the terminal has another size.
    pub async fn ticked(&mut self) {
        tokio::select! {
            _ = self.ticks.tick() => {}
            _ = self.resized.recv() => {}
        }
    }

    pub fn tick(&mut self) {
        self.draw(&[]);
    }

    /// Removes the rows at the bottom, except the text that broke off, and waits until everything is written.
    pub fn finish(&mut self) {
        let width = width();
        let rest = self.view.unfinished(width);
        let pieces = self.rows.draw(&rest, Vec::new(), width);
        let (done, is_done) = mpsc::channel();
        // The thread ends when the output is closed.
        let _closed = self.writer.send(Write::Pieces(pieces));
        let _closed = self.writer.send(Write::Done(done));
        let _timed_out = is_done.recv_timeout(LAST_LINES);
    }

    /// Removes the rows at the bottom, because the user is asked something. The next change shows them again.
    pub fn pause(&mut self) {
        self.finish();
        self.rows.ask();
    }

    fn draw(&mut self, finished: &[Line]) {
        let moment = moment();
        let rows = self.bottom(moment);
        let pieces = self.rows.draw(finished, rows, moment.width);
        if !pieces.is_empty() {
            let _closed = self.writer.send(Write::Pieces(pieces));
        }
    }

    /// The rows at the bottom: the text that is still growing, and the status line.
    fn bottom(&self, Moment { now, width }: Moment) -> Vec<Line> {
        let (columns, height) = size();
        if columns < NARROWEST || height < LOWEST {
            return Vec::new();
        }
        let mut rows = self.view.growing(width);
        let most = GROWING.min(height - LOWEST).max(1);
        rows.drain(..rows.len().saturating_sub(most));
        rows.extend(self.view.status(now, width));
        rows.iter().map(|row| row.truncated(width)).collect()
    }
}

/// The rows at the bottom never stay behind, however the command ends.
impl Drop for LineMode {
    fn drop(&mut self) {
        self.finish();
    }
}

fn write(queue: &mpsc::Receiver<Write>) {
    let mut out = terminal::stdout();
    for write in queue {
        let written: io::Result<()> = match write {
            Write::Pieces(pieces) => pieces
                .iter()
                .try_for_each(|piece| match piece {
                    Piece::Text(text) => out.text(text),
                    Piece::Control(text) => out.own(text),
                })
                .and_then(|()| out.flush()),
            Write::Done(done) => done.send(()).map_err(io::Error::other),
        };
        if written.is_err() {
            return;
        }
    }
}

fn moment() -> Moment {
    let now = clock::now();
    let width = width();
    Moment { now, width }
}

/// The columns that a row may take: a terminal breaks a row that fills it completely.
fn width() -> usize {
    size().0.max(NARROWEST) - 1
}

fn size() -> (usize, usize) {
    let Ok(size) = rustix::termios::tcgetwinsize(io::stdout()) else {
        return USUAL;
    };
    match (usize::from(size.ws_col), usize::from(size.ws_row)) {
        (0, _) | (_, 0) => USUAL,
        size => size,
    }
}
