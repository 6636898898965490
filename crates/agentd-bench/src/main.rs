//! Benchmarks, run as `cargo xtask bench NAME`.
//!
//! Machines are noisy, so no figure stands alone: each is measured beside a floor, in turns and in the
//! same run, and what counts is their ratio. A missed aim is said, and is no failure of the run.

mod folder;
mod journal;
mod measure;
mod report;
mod store;
mod words;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "agentd-bench",
    about = "Benchmarks: ratios to a floor of the same run"
)]
struct Cli {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Appending to and reading from the journal
    Store(store::Args),
    /// Load one agent and say how much memory that took
    #[command(hide = true)]
    ResumeChild(store::resume::ChildArgs),
}

fn main() -> ExitCode {
    let done = match Cli::parse().bench {
        Bench::Store(args) => store::run(&args),
        Bench::ResumeChild(args) => store::resume::child(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("agentd-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
