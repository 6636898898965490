//! `agentd-bench daemon`: what a real daemon costs with many agents beside a few, with long histories
//! beside short ones, with a window of many messages, with many turns at once, and what thousands of commands leave.
//!
//! The model server runs in this process; the daemons, the runtimes and the CLI in their own.

mod at_once;
mod bench_daemon;
mod chat;
mod history;
mod many;
mod soak;
mod startup;
mod window;

pub use bench_daemon::BenchDaemon;

use std::path::PathBuf;
use std::time::Instant;

use agentd_testkit::model::FakeModel;
use anyhow::{Context, Result};
use clap::ValueEnum;
use tokio::runtime::Runtime;

use crate::bench_dir::BenchDir;
use crate::measure::Samples;
use crate::report::{self, Aim, Line, Unit};
use crate::turn::agent;

#[derive(clap::Args)]
pub struct Args {
    /// 10,000 agents, 100,000 messages, 200 turns at once; and more rounds
    #[arg(long)]
    long: bool,
    /// Print JSON, with every round in it
    #[arg(long)]
    json: bool,
    /// Keep the homes here, on the disk to be measured [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    bench_dir: Option<PathBuf>,
    /// The program to be measured [default: the agentd beside this program]
    #[arg(long, value_name = "PATH")]
    agentd: Option<PathBuf>,
    /// Run only this part
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
    /// How many commands the part `soak` runs
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    commands: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Many agents beside a few
    Many,
    /// A long history beside a short one
    History,
    /// A window of many messages
    Window,
    /// Many turns at once
    AtOnce,
    /// The start of the CLI
    Startup,
    /// The chat with a long history
    Chat,
    /// Thousands of commands; only with --long or --only
    Soak,
}

/// What every part needs.
pub struct Bed {
    pub bench_dir: BenchDir,
    pub runtime: Runtime,
    pub long: bool,
    /// `agentd`.
    pub program: PathBuf,
    pub model: FakeModel,
    /// How many commands the soak runs.
    pub commands: usize,
}

impl Bed {
    /// One of two sizes.
    pub fn size<T>(&self, short: T, long: T) -> T {
        if self.long { long } else { short }
    }
}

pub fn run(args: &Args) -> Result<()> {
    let bed = Bed {
        bench_dir: BenchDir::new(args.bench_dir.as_deref())?,
        runtime: Runtime::new().context("cannot start the runtime")?,
        long: args.long,
        program: agent::program(args.agentd.as_deref())?,
        model: FakeModel::start().context("cannot start the model server")?,
        commands: args.commands,
    };
    bed.bench_dir.announce();
    let start = Instant::now();
    let lines = measure(&bed, &args.only)?;
    report::Run {
        bench: "daemon",
        long: args.long,
        file_system: &bed.bench_dir.file_system,
        took: start.elapsed(),
    }
    .print(args.json, &lines);
    if !args.long && !args.json {
        println!(
            "\nShort form: --long takes 10,000 agents, 100,000 messages and 200 turns at once."
        );
    }
    Ok(())
}

fn measure(bed: &Bed, only: &[Part]) -> Result<Vec<Line>> {
    type Measure = fn(&Bed) -> Result<Vec<Line>>;
    let parts: [(Part, &str, Measure); 7] = [
        (Part::Many, "many agents", many::run),
        (Part::History, "a long history", history::run),
        (Part::Window, "a window of many messages", window::run),
        (Part::AtOnce, "turns at once", at_once::run),
        (Part::Startup, "the start of the CLI", startup::run),
        (Part::Chat, "the chat", chat::run),
        (Part::Soak, "thousands of commands", soak::run),
    ];
    let mut lines = Vec::new();
    for (part, name, measure) in parts {
        let is_usual = only.is_empty() && (part != Part::Soak || bed.long);
        if is_usual || only.contains(&part) {
            eprintln!("Measuring {name}…");
            lines.extend(measure(bed)?);
        }
    }
    Ok(lines)
}

/// A line that is still to be measured.
pub fn line(what: String, floor_is: String, unit: Unit, aim: Option<Aim>) -> Line {
    Line {
        what,
        floor_is,
        unit,
        ours: Samples::default(),
        floor: Samples::default(),
        aim,
    }
}
