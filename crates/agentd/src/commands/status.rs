//! `agentd status`.

use crate::complete;
use crate::connect;
use crate::error::Error;
use crate::output::Output;
use crate::render::table::pairs;
use crate::render::{self, count, time};
use agentd_client::api::{Agent, Daemon, FailingBackup, List};
use agentd_core::state::Phase;
use agentd_daemon::clock;
use serde_json::{Map, json};

const EXAMPLES: &str = "\
Examples:
  agentd status
  agentd status coder
  agentd status --json | jq .phases.awaiting_approval

`agentd show` prints all details of one agent.";

/// Show the status of the daemon or of an agent
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent [default: the daemon, and the number of agents in each phase]
    #[arg(add = complete::agents())]
    name: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    if let Some(name) = &args.name {
        let agent = client.agent(name).await?;
        return match args.json {
            true => out.json(&agent),
            false => of_agent(&agent, out),
        };
    }
    let daemon = client.daemon().await?;
    let mut phases = Vec::new();
    for phase in Phase::ALL {
        let list = List {
            phase: Some(phase),
            limit: Some(1),
            ..List::default()
        };
        phases.push((phase, client.agents(&list).await?.total));
    }
    if args.json {
        let phases: Map<String, serde_json::Value> = phases
            .iter()
            .map(|(phase, n)| (phase.name().to_owned(), json!(n)))
            .collect();
        return out.json(&json!({ "daemon": daemon, "phases": phases }));
    }
    for line in of_daemon(&daemon) {
        out.line(line)?;
    }
    let some = phases.into_iter().filter(|(_, n)| *n > 0);
    let some: Vec<String> = some
        .map(|(phase, n)| format!("{n} {}", phase.name()))
        .collect();
    match some.is_empty() {
        true => Ok(()),
        false => out.line(format_args!("phases     {}", some.join(", "))),
    }
}

/// The daemon in a few lines, for `agentd daemon status` too.
pub fn of_daemon(daemon: &Daemon) -> Vec<String> {
    let megabytes = daemon.memory / (1024 * 1024);
    let since = time::rough(clock::now().since(daemon.started_at));
    pairs(&[
        (
            "daemon",
            Some(format!("up for {since}, pid {}", daemon.pid)),
        ),
        ("version", Some(daemon.version.clone())),
        ("home", Some(daemon.home.clone())),
        ("read-only", daemon.read_only.clone()),
        ("memory", Some(format!("{megabytes} MB"))),
        ("turns", turns(daemon)),
        ("backups", daemon.failing_backup.as_ref().map(backups)),
        (
            "agents",
            Some(format!(
                "{}, {} awake",
                count(daemon.agents, "agent"),
                daemon.awake
            )),
        ),
    ])
}

/// Why no scheduled backup is made.
fn backups(failing: &FailingBackup) -> String {
    let ago = time::rough(clock::now().since(failing.since));
    let attempts = count(u64::from(failing.attempts), "attempt");
    format!("none for {ago}, {attempts}: {}", failing.error)
}

/// What is unusual about the turns: none may begin, or some wait.
fn turns(daemon: &Daemon) -> Option<String> {
    let waiting = match daemon.waiting {
        0 => String::new(),
        waiting => format!(", {waiting} waiting to begin (`agentd show` says why)"),
    };
    match daemon.draining {
        true => Some(format!("draining: {} running{waiting}", daemon.turns)),
        false if daemon.waiting > 0 => Some(format!("{} running{waiting}", daemon.turns)),
        false => None,
    }
}

fn of_agent(agent: &Agent, out: &mut Output) -> Result<(), Error> {
    out.line(render::agent::line(agent))?;
    let now = clock::now();
    if let Some(started) = agent.started_at {
        out.line(format_args!("  turn began {}", time::ago(started, now)))?;
    }
    if let (None, Some(last)) = (agent.turn, &agent.last_turn) {
        let when = agent
            .completed_at
            .map(|at| format!(" {}", time::ago(at, now)));
        let status = render::agent::last_status(last);
        let when = when.unwrap_or_default();
        out.line(format_args!("  last turn: {status}{when}"))?;
    }
    if agent.queued > 0 {
        out.line(format_args!("  queued: {}", count(agent.queued, "prompt")))?;
    }
    if !agent.tasks.is_empty() {
        let running = count(agent.tasks.len() as u64, "background task");
        out.line(format_args!("  {running} (`agentd tasks {}`)", agent.name))?;
    }
    match render::agent::next(agent).or_else(|| render::agent::continues(agent)) {
        Some(next) => out.line(format_args!("  next: {next}")),
        None => Ok(()),
    }
}
