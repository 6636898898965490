//! What was shown, in a table, and how to go on.

use crate::demo::claims::Claims;
use crate::demo::pen::failed;
use crate::error::Error;
use crate::output::{GOOD, HEADING};
use agentd_core::id::AgentId;
use agentd_store::{SqliteStore, Store as _};

pub struct Figures {
    pub acknowledged: usize,
    pub kept_bytes: usize,
    pub request_bytes: usize,
    pub seconds: f64,
}

pub async fn tell(
    claims: &mut Claims<'_>,
    store: &SqliteStore,
    agent: AgentId,
    figures: &Figures,
) -> Result<(), Error> {
    let state = store.load(agent).await.map_err(failed)?.state;
    let turns: u32 = state
        .tree
        .iter()
        .map(|conversation| conversation.turns)
        .sum();
    let table = [
        (
            "kill -9 in mid-reply",
            format!("0 of {} acknowledged events lost", figures.acknowledged),
        ),
        (
            "the half-written reply",
            format!(
                "{} bytes kept, shown to the model, completed",
                figures.kept_bytes
            ),
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
        claims.out.line(format_args!("   {what:<24}{came_of_it}"))?;
    }
    let held = claims.held();
    claims.out.line(format_args!(
        "   {GOOD}✓ {held} claims, all true, in {:.1} s{GOOD:#}",
        figures.seconds
    ))?;
    claims.out.line("")?;
    claims
        .out
        .line(format_args!("{HEADING}Go on from here{HEADING:#}"))?;
    for (what, where_to) in [
        ("README.md", "what works today"),
        ("docs/journal.md", "what is in the journal, line by line"),
        ("agentd verify", "checks a journal of your own"),
    ] {
        claims.out.line(format_args!("   {what:<24}{where_to}"))?;
    }
    Ok(())
}
