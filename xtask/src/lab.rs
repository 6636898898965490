//! `cargo xtask lab`: kills the real program at every failpoint, and checks its promises.

use anyhow::{Context, Result};
use std::path::Path;

use crate::tree;

#[derive(clap::Args)]
pub struct Args {
    /// A few minutes: each failpoint of the standard turn once (the default)
    #[arg(long, conflicts_with = "long")]
    quick: bool,
    /// About 20 minutes on two cores with a release build: thousands of kills, simulated schedules, power failures
    #[arg(long)]
    long: bool,
    /// Show that the lab detects injected bugs
    #[arg(long)]
    injected_bugs: bool,
    /// Attack the program: as its own model, and as another user
    #[arg(long, conflicts_with_all = ["injected_bugs", "plan", "seed", "repeat", "width"])]
    siege: bool,
    /// Print the size of the plan and stop
    #[arg(long)]
    plan: bool,
    /// The seed: the same number gives the same runs [default: from the commit]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run only this scenario; with --siege only this attack, or the attacks of this theme
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Repeat one run, in the form that the report prints
    #[arg(long, value_name = "SPEC")]
    repeat: Option<String>,
    /// How many runs at the same time
    #[arg(long, value_name = "N")]
    width: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `false`: there was a violation.
pub fn run(args: &Args) -> Result<bool> {
    let root = tree::root()?;
    let mut build = tree::cargo(&root);
    let profile = if args.long {
        build.args(["build", "--release", "--bins"]);
        build.args(["-p", "agentd", "-p", "agentd-testkit"]);
        "release"
    } else {
        // Built like the tests: after them there is nothing left to build.
        build.args(["test", "--workspace", "--no-run", "--quiet"]);
        "debug"
    };
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
    let mut lab = std::process::Command::new(tree::target(&root).join(profile).join("agentd-lab"));
    lab.current_dir(&root);
    for (flag, is_set) in [
        // First: it is a different program mode.
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
    let is_drawn = !args.siege && args.repeat.is_none();
    let seed = args
        .seed
        .or_else(|| is_drawn.then(|| of_commit(&root)).flatten());
    let numbers = [
        ("--seed", seed.map(|seed| seed.to_string())),
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

/// Each commit draws other samples, and always the same ones. None outside a repository.
fn of_commit(root: &Path) -> Option<u64> {
    let mut git = std::process::Command::new("git");
    let output = git
        .current_dir(root)
        .args(["rev-parse", "HEAD"])
        .output()
        .ok()?;
    let commit = String::from_utf8(output.stdout).ok()?;
    u64::from_str_radix(commit.get(..8)?, 16).ok()
}
