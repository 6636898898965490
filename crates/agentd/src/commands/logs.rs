//! `agentd logs`.

mod lines;
mod prompts;
mod tail;

use crate::complete;
use crate::connect::Connection;
use crate::conversation::Which;
use crate::error::Error;
use crate::follow::{Follow, Seen};
use crate::keys::Follower;
use crate::live::{LineMode, Options, Scope};
use crate::output::Output;
use crate::providers;
use crate::render::Detail;
use crate::render::time::{self, Moment};
use agentd_client::api::{EventQuery, OutputQuery, TurnQuery};
use agentd_core::id::IdPrefix;
use agentd_core::time::Timestamp;
use futures_util::StreamExt as _;
use lines::Lines;
use regex::Regex;
use std::pin::pin;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  agentd logs coder
  agentd logs coder -f --tail 20
  agentd logs coder --since 2h --grep 'error|warning' --times
  agentd logs coder --since 1200 --json
  agentd logs coder --turn 3 --full
  agentd logs coder --task 0198c5a2-7d1e -f
  agentd logs coder --process
  agentd logs coder --all --json | jq -r .kind | sort | uniq -c

A time is local unless it has an offset (2026-11-16T10:00Z), and a date is its beginning. Turns have the numbers that \
`agentd show NAME --conversation N` prints. Events before `agentd reset --clear-log` are shown only with --all or --conversation. -f runs until Ctrl-C, \
through every restart of the daemon, and shows each event once; on a terminal it shows replies as they stream, unless --grep or --times is given.";

/// Interval between two polls for the output of a task.
const MORE: Duration = Duration::from_millis(200);

/// Show the log of an agent: prompts, messages, tool calls and results
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::archived())]
    name: String,
    /// Follow: print new events as they happen
    #[arg(short, long)]
    follow: bool,
    /// Only the last N lines, or with --json the last N events
    #[arg(short = 'n', long, value_name = "N")]
    tail: Option<usize>,
    /// Only events after this sequence number, or since this time: 10m, 2h, 7d, 2026-11-16 or 2026-11-16T10:00Z
    #[arg(long, value_name = "SEQ|TIME", value_parser = time::moment)]
    since: Option<Moment>,
    /// Only events up to this sequence number or time
    #[arg(long, value_name = "SEQ|TIME", value_parser = time::moment, conflicts_with = "follow")]
    until: Option<Moment>,
    /// Only this turn, by its number in the conversation, its id or the beginning of its id
    #[arg(long, value_name = "N|ID", add = complete::turns())]
    turn: Option<String>,
    /// Only this conversation, by its id or number
    #[arg(long, value_name = "ID|N", add = complete::conversations())]
    conversation: Option<Which>,
    /// Only events whose text matches this regular expression
    #[arg(long, value_name = "PATTERN")]
    grep: Option<Regex>,
    /// Print the time of each event
    #[arg(long)]
    times: bool,
    /// Show long calls and results in full; with -f on a terminal also thinking and changes
    #[arg(long)]
    full: bool,
    /// Show the output of a task instead
    #[arg(
        long,
        value_name = "ID",
        add = complete::tasks(),
        conflicts_with_all = ["tail", "since", "until", "turn", "conversation", "grep", "all"]
    )]
    task: Option<IdPrefix>,
    /// Show what the agent's process has written to standard error instead: panics, for example
    #[arg(
        long,
        conflicts_with_all = ["follow", "tail", "since", "until", "turn", "conversation", "grep", "all", "task"]
    )]
    process: bool,
    /// Start at the beginning, even if the log was cleared
    #[arg(short, long)]
    all: bool,
    /// Print every event as a JSON line
    #[arg(long)]
    json: bool,
}

impl Args {
    const fn detail(&self) -> Detail {
        match self.full {
            true => Detail::Full,
            false => Detail::Brief,
        }
    }

    /// Whether the live view shows the log. It has no times, and a part of a reply cannot be searched.
    const fn is_live(&self, out: &Output) -> bool {
        out.is_watched() && !self.json && !self.times && self.grep.is_none()
    }
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let mut connection = Connection::open().await?;
    let conversation = match &args.conversation {
        Some(which) => Some(which.of(&connection.client, &args.name).await?),
        None => None,
    };
    let name = &args.name;
    if args.process {
        let log = connection.client.process_log(name).await?;
        return match args.json {
            true => out.json(&log),
            false => out.piece(&format!("{}{}", log.previous, log.current)),
        };
    }
    if let Some(task) = &args.task {
        return output(&mut connection, args, task, out).await;
    }
    let turn = match &args.turn {
        Some(which) => {
            let query = TurnQuery { conversation };
            Some(connection.client.turn(name, which, &query).await?.id)
        }
        None => None,
    };
    let (after, since) = split(args.since);
    let (last, until) = split(args.until);
    let mut query = EventQuery {
        after: after.unwrap_or_default(),
        since,
        until,
        conversation,
        turn,
        all: args.all,
        follow: false,
    };
    let is_whole = args.tail.is_none() && args.since.is_none() && args.until.is_none();
    if turn.is_some() && is_whole && !args.follow && !args.json {
        let client = connection.client.clone();
        let mut lines = Lines::new(args);
        for prompt in prompts::of_turn(&mut connection, name, &query).await? {
            lines.show(&client, &prompt, out).await?;
        }
    }
    if let Some(wanted) = args.tail {
        let lines = Lines::new(args);
        query.after = tail::begin(&mut connection, name, &query, (wanted, last), &lines).await?;
    }
    match args.follow {
        true => follow(&mut connection, args, name, query, out).await,
        false => pages(&mut connection, args, name, query, out).await,
    }
}

