//! `agentd usage`.

use crate::complete;
use crate::connect;
use crate::error::{Error, Exit};
use crate::output::Output;
use crate::render::table::{Head, table};
use crate::render::time::{self, Moment};
use crate::render::{named, usage};
use agentd_client::api::{UsageBy, UsageQuery, UsageReport, UsageRow};

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
    for line in lines(&report, out.width()) {
        out.line(line)?;
    }
    Ok(())
}

fn lines(report: &UsageReport, width: Option<u16>) -> Vec<String> {
    let mut head = match report.by {
        UsageBy::Agent => vec![Head::Kept("AGENT")],
        UsageBy::Model => vec![Head::Kept("MODEL")],
        UsageBy::Day => vec![Head::Kept("DAY")],
        UsageBy::Conversation => vec![Head::Kept("AGENT"), Head::Kept("CONVERSATION")],
    };
    head.extend([
        Head::Spare("REQUESTS", 0),
        Head::Spare("INPUT", 1),
        Head::Spare("OUTPUT", 2),
        Head::Kept("COST"),
    ]);
    let names = head.len() - 4;
    let mut rows: Vec<_> = report
        .rows
        .iter()
        .map(|row| cells(report.by, row))
        .collect();
    let mut total = vec!["total".to_owned()];
    total.resize(names, String::new());
    total.extend(sums(&report.total));
    rows.push(total);
    table(&head, &rows, width)
}

fn cells(by: UsageBy, row: &UsageRow) -> Vec<String> {
    let agent = || row.agent.as_ref().map(named).unwrap_or_default();
    let mut cells = match by {
        UsageBy::Agent => vec![agent()],
        UsageBy::Model => {
            let model = row.model.clone();
            vec![model.unwrap_or_else(|| "(unknown)".to_owned())]
        }
        UsageBy::Day => vec![row.day.clone().unwrap_or_default()],
        UsageBy::Conversation => {
            let number = row.ordinal.map(|n| n.to_string());
            let id = || row.conversation.map(|id| id.to_string());
            vec![agent(), number.or_else(id).unwrap_or_default()]
        }
    };
    cells.extend(sums(row));
    cells
}

fn sums(row: &UsageRow) -> [String; 4] {
    [
        row.requests.to_string(),
        usage::tokens(row.usage.input_tokens),
        usage::tokens(row.usage.output_tokens),
        usage::known_cost(row.priced_usd, row.unpriced),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_client::api::Usage;

    fn row(model: Option<&str>, requests: u64, unpriced: u64) -> UsageRow {
        UsageRow {
            model: model.map(str::to_owned),
            requests,
            unpriced,
            usage: Usage {
                input_tokens: 12_345,
                output_tokens: 67,
                cost_usd: None,
            },
            priced_usd: 1.5,
            ..UsageRow::default()
        }
    }

    #[test]
    fn a_table_ends_with_the_total() {
        let report = UsageReport {
            by: UsageBy::Model,
            rows: vec![row(Some("large"), 2, 0), row(None, 1, 1)],
            total: row(None, 3, 1),
        };
        let expected = [
            "MODEL      REQUESTS  INPUT  OUTPUT  COST",
            "large      2         12.3k  67      $1.50",
            "(unknown)  1         12.3k  67      $1.50 + ?",
            "total      3         12.3k  67      $1.50 + ?",
        ];
        assert_eq!(lines(&report, None), expected);
        let narrow = lines(&report, Some(30));
        assert_eq!(narrow[0], "MODEL      OUTPUT  COST", "{narrow:#?}");
    }
}
