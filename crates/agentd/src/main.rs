//! The `agentd` command: parse, run, exit code. What it knows of agents is in the libraries.

mod cli;
mod clock;
mod commands;
mod demo;
mod error;
mod home;
mod output;

use clap::Parser as _;
use error::Error;
use output::Output;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(answer) => return cli::answer(&answer),
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}

fn run(cli: cli::Cli) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::no_runtime)?;
    runtime.block_on(async {
        let mut out = Output::stdout();
        tokio::select! {
            // First of all, so that Ctrl-C is heard before there is anything to clean up. What was
            // under way is dropped, and that cleans up.
            biased;
            _ = tokio::signal::ctrl_c() => Err(Error::interrupted()),
            ended = commands::run(cli.verb, &mut out) => ended,
        }
    })
}
