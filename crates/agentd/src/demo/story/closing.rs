//! What was shown, in a table, and how to go on.

use super::ended::Record;
use crate::demo::claims::Claims;
use crate::error::Error;
use crate::output::{GOOD, HEADING};

pub struct Figures {
    pub request_bytes: usize,
    pub record: Record,
    pub seconds: f64,
}

pub fn tell(claims: &mut Claims<'_>, figures: &Figures) -> Result<(), Error> {
    let Record {
        events,
        conversations,
        turns,
    } = figures.record;
    let bytes = figures.request_bytes;
    let table = [
        (
            "the agent's process killed",
            "the command ran on, and once; the turn went on".to_owned(),
        ),
        (
            "the daemon killed",
            "the agent's process was adopted; no event lost or doubled".to_owned(),
        ),
        (
            "reset, then undo",
            format!("the next request identical, {bytes} bytes"),
        ),
        (
            "the journal",
            format!("{events} events, {turns} turns, {conversations} conversations, verified"),
        ),
    ];
    claims.out.line("")?;
    heading(claims, "What you saw")?;
    for (what, came_of_it) in table {
        claims.out.line(format_args!("   {what:<30}{came_of_it}"))?;
    }
    let held = claims.held();
    claims.out.line(format_args!(
        "   {GOOD}✓ {held} claims, all true, in {:.1} s{GOOD:#}",
        figures.seconds
    ))?;
    claims.out.line("")?;
    heading(claims, "Go on with a real model")?;
    for (what, what_for) in [
        (
            "export ANTHROPIC_API_KEY=…",
            "or OPENAI_API_KEY, or GEMINI_API_KEY",
        ),
        (
            "agentd run \"What is in this directory?\"",
            "one prompt, one answer",
        ),
        ("agentd create coder", "an agent that stays"),
        ("agentd send coder \"…\"", "and remembers"),
        ("agentd logs -f coder", "what it does"),
        (
            "agentd reset coder",
            "a new conversation; --undo takes it back",
        ),
    ] {
        claims.out.line(format_args!("   {what:<40}{what_for}"))?;
    }
    claims
        .out
        .line("The first command starts the daemon; there is nothing to set up.")
}

fn heading(claims: &mut Claims<'_>, text: &str) -> Result<(), Error> {
    claims.out.line(format_args!("{HEADING}{text}{HEADING:#}"))
}
