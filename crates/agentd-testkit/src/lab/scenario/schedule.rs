//! Schedules on a clock that jumps: due times that are met, missed, and shown by the clock a second time.

use crate::lab::reader;
use crate::lab::testbed::{Result, Stuck, Testbed};

const AGENT: &str = "worker";
const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

pub fn run(testbed: &Testbed) -> Result<()> {
    testbed.create(AGENT, "")?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(testbed, AGENT));
        let done = turns(testbed);
        testbed.wait_idle(&[AGENT])?;
        done
    })
}

fn turns(testbed: &Testbed) -> Result<()> {
    add(
        testbed,
        1,
        &["--name", "once", "do: say an hour has passed"],
    )?;
    add(
        testbed,
        2,
        &[
            "--name",
            "all",
            "--missed",
            "all",
            "do: say each hour counts",
        ],
    )?;
    add(
        testbed,
        3,
        &["--name", "fresh", "--fresh", "do: say a fresh start"],
    )?;
    let op = testbed.op(4);
    let run = ["schedule", "run", AGENT, "once", "--op", &op, "--json"];
    testbed.order(AGENT, "schedule_run", Some(&op), &run)?;
    fired(testbed, 1)?;
    // Each is due once.
    jump(testbed, HOUR_MS + 5 * MINUTE_MS)?;
    fired(testbed, 4)?;
    // Four due times have passed: one firing for all of them, and one for each of `all`.
    jump(testbed, 5 * HOUR_MS + 5 * MINUTE_MS)?;
    fired(testbed, 10)?;
    // The same hours again: nothing is due.
    jump(testbed, 2 * HOUR_MS + 5 * MINUTE_MS)?;
    jump(testbed, 6 * HOUR_MS + 5 * MINUTE_MS)?;
    fired(testbed, 13)?;
    let op = testbed.op(5);
    let rm = ["schedule", "rm", AGENT, "fresh", "--op", &op, "--json"];
    testbed.order(AGENT, "schedule_rm", Some(&op), &rm)?;
    jump(testbed, 7 * HOUR_MS + 5 * MINUTE_MS)?;
    fired(testbed, 15)
}

/// Adds a schedule that is due every hour.
fn add(testbed: &Testbed, n: u64, more: &[&str]) -> Result<()> {
    let op = testbed.op(n);
    let mut args = vec![
        "schedule", "add", AGENT, "--every", "1h", "--op", &op, "--json",
    ];
    args.extend(more);
    let ran = testbed.order(AGENT, "schedule_add", Some(&op), &args)?;
    match ran.code {
        Some(0) => Ok(()),
        _ => Err(Stuck::Wrong(format!("not added: {}", ran.stderr))),
    }
}

/// Sets the clock, and does something so that the daemon looks at it.
fn jump(testbed: &Testbed, ms: i64) -> Result<()> {
    let file = agentd_failpoint::CLOCK_FILE;
    std::fs::write(testbed.root.join(file), ms.to_string())?;
    testbed.ask(AGENT, "do: say what time it is").map(drop)
}

/// Waits until so many due times were handled, and what they led to has ended.
fn fired(testbed: &Testbed, count: usize) -> Result<()> {
    testbed.until("the firings", || {
        let shown = testbed.look_after(AGENT)?;
        let events = testbed.events(AGENT)?;
        let fired = events.iter().filter(|it| it["kind"] == "schedule_fired");
        let is_done = fired.count() >= count && shown["phase"] == "idle";
        (is_done && shown["queued"] == 0).then_some(())
    })
}
