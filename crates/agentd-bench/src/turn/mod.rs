//! `agentd-bench turn`: the cost of a turn of `agentd agent` compared with a bare client of the same model server, of
//! resuming a long conversation, and of the command line with a daemon.
//!
//! The server runs in this process, its clients in processes of their own.

pub mod agent;
pub mod bare;
mod cli;
mod kept;
pub mod kind;
pub mod peer;
mod resume;
mod talk;

use std::path::PathBuf;
use std::time::Instant;

use agentd_testkit::harness::Program;
use anyhow::{Context, Result};
use clap::ValueEnum;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::bench_dir::BenchDir;
use crate::report::{self, Line};
use crate::words::Words;

#[derive(clap::Args)]
pub struct Args {
    /// More rounds, with more turns in each
    #[arg(long)]
    long: bool,
    /// Print JSON, with every round in it
    #[arg(long)]
    json: bool,
    /// Keep the agents here, on the disk to be measured [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    bench_dir: Option<PathBuf>,
    /// The program to be measured [default: the agentd beside this program]
    #[arg(long, value_name = "PATH")]
    agentd: Option<PathBuf>,
    /// Run only this part
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Turns of an agent that runs
    Talk,
    /// What the kept content of a replaced file adds to a turn
    Kept,
    /// Resuming a long conversation
    Resume,
    /// `agentd send` and `agentd run` through a running daemon
    Cli,
}

/// What every part needs.
struct Bed {
    bench_dir: BenchDir,
    runtime: Runtime,
    long: bool,
    program: Program,
    /// The state directory of the agents and the user's home, so that no existing settings apply.
    _home: TempDir,
    /// Where the agents work.
    cwd: TempDir,
}

impl Bed {
    fn new(args: &Args) -> Result<Self> {
        let bench_dir = BenchDir::new(args.bench_dir.as_deref())?;
        let cwd = bench_dir.fresh()?;
        let text = Words::new(1).text(kind::FILE_BYTES);
        std::fs::write(cwd.path().join(kind::FILE), text)?;
        let (path, home) = (agent::program(args.agentd.as_deref())?, bench_dir.fresh()?);
        let program = Program::new(path, home.path(), cwd.path());
        Ok(Self {
            program: program.env("ANTHROPIC_API_KEY", "bench"),
            runtime: Runtime::new().context("cannot start the runtime")?,
            long: args.long,
            _home: home,
            cwd,
            bench_dir,
        })
    }

    /// One of two sizes.
    fn size<T>(&self, short: T, long: T) -> T {
        if self.long { long } else { short }
    }
}

pub fn run(args: &Args) -> Result<()> {
    let bed = Bed::new(args)?;
    bed.bench_dir.announce();
    let start = Instant::now();
    let lines = measure(&bed, &args.only)?;
    report::Run {
        bench: "turn",
        long: args.long,
        file_system: &bed.bench_dir.file_system,
        took: start.elapsed(),
    }
    .print(args.json, &lines);
    Ok(())
}

fn measure(bed: &Bed, only: &[Part]) -> Result<Vec<Line>> {
    type Measure = fn(&Bed) -> Result<Vec<Line>>;
    let parts: [(Part, &str, Measure); 4] = [
        (Part::Talk, "turns", talk::run),
        (Part::Kept, "the kept content of files", kept::run),
        (Part::Resume, "resuming a long conversation", resume::run),
        (
            Part::Cli,
            "the command line through a running daemon",
            cli::run,
        ),
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
