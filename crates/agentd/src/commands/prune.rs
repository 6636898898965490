//! `agentd prune`.

use crate::connect;
use crate::error::{Error, Exit};
use crate::output::Output;
use crate::providers;
use crate::render::{count, time};
use crate::selection::{self, Selection};
use agentd_client::Client;
use agentd_client::api::{AgentLine, AgentRef, Archive, Prune, Pruned, PrunedAgent, Purge};
use agentd_core::event::Mode;
use agentd_core::state::Phase;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  agentd prune
  agentd prune --older-than 30d --yes
  agentd prune --purge
  agentd prune --purge --older-than 90d --yes
  agentd prune --policy

A dry run: without --yes it only shows what it would do. With --yes it archives the one-shot agents that have \
finished: nothing is deleted, and `agentd restore` brings them back. With --purge and --yes it archives them and then \
permanently deletes their content, also that of one-shot agents that were archived before; the structure of their \
journals and their costs remain.

With `[retention]` in config.toml the daemon deletes by itself: one-shot agents that have finished, and conversations \
that agents have left, after the time that you set. --policy shows what it would delete now.";

const WEEK: &str = "7d";

/// Archive, or purge, one-shot agents that have finished
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Only agents that were not used for this long
    #[arg(long, value_name = "TIME", default_value = WEEK, value_parser = time::age)]
    older_than: Duration,
    /// Permanently delete their content, instead of only archiving them
    #[arg(long)]
    purge: bool,
    /// What the policy in your settings (`[retention]`) deletes, instead of one-shot agents by age
    #[arg(long, conflicts_with_all = ["older_than", "purge"])]
    policy: bool,
    /// Do it; without this option nothing is changed
    #[arg(short, long)]
    yes: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Before anything is done.
fn unchanged(agent: &AgentLine) -> PrunedAgent {
    PrunedAgent {
        agent: AgentRef {
            id: agent.id,
            name: Some(agent.name.clone()),
        },
        archived: false,
        purged: false,
        error: None,
    }
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    if args.policy {
        let dry_run = !args.yes;
        let pruned = client.prune(&Prune { dry_run }).await?;
        match args.json {
            true => out.json(&pruned)?,
            false => print_policy(&pruned, out)?,
        }
        return outcome(args, &pruned);
    }
    let agents = find(&client, args).await?;
    let mut pruned = Pruned {
        dry_run: !args.yes,
        ..Pruned::default()
    };
    for agent in &agents {
        pruned.agents.push(match args.yes {
            true => prune(&client, agent, args.purge).await,
            false => PrunedAgent {
                archived: !agent.archived,
                purged: args.purge,
                ..unchanged(agent)
            },
        });
    }
    match args.json {
        true => out.json(&pruned)?,
        false => print(args, &agents, &pruned, out)?,
    }
    outcome(args, &pruned)
}

fn outcome(args: &Args, pruned: &Pruned) -> Result<(), Error> {
    let agents = pruned.agents.iter().map(|agent| &agent.error);
    let conversations = pruned.conversations.iter().map(|one| &one.error);
    let failed = |errors: usize, what: &str| {
        (errors > 0).then(|| format!("not pruned: {}", count(errors as u64, what)))
    };
    let agents = failed(agents.flatten().count(), "agent");
    let conversations = failed(conversations.flatten().count(), "conversation");
    match agents.or(conversations) {
        None => Ok(()),
        Some(what) => {
            let error = Error::new(Exit::Refused, what);
            Err(if args.json { error.printed() } else { error })
        }
    }
}

