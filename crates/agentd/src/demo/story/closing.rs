//! A summary of the results, and the next commands to try.

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
            "the command kept running and ran once; the turn continued".to_owned(),
        ),
        (
            "the daemon killed",
            "the agent's process was adopted; no event lost or duplicated".to_owned(),
        ),
        (
            "reset, then undo",
            format!("the next request is identical ({bytes} bytes)"),
        ),
        (
            "the journal",
            format!("{events} events, {turns} turns, {conversations} conversations, verified"),
        ),
    ];
    claims.out.line("")?;
    heading(claims, "Results")?;
    for (what, came_of_it) in table {
        claims.out.line(format_args!("   {what:<30}{came_of_it}"))?;
    }
    let held = claims.held();
    claims.out.line(format_args!(
        "   {GOOD}✓ {held} claims checked, all hold, in {:.1} s{GOOD:#}",
        figures.seconds
    ))?;
    claims.out.line("")?;
    heading(claims, "Next: use a real model")?;
    for (what, what_for) in [
        (
            "export ANTHROPIC_API_KEY=…",
            "or OPENAI_API_KEY, or GEMINI_API_KEY",
        ),
        (
            "agentd run \"What is in this directory?\"",
            "one prompt, one answer",
        ),
        ("agentd create coder", "a persistent agent"),
        (
            "agentd send coder \"…\"",
            "a prompt; it remembers the conversation",
        ),
        ("agentd logs -f coder", "follow what it does"),
        (
            "agentd reset coder",
            "begin a new conversation; --undo reverses it",
        ),
    ] {
        claims.out.line(format_args!("   {what:<40}{what_for}"))?;
    }
    claims
        .out
        .line("The first command starts the daemon; no setup is needed.")
}

fn heading(claims: &mut Claims<'_>, text: &str) -> Result<(), Error> {
    claims.out.line(format_args!("{HEADING}{text}{HEADING:#}"))
}
