//! `agentd start`.

use super::tell;
use crate::error::{Error, Exit};
use crate::keys::Supply;
use crate::op::Op;
use crate::output::Output;
use crate::{ask, complete, connect, keys, render};
use agentd_client::Client;
use agentd_client::api::{Agent, Held, Release, Schedule, Start};
use agentd_core::event::HeldPart;
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  agentd start coder
  agentd start imported
  agentd start imported --yes --keep hooks,queue

After `agentd stop` or a failure, the agent runs again whenever it has work. Your provider keys are passed on \
to it.

An imported agent is held until its first start. That start shows what the agent contains and asks for \
confirmation; without a terminal it needs --yes, and exits with 6 otherwise. Parts that could act for the author of \
the file are dropped unless --keep names them: hooks, queued prompts, rules that allow calls, a sandbox wider than \
the default, variables, and programs that the agent would start. A turn in progress is ended.";

/// Start an agent that was stopped, has failed or was imported
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// Start an imported agent without asking
    #[arg(short, long)]
    yes: bool,
    /// Parts that an imported agent keeps
    #[arg(long, value_name = "PART", value_delimiter = ',', requires = "yes")]
    keep: Vec<Part>,
    #[command(flatten)]
    op: Op,
    /// Print the agent as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Part {
    /// The hooks in its settings
    Hooks,
    /// Queued prompts
    Queue,
    /// Rules that allow calls
    Permissions,
    /// A sandbox that is wider than the default, and paths outside the working directory
    Sandbox,
    /// Environment variables in its settings
    Env,
    /// MCP servers, and the program of an `acp` or `command` runtime
    Programs,
}

impl From<Part> for HeldPart {
    fn from(part: Part) -> Self {
        match part {
            Part::Hooks => Self::Hooks,
            Part::Queue => Self::Queue,
            Part::Permissions => Self::Permissions,
            Part::Sandbox => Self::Sandbox,
            Part::Env => Self::Env,
            Part::Programs => Self::Programs,
        }
    }
}

/// The agent, and what it contained when it was released.
#[derive(Serialize)]
struct Started<'a> {
    #[serde(flatten)]
    agent: &'a Agent,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<&'a Held>,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    let client = client.under(args.op.id);
    let env = keys::env_of(&client, &args.name).await?;
    let keep: Vec<HeldPart> = args.keep.iter().copied().map(HeldPart::from).collect();
    let held = match client.agent(&args.name).await?.held {
        true => Some(client.held(&args.name).await?),
        false => None,
    };
    if let Some(held) = &held {
        let schedules = client.schedules(&args.name).await?.schedules;
        confirm(args, held, &schedules, &keep, out).await?;
    }
    // Also if it is no longer held: this may be a retry of the start that released it.
    let release = Release {
        keep,
        head: held.as_ref().map(|held| held.head),
    };
    let start = Start {
        env,
        release: (args.yes || held.is_some()).then_some(release),
    };
    let agent = started(&client, args, &start).await?;
    match (args.json, &held) {
        (true, Some(_)) => out.json(&Started {
            agent: &agent,
            held: held.as_ref(),
        }),
        (json, _) => tell(&agent, json, out),
    }
}

async fn started(client: &Client, args: &Args, start: &Start) -> Result<Agent, Error> {
    let agent = client.start(&args.name, start).await?;
    Supply::new(client.clone()).continue_turn(agent).await
}

/// Shows what a held agent contains, and asks for confirmation.
async fn confirm(
    args: &Args,
    held: &Held,
    schedules: &[Schedule],
    keep: &[HeldPart],
    out: &mut Output,
) -> Result<(), Error> {
    let name = &args.name;
    if !args.json {
        for line in render::held::lines(held, schedules, keep) {
            out.line(line)?;
        }
    }
    if args.yes {
        return Ok(());
    }
    let waits = || {
        let what = format!("{name} is held and was not started");
        Error::new(Exit::Waiting, what).next(format!("agentd start {name} --yes"))
    };
    if args.json {
        out.json(held)?;
        return Err(waits().printed());
    }
    if !ask::is_possible() {
        return Err(waits().because("confirmation needs a terminal"));
    }
    let answer = ask::line("start the agent? [y/N]").await?;
    match answer.as_deref() {
        Some("y" | "Y" | "yes") => Ok(()),
        _ => Err(waits()),
    }
}
