//! Durable appends per second, with 1 and with 64 producers. Each producer waits for each answer.

use std::path::Path;
use std::time::{Duration, Instant};

use agentd_core::event::NewEvent;
use agentd_core::id::Incarnation;
use agentd_store::{Append, Fence, Source, SqliteStore, Store as _};
use anyhow::{Context, Result};
use tokio::task::JoinSet;

use super::floor::{self, Rows};
use super::{Bed, open};
use crate::journal::{Story, now};
use crate::measure::{Samples, rate};
use crate::report::{Aim, Line, Unit};

const PRODUCERS: usize = 64;
/// So that an event's body is about 1 KiB.
const TEXT: usize = 930;
/// Appends of each producer before the measurement starts.
const WARM_UP: usize = 10;

/// The results of one round of the store.
struct Round {
    rate: f64,
    /// Appends in a commit, on average.
    group: f64,
    /// Events in the journal before the measurement started.
    before: usize,
}

pub fn run(bed: &Bed) -> Result<Vec<Line>> {
    // Many short rounds: the closer ours and its floor are, the more alike is what disturbs them.
    let rounds = bed.size(21, 41);
    let each = bed.size(200, 500);
    let alone = bed.size(1000, 3000);
    let mut many = Samples::default();
    let mut groups = Samples::default();
    let mut many_sqlite = Samples::default();
    let mut many_file = Samples::default();
    let mut one = Samples::default();
    let mut one_sqlite = Samples::default();
    let mut one_file = Samples::default();
    for _ in 0..rounds {
        let bench_dir = bed.bench_dir.fresh()?;
        let round = ours(bed, bench_dir.path(), PRODUCERS, each)?;
        let rows = Rows::of(bench_dir.path())?;
        let (before, group) = (round.before, round.group.round() as usize);
        many.push(round.rate);
        groups.push(round.group);
        let timed = PRODUCERS * each;
        let bench_dir = bed.bench_dir.fresh()?;
        many_sqlite.push(floor::sqlite(
            bench_dir.path(),
            &rows,
            before,
            timed,
            group,
        )?);
        many_file.push(floor::file(bench_dir.path(), &rows, before, timed, group)?);

        let bench_dir = bed.bench_dir.fresh()?;
        one.push(ours(bed, bench_dir.path(), 1, alone)?.rate);
        let bench_dir = bed.bench_dir.fresh()?;
        one_sqlite.push(floor::sqlite(bench_dir.path(), &rows, before, alone, 1)?);
        one_file.push(floor::file(bench_dir.path(), &rows, before, alone, 1)?);
    }
    let line = |producers: usize, floor_is: String, ours: &Samples, floor: &Samples, aim| Line {
        what: match producers {
            1 => "appends, 1 producer".to_owned(),
            many => format!("appends, {many} producers"),
        },
        floor_is,
        unit: Unit::PerSecond,
        ours: ours.clone(),
        floor: floor.clone(),
        aim,
    };
    let group = groups.median();
    let least = Some(Aim::AtLeast(0.8));
    let times = Some(Aim::AtLeast(4.0));
    let sqlite_groups = format!("bare SQLite, same groups ({group:.0})");
    let sqlite_single = || "bare SQLite, one transaction each".to_owned();
    let file_groups = format!("file + fdatasync, same groups ({group:.0})");
    let file_single = "file + fdatasync each".to_owned();
    Ok(vec![
        line(PRODUCERS, sqlite_groups, &many, &many_sqlite, least),
        line(PRODUCERS, sqlite_single(), &many, &one_sqlite, times),
        line(PRODUCERS, file_groups, &many, &many_file, None),
        line(1, sqlite_single(), &one, &one_sqlite, None),
        line(1, file_single, &one, &one_file, None),
    ])
}

/// Each producer appends to an agent of its own. The store is closed when this returns.
fn ours(bed: &Bed, bench_dir: &Path, producers: usize, each: usize) -> Result<Round> {
    let store = open(bench_dir)?;
    let journal = bench_dir.join("journal.db");
    let mut ready = Vec::new();
    let mut begun = 0;
    for number in 0..producers {
        let (story, events) = Story::begin(&format!("agent-{number}"), number as u64);
        begun += events.len();
        let producer = bed.runtime.block_on(Producer::new(&store, story, events))?;
        ready.push(producer);
    }
    let (ready, _) = append_all(bed, ready, WARM_UP)?;
    // What the follower has yet to read is not part of what comes next.
    bed.runtime.block_on(store.wait_caught_up())?;
    let commits = floor::commits(&journal)?;
    let (_, took) = append_all(bed, ready, each)?;
    let commits = floor::commits(&journal)?.wrapping_sub(commits);
    let appends = producers * each;
    Ok(Round {
        rate: rate(appends, took),
        group: appends as f64 / f64::from(commits.max(1)),
        before: begun + producers * WARM_UP,
    })
}

/// Lets all producers append `each` events, concurrently.
fn append_all(
    bed: &Bed,
    producers: Vec<Producer>,
    each: usize,
) -> Result<(Vec<Producer>, Duration)> {
    // Thinking of something to say is not what is measured.
    let loads: Vec<_> = producers
        .into_iter()
        .map(|mut producer| {
            let events: Vec<NewEvent> = (0..each).map(|_| producer.story.message(TEXT)).collect();
            (producer, events)
        })
        .collect();
    bed.runtime.block_on(async {
        let mut tasks = JoinSet::new();
        let start = Instant::now();
        for (producer, events) in loads {
            tasks.spawn(producer.append(events));
        }
        let mut producers = Vec::new();
        while let Some(done) = tasks.join_next().await {
            producers.push(done.context("a producer panicked")??);
        }
        Ok((producers, start.elapsed()))
    })
}

struct Producer {
    store: SqliteStore,
    story: Story,
    fence: Fence,
    sent: u64,
}

impl Producer {
    async fn new(store: &SqliteStore, story: Story, events: Vec<NewEvent>) -> Result<Self> {
        let fence = store.claim(story.agent, "bench").await?.fence;
        store.append(Append::new(fence, events)).await?;
        Ok(Self {
            store: store.clone(),
            story,
            fence,
            sent: 0,
        })
    }

    /// One append after the other, as an agent's driver sends them.
    async fn append(mut self, events: Vec<NewEvent>) -> Result<Self> {
        for mut event in events {
            event.at = now();
            self.sent += 1;
            let mut append = Append::new(self.fence, vec![event]);
            append.source = Some(Source {
                incarnation: Incarnation(1),
                n: self.sent,
            });
            self.store.append(append).await?;
        }
        Ok(self)
    }
}
