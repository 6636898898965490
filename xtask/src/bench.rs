//! `cargo xtask bench NAME`: one benchmark of the bench crate, in release mode.

use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::tree;

#[derive(clap::Args)]
pub struct Args {
    /// Which one
    #[arg(value_name = "NAME", value_parser = names())]
    name: String,
    /// Run the long form
    #[arg(long)]
    long: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

struct Bench {
    name: &'static str,
    about: &'static str,
    /// It runs the product itself, which it finds beside its own program.
    runs_agentd: bool,
}

/// Each is a subcommand of `agentd-bench` and takes `--long` and `--json`.
const BENCHES: &[Bench] = &[
    Bench {
        name: "store",
        about: "Appending to and reading from the journal",
        runs_agentd: false,
    },
    Bench {
        name: "turn",
        about: "Turns of an agent, and resuming a long conversation",
        runs_agentd: true,
    },
    Bench {
        name: "daemon",
        about: "A daemon with many agents, long histories and many turns at once",
        runs_agentd: true,
    },
    Bench {
        name: "reset",
        about: "Reset, undo, rewind and fork, with many agents and with long histories",
        runs_agentd: true,
    },
    Bench {
        name: "sandbox",
        about: "What a sandbox adds to a program",
        runs_agentd: false,
    },
];

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(
        BENCHES
            .iter()
            .map(|bench| PossibleValue::new(bench.name).help(bench.about)),
    )
}

/// `false`: it failed.
pub fn run(args: &Args) -> Result<bool> {
    let Some(bench) = BENCHES.iter().find(|bench| bench.name == args.name) else {
        bail!("no benchmark is called {}", args.name);
    };
    let root = tree::root()?;
    if bench.runs_agentd {
        // By itself, so that it is built as it would be to be used.
        let mut build = tree::cargo(&root);
        build.args(["build", "--release", "-p", "agentd"]);
        if !build.status().context("cannot start cargo")?.success() {
            return Ok(false);
        }
    }
    let mut command = tree::cargo(&root);
    command.args(["run", "--release", "-p", "agentd-bench", "--", bench.name]);
    if args.long {
        command.arg("--long");
    }
    if args.json {
        command.arg("--json");
    }
    let status = command.status().context("cannot start cargo")?;
    Ok(status.success())
}
