//! `agentd tasks`.

use crate::complete;
use crate::connect;
use crate::error::Error;
use crate::op::Op;
use crate::output::Output;
use crate::render::table::{Head, table};
use crate::render::{count, event, named, time, word};
use agentd_client::api::{Task, Tasks};
use agentd_core::time::Timestamp;
use agentd_daemon::clock;

const EXAMPLES: &str = "\
Examples:
  agentd tasks
  agentd tasks coder
  agentd tasks stop 0198c5a2-7d1e-7cc3-98c4-dc0c0c07398f
  agentd tasks stop coder
  agentd tasks coder --json | jq '.tasks[] | select(.running)'

Background tasks outlive their turn, the agent's process, the daemon and a reset. `agentd logs NAME --task ID` \
shows the output of a task. When a task ends, the agent's conversation gets one notice, and the task is no \
longer listed.";

/// Characters of a command that are shown.
const COMMAND: usize = 60;

/// List the background tasks of agents, or end them
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// The agent [default: all agents]
    #[arg(add = complete::agents())]
    name: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// End a task and all processes that it started; with an agent's name, all of its tasks
    #[command(
        after_help = "Examples:\n  agentd tasks stop 0198c5a2-7d1e-7cc3-98c4-dc0c0c07398f\n  agentd tasks stop coder"
    )]
    Stop(Stop),
}

#[derive(Debug, clap::Args)]
struct Stop {
    /// The id of a task, or its beginning, or the name of an agent
    #[arg(value_name = "ID|NAME", add = complete::tasks_and_agents())]
    which: String,
    #[command(flatten)]
    op: Op,
    /// Print the ended tasks as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    if let Some(Verb::Stop(stop)) = &args.verb {
        let ended = client.under(stop.op.id).stop_tasks(&stop.which).await?;
        return match stop.json {
            true => out.json(&ended),
            false => print_ended(&ended, &stop.which, out),
        };
    }
    let tasks = match &args.name {
        Some(name) => client.tasks(name).await?,
        None => client.all_tasks().await?,
    };
    match args.json {
        true => out.json(&tasks),
        false => print(&tasks, args.name.as_deref(), out),
    }
}

fn print_ended(ended: &Tasks, which: &str, out: &mut Output) -> Result<(), Error> {
    for task in &ended.tasks {
        let how = task.exit.map(|exit| event::exit(&exit));
        let how = how.unwrap_or_else(|| word(task.state));
        let name = named(&task.agent);
        out.line(format_args!("{} of {name} has ended: {how}", task.id))?;
    }
    match ended.tasks.is_empty() {
        true => out.line(format_args!("{which} has no background tasks")),
        false => Ok(()),
    }
}

fn print(tasks: &Tasks, name: Option<&str>, out: &mut Output) -> Result<(), Error> {
    if tasks.tasks.is_empty() {
        return match name {
            Some(name) => out.line(format_args!("{name} has no background tasks")),
            None => out.line("no background tasks"),
        };
    }
    let now = clock::now();
    let rows: Vec<_> = tasks.tasks.iter().map(|task| row(task, now)).collect();
    let head = [
        Head::Kept("TASK"),
        Head::Kept("AGENT"),
        Head::Spare("CONVERSATION", 0),
        Head::Spare("TURN", 0),
        Head::Kept("STATE"),
        Head::Spare("AGE", 3),
        Head::Spare("OUTPUT", 2),
        Head::Spare("COMMAND", 1),
    ];
    for line in table(&head, &rows, out.width()) {
        out.line(line)?;
    }
    Ok(())
}

fn row(task: &Task, now: Timestamp) -> Vec<String> {
    let state = match &task.exit {
        Some(exit) => event::exit(exit),
        None => word(task.state),
    };
    let command = task.command.as_deref().unwrap_or(&task.tool);
    let command: String = command.lines().next().unwrap_or_default().to_owned();
    let short: String = command.chars().take(COMMAND).collect();
    let more = if short.len() < command.len() {
        "…"
    } else {
        ""
    };
    vec![
        task.id.to_string(),
        named(&task.agent),
        task.ordinal.map_or_else(String::new, |n| n.to_string()),
        task.turn.map_or_else(String::new, |turn| turn.to_string()),
        state,
        time::rough(now.since(task.started_at)),
        count(task.output_bytes, "byte"),
        format!("{short}{more}"),
    ]
}