/// The position and the time of a moment, of which it is one.
const fn split(moment: Option<Moment>) -> (Option<u64>, Option<Timestamp>) {
    match moment {
        Some(Moment::Seq(seq)) => (Some(seq), None),
        Some(Moment::At(at)) => (None, Some(at)),
        None => (None, None),
    }
}

/// Prints the output of a task; with -f, until the task ends.
async fn output(
    connection: &mut Connection,
    args: &Args,
    task: &IdPrefix,
    out: &mut Output,
) -> Result<(), Error> {
    let mut query = OutputQuery::default();
    loop {
        let read = connection.client.output(&args.name, task, &query).await;
        let Some(read) = connection.or_again(read).await? else {
            continue;
        };
        let is_more = !read.text.is_empty();
        query.offset = read.next;
        match args.json {
            true if is_more => out.json(&read)?,
            true => {}
            false => out.piece(&read.text)?,
        }
        if read.is_over || !(args.follow || is_more) {
            return Ok(());
        }
        if !is_more {
            // tidy: polls for more of its output
            tokio::time::sleep(MORE).await;
        }
    }
}

async fn pages(
    connection: &mut Connection,
    args: &Args,
    name: &str,
    mut query: EventQuery,
    out: &mut Output,
) -> Result<(), Error> {
    let client = connection.client.clone();
    let mut lines = Lines::new(args);
    let (last, _) = split(args.until);
    loop {
        let page = connection.client.page(name, &query).await;
        let Some((events, next)) = connection.or_again(page).await? else {
            continue;
        };
        for event in &events {
            if last.is_some_and(|last| event.seq.0 > last) {
                return Ok(());
            }
            lines.show(&client, event, out).await?;
        }
        match next {
            // A page that does not advance would be requested again without end.
            Some(next) if next.0 > query.after => query.after = next.0,
            _ => return Ok(()),
        }
    }
}

async fn follow(
    connection: &mut Connection,
    args: &Args,
    name: &str,
    query: EventQuery,
    out: &mut Output,
) -> Result<(), Error> {
    if args.is_live(out) {
        return live(connection, args, name, query).await;
    }
    let client = connection.client.clone();
    let keys = Follower::new(client.clone(), name);
    let mut supplying = pin!(keys.run());
    let mut events = pin!(
        Follow::new(name, query)
            .reporting_breaks()
            .stream(connection)
    );
    let mut lines = Lines::new(args);
    loop {
        tokio::select! {
            biased;
            Some(seen) = events.next() => {
                let seen = seen?;
                keys.seen(&seen);
                if let Seen::Event(event) = seen {
                    lines.show(&client, &event, out).await?;
                }
            }
            never = &mut supplying => match never {},
        }
    }
}

/// The live view, until Ctrl-C.
async fn live(
    connection: &mut Connection,
    args: &Args,
    name: &str,
    query: EventQuery,
) -> Result<(), Error> {
    let client = connection.client.clone();
    // An archived agent has a log too. If there is no such agent at all, its events say so.
    let agent = client.agent(name).await.ok();
    let mut live = LineMode::new(Options {
        scope: Scope::Agent,
        detail: args.detail(),
        window: agent.as_ref().and_then(providers::window),
    })?;
    let mut lines = Lines::new(args);
    let keys = Follower::new(client.clone(), name);
    let mut supplying = pin!(keys.run());
    let mut seen = pin!(
        Follow::new(name, query)
            .reporting_breaks()
            .stream(connection)
    );
    loop {
        tokio::select! {
            biased;
            Some(next) = seen.next() => {
                let next = next?;
                keys.seen(&next);
                let number = match &next {
                    Seen::Event(event) => lines.number(&client, event).await,
                    _ => None,
                };
                live.seen(&next, number);
            }
            never = &mut supplying => match never {},
            () = live.ticked() => live.tick(),
        }
    }
}
