//! `cargo xtask bench NAME`: one benchmark of the bench crate, in release mode.

use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::place;

#[derive(clap::Args)]
pub struct Args {
    /// Which one
    #[arg(value_name = "NAME", value_parser = names())]
    name: String,
    /// Run the long form
    #[arg(long)]
    long: bool,
}

struct Bench {
    name: &'static str,
    about: &'static str,
}

/// Each is a subcommand of `agentd-bench` and takes `--long`.
const BENCHES: &[Bench] = &[Bench {
    name: "store",
    about: "Appending to and reading from the journal",
}];

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
    let root = place::root()?;
    let mut command = place::cargo(&root);
    command.args(["run", "--release", "-p", "agentd-bench", "--", bench.name]);
    if args.long {
        command.arg("--long");
    }
    let status = command.status().context("cannot start cargo")?;
    Ok(status.success())
}
