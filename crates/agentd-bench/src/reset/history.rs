//! After a long history and after a short one, with the same window, in one home.

use agentd_store::{Options, SqliteStore};
use anyhow::{Result, ensure};

use super::{lines, times};
use crate::daemon::{Bed, BenchDaemon};
use crate::history;
use crate::report::Line;

/// Both histories end directly after a compaction, with a window of [`FEW`].
const MANY: usize = 100_040;
const MANY_SHORT: usize = 10_040;
const FEW: usize = 10;
/// The index of the first measured operation that goes back to an earlier position.
const BACK: usize = 2;

pub fn run(bed: &Bed) -> Result<Vec<Line>> {
    let messages = bed.size(MANY_SHORT, MANY);
    let mut daemon = BenchDaemon::new(bed)?;
    {
        let store = SqliteStore::open(Options::new(daemon.home()))?;
        let long = daemon.block(history::write(&store, "long", messages))?;
        let short = daemon.block(history::write(&store, "short", FEW))?;
        ensure!(long == short, "the windows differ: {long} and {short}");
    }
    daemon.start()?;
    for name in ["long", "short"] {
        daemon.block(daemon.client().set_spec(name, &daemon.spec()))?;
    }
    let floor = format!("{FEW} messages, same window");
    let half = lines(&format!("half way through {messages} messages"), &floor);
    let mut lines = Vec::from(lines(&format!("{messages} messages"), &floor));
    lines.extend(half.into_iter().skip(BACK));
    for round in 0..bed.size(21, 41) {
        let last = (messages / 2).to_string();
        let mut ours = Vec::from(times(&daemon, "long", &last, &format!("long-{round}"))?);
        let half = history::half_way(messages).to_string();
        let early = times(&daemon, "long", &half, &format!("half-{round}"))?;
        ours.extend(&early[BACK..]);
        let last = (FEW / 2).to_string();
        let mut floor = Vec::from(times(&daemon, "short", &last, &format!("short-{round}"))?);
        floor.extend_from_within(BACK..);
        for (line, (ours, floor)) in lines.iter_mut().zip(ours.into_iter().zip(floor)) {
            line.ours.push(ours);
            line.floor.push(floor);
        }
    }
    Ok(lines)
}
