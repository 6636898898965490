//! In a home with many agents, and in one with a few.

use anyhow::{Result, ensure};

use super::{lines, times};
use crate::daemon::{Bed, BenchDaemon};
use crate::measure::Samples;
use crate::report::Line;

const FEW: usize = 10;
/// How many agents have been prompted; they are reset in turn.
const PROMPTED: usize = 5;
/// How often each operation is measured in a round.
const CALLS: usize = 5;

pub fn run(bed: &Bed) -> Result<Vec<Line>> {
    let size = bed.size(1000, 10_000);
    let (many, few) = (filled(bed, size)?, filled(bed, FEW)?);
    let mut lines = lines(&format!("{size} agents"), &format!("{FEW} agents"));
    for round in 0..bed.size(9, 21) {
        let mut ours: [Samples; 4] = Default::default();
        let mut floor: [Samples; 4] = Default::default();
        for call in 0..CALLS {
            let (name, fork) = (name(call % PROMPTED), format!("fork-{round}-{call}"));
            for (daemon, samples) in [(&many, &mut ours), (&few, &mut floor)] {
                let took = times(daemon, &name, "1", &fork)?;
                for (samples, took) in samples.iter_mut().zip(took) {
                    samples.push(took);
                }
            }
        }
        for (line, (ours, floor)) in lines.iter_mut().zip(ours.iter().zip(&floor)) {
            line.ours.push(ours.median());
            line.floor.push(floor.median());
        }
    }
    Ok(lines.into())
}

fn filled(bed: &Bed, count: usize) -> Result<BenchDaemon<'_>> {
    let mut daemon = BenchDaemon::new(bed)?;
    daemon.start()?;
    daemon.create_all((0..count).map(name))?;
    let failed = daemon.prompt_all((0..PROMPTED).map(name), "do: say done", 4)?;
    ensure!(failed.is_empty(), "not all turns completed: {failed:?}");
    daemon.until_asleep()?;
    Ok(daemon)
}

fn name(number: usize) -> String {
    format!("agent-{number}")
}
