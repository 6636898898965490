//! What one append costs when the agent's journal is long.

use agentd_core::event::NewEvent;
use agentd_store::{Append, Fence, SqliteStore, Store as _};
use anyhow::Result;

use super::{Bed, open};
use crate::journal::{Story, now};
use crate::measure::{Samples, median_micros};
use crate::report::{Aim, Line, Unit};

const LONG: usize = 100_000;
const SHORT: usize = 100;
/// So that an event's body is about 1 KiB.
const TEXT: usize = 930;
/// Few enough that a short journal is still short after them.
const TIMED: usize = 100;

pub fn run(bed: &Bed) -> Result<Vec<Line>> {
    let long_dir = bed.bench_dir.fresh()?;
    let short_dir = bed.bench_dir.fresh()?;
    let mut long = Journal::new(bed, open(long_dir.path())?, LONG)?;
    let short_store = open(short_dir.path())?;
    let mut ours = Samples::default();
    let mut floor = Samples::default();
    for _ in 0..bed.size(21, 61) {
        // A new agent each time, or the short one would grow.
        let mut short = Journal::new(bed, short_store.clone(), SHORT)?;
        ours.push(long.append_micros(bed)?);
        floor.push(short.append_micros(bed)?);
    }
    Ok(vec![Line {
        what: "append at 100,000 events".to_owned(),
        floor_is: "at 100 events".to_owned(),
        unit: Unit::Microseconds,
        ours,
        floor,
        aim: Some(Aim::AtMost(1.3)),
    }])
}

struct Journal {
    store: SqliteStore,
    story: Story,
    fence: Fence,
}

impl Journal {
    /// A new agent with this many events.
    fn new(bed: &Bed, store: SqliteStore, events: usize) -> Result<Self> {
        let name = format!("agent-{}", uuid::Uuid::now_v7());
        let (mut story, mut pending) = Story::begin(&name, 1);
        let claim = bed.runtime.block_on(store.claim(story.agent, "bench"))?;
        let append = |events| {
            let append = Append::new(claim.fence, events);
            bed.runtime.block_on(store.append(append)).map(drop)
        };
        let mut written = 0;
        // Turns as they come, compacted now and then: a window has an end, whatever the journal.
        for turn in 1.. {
            match turn % 25 {
                0 => story.compacting_turn(TEXT, 10, &mut pending),
                _ => story.turn(TEXT, &mut pending),
            }
            let full = written + pending.len() >= events;
            if full || pending.len() >= 1000 {
                written += pending.len();
                append(std::mem::take(&mut pending))?;
            }
            if full {
                break;
            }
        }
        bed.runtime.block_on(store.wait_caught_up())?;
        Ok(Self {
            store,
            story,
            fence: claim.fence,
        })
    }

    /// The median time of an append, with its answer.
    fn append_micros(&mut self, bed: &Bed) -> Result<f64> {
        let events: Vec<NewEvent> = (0..TIMED).map(|_| self.story.message(TEXT)).collect();
        let mut events = events.into_iter();
        let micros = median_micros(TIMED, || {
            let Some(mut event) = events.next() else {
                return Ok(());
            };
            event.at = now();
            let append = Append::new(self.fence, vec![event]);
            bed.runtime.block_on(self.store.append(append)).map(drop)
        })?;
        bed.runtime.block_on(self.store.wait_caught_up())?;
        Ok(micros)
    }
}
