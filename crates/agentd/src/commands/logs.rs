//! `agentd logs`.

use crate::complete;
use crate::connect::Connection;
use crate::conversation::Which;
use crate::error::Error;
use crate::follow::{Follow, Seen};
use crate::output::{Output, QUIET};
use crate::printer::{Printer, Style};
use crate::render::event::{begins, told};
use agentd_client::api::{EventQuery, OutputQuery};
use agentd_core::event::{Body, Event};
use agentd_core::id::{ConversationId, TaskId, TurnId};
use std::collections::BTreeMap;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  agentd logs coder
  agentd logs coder -f
  agentd logs coder --since 1200 --json
  agentd logs coder --turn 0198c5a2-7d1e-7cc3-98c4-dc0c0c07398f
  agentd logs coder --task 0198c5a2-7d1e-7cc3-98c4-dc0c0c07398f -f
  agentd logs coder --all --json | jq -r .kind | sort | uniq -c

Events before `agentd reset --clear-log` are shown only with --all or --conversation. -f runs until Ctrl-C, \
through every restart of the daemon, and shows each event once.";

/// How long to wait for a streamed reply to be written before the next event is printed.
const IN_TURN: Duration = Duration::from_secs(5);

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
    /// Only events after this sequence number
    #[arg(
        long,
        value_name = "SEQ",
        default_value_t = 0,
        hide_default_value = true
    )]
    since: u64,
    /// Only this turn
    #[arg(long, value_name = "ID")]
    turn: Option<TurnId>,
    /// Only this conversation, by its id or number
    #[arg(long, value_name = "ID|N")]
    conversation: Option<Which>,
    /// Show the output of a task instead
    #[arg(long, value_name = "ID", conflicts_with_all = ["since", "turn", "conversation", "all"])]
    task: Option<TaskId>,
    /// Start at the beginning, even if the log was cleared
    #[arg(short, long)]
    all: bool,
    /// Print every event as a JSON line
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let mut connection = Connection::open().await?;
    let conversation = match &args.conversation {
        Some(which) => Some(which.of(&connection.client, &args.name).await?),
        None => None,
    };
    let query = EventQuery {
        after: args.since,
        conversation,
        turn: args.turn,
        all: args.all,
        follow: false,
    };
    let name = &args.name;
    if let Some(task) = args.task {
        return output(&mut connection, args, task, out).await;
    }
    match args.follow {
        true => follow(&mut connection, args, name, query, out).await,
        false => pages(&mut connection, args, name, query, out).await,
    }
}

/// Prints the output of a task; with -f, until the task ends.
async fn output(
    connection: &mut Connection,
    args: &Args,
    task: TaskId,
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
    let mut lines = Lines::new(args);
    loop {
        let page = connection.client.page(name, &query).await;
        let Some((events, next)) = connection.or_again(page).await? else {
            continue;
        };
        for event in &events {
            lines.show(connection, event, out).await?;
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
    let mut follow = Follow::new(name, query);
    // Replies are shown as they stream, and completed when their message arrives.
    let mut printer = Printer::new(Style::Text);
    let mut is_streaming = false;
    let mut lines = Lines::new(args);
    loop {
        match follow.next(connection).await? {
            Seen::Event(event) if is_streaming && matches!(event.body, Body::MessageAdded(_)) => {
                is_streaming = false;
                printer.event(&event);
                printer.flush(IN_TURN);
            }
            Seen::Event(event) => lines.show(connection, &event, out).await?,
            Seen::Delta(delta) if !args.json => {
                is_streaming = true;
                printer.streamed(&delta.request, &delta.text);
            }
            Seen::Delta(_) | Seen::CaughtUp => {}
        }
    }
}

/// Prints events as lines, with the numbers of conversations that users see.
struct Lines<'a> {
    args: &'a Args,
    numbers: BTreeMap<ConversationId, u32>,
}

impl<'a> Lines<'a> {
    const fn new(args: &'a Args) -> Self {
        let numbers = BTreeMap::new();
        Self { args, numbers }
    }

    async fn show(
        &mut self,
        connection: &Connection,
        event: &Event,
        out: &mut Output,
    ) -> Result<(), Error> {
        if self.args.json {
            return out.json(event);
        }
        let number = match begins(event) {
            Some(conversation) => self.number(connection, conversation).await,
            None => None,
        };
        match told(event, number) {
            Some(text) => {
                let text = text.replace('\n', "\n      ");
                out.line(format_args!("{QUIET}{:>5}{QUIET:#} {text}", event.seq))
            }
            None => Ok(()),
        }
    }

    /// None if the daemon does not return it: the line has the id instead.
    async fn number(&mut self, connection: &Connection, id: ConversationId) -> Option<u32> {
        if !self.numbers.contains_key(&id) {
            let all = connection
                .client
                .conversations(&self.args.name)
                .await
                .ok()?;
            let numbers = all.conversations.iter();
            self.numbers = numbers.map(|it| (it.id, it.ordinal)).collect();
        }
        self.numbers.get(&id).copied()
    }
}
