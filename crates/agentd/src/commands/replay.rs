//! `agentd replay`.

use crate::complete;
use crate::connect::Connection;
use crate::error::{Error, Exit};
use crate::follow::{Follow, Seen};
use crate::output::Output;
use crate::render::event::line;
use agentd_client::api::{AllEventsQuery, EventQuery, Item};
use agentd_core::event::Event;
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  agentd replay --json > all.jsonl
  agentd replay --since 120000 -f --json
  agentd replay coder --since 1200

For all agents, events are printed in commit order, and --since takes a `cursor` of an earlier replay. For one \
agent, --since takes a sequence number. Each line of --json has its `cursor`.";

/// Print the events of the journal, for all agents or for one
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent [default: all agents]
    #[arg(add = complete::archived())]
    name: Option<String>,
    /// Only events after this position
    #[arg(long, value_name = "N")]
    since: Option<String>,
    /// Follow: print new events as they happen
    #[arg(short, long)]
    follow: bool,
    /// Print every event as a JSON line
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let mut connection = Connection::open().await?;
    match &args.name {
        Some(name) => of_one(&mut connection, args, name, out).await,
        None => of_all(&mut connection, args, out).await,
    }
}

async fn of_one(
    connection: &mut Connection,
    args: &Args,
    name: &str,
    out: &mut Output,
) -> Result<(), Error> {
    let query = EventQuery {
        after: match &args.since {
            Some(since) => since.parse().map_err(|_| not_a_number(since))?,
            None => 0,
        },
        all: true,
        ..EventQuery::default()
    };
    let mut follow = Follow::new(name, query);
    loop {
        match follow.next(connection).await? {
            Seen::Event(event) => show(args, &event, &event.seq.to_string(), out)?,
            Seen::CaughtUp if !args.follow => return Ok(()),
            Seen::CaughtUp | Seen::Delta(_) | Seen::Progress(_) | Seen::Lost | Seen::Found => {}
        }
    }
}

async fn of_all(connection: &mut Connection, args: &Args, out: &mut Output) -> Result<(), Error> {
    let mut query = AllEventsQuery {
        after: args.since.clone().unwrap_or_default(),
        follow: args.follow,
    };
    loop {
        let stream = connection.client.replay(&query).await;
        let Some(mut stream) = connection.or_again(stream).await? else {
            continue;
        };
        loop {
            let item = match stream.next().await {
                Some(item) => item,
                None => return Ok(()),
            };
            let Some(item) = connection.or_again(item).await? else {
                break;
            };
            let Item::Event(event) = item else { continue };
            let Some(cursor) = stream.cursor() else {
                let what = "the daemon sent an event without a cursor";
                return Err(Error::new(Exit::Unavailable, what));
            };
            // After a reconnect the stream goes on behind the last event.
            if cursor != query.after {
                query.after = cursor.to_owned();
                show(args, &event, cursor, out)?;
            }
        }
    }
}

fn not_a_number(since: &str) -> Error {
    let what = format!("--since takes a sequence number for one agent, not `{since}`");
    Error::new(Exit::Usage, what)
}

fn show(args: &Args, event: &Event, cursor: &str, out: &mut Output) -> Result<(), Error> {
    if !args.json {
        return out.line(line(event));
    }
    let mut object = json!(event);
    object["cursor"] = json!(cursor);
    out.json(&object)
}
