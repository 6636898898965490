//! `cargo xtask lab`: the real program, killed at every point of its life, and what came of it.

use anyhow::{Context, Result};

use crate::tree;

#[derive(clap::Args)]
pub struct Args {
    /// A few minutes: each point of the standard turn once (the default)
    #[arg(long, conflicts_with = "long")]
    quick: bool,
    /// Most of an hour: thousands of kills, simulated schedules, power cuts
    #[arg(long)]
    long: bool,
    /// Show that the lab finds mistakes that were made on purpose
    #[arg(long)]
    injected_bugs: bool,
    /// Attack the program: as its own model, and as another user
    #[arg(long, conflicts_with_all = ["injected_bugs", "plan", "seed", "repeat", "width"])]
    siege: bool,
    /// Say how large it would be, and do nothing more
    #[arg(long)]
    plan: bool,
    /// The same runs for the same number
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// This scenario alone; with --siege this attack, or the attacks of this theme
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// One run, as a report names it
    #[arg(long, value_name = "SPEC")]
    repeat: Option<String>,
    /// Runs at the same time
    #[arg(long, value_name = "N")]
    width: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `false`: a promise was broken.
pub fn run(args: &Args) -> Result<bool> {
    let root = tree::root()?;
    // As the tests are built: after them there is nothing left to build.
    let mut build = tree::cargo(&root);
    build.args(["test", "--workspace", "--no-run", "--quiet"]);
    if !build.status().context("cannot start cargo")?.success() {
        return Ok(false);
    }
    if args.long && args.repeat.is_none() && !args.plan && !args.siege {
        let mut schedules = tree::cargo(&root);
        schedules
            .args(["test", "--workspace", "--test", "simulation"])
            .env("AGENTD_TEST_LONG", "1");
        if !schedules.status().context("cannot start cargo")?.success() {
            return Ok(false);
        }
    }
    let mut lab = std::process::Command::new(tree::target(&root).join("debug/agentd-lab"));
    lab.current_dir(&root);
    for (flag, is_set) in [
        // First: it is another kind of run.
        ("--siege", args.siege),
        ("--quick", args.quick),
        ("--long", args.long),
        ("--injected-bugs", args.injected_bugs),
        ("--plan", args.plan),
        ("--json", args.json),
    ] {
        if is_set {
            lab.arg(flag);
        }
    }
    let numbers = [
        ("--seed", args.seed.map(|seed| seed.to_string())),
        ("--width", args.width.map(|width| width.to_string())),
        ("--only", args.only.clone()),
        ("--repeat", args.repeat.clone()),
    ];
    for (flag, value) in numbers {
        if let Some(value) = value {
            lab.arg(flag).arg(value);
        }
    }
    let status = lab.status().context("cannot start the lab")?;
    Ok(status.success())
}
