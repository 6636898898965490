//! The `agentd` command: parses the arguments, runs the verb, returns the exit code. The logic is in the libraries.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod acp;
mod agent;
mod approve_in_place;
mod ask;
mod at_path;
mod attach;
mod chat;
mod cli;
mod commands;
mod complete;
mod config_file;
mod connect;
mod conversation;
mod demo;
mod described;
mod doctor;
mod editor;
mod error;
mod follow;
#[cfg(test)]
#[path = "../tests/fixture/golden.rs"]
mod golden;
mod histories;
mod home;
mod keys;
mod lab;
mod last_run;
mod layers;
mod leaving;
mod live;
mod local;
mod log;
mod mentions;
mod op;
mod output;
mod outside;
mod overwritten;
mod passing;
mod preferences;
mod printer;
mod prompt;
mod providers;
mod render;
mod report;
mod rewound;
mod runtime;
mod selection;
mod service;
mod setup;
mod showing;
mod terminal;
mod untrusted;
mod version;
mod waiting;
mod watch;
mod ways;
mod zone;

use clap_complete::CompleteEnv;
use error::Error;
use output::Output;
use report::report;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A process that was started by way of /proc/self/exe would be called `exe`.
    agentd_process::set_name(c"agentd");
    // A shim, a gate or a worker is selected by its first argument and never reaches the command line below.
    agentd_process::shim::run_if_asked(std::env::args_os());
    agentd_runtime::gate::run_if_asked(std::env::args_os());
    agentd_runtime::files_worker::run_if_asked(std::env::args_os());
    agentd_runtime::mcp::worker::run_if_asked(std::env::args_os());
    agentd_runtime::outer::acp::worker::run_if_asked(std::env::args_os());
    agentd_runtime::tools::client_files::run_if_asked(std::env::args_os());
    agentd_runtime::tools::file_server::run_if_asked(std::env::args_os());
    let format = cli::format(std::env::args_os());
    if let Err(error) = lab::enter() {
        return report(&error, format);
    }
    // A shell that asks for completions gets them here, and the process exits.
    CompleteEnv::with_factory(cli::command)
        .var(complete::VARIABLE)
        .complete();
    let (cli, asked) = match cli::parse() {
        Ok(parsed) => parsed,
        Err(answer) => return cli::answer(&answer, format),
    };
    match run(cli, asked.as_ref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error, format),
    }
}

fn run(cli: cli::Cli, asked: Option<&cli::Asked>) -> Result<(), Error> {
    // The environment of a command contains the user's keys. If a surrounding sandbox forbids this call, the command
    // runs anyway; the daemon and the runtimes call it again and fail if it fails.
    let _forbidden = setup::close_to_others();
    choose_theme();
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
        if cli.verb.handles_signals() {
            return cli.verb.run(&mut out).await;
        }
        tokio::select! {
            // First, so that the handler for Ctrl-C is installed before the verb creates anything. At Ctrl-C the verb's
            // future is dropped, which cleans up.
            biased;
            _ = tokio::signal::ctrl_c() => Err(Error::interrupted()),
            ended = cli.verb.run(&mut out) => ended,
        }
    })
}

/// Reads the theme from the user's file. Output without colours needs none, and a file that cannot be used is reported
/// where its settings are needed.
fn choose_theme() {
    if terminal::may_have_colours()
        && let Ok(catalog) = providers::catalog()
        && let Some(theme) = catalog.ui().theme
    {
        terminal::theme::choose(theme);
    }
}
