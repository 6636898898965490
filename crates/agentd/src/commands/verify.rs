//! `agentd verify`.

mod repair;

use crate::error::{Error, Exit};
use crate::home;
use crate::output::{BAD, GOOD, Output};
use crate::render::count;
use agentd_core::id::AgentId;
use agentd_daemon::layout::Layout;
use agentd_store::{HeadState, Options, Report, SqliteStore};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  agentd verify
  agentd verify --json | jq .clean
  AGENTD_HOME=/backup/agentd agentd verify
  agentd daemon stop; agentd verify --repair

`--repair` builds a new journal from everything that can be read, and lists the agents that have lost events. \
The damaged files are kept in a directory next to it. It is refused while a daemon runs.

Exit: 0 no damage, 1 damage was found (with --repair: some events could not be recovered), 3 a daemon is \
running and nothing was repaired, 4 the journal does not exist or cannot be read.";

/// Check the journal: gaps, checksums, references and the database file
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Recover the readable part of a damaged journal
    #[arg(long)]
    repair: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let dir = home::dir()?;
    if args.repair {
        return repair::run(&dir, args.json, out).await;
    }
    let report = check(&dir)?;
    if args.json {
        out.line(as_json(&dir, &report))?;
    } else {
        print(out, &dir, &report)?;
    }
    if report.is_clean() {
        return Ok(());
    }
    let damaged = Error::new(Exit::Failed, "the journal is damaged");
    let damaged = match args.json {
        true => damaged.printed(),
        false => damaged,
    };
    Err(damaged
        .because("the stored data differs from what was written; see the list above")
        .next(
            "copy the directory first. Events before the damage still load; a damaged tail is moved \
             to quarantine when the agent's journal is next claimed. If files or pages are missing, \
             `agentd daemon stop` and `agentd verify --repair` recover what is readable",
        ))
}

/// The options for the store of a home. A directory of agents beside it is evidence that a journal must exist.
fn options(dir: &Path) -> Options {
    Options {
        beside: vec![Layout::new(dir).agents()],
        ..Options::new(dir)
    }
}

fn check(dir: &Path) -> Result<Report, Error> {
    SqliteStore::inspect(&existing(dir)?).map_err(|error| cannot(dir, &error))
}

/// An error if no journal exists: opening a store would create one, and a check must not.
fn existing(dir: &Path) -> Result<Options, Error> {
    let options = options(dir);
    if options.has_traces() {
        return Ok(options);
    }
    let what = format!("{} has no journal", dir.display());
    Err(Error::new(Exit::Unavailable, what)
        .because("no agent was created there yet, or AGENTD_HOME names another directory")
        .next("set AGENTD_HOME to the right directory"))
}

fn cannot(dir: &Path, error: &agentd_store::Error) -> Error {
    let what = format!("the journal in {} cannot be checked", dir.display());
    match error {
        agentd_store::Error::NoJournal { .. } => Error::new(Exit::Failed, what).because(error),
        error => Error::of_store(what, error),
    }
}

fn print(out: &mut Output, dir: &Path, report: &Report) -> Result<(), Error> {
    let problems = report.damaged.len() + report.dangling.len() + report.file.len();
    let (mark, verdict) = match problems {
        0 => (format!("{GOOD}✓{GOOD:#}"), "no damage".to_owned()),
        n => (format!("{BAD}✗{BAD:#}"), count(n as u64, "problem")),
    };
    out.line(format_args!(
        "{mark} {}: {}, {}, {verdict}",
        dir.display(),
        count(report.agents, "agent"),
        count(report.events, "event"),
    ))?;
    for (agent, damage) in &report.damaged {
        out.line(format_args!(
            "  {}: events {} to {} cannot be used: {}",
            called(*agent, &report.names),
            damage.from,
            damage.through,
            damage.reason
        ))?;
    }
    for (agent, what) in &report.dangling {
        let agent = called(*agent, &report.names);
        out.line(format_args!("  {agent}: {what}"))?;
    }
    for line in &report.file {
        out.line(format_args!("  the database: {line}"))?;
    }
    if report.quarantined > 0 {
        out.line(format_args!(
            "  in quarantine since earlier damage: {}",
            count(report.quarantined, "event")
        ))?;
    }
    if report.head == HeadState::Unreadable {
        out.line("  journal.head cannot be read; the next start writes it again")?;
    }
    Ok(())
}

/// An agent by its id, and its name where that is known.
fn called(agent: AgentId, names: &BTreeMap<AgentId, String>) -> String {
    match names.get(&agent) {
        Some(name) => format!("{name}, agent {agent}"),
        None => format!("agent {agent}"),
    }
}

fn as_json(dir: &Path, report: &Report) -> Value {
    let damaged = report.damaged.iter().map(|(agent, damage)| {
        json!({
            "agent": {"id": agent, "name": report.names.get(agent)},
            "from": damage.from, "through": damage.through,
            "reason": damage.reason.to_string(),
        })
    });
    let dangling = report.dangling.iter().map(|(agent, what)| {
        let name = report.names.get(agent);
        json!({"agent": {"id": agent, "name": name}, "what": what})
    });
    json!({
        "clean": report.is_clean(),
        "home": dir.display().to_string(),
        "agents": report.agents,
        "events": report.events,
        "damaged": damaged.collect::<Vec<_>>(),
        "dangling": dangling.collect::<Vec<_>>(),
        "file": report.file,
        "quarantined": report.quarantined,
        "head": report.head,
    })
}
