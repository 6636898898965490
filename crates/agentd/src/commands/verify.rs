//! `agentd verify`.

use crate::error::{Error, Exit};
use crate::home;
use crate::output::{BAD, GOOD, Output};
use agentd_store::{Options, Report, SqliteStore, Store as _};
use serde_json::{Value, json};
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  agentd verify
  agentd verify --json | jq .clean
  AGENTD_HOME=/backup/agentd agentd verify

Exit: 0 all is well, 1 something is damaged, 4 there is no journal or it cannot be read.";

/// Check the journal: gaps, checksums, references, the file itself
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let folder = home::folder()?;
    let report = check(&folder).await?;
    if args.json {
        out.line(as_json(&folder, &report))?;
    } else {
        print(out, &folder, &report)?;
    }
    if report.is_clean() {
        return Ok(());
    }
    Err(Error::new(Exit::Failed, "the journal is damaged")
        .because("what is stored is not what was written; see the list above")
        .next(
            "keep a copy of the folder first. What comes before the damage still loads; a damaged \
             tail is set aside, and kept, when its agent is next taken over",
        ))
}

async fn check(folder: &Path) -> Result<Report, Error> {
    // Opening makes what is missing; a check must not.
    if !folder.join("journal.db").is_file() {
        let what = format!("there is no journal in {}", folder.display());
        return Err(Error::new(Exit::Unavailable, what)
            .because("no agent has been kept there yet, or AGENTD_HOME names another folder")
            .next("set AGENTD_HOME to the folder that you mean"));
    }
    let cannot = |error: agentd_store::Error| {
        let what = format!("the journal in {} cannot be checked", folder.display());
        Error::of_store(what, &error)
    };
    let store = SqliteStore::open(Options::new(folder)).map_err(cannot)?;
    store.verify(None).await.map_err(cannot)
}

fn print(out: &mut Output, folder: &Path, report: &Report) -> Result<(), Error> {
    let problems = report.damaged.len() + report.dangling.len() + report.file.len();
    let (mark, verdict) = match problems {
        0 => (format!("{GOOD}✓{GOOD:#}"), "nothing is damaged".to_owned()),
        n => (format!("{BAD}✗{BAD:#}"), count(n as u64, "problem")),
    };
    out.line(format_args!(
        "{mark} {}: {}, {}, {verdict}",
        folder.display(),
        count(report.agents, "agent"),
        count(report.events, "event"),
    ))?;
    for (agent, damage) in &report.damaged {
        out.line(format_args!(
            "  agent {agent}: events {} to {} cannot be used: {}",
            damage.from, damage.through, damage.reason
        ))?;
    }
    for (agent, what) in &report.dangling {
        out.line(format_args!("  agent {agent}: {what}"))?;
    }
    for line in &report.file {
        out.line(format_args!("  the database: {line}"))?;
    }
    if report.quarantined > 0 {
        out.line(format_args!(
            "  set aside as damaged earlier, and kept: {}",
            count(report.quarantined, "event")
        ))?;
    }
    Ok(())
}

fn count(n: u64, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

fn as_json(folder: &Path, report: &Report) -> Value {
    let damaged = report.damaged.iter().map(|(agent, damage)| {
        json!({
            "agent": agent, "from": damage.from, "through": damage.through,
            "reason": damage.reason.to_string(),
        })
    });
    let dangling = report.dangling.iter();
    let dangling = dangling.map(|(agent, what)| json!({"agent": agent, "what": what}));
    json!({
        "clean": report.is_clean(),
        "home": folder.display().to_string(),
        "agents": report.agents,
        "events": report.events,
        "damaged": damaged.collect::<Vec<_>>(),
        "dangling": dangling.collect::<Vec<_>>(),
        "file": report.file,
        "quarantined": report.quarantined,
    })
}
