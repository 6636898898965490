//! `agentd search`.

use crate::complete;
use crate::connect;
use crate::error::Error;
use crate::output::{Output, QUIET};
use crate::render::{count, hit};
use agentd_client::api::{Found, Search};
use agentd_core::time::Timestamp;
use agentd_daemon::clock;

const EXAMPLES: &str = "\
Examples:
  agentd search flaky test
  agentd search '\"connection refused\"' --agent coder
  agentd search 'refactor*' --limit 5 --json | jq -r '.hits[].snippet'

Finds prompts, messages, tool calls and results that contain all of the words, newest first, in all conversations of \
all agents, archived ones included. A phrase in quotes must occur as it is; `word*` finds words that begin with \
`word`. What was said a moment ago may not be found yet.";

/// How many hits are shown by default.
const USUAL: usize = 20;
/// How many hits are requested at once.
const PAGE: usize = 200;

/// Search everything that was said
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Words that must all occur
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    /// Only conversations of this agent
    #[arg(long, value_name = "NAME", add = complete::archived())]
    agent: Option<String>,
    /// Show at most this many
    #[arg(short = 'n', long, value_name = "N", default_value_t = USUAL)]
    limit: usize,
    /// Continue after an earlier search: its `next`
    #[arg(long, value_name = "NEXT")]
    before: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    let mut search = Search {
        words: args.words.join(" "),
        agent: args.agent.clone(),
        limit: None,
        before: args.before.clone(),
    };
    let mut found = Found {
        hits: Vec::new(),
        next: None,
        incomplete: false,
    };
    let most = args.limit.max(1);
    loop {
        search.limit = Some((most - found.hits.len()).min(PAGE));
        let page = client.search(&search).await?;
        found.hits.extend(page.hits);
        found.next = page.next;
        found.incomplete |= page.incomplete;
        if found.hits.len() >= most || found.next.is_none() {
            break;
        }
        search.before.clone_from(&found.next);
    }
    match args.json {
        true => out.json(&found),
        false => print(&found, clock::now(), out),
    }
}

fn print(found: &Found, now: Timestamp, out: &mut Output) -> Result<(), Error> {
    for line in found.hits.iter().flat_map(|hit| hit::lines(hit, now)) {
        out.line(line)?;
    }
    if found.incomplete {
        out.aside(
            "indexing is not complete: what was said last may be missing; search again in a moment",
        )?;
    }
    let hits = match found.hits.len() {
        0 => "nothing was found".to_owned(),
        n => count(n as u64, "hit"),
    };
    match &found.next {
        None => out.line(format_args!("{QUIET}{hits}{QUIET:#}")),
        Some(next) => out.line(format_args!(
            "{QUIET}{hits}; more with --limit, or --before {next}{QUIET:#}"
        )),
    }
}
