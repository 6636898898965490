//! `agentd-bench reset`: reset, undo, rewind and fork of an idle agent. Compares a home with many agents to a home
//! with a few, and a long history to a short one. No operation copies messages, so the times should be the same.

mod history;
mod many;

use std::path::PathBuf;
use std::time::Instant;

use agentd_client::api::{Archive, Fork, Reset, Rewind};
use agentd_core::event::Direction;
use agentd_testkit::model::FakeModel;
use anyhow::{Context, Result};
use tokio::runtime::Runtime;

use crate::bench_dir::BenchDir;
use crate::daemon::{Bed, BenchDaemon, line};
use crate::report::{self, Aim, Line, Unit};
use crate::turn::agent;
use crate::turn::peer::micros_since;

#[derive(clap::Args)]
pub struct Args {
    /// 10,000 agents and 100,000 messages, and more rounds
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
}

/// The operations that are measured, in this order. After the last one, the agent is in its first conversation again.
const ASKS: [&str; 4] = ["reset", "undo", "rewind to a turn", "fork"];
const AIM: Aim = Aim::AtMost(1.5);

pub fn run(args: &Args) -> Result<()> {
    let bed = Bed {
        bench_dir: BenchDir::new(args.bench_dir.as_deref())?,
        runtime: Runtime::new().context("cannot start the runtime")?,
        long: args.long,
        program: agent::program(args.agentd.as_deref())?,
        model: FakeModel::start().context("cannot start the model server")?,
        commands: 0,
    };
    bed.bench_dir.announce();
    let start = Instant::now();
    eprintln!("Measuring many agents…");
    let mut lines = many::run(&bed)?;
    eprintln!("Measuring a long history…");
    lines.extend(history::run(&bed)?);
    report::Run {
        bench: "reset",
        long: args.long,
        file_system: &bed.bench_dir.file_system,
        took: start.elapsed(),
    }
    .print(args.json, &lines);
    if !args.long && !args.json {
        println!("\nShort form: --long takes 10,000 agents and 100,000 messages.");
    }
    Ok(())
}

/// A line of the report for each of [`ASKS`], without measurements.
fn lines(with: &str, beside: &str) -> [Line; 4] {
    ASKS.map(|what| {
        let what = format!("{what}, {with}");
        line(what, beside.to_owned(), Unit::Microseconds, Some(AIM))
    })
}

/// Measures each operation once, on an agent that was just loaded. `turn` is a turn of its first conversation.
fn times(daemon: &BenchDaemon<'_>, name: &str, turn: &str, fork_as: &str) -> Result<[f64; 4]> {
    let client = daemon.client();
    let shown = daemon.block(client.agent(name))?;
    let first = shown
        .conversation
        .context("the agent has no conversation")?
        .id;
    let reset = |step| -> Result<f64> {
        let ask = Reset {
            step,
            ..Reset::default()
        };
        let start = Instant::now();
        daemon.block(client.reset(name, &ask))?;
        Ok(micros_since(start))
    };
    let (fresh, undone) = (reset(None)?, reset(Some(Direction::Undo))?);
    let rewind = Rewind {
        to: turn.to_owned(),
        conversation: Some(first),
        ..Rewind::default()
    };
    let start = Instant::now();
    daemon.block(client.rewind(name, &rewind))?;
    let rewound = micros_since(start);
    reset(Some(Direction::Undo))?;
    let fork = Fork {
        name: Some(fork_as.to_owned()),
        at: Some(turn.to_owned()),
        conversation: Some(first),
        ..Fork::default()
    };
    let start = Instant::now();
    daemon.block(client.fork(name, &fork))?;
    let forked = micros_since(start);
    // Archive the fork, so that the number of agents in the home stays the same.
    daemon.block(client.archive(fork_as, &Archive::default()))?;
    Ok([fresh, undone, rewound, forked])
}
