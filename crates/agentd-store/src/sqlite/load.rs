//! Loads an agent: a snapshot and the events after it. The cost depends on the window, not on the history.

use super::fold::{Start, fold_each};
use super::readers::Databases;
use super::row::existing_agent_num;
use super::window;
use crate::error::{Error, Result};
use crate::rules::fold::Folded;
use crate::store::Loaded;
use agentd_core::id::AgentId;
use agentd_core::window::Window;

pub fn agent(databases: &Databases, agent: AgentId) -> Result<Loaded> {
    let journal = &databases.journal;
    // One transaction for all reads.
    let moment = journal.unchecked_transaction()?;
    let num = existing_agent_num(journal, agent)?;
    let (folded, window) = match both(databases, agent, num, Start::Snapshot) {
        // An event that the snapshot includes has changed: fold from the first event to find out how
        // far the journal is intact.
        Err(Error::Damaged { .. }) => both(databases, agent, num, Start::Beginning)?,
        folded => folded?,
    };
    if let Some(error) = folded.emptiness(agent) {
        return Err(error);
    }
    let window = match (window, &folded.damage) {
        (Some(window), _) => window,
        // Its first conversation has not begun.
        (None, None) => Window::new(),
        // Nothing of it can be shown: that must not look like an empty conversation.
        (None, Some(damage)) => return Err(Error::of_damage(agent, damage)),
    };
    // Nothing was written, and a commit would fail after a damaged page.
    drop(moment);
    Ok(Loaded {
        state: folded.state,
        window,
        source: folded.source.map(|(source, _, _)| source),
        damage: folded.damage,
    })
}

/// The agent's state for a new owner. Also folds the window, so that the claim finds damage in it.
pub fn checked(databases: &Databases, agent: AgentId, num: i64) -> Result<Folded> {
    match both(databases, agent, num, Start::Snapshot) {
        Err(Error::Damaged { reason, .. }) if !reason.is_newer() => {
            Ok(fold_each(databases, agent, num, Start::Beginning, |_| {})?.0)
        }
        folded => Ok(folded?.0),
    }
}

/// How many events the fold of the state keeps for the fold of the window.
const TAIL_KEPT: usize = 4096;

/// The agent's state and its window; no window if there is no conversation.
fn both(
    databases: &Databases,
    agent: AgentId,
    num: i64,
    start: Start,
) -> Result<(Folded, Option<Window>)> {
    let mut tail = Vec::new();
    let (folded, snapshot) = fold_each(databases, agent, num, start, |event| {
        // Few events follow the newest snapshot; a journal without a snapshot is read again below.
        if tail.len() <= TAIL_KEPT {
            tail.push(event.clone());
        }
    })?;
    let Some(current) = folded.state.tree.current() else {
        return Ok((folded, None));
    };
    let window = match &snapshot {
        Some(snapshot) if snapshot.conversation == current && tail.len() <= TAIL_KEPT => {
            let mut window = window::restore(&databases.journal, &snapshot.skeleton)?;
            let own = tail.iter().filter(|event| event.conversation == current);
            own.for_each(|event| window.apply(event));
            window
        }
        _ => window::fold_from(databases, &folded.state, current, folded.state.head, start)?,
    };
    Ok((folded, Some(window)))
}
