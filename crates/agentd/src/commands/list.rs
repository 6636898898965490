//! `agentd list`.

use crate::connect;
use crate::error::Error;
use crate::output::{Output, QUIET};
use crate::providers;
use crate::render;
use crate::render::table::{Head, table};
use crate::render::{count, directory, line_of, subagents, time, usage, word};
use agentd_client::api::{AgentLine, Agents, List};
use agentd_core::event::Mode;
use agentd_core::state::Phase;
use agentd_core::time::Timestamp;
use agentd_daemon::clock;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};

const EXAMPLES: &str = "\
Examples:
  agentd list
  agentd list --phase awaiting_approval
  agentd list --prefix review --by-name --all
  agentd list --tree
  agentd list --json | jq -r '.agents[].name'

Sorted by last use, most recent first. On a terminal, columns that do not fit are left out; --json has all fields. With --tree, subagents are listed under the agent that started them.";

/// How many agents are shown by default.
const USUAL: usize = 50;
/// How many agents are requested at once.
const PAGE: usize = 500;

/// List agents
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Only agents of this mode
    #[arg(long)]
    mode: Option<ModeName>,
    /// Only agents in this phase
    #[arg(long, value_parser = phases())]
    phase: Option<Phase>,
    /// List archived agents instead
    #[arg(long)]
    archived: bool,
    /// Only agents whose name begins with this text
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// Sort by name
    #[arg(long)]
    by_name: bool,
    /// Show at most this many [default: 50]
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "all")]
    limit: Option<usize>,
    /// Continue after an earlier list: its `next`
    #[arg(long, value_name = "NEXT")]
    after: Option<String>,
    /// Show all agents
    #[arg(short, long)]
    all: bool,
    /// Show all agents, with subagents under the agent that started them
    #[arg(long, conflicts_with_all = ["limit", "after"])]
    tree: bool,
    /// Print one JSON object: agents, total, next
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ModeName {
    Oneshot,
    Persistent,
}

fn phases() -> impl clap::builder::TypedValueParser<Value = Phase> {
    PossibleValuesParser::new(Phase::ALL.map(Phase::name)).try_map(|name| {
        let found = Phase::ALL.into_iter().find(|phase| phase.name() == name);
        found.ok_or("no such phase")
    })
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    let mut list = List {
        mode: args.mode.map(|mode| match mode {
            ModeName::Oneshot => Mode::Oneshot,
            ModeName::Persistent => Mode::Persistent,
        }),
        phase: args.phase,
        archived: args.archived,
        prefix: args.prefix.clone(),
        words: true,
        by_name: args.by_name,
        limit: None,
        after: args.after.clone(),
    };
    let most = match args.all || args.tree {
        true => usize::MAX,
        false => args.limit.unwrap_or(USUAL),
    };
    let mut found = Agents {
        agents: Vec::new(),
        total: 0,
        next: None,
    };
    loop {
        list.limit = Some((most - found.agents.len()).min(PAGE));
        let page = client.agents(&list).await?;
        found.agents.extend(page.agents);
        found.total = page.total;
        found.next = page.next;
        if found.agents.len() >= most || found.next.is_none() {
            break;
        }
        list.after.clone_from(&found.next);
    }
    if args.tree {
        found.agents = subagents::sorted(found.agents);
    }
    match args.json {
        true => out.json(&found),
        false => print(&found, args.tree, out),
    }
}

fn print(found: &Agents, is_tree: bool, out: &mut Output) -> Result<(), Error> {
    if found.agents.is_empty() {
        out.line("no agents")?;
        return out.line("  create one with `agentd create NAME`, or `agentd run \"…\"`");
    }
    let names = match is_tree {
        true => subagents::drawn(&found.agents),
        false => found.agents.iter().map(|it| it.name.clone()).collect(),
    };
    for line in lines(&found.agents, names, clock::now(), out.width()) {
        out.line(line)?;
    }
    for agent in &found.agents {
        if let Some(why) = &agent.no_tools {
            out.line(format_args!("{} cannot run tools: {why}", agent.name))?;
        }
        for call in agent
            .approvals
            .iter()
            .filter_map(|asked| asked.what.as_ref())
        {
            let asks = render::approval::line(call);
            out.line(format_args!(
                "{} is waiting for approval of {asks}",
                agent.name
            ))?;
        }
    }
    let shown = found.agents.len() as u64;
    let total = count(found.total, "agent");
    match &found.next {
        None if shown == found.total => out.line(format_args!("{QUIET}{total}{QUIET:#}")),
        None => out.line(format_args!("{QUIET}{shown} of {total}{QUIET:#}")),
        Some(next) => out.line(format_args!(
            "{QUIET}{shown} of {total}; more with --all, or --after '{next}'{QUIET:#}"
        )),
    }
}

fn lines(
    agents: &[AgentLine],
    names: Vec<String>,
    now: Timestamp,
    width: Option<u16>,
) -> Vec<String> {
    let head = [
        Head::Kept("NAME"),
        Head::Kept("PHASE"),
        Head::Spare("PROCESS", 2),
        Head::Spare("MODE", 3),
        Head::Spare("CONVERSATIONS", 0),
        Head::Spare("COST", 5),
        Head::Kept("USED"),
        Head::Spare("MODEL", 4),
        Head::Spare("DIRECTORY", 6),
        Head::Spare("TITLE", 7),
        Head::Spare("LAST WORDS", 1),
    ];
    // Few agents have schedules: without any, the column is left out.
    let has_schedules = agents.iter().any(|agent| agent.next_due.is_some());
    let head = head
        .into_iter()
        .chain(has_schedules.then_some(Head::Spare("NEXT DUE", 8)));
    let head: Vec<Head> = head.collect();
    let home = std::env::var("HOME").ok();
    // A configuration that cannot be read is reported where its contents are needed.
    let catalog = providers::catalog().ok();
    let rows = agents.iter().zip(names).map(|(agent, name)| {
        let cwd = agent.cwd.as_deref();
        let (provider, model) = (agent.provider.as_deref(), agent.model.as_deref());
        let known = catalog.as_ref();
        let model = known.and_then(|catalog| providers::model_of(catalog, provider, model));
        let model = model.or_else(|| agent.provider.clone());
        let mut row = vec![
            name,
            agent.phase.name().to_owned(),
            word(agent.process.state),
            word(agent.mode),
            agent.conversations.to_string(),
            usage::cost(&agent.usage),
            time::ago(agent.updated_at, now),
            model.unwrap_or_default(),
            cwd.map(|cwd| directory(cwd, home.as_deref()))
                .unwrap_or_default(),
            agent.title.as_deref().map(line_of).unwrap_or_default(),
            agent.summary.as_deref().map(line_of).unwrap_or_default(),
        ];
        if has_schedules {
            row.push(agent.next_due.map(time::clock).unwrap_or_default());
        }
        row
    });
    table(&head, &rows.collect::<Vec<_>>(), width)
}
