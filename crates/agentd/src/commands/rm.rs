//! `agentd rm`.

use crate::complete;
use crate::connect;
use crate::error::{Error, Exit};
use crate::op::Op;
use crate::output::Output;
use crate::render::{count, time};
use crate::selection::{self, Selection};
use agentd_client::Client;
use agentd_client::api::{Archive, Archived};
use agentd_core::event::Mode;
use agentd_core::state::Phase;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  agentd rm coder
  agentd rm coder reviewer --reason \"the project is over\"
  agentd rm --oneshot --idle-for 7d

Nothing is deleted: `agentd restore` brings the agent back with all its conversations. `agentd purge` deletes \
content. --oneshot and --idle-for select agents that are idle, stopped or failed; they are listed, and confirmation is \
needed: without a terminal, --yes.";

/// Archive agents; `agentd restore` brings them back
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agents
    #[arg(
        value_name = "NAME",
        add = complete::agents(),
        required_unless_present_any = ["oneshot", "idle_for"],
        conflicts_with_all = ["oneshot", "idle_for"]
    )]
    name: Vec<String>,
    /// One-shot agents that are not running
    #[arg(long)]
    oneshot: bool,
    /// Agents that were not used for this long, such as 12h or 7d
    #[arg(long, value_name = "TIME", value_parser = time::age)]
    idle_for: Option<Duration>,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    /// Reason, recorded in the journal
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    op: Op,
    /// Print each agent as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?.under(args.op.id);
    if !args.name.is_empty() {
        return each(&client, args, &args.name, out).await;
    }
    let selection = Selection {
        mode: args.oneshot.then_some(Mode::Oneshot),
        phases: &[Phase::Idle, Phase::Stopped, Phase::Failed],
        unused_for: args.idle_for,
        archived: false,
    };
    let agents = selection.find(&client).await?;
    if agents.is_empty() {
        return match args.json {
            true => Ok(()),
            false => out.line("no such agents"),
        };
    }
    if !args.yes {
        let number = count(agents.len() as u64, "agent");
        let what = format!("this archives {number}; `agentd restore` brings them back:");
        selection::confirm(&agents, &what, "archive them?", out).await?;
    }
    let ids: Vec<String> = agents.iter().map(|agent| agent.id.to_string()).collect();
    each(&client, args, &ids, out).await
}

/// Archives all of them. One that cannot be archived does not keep the others from it.
async fn each(
    client: &Client,
    args: &Args,
    names: &[String],
    out: &mut Output,
) -> Result<(), Error> {
    let mut failed = Vec::new();
    for name in names {
        let reason = args.reason.clone();
        match client.archive(name, &Archive { reason }).await {
            Ok(archived) if args.json => out.json(&archived)?,
            Ok(archived) => print(&archived, out)?,
            Err(error) if names.len() == 1 => return Err(error.into()),
            Err(error) if error.is_gone() => return Err(error.into()),
            Err(error) => {
                out.aside(format_args!("{name}: {}", Error::from(error)))?;
                failed.push(name.as_str());
            }
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => {
            let what = format!("not archived: {}", failed.join(", "));
            Err(Error::new(Exit::Refused, what))
        }
    }
}

fn print(archived: &Archived, out: &mut Output) -> Result<(), Error> {
    let name = &archived.agent.name;
    out.line(format_args!("{name} is archived"))?;
    let tasks = archived.ended.tasks.iter().map(ToString::to_string);
    let subagents = archived.ended.subagents.iter().cloned();
    let ended: Vec<String> = subagents.chain(tasks).collect();
    if !ended.is_empty() {
        out.line(format_args!("  also ended: {}", ended.join(", ")))?;
    }
    out.line(format_args!("  to restore it: agentd restore {name}"))
}
