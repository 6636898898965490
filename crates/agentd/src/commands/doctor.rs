//! `agentd doctor`.

use crate::error::{Error, Exit};
use crate::output::{BAD, GOOD, Output};
use crate::providers;
use agentd_sandbox::{Missing, Support};
use serde_json::{Value, json};

const EXAMPLES: &str = "\
Examples:
  agentd doctor
  agentd doctor --json | jq .sandbox.namespaces.ok

Exit: 0 the default sandbox of agents is available, 4 it is not.";

/// Check whether this machine supports agents' sandboxes, and what to change
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let support = agentd_sandbox::support();
    let missing = support.namespaces.as_ref().err();
    let lacking = missing.map(|missing| {
        Error::new(
            Exit::Unavailable,
            "the default sandbox of agents is not available",
        )
        .because(missing)
        .next("fix this, or set `sandbox: full-access` for agents")
    });
    if args.json {
        out.json(&json!({ "sandbox": object(&support) }))?;
        return lacking.map_or(Ok(()), |error| Err(error.printed()));
    }
    for (name, about, found) in parts(&support) {
        match found {
            None => out.line(format_args!("{GOOD}✓{GOOD:#} {name:<11} {about}"))?,
            Some(missing) => out.line(format_args!("{BAD}✗{BAD:#} {name:<11} {missing}"))?,
        }
    }
    // A broken config.toml is reported by the commands that need it.
    let passed = providers::catalog().map(|catalog| catalog.agents().pass.clone());
    for pass in passed.unwrap_or_default() {
        out.line(format_args!(
            "! pass {:<6} by default, {}",
            pass.name(),
            pass.gives_away()
        ))?;
    }
    lacking.map_or(Ok(()), Err)
}

/// Each part: its name, its purpose, and what is missing.
fn parts(support: &Support) -> [(&'static str, &'static str, Option<&Missing>); 4] {
    [
        (
            "namespaces",
            "`workspace-write`, the default sandbox of agents",
            support.namespaces.as_ref().err(),
        ),
        ("network", "`network: off`", support.network.as_ref().err()),
        (
            "overlay",
            "agents' caches start with the contents of yours",
            support.overlay.as_ref().err(),
        ),
        (
            "landlock",
            "file tools in a sandbox; `read-only` without namespaces",
            support.landlock.as_ref().err(),
        ),
    ]
}

fn object(support: &Support) -> Value {
    let each = parts(support).into_iter().map(|(name, _, missing)| {
        let missing = missing.map(ToString::to_string);
        (
            name.to_owned(),
            json!({ "ok": missing.is_none(), "missing": missing }),
        )
    });
    Value::Object(each.collect())
}
