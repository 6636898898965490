//! Many turns at once, each in a process of its own that is started for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::bench_daemon::BenchDaemon;
use super::{Bed, line};
use crate::measure::rate;
use crate::proc;
use crate::report::{Aim, Line, Unit};

/// How many turns are measured one at a time, as the floor.
const ALONE: usize = 8;
const LOOK: Duration = Duration::from_millis(100);
/// A request, a command, another request.
const PROMPT: &str = r#"do: call shell {"command":"echo done"} ;; deltas 20 | say done and done"#;

pub fn run(bed: &Bed) -> Result<Vec<Line>> {
    let count = bed.size(50, 200);
    let mut daemon = BenchDaemon::new(bed)?;
    daemon.start()?;
    daemon.create_all((0..count).map(name))?;
    let at_once = |what: &str, floor_is: &str, unit, aim| {
        line(
            format!("{what}, {count} turns at once"),
            floor_is.to_owned(),
            unit,
            aim,
        )
    };
    let none = Some(Aim::OursAtMost(0.0));
    let mut failed = at_once("not completed", "", Unit::Count, none);
    let mut took = at_once("in all", "", Unit::Milliseconds, None);
    let mut turns = at_once(
        "turns a second",
        "one after the other",
        Unit::PerSecond,
        None,
    );
    let mut processes = at_once("most processes", "", Unit::Count, None);
    let mut own = at_once("most memory of the daemon", "", Unit::Mebibytes, None);
    let mut others = at_once("most memory of all others", "", Unit::Mebibytes, None);
    for _ in 0..bed.size(3, 5) {
        let start = Instant::now();
        daemon.prompt_all((0..ALONE).map(name), PROMPT, 1)?;
        let alone = rate(ALONE, start.elapsed());
        daemon.until_asleep()?;
        let start = Instant::now();
        let (missed, most) = watched(daemon.pid()?, || {
            daemon.prompt_all((0..count).map(name), PROMPT, count)
        })?;
        let elapsed = start.elapsed();
        for answer in &missed {
            eprintln!("  not completed: {answer:?}");
        }
        daemon.until_asleep()?;
        failed.ours.push(missed.len() as f64);
        took.ours.push(elapsed.as_secs_f64() * 1e3);
        turns.ours.push(rate(count, elapsed));
        turns.floor.push(alone);
        processes.ours.push(most.processes as f64);
        own.ours.push(most.daemon);
        others.ours.push(most.others);
    }
    Ok(vec![failed, took, turns, processes, own, others])
}

fn name(number: usize) -> String {
    format!("agent-{number}")
}

/// The maxima during the work.
#[derive(Default)]
struct Most {
    processes: usize,
    daemon: f64,
    /// Runtimes, shims and tools; what they share is counted once.
    others: f64,
}

/// Does the work, and records the peak memory of the daemon and its descendants meanwhile.
fn watched<T>(daemon: u32, work: impl FnOnce() -> Result<T>) -> Result<(T, Most)> {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut most = Most::default();
            while !is_done.load(Ordering::Relaxed) {
                let children = proc::descendants(daemon);
                let others = children.iter().filter_map(|pid| proc::share(*pid));
                most.others = most.others.max(others.sum());
                most.processes = most.processes.max(1 + children.len());
                if let Ok(memory) = proc::memory(daemon) {
                    most.daemon = most.daemon.max(memory.now);
                }
                // tidy: polls
                thread::sleep(LOOK);
            }
            most
        });
        let done = work();
        is_done.store(true, Ordering::Relaxed);
        let most = watcher.join().ok().context("the watcher failed")?;
        Ok((done?, most))
    })
}
