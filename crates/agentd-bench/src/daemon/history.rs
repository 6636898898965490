//! An agent with a long history beside one with a short one and the same window, in one home.

use std::time::Instant;

use agentd_client::api::{Reset, Status};
use agentd_core::event::Direction;
use agentd_store::{Options, SqliteStore};
use anyhow::{Result, ensure};

use super::bench_daemon::{BenchDaemon, answer};
use super::{Bed, line};
use crate::history;
use crate::report::{Aim, Line, Unit};
use crate::turn::peer::micros_since;

/// Both histories end directly after a compaction, with a window of [`FEW`].
const MANY: usize = 100_040;
const MANY_SHORT: usize = 10_040;
const FEW: usize = 10;

pub fn run(bed: &Bed) -> Result<Vec<Line>> {
    let messages = bed.size(MANY_SHORT, MANY);
    let mut daemon = BenchDaemon::new(bed)?;
    write(&daemon, messages)?;
    daemon.start()?;
    for name in ["long", "short"] {
        daemon.block(daemon.client().set_spec(name, &daemon.spec()))?;
    }
    let asks: [(&str, f64); 6] = [
        ("show after a start", 1.5),
        ("show", 1.5),
        ("reset", 1.5),
        ("undo", 1.5),
        ("send, acknowledged", 1.5),
        ("send to the answer, from sleep", 1.5),
    ];
    let mut lines = asks.map(|(what, most)| {
        line(
            format!("{what}, {messages} messages"),
            format!("{FEW} messages, same window"),
            Unit::Microseconds,
            Some(Aim::AtMost(most)),
        )
    });
    for _ in 0..bed.size(11, 31) {
        daemon.kill()?;
        daemon.start()?;
        let (ours, floor) = (times(&daemon, "long")?, times(&daemon, "short")?);
        for (line, (ours, floor)) in lines.iter_mut().zip(ours.into_iter().zip(floor)) {
            line.ours.push(ours);
            line.floor.push(floor);
        }
    }
    Ok(lines.into())
}

fn write(daemon: &BenchDaemon<'_>, messages: usize) -> Result<()> {
    let store = SqliteStore::open(Options::new(daemon.home()))?;
    let long = daemon.block(history::write(&store, "long", messages))?;
    let short = daemon.block(history::write(&store, "short", FEW))?;
    ensure!(long == short, "the windows differ: {long} and {short}");
    Ok(())
}

/// Measures each operation once, in this order; a reset is undone, and then a turn runs.
fn times(daemon: &BenchDaemon<'_>, name: &str) -> Result<[f64; 6]> {
    let client = daemon.client();
    let show = || -> Result<f64> {
        let start = Instant::now();
        daemon.block(client.agent(name))?;
        Ok(micros_since(start))
    };
    let reset = |step| -> Result<f64> {
        let ask = Reset {
            step,
            ..Reset::default()
        };
        let start = Instant::now();
        daemon.block(client.reset(name, &ask))?;
        Ok(micros_since(start))
    };
    let (first, again) = (show()?, show()?);
    let (fresh, undone) = (reset(None)?, reset(Some(Direction::Undo))?);
    let prompt = daemon.prompt("do: say done");
    let start = Instant::now();
    let sent = daemon.block(client.send(name, &prompt))?;
    let acknowledged = micros_since(start);
    let answer = daemon.block(answer(&client, name, &sent))?;
    let answered = micros_since(start);
    ensure!(answer.status == Status::Completed, "{answer:?}");
    daemon.until_asleep()?;
    Ok([first, again, fresh, undone, acknowledged, answered])
}
