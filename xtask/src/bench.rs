//! `cargo xtask bench NAME`: one benchmark of the bench crate, in release mode.

use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::tree;

#[derive(clap::Args)]
pub struct Args {
    /// The benchmark
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
    /// It runs the product, which it finds beside its own program.
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
        about: "What a sandbox adds to the start of a program",
        runs_agentd: false,
    },
];

/// `agentd_failpoint::MARKER`: in every program that has injected bugs.
const INJECTED_BUGS: &str = "agentd-failpoint: injected bugs are compiled in";

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
        bail!("there is no benchmark {}", args.name);
    };
    let root = tree::root()?;
    if bench.runs_agentd {
        // Separately, so that it is built as users build it.
        let mut build = tree::cargo(&root);
        build.args(["build", "--release", "-p", "agentd"]);
        if !build.status().context("cannot start cargo")?.success() {
            return Ok(false);
        }
        let program = tree::target(&root).join("release/agentd");
        let bytes = std::fs::read(&program).context("cannot read the program")?;
        let marker = INJECTED_BUGS.as_bytes();
        if bytes.windows(marker.len()).any(|part| part == marker) {
            bail!("{} has injected bugs compiled in", program.display());
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
