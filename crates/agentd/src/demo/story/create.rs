//! Step 1: an agent.

use super::open;
use crate::demo::claims::Claims;
use crate::demo::evidence::is_so;
use crate::demo::lifecycle;
use crate::error::Error;
use agentd_core::id::{AgentId, Seq};
use std::path::Path;

/// Returns what was acknowledged.
pub async fn tell(claims: &mut Claims<'_>, home: &Path, agent: AgentId) -> Result<Vec<Seq>, Error> {
    claims.step("Create an agent")?;
    let store = open(home)?;
    let (first, last) = lifecycle::create(&store, agent).await?;
    claims.check(
        "the agent, its settings and its first conversation, in one commit",
        is_so(
            (first, last) == (Seq(1), Seq(4)),
            "events 1 to 4",
            format!("they are events {first} to {last}"),
        ),
    )?;
    Ok((first.0..=last.0).map(Seq).collect())
}
