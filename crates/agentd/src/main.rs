//! The `agentd` command: parse, run, exit code. What it knows of agents is in the libraries.

mod agent;
mod ask;
mod cli;
mod commands;
mod complete;
mod connect;
mod conversation;
mod demo;
mod described;
mod error;
mod follow;
mod home;
mod keys;
mod lab;
mod leaving;
mod log;
mod op;
mod output;
mod outside;
mod printer;
mod prompt;
mod providers;
mod render;
mod runtime;
mod setup;
mod starter;
mod terminal;
mod waiting;

use clap_complete::CompleteEnv;
use error::Error;
use output::Output;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A shim knows its one argument and nothing of agents.
    agentd_process::shim::run_if_asked(std::env::args_os());
    agentd_runtime::gate::run_if_asked(std::env::args_os());
    let format = cli::format(std::env::args_os());
    if let Err(error) = lab::enter() {
        return error.report(format);
    }
    // Where a shell asks what could come next, that is all there is to do.
    CompleteEnv::with_factory(cli::command)
        .var(complete::VARIABLE)
        .complete();
    let (cli, asked) = match cli::parse() {
        Ok(parsed) => parsed,
        Err(answer) => return cli::answer(&answer, format),
    };
    match run(cli, asked.as_ref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(format),
    }
}

fn run(cli: cli::Cli, asked: Option<&cli::Asked>) -> Result<(), Error> {
    // A command holds the keys of its shell for as long as it waits. Where a sandbox around it forbids even this, it
    // works all the same: what has to be closed (the daemon, agents' processes) insists on it.
    let _forbidden = setup::close_to_others();
    if cli.raw {
        terminal::keep_control_sequences();
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::no_runtime)?;
    runtime.block_on(async {
        let mut out = Output::stdout();
        if let Some(asked) = asked {
            asked.check().await?;
        }
        if cli.verb.hears_signals() {
            return commands::run(cli.verb, &mut out).await;
        }
        tokio::select! {
            // First of all, so that Ctrl-C is heard before there is anything to clean up. What was
            // under way is dropped, and that cleans up.
            biased;
            _ = tokio::signal::ctrl_c() => Err(Error::interrupted()),
            ended = commands::run(cli.verb, &mut out) => ended,
        }
    })
}
