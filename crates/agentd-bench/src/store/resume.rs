//! Resuming an agent with a long history: time in this process, peak memory in a new one.

use std::path::{Path, PathBuf};

use agentd_core::event::NewEvent;
use agentd_core::id::AgentId;
use agentd_store::{Append, Fence, Options, SqliteStore, Store as _};
use agentd_testkit::harness::clean_command;
use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{Bed, open};
use crate::journal::Story;
use crate::measure::{Samples, median_micros};
use crate::proc;
use crate::report::{Aim, Line, Unit};

const MANY: usize = 100_000;
const FEW: usize = 1000;
const TEXT: usize = 400;
/// The number of turns from one compaction to the next, and which of them compacts. With [`KEPT`], the window has about
/// fifty messages at the end.
const STRETCH: usize = 25;
const COMPACTS: usize = 5;
const KEPT: usize = 10;
/// Events after the newest snapshot, the same for both histories.
const TAIL: usize = 200;

const LOADS: usize = 20;
const CHILDREN: usize = 5;

pub(super) fn run(bed: &Bed) -> Result<Vec<Line>> {
    let many = History::write(bed, MANY)?;
    let few = History::write(bed, FEW)?;
    ensure!(
        many.window == few.window,
        "the windows differ: {} and {}",
        many.window,
        few.window
    );
    let mut line = Line {
        what: format!("resume after {MANY} messages, window of {}", many.window),
        floor_is: format!("after {FEW}, same window"),
        unit: Unit::Microseconds,
        ours: Samples::default(),
        floor: Samples::default(),
        aim: Some(Aim::AtMost(1.5)),
    };
    for _ in 0..bed.size(11, 31) {
        line.ours.push(many.load_micros(bed)?);
        line.floor.push(few.load_micros(bed)?);
    }
    let mut memory = Line {
        what: format!("peak memory of a process that resumes after {MANY}"),
        floor_is: format!("after {FEW}"),
        unit: Unit::Mebibytes,
        ours: Samples::default(),
        floor: Samples::default(),
        aim: None,
    };
    let (many, few) = (many.close(), few.close());
    for _ in 0..CHILDREN {
        memory.ours.push(peak_of_child(&many)?);
        memory.floor.push(peak_of_child(&few)?);
    }
    Ok(vec![line, memory])
}

struct History {
    bench_dir: TempDir,
    store: SqliteStore,
    agent: AgentId,
    /// Items in its window.
    window: usize,
}

impl History {
    fn write(bed: &Bed, messages: usize) -> Result<Self> {
        let bench_dir = bed.bench_dir.fresh()?;
        let store = open(bench_dir.path())?;
        let (mut story, mut pending) = Story::begin("long-lived", 1);
        let agent = story.agent;
        let claim = bed.runtime.block_on(store.claim(agent, "bench"))?;
        let append = |store: &SqliteStore, events| append(&bed.runtime, store, claim.fence, events);
        story.context(&mut pending);
        // Held back until the rest is written, so that the newest snapshot is where we want it.
        let snapshot_every = usize::try_from(Options::new(bench_dir.path()).snapshot_every)?;
        let last = snapshot_every + TAIL;
        for turn in 1..=messages / 2 {
            match turn % STRETCH == COMPACTS {
                true => story.compacting_turn(TEXT, KEPT, &mut pending),
                false => story.turn(TEXT, &mut pending),
            }
            if pending.len() >= 1000 + last {
                append(&store, pending.drain(..1000).collect())?;
            }
        }
        let tail = pending.split_off(pending.len() - TAIL);
        let before = pending.split_off(pending.len() - snapshot_every);
        append(&store, pending)?;
        bed.runtime.block_on(store.wait_caught_up())?;
        // With these at once a snapshot is due, whatever was before: it is taken right behind them.
        append(&store, before)?;
        bed.runtime.block_on(store.wait_caught_up())?;
        append(&store, tail)?;
        bed.runtime.block_on(store.wait_caught_up())?;

        let loaded = bed.runtime.block_on(store.load(agent))?;
        ensure!(loaded.damage.is_none(), "the journal is damaged");
        ensure!(loaded.state.anomalies == 0, "the history is inconsistent");
        Ok(Self {
            bench_dir,
            store,
            agent,
            window: loaded.window.items().len(),
        })
    }

    fn load_micros(&self, bed: &Bed) -> Result<f64> {
        let micros = median_micros(LOADS, || {
            bed.runtime.block_on(self.store.load(self.agent)).map(drop)
        })?;
        Ok(micros)
    }

    /// Closes the store, so that a child has it to itself.
    fn close(self) -> (TempDir, AgentId) {
        (self.bench_dir, self.agent)
    }
}

fn append(
    runtime: &Runtime,
    store: &SqliteStore,
    fence: Fence,
    events: Vec<NewEvent>,
) -> Result<()> {
    runtime.block_on(store.append(Append::new(fence, events)))?;
    Ok(())
}

#[derive(clap::Args)]
pub struct ChildArgs {
    bench_dir: PathBuf,
    agent: AgentId,
}

/// What the child does: resumes one agent, and prints its peak memory in MiB.
pub fn child(args: &ChildArgs) -> Result<()> {
    let store = open(&args.bench_dir)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let loaded = runtime.block_on(store.load(args.agent))?;
    println!("{}", proc::memory(std::process::id())?.peak);
    drop(loaded);
    Ok(())
}

fn peak_of_child((bench_dir, agent): &(TempDir, AgentId)) -> Result<f64> {
    let program = std::env::current_exe().context("cannot get the path of this program")?;
    let output = run_child(&program, bench_dir.path(), *agent)?;
    output.trim().parse().context("the child printed no number")
}

fn run_child(program: &Path, bench_dir: &Path, agent: AgentId) -> Result<String> {
    let output = clean_command(program)
        .arg("resume-child")
        .arg(bench_dir)
        .arg(agent.to_string())
        .output()
        .context("cannot start a child")?;
    if !output.status.success() {
        bail!(
            "the child failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    String::from_utf8(output.stdout).context("the child's output is not UTF-8")
}
