//! `agentd-bench store`: what the journal costs, and how that grows.

mod append;
pub mod floor;
mod growth;
mod list;
pub mod resume;

use std::path::{Path, PathBuf};
use std::time::Instant;

use agentd_store::{Options, SqliteStore};
use anyhow::{Context, Result};
use clap::ValueEnum;
use tokio::runtime::Runtime;

use crate::bench_dir::BenchDir;
use crate::report::{self, Line};

#[derive(clap::Args)]
pub struct Args {
    /// More rounds, and a list of 10,000 agents with 1,000,000 events
    #[arg(long)]
    long: bool,
    /// Print JSON, with every round in it
    #[arg(long)]
    json: bool,
    /// Write here, on the disk to be measured [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    bench_dir: Option<PathBuf>,
    /// Run only this part
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Appends a second
    Append,
    /// Appends to a long journal
    Growth,
    /// Resuming after a long history
    Resume,
    /// The first page of a long list of agents
    List,
}

/// What every part needs.
struct Bed {
    bench_dir: BenchDir,
    runtime: Runtime,
    long: bool,
}

impl Bed {
    /// One of two sizes.
    fn size<T>(&self, short: T, long: T) -> T {
        if self.long { long } else { short }
    }
}

fn open(bench_dir: &Path) -> Result<SqliteStore> {
    SqliteStore::open(Options::new(bench_dir)).context("cannot open a store")
}

pub fn run(args: &Args) -> Result<()> {
    let bed = Bed {
        bench_dir: BenchDir::new(args.bench_dir.as_deref())?,
        runtime: Runtime::new().context("cannot start the runtime")?,
        long: args.long,
    };
    bed.bench_dir.announce();
    let start = Instant::now();
    let lines = measure(&bed, &args.only)?;
    report::Run {
        bench: "store",
        long: args.long,
        file_system: &bed.bench_dir.file_system,
        took: start.elapsed(),
    }
    .print(args.json, &lines);
    if !args.long && !args.json {
        println!(
            "\nShort form: the list has {} agents and {} events; --long takes 10,000 and 1,000,000.",
            list::SHORT.agents,
            list::SHORT.agents * list::SHORT.events,
        );
    }
    Ok(())
}

fn measure(bed: &Bed, only: &[Part]) -> Result<Vec<Line>> {
    type Measure = fn(&Bed) -> Result<Vec<Line>>;
    let parts: [(Part, &str, Measure); 4] = [
        (Part::Append, "appends a second", append::run),
        (Part::Growth, "appends to a long journal", growth::run),
        (Part::Resume, "resuming after a long history", resume::run),
        (Part::List, "the list of agents", list::run),
    ];
    let mut lines = Vec::new();
    for (part, name, measure) in parts {
        if only.is_empty() || only.contains(&part) {
            eprintln!("Measuring {name}…");
            lines.extend(measure(bed)?);
        }
    }
    Ok(lines)
}
