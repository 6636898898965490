//! Benchmarks, run as `cargo xtask bench NAME`.
//!
//! Machines are noisy, so each figure is measured together with a floor (the least that the work can cost), alternately
//! and in the same run. The ratio of the two counts. A missed target is printed, and does not fail the run.

mod bench_dir;
mod daemon;
mod history;
mod journal;
mod measure;
mod proc;
mod report;
mod reset;
mod sandbox;
mod store;
mod turn;
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
    /// Turns of an agent, and resuming a long conversation
    Turn(turn::Args),
    /// A daemon with many agents, with long histories and with many turns at once
    Daemon(daemon::Args),
    /// Reset, undo, rewind and fork, with many agents and with long histories
    Reset(reset::Args),
    /// What a sandbox adds to a program
    Sandbox(sandbox::Args),
    /// Load one agent and print how much memory that took
    #[command(hide = true)]
    ResumeChild(store::resume::ChildArgs),
    /// Send the requests that stdin describes to a model server
    #[command(hide = true)]
    BareClient(turn::bare::ChildArgs),
}

fn main() -> ExitCode {
    let done = match Cli::parse().bench {
        Bench::Store(args) => store::run(&args),
        Bench::Turn(args) => turn::run(&args),
        Bench::Daemon(args) => daemon::run(&args),
        Bench::Reset(args) => reset::run(&args),
        Bench::Sandbox(args) => sandbox::run(&args),
        Bench::ResumeChild(args) => store::resume::child(&args),
        Bench::BareClient(args) => turn::bare::child(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("agentd-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