/// What the policy deletes, one line for each.
fn print_policy(pruned: &Pruned, out: &mut Output) -> Result<(), Error> {
    if pruned.agents.is_empty() && pruned.conversations.is_empty() {
        return match providers::catalog()?.retention().is_on() {
            true => out.line("the policy in your settings (`[retention]`) deletes nothing now"),
            false => {
                out.line("there is no policy: your settings have no `[retention]`")?;
                out.line(
                    "  to set one, write to config.toml: [retention] with oneshots = \"30d\" or conversations = \"26w\"; \
                     then run agentd daemon reload",
                )
            }
        };
    }
    let name = |agent: &AgentRef| agent.name.clone().unwrap_or_else(|| agent.id.to_string());
    let verb = match pruned.dry_run {
        true => "would permanently delete",
        false => "permanently deleted",
    };
    for agent in &pruned.agents {
        let name = name(&agent.agent);
        match &agent.error {
            None => out.line(format_args!("{verb} the content of one-shot agent {name}"))?,
            Some(error) => out.aside(format_args!("{name}: {error}"))?,
        }
    }
    for one in &pruned.conversations {
        let (name, n) = (name(&one.agent), one.ordinal);
        match &one.error {
            None => out.line(format_args!("{verb} conversation {n} of {name}"))?,
            Some(error) => out.aside(format_args!("{name}, conversation {n}: {error}"))?,
        }
    }
    match pruned.dry_run {
        true => out.line("nothing was changed; to do it, pass --yes"),
        false => Ok(()),
    }
}

/// The finished one-shots, and for a purge also those that were archived before and still have content.
async fn find(client: &Client, args: &Args) -> Result<Vec<AgentLine>, Error> {
    let mut selection = Selection {
        mode: Some(Mode::Oneshot),
        phases: &[Phase::Idle, Phase::Failed],
        unused_for: Some(args.older_than),
        archived: false,
    };
    let mut agents = selection.find(client).await?;
    if args.purge {
        selection.archived = true;
        selection.phases = &Phase::ALL;
        for agent in selection.find(client).await? {
            let purge = Purge {
                dry_run: true,
                ..Purge::default()
            };
            let left = client.purge(&agent.id.to_string(), &purge).await;
            if left?.events > 0 {
                agents.push(agent);
            }
        }
    }
    Ok(agents)
}

async fn prune(client: &Client, agent: &AgentLine, purges: bool) -> PrunedAgent {
    let id = agent.id.to_string();
    let mut pruned = unchanged(agent);
    if !agent.archived {
        let reason = Some("pruned".to_owned());
        match client.archive(&id, &Archive { reason }).await {
            Ok(_) => pruned.archived = true,
            Err(error) => pruned.error = Some(error.to_string()),
        }
    }
    if purges && pruned.error.is_none() {
        match client.purge(&id, &Purge::default()).await {
            Ok(_) => pruned.purged = true,
            Err(error) => pruned.error = Some(error.to_string()),
        }
    }
    pruned
}

fn print(
    args: &Args,
    agents: &[AgentLine],
    pruned: &Pruned,
    out: &mut Output,
) -> Result<(), Error> {
    if agents.is_empty() {
        if args.older_than.is_zero() {
            return out.line("no one-shot agents to prune");
        }
        let age = time::rough(time::millis(args.older_than));
        return out.line(format_args!(
            "no one-shot agent has finished and was unused for {age}; --older-than 0s takes all that have finished"
        ));
    }
    let whole = agents.iter().zip(&pruned.agents);
    let whole = whole.filter(|(_, pruned)| pruned.error.is_none());
    let whole: Vec<AgentLine> = whole.map(|(agent, _)| agent.clone()).collect();
    let number = count(whole.len() as u64, "one-shot agent");
    let deletes = "archive, and permanently delete the content of,";
    let deleted = "archived, and permanently deleted the content of,";
    match (args.yes, args.purge) {
        (false, false) => out.line(format_args!("would archive {number}:"))?,
        (false, true) => out.line(format_args!("would {deletes} {number}:"))?,
        (true, false) => out.line(format_args!("archived {number}:"))?,
        (true, true) => out.line(format_args!("{deleted} {number}:"))?,
    }
    for line in selection::lines(&whole, out.width()) {
        out.line(format_args!("  {line}"))?;
    }
    for agent in &pruned.agents {
        if let (Some(name), Some(error)) = (&agent.agent.name, &agent.error) {
            out.aside(format_args!("{name}: {error}"))?;
        }
    }
    match (args.yes, args.purge) {
        (false, _) => out.line("nothing was changed; to do it, pass --yes"),
        (true, false) => out.line("  to bring one back: agentd restore NAME"),
        (true, true) => Ok(()),
    }
}
