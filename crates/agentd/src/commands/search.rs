//! `agentd search`.

use crate::complete;
use crate::connect;
use crate::error::Error;
use crate::output::{HEADING, Output, QUIET};
use crate::render::{count, named, time, word};
use agentd_client::api::{Found, Hit, Search};
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
    };
    let most = args.limit.max(1);
    loop {
        search.limit = Some((most - found.hits.len()).min(PAGE));
        let page = client.search(&search).await?;
        found.hits.extend(page.hits);
        found.next = page.next;
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
    for hit in &found.hits {
        out.line(format_args!("{QUIET}{}{QUIET:#}", place(hit, now)))?;
        out.line(format_args!("  {}", marked(hit)))?;
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

/// `coder · conversation 2 · turn 3 · user · event 41 · 3m ago`.
fn place(hit: &Hit, now: Timestamp) -> String {
    let mut parts = vec![named(&hit.agent)];
    let conversation = hit.ordinal.map(|n| n.to_string());
    let conversation = conversation.unwrap_or_else(|| hit.conversation.to_string());
    parts.push(format!("conversation {conversation}"));
    parts.extend(hit.number.map(|n| format!("turn {n}")));
    parts.push(word(hit.role));
    parts.push(format!("event {}", hit.seq));
    parts.push(time::ago(hit.at, now));
    parts.join(" · ")
}

/// The snippet with its matches highlighted.
fn marked(hit: &Hit) -> String {
    let mut text = String::new();
    for (n, c) in hit.snippet.chars().enumerate() {
        if hit.matches.iter().any(|at| at.end == n) {
            text.push_str(&format!("{HEADING:#}"));
        }
        if hit.matches.iter().any(|at| at.start == n) {
            text.push_str(&HEADING.to_string());
        }
        text.push(c);
    }
    let length = hit.snippet.chars().count();
    if hit.matches.iter().any(|at| at.end == length) {
        text.push_str(&format!("{HEADING:#}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_client::api::{AgentRef, Role};
    use agentd_core::id::{AgentId, ConversationId, Seq};
    use uuid::Uuid;

    #[test]
    fn a_hit_says_where_it_is_and_marks_the_words() {
        let hit = Hit {
            agent: AgentRef {
                id: AgentId::new(Uuid::nil()),
                name: Some("coder".to_owned()),
            },
            conversation: ConversationId::new(Uuid::nil()),
            ordinal: Some(2),
            turn: None,
            number: Some(3),
            seq: Seq(41),
            at: Timestamp::from_millis(0),
            role: Role::User,
            snippet: "fix the tests".to_owned(),
            matches: vec![0..3, 8..13],
        };
        let now = Timestamp::from_millis(180_000);
        let expected = "coder · conversation 2 · turn 3 · user · event 41 · 3m ago";
        assert_eq!(place(&hit, now), expected);
        let expected = format!("{HEADING}fix{HEADING:#} the {HEADING}tests{HEADING:#}");
        assert_eq!(marked(&hit), expected);
    }
}
