//! `agentd chat` with a long history: the time from a key to the screen.

use std::time::{Duration, Instant};

use agentd_store::{Options, SqliteStore};
use agentd_testkit::harness::{Poll, Size, Terminal};
use anyhow::Result;

use super::bench_daemon::BenchDaemon;
use super::{Bed, line};
use crate::history;
use crate::report::{Aim, Line, Unit};

const MANY: usize = 20_000;
const FEW: usize = 10;
const SIZE: Size = Size::new(40, 120);
/// A frame of a screen that is drawn 60 times a second.
const MOST_MS: f64 = 16.0;
const POLL: Poll = Poll::new(Duration::from_micros(100), Duration::from_secs(120));
/// A screen that has not changed for so long is complete.
const STILL: Duration = Duration::from_secs(1);

const CTRL_HOME: &str = "\x1b[1;5H";
const PAGE_DOWN: &str = "\x1b[6~";
const PAGE_UP: &str = "\x1b[5~";

pub fn run(bed: &Bed) -> Result<Vec<Line>> {
    let mut daemon = BenchDaemon::new(bed)?;
    let store = SqliteStore::open(Options::new(daemon.home()))?;
    for (name, messages) in [("long", MANY), ("short", FEW)] {
        daemon.block(history::write(&store, name, messages))?;
    }
    drop(store);
    daemon.start()?;
    for name in ["long", "short"] {
        daemon.block(daemon.client().set_spec(name, &daemon.spec()))?;
    }
    let mut long = open(&daemon, "long")?;
    let mut short = open(&daemon, "short")?;
    let new = |what: &str| {
        line(
            format!("{what}, {MANY} messages"),
            format!("{FEW} messages"),
            Unit::Milliseconds,
            Some(Aim::OursAtMost(MOST_MS)),
        )
    };
    let mut typed = new("chat: a typed character");
    for _ in 0..bed.size(41, 101) {
        typed.ours.push(millis(&mut long, "x")?);
        typed.floor.push(millis(&mut short, "x")?);
    }
    let mut scrolled = new("chat: a page of the history");
    scrolled.floor_is = "a typed character".to_owned();
    // Loads the whole history, page by page.
    long.keys(CTRL_HOME)?;
    until_still(&long)?;
    for _ in 0..bed.size(21, 51) {
        scrolled.ours.push(millis(&mut long, PAGE_DOWN)?);
        scrolled.ours.push(millis(&mut long, PAGE_UP)?);
        scrolled.floor.push(millis(&mut short, "x")?);
        scrolled.floor.push(millis(&mut short, "x")?);
    }
    Ok(vec![typed, scrolled])
}

/// Opens the chat, and waits until it is drawn.
fn open(daemon: &BenchDaemon<'_>, name: &str) -> Result<Terminal> {
    let mut command = daemon.command();
    command.args(["chat", name]).env("TERM", "vt100");
    let terminal = Terminal::start(command, SIZE)?;
    terminal.until(POLL, "the prompt line", |screen| {
        screen.contains("Enter sends")
    })?;
    until_still(&terminal)?;
    Ok(terminal)
}

fn until_still(terminal: &Terminal) -> Result<()> {
    let mut last = (terminal.screen(), Instant::now());
    POLL.until("a screen that does not change", || {
        let screen = terminal.screen();
        if screen != last.0 {
            last = (screen, Instant::now());
        }
        (last.1.elapsed() >= STILL).then_some(())
    })?;
    Ok(())
}

/// Milliseconds from a key until the screen is another one.
fn millis(terminal: &mut Terminal, keys: &str) -> Result<f64> {
    let before = terminal.screen();
    let start = Instant::now();
    terminal.keys(keys)?;
    POLL.until("a change of the screen", || {
        (terminal.screen() != before).then_some(())
    })?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}
