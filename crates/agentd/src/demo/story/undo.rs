//! Step 7: the old one again.

use super::reset::{Left, next_prompt};
use super::{take_over, verified};
use crate::demo::claims::Claims;
use crate::demo::evidence::{self, is_so};
use crate::demo::lifecycle;
use crate::demo::pen::failed;
use crate::error::Error;
use agentd_core::event::After;
use agentd_core::id::AgentId;
use agentd_core::wire;
use agentd_store::{SqliteStore, Store as _};

/// Returns the size of the request that was compared.
pub async fn tell(
    claims: &mut Claims<'_>,
    store: &SqliteStore,
    agent: AgentId,
    left: &Left,
) -> Result<usize, Error> {
    claims.step("Undo the reset")?;
    let mut driver = take_over(store, agent, After::Start).await?;
    let to = lifecycle::undo(&mut driver.pen).await?;
    let current = store
        .load(agent)
        .await
        .map_err(failed)?
        .state
        .tree
        .current();
    claims.check(
        "the old conversation, the same one, is current again",
        is_so(
            to == left.conversation && current == Some(to),
            "",
            format!("current is {current:?}"),
        ),
    )?;

    let mut driver = take_over(store, agent, After::Start).await?;
    driver.prompt(&next_prompt()).await?;
    let sent = driver.witness.0.first().map(wire::encode);
    let sent = sent.map_or_else(Vec::new, |sent| sent.to_string().into_bytes());
    let same = match left.next.is_empty() {
        true => Err("there was nothing to compare it with".to_owned()),
        false => evidence::same_bytes(&left.next, &sent),
    };
    claims.check(
        "the next request is what it would have been, byte for byte",
        same,
    )?;
    claims.check("`verify` finds nothing", verified(store).await?)?;
    Ok(sent.len())
}
