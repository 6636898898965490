//! `agentd usage`.

use crate::complete;
use crate::connect;
use crate::error::{Error, Exit};
use crate::output::Output;
use crate::render::time::{self, Moment};
use crate::render::usage_report;
use agentd_client::api::{UsageBy, UsageQuery};

const EXAMPLES: &str = "\
Examples:
  agentd usage
  agentd usage coder --by conversation
  agentd usage --by day --since 7d
  agentd usage --by model --since 2026-11-01 --json | jq '.rows[] | {model, priced_usd}'

Archived agents are included. Input tokens include those that were read from and written to the cache. Days are in UTC. \
`?` is the cost of requests to a model whose price is unknown.";

/// Show the tokens and the cost of agents
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent [default: all agents]
    #[arg(add = complete::archived())]
    name: Option<String>,
    /// What each row is
    #[arg(long, value_enum, default_value_t = By::Agent)]
    by: By,
    /// Only requests since this time: 10m, 2h, 7d, 2026-11-16 or 2026-11-16T10:00Z
    #[arg(long, value_name = "TIME", value_parser = time::moment)]
    since: Option<Moment>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum By {
    Agent,
    Model,
    Day,
    Conversation,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let since = match args.since {
        Some(Moment::At(at)) => Some(at),
        Some(Moment::Seq(_)) => {
            let error = Error::new(Exit::Usage, "--since needs a time here, not an event");
            return Err(error.next("pass a time such as 10m, 7d or 2026-11-16"));
        }
        None => None,
    };
    let client = connect::client().await?;
    let query = UsageQuery {
        agent: args.name.clone(),
        by: match args.by {
            By::Agent => UsageBy::Agent,
            By::Model => UsageBy::Model,
            By::Day => UsageBy::Day,
            By::Conversation => UsageBy::Conversation,
        },
        since,
    };
    let report = client.usage(&query).await?;
    if args.json {
        return out.json(&report);
    }
    for line in usage_report::lines(&report, out.width()) {
        out.line(line)?;
    }
    Ok(())
}
