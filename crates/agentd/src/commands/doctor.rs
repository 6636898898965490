//! `agentd doctor`.

use crate::doctor::{self, Finding, Level};
use crate::error::{Error, Exit};
use crate::home;
use crate::output::{BAD, GOOD, Output};
use crate::providers;
use agentd_daemon::layout::Layout;
use agentd_sandbox::{Missing, Support};
use serde_json::{Value, json};

const EXAMPLES: &str = "\
Examples:
  agentd doctor
  agentd doctor --fix
  agentd doctor --json | jq '(.findings[] | select(.level != \"ok\")), (.sandbox[] | select(.ok | not))'

It starts no daemon, and shows no key. It runs the `key_command`s of your providers. --fix does what cannot do harm: it closes \
files to other users, and removes cgroups of ended tasks and empty directories of tasks that never ran.

Exit: 0 no problem was found (there may be warnings), 4 one was found, such as a missing sandbox.";

/// Check this machine, the state directory, the daemon and the service
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Do what cannot do harm
    #[arg(long)]
    fix: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let support = agentd_sandbox::support();
    let mut findings = doctor::all(&Layout::new(home::dir()?)).await?;
    if args.fix {
        doctor::fix(&mut findings);
    }
    let failed = verdict(&support, &findings);
    if args.json {
        out.json(&json!({ "sandbox": object(&support), "findings": findings }))?;
        return failed.map_or(Ok(()), |error| Err(error.printed()));
    }
    for (name, about, found) in parts(&support) {
        match found {
            None => out.line(format_args!("{GOOD}✓{GOOD:#} {name:<11} {about}"))?,
            Some(missing) => out.line(format_args!("{BAD}✗{BAD:#} {name:<11} {missing}"))?,
        }
    }
    for finding in &findings {
        show(finding, out)?;
    }
    // A broken config.toml is one of the findings.
    let passed = providers::catalog().map(|catalog| catalog.agents().pass.clone());
    for pass in passed.unwrap_or_default() {
        out.line(format_args!(
            "! pass {:<6} by default, {}",
            pass.name(),
            pass.gives_away()
        ))?;
    }
    failed.map_or(Ok(()), Err)
}

fn show(finding: &Finding, out: &mut Output) -> Result<(), Error> {
    let (area, what) = (finding.area, &finding.what);
    match finding.level {
        Level::Ok => out.line(format_args!("{GOOD}✓{GOOD:#} {area:<11} {what}"))?,
        Level::Warning => out.line(format_args!("! {area:<11} {what}"))?,
        Level::Problem => out.line(format_args!("{BAD}✗{BAD:#} {area:<11} {what}"))?,
    }
    match (&finding.fix, finding.fixed) {
        (_, true) => out.line(format_args!("{:<14}fixed", "")),
        (Some(fix), false) => out.line(format_args!("{:<14}{fix}", "")),
        (None, false) => Ok(()),
    }
}

/// The error of the command: the sandbox first, which agents need most.
fn verdict(support: &Support, findings: &[Finding]) -> Option<Error> {
    if let Err(missing) = &support.namespaces {
        let what = "the default sandbox of agents is not available";
        let error = Error::new(Exit::Unavailable, what).because(missing);
        return Some(error.next("fix this, or set `sandbox: full-access` for agents"));
    }
    let is_open = |finding: &&Finding| finding.level == Level::Problem && !finding.fixed;
    let problem = findings.iter().find(is_open)?;
    let error = Error::new(Exit::Unavailable, problem.what.clone());
    Some(match &problem.fix {
        Some(fix) => error.next(fix.clone()),
        None => error,
    })
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
