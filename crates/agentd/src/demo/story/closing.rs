//! What was shown, in a table, and how to go on.

use super::Scene;
use crate::demo::claims::Claims;
use crate::error::Error;
use crate::output::{GOOD, HEADING};

pub struct Figures {
    pub kept_bytes: usize,
    pub request_bytes: usize,
    pub seconds: f64,
}

pub async fn tell(claims: &mut Claims<'_>, scene: &Scene, figures: &Figures) -> Result<(), Error> {
    let state = scene.load().await?.state;
    let turns: u32 = state
        .tree
        .iter()
        .map(|conversation| conversation.turns)
        .sum();
    let table = [
        (
            "two kills with SIGKILL",
            format!("0 of {} acknowledged events lost", scene.acknowledged.len()),
        ),
        (
            "the half-written reply",
            format!("{} bytes kept, and finished", figures.kept_bytes),
        ),
        (
            "reset, then undo",
            format!(
                "the next request identical, {} bytes",
                figures.request_bytes
            ),
        ),
        (
            "the journal",
            format!(
                "{} events, {turns} turns, {} conversations, verified",
                state.head,
                state.tree.len(),
            ),
        ),
    ];
    claims.out.line("")?;
    claims
        .out
        .line(format_args!("{HEADING}What you saw{HEADING:#}"))?;
    for (what, came_of_it) in table {
        claims.out.line(format_args!("   {what:<26}{came_of_it}"))?;
    }
    let held = claims.held();
    claims.out.line(format_args!(
        "   {GOOD}✓ {held} claims, all true, in {:.1} s{GOOD:#}",
        figures.seconds
    ))?;
    claims.out.line("")?;
    claims
        .out
        .line(format_args!("{HEADING}Go on with a real model{HEADING:#}"))?;
    for (what, where_to) in [
        (
            "export ANTHROPIC_API_KEY=…",
            "or OPENAI_API_KEY, or GEMINI_API_KEY",
        ),
        ("agentd agent \"…\"", "in the folder that it is to work in"),
        ("agentd agent --help", "other providers, limits, resuming"),
    ] {
        claims.out.line(format_args!("   {what:<30}{where_to}"))?;
    }
    Ok(())
}
