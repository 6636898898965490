//! The first page of the list of agents, when there are many with long journals.

use std::path::Path;

use agentd_store::{AgentQuery, Append, SqliteStore, Store as _};
use anyhow::{Context, Result, ensure};
use tokio::task::JoinSet;

use super::{Bed, open};
use crate::journal::Story;
use crate::measure::{Samples, median_micros};
use crate::report::{Aim, Line, Unit};

#[derive(Clone, Copy)]
pub struct Size {
    pub agents: usize,
    /// The number of events of each agent.
    pub events: usize,
}

pub const SHORT: Size = Size {
    agents: 2000,
    events: 50,
};
const LONG: Size = Size {
    agents: 10_000,
    events: 100,
};
const FEW: usize = 100;
const TEXT: usize = 100;
const PAGE: usize = 50;
const CALLS: usize = 50;

pub fn run(bed: &Bed) -> Result<Vec<Line>> {
    let size = bed.size(SHORT, LONG);
    let many_dir = bed.bench_dir.fresh()?;
    let many = write(bed, many_dir.path(), size)?;
    let few_dir = bed.bench_dir.fresh()?;
    let few = Size {
        agents: FEW,
        ..size
    };
    let few = write(bed, few_dir.path(), few)?;
    let mut ours = Samples::default();
    let mut floor = Samples::default();
    for _ in 0..bed.size(21, 51) {
        ours.push(page_micros(bed, &many, size.agents)?);
        floor.push(page_micros(bed, &few, FEW)?);
    }
    Ok(vec![Line {
        what: format!(
            "first page of {} agents, {} events",
            size.agents,
            size.agents * size.events
        ),
        floor_is: format!("of {FEW} agents"),
        unit: Unit::Microseconds,
        ours,
        floor,
        aim: Some(Aim::AtMost(2.0)),
    }])
}

fn write(bed: &Bed, bench_dir: &Path, size: Size) -> Result<SqliteStore> {
    const SIDE_BY_SIDE: usize = 16;
    let store = open(bench_dir)?;
    bed.runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for first in 0..SIDE_BY_SIDE {
            let numbers = (first..size.agents).step_by(SIDE_BY_SIDE);
            tasks.spawn(write_some(store.clone(), numbers, size.events));
        }
        while let Some(done) = tasks.join_next().await {
            done.context("a producer panicked")??;
        }
        store.wait_caught_up().await?;
        anyhow::Ok(())
    })?;
    Ok(store)
}

async fn write_some(
    store: SqliteStore,
    numbers: impl Iterator<Item = usize>,
    count: usize,
) -> Result<()> {
    for number in numbers {
        let (mut story, mut events) = Story::begin(&format!("agent-{number}"), number as u64);
        while events.len() < count {
            story.turn(TEXT, &mut events);
        }
        events.truncate(count);
        let fence = store.claim(story.agent, "bench").await?.fence;
        store.append(Append::new(fence, events)).await?;
    }
    Ok(())
}

fn page_micros(bed: &Bed, store: &SqliteStore, agents: usize) -> Result<f64> {
    let query = AgentQuery {
        limit: PAGE,
        ..AgentQuery::default()
    };
    let page = bed.runtime.block_on(store.agents(query.clone()))?;
    ensure!(
        page.agents.len() == PAGE && page.total == agents as u64,
        "the list has {} of {}",
        page.agents.len(),
        page.total
    );
    let micros = median_micros(CALLS, || {
        let page = store.agents(query.clone());
        bed.runtime.block_on(page).map(drop)
    })?;
    Ok(micros)
}
