//! Conversations with a long past and a small window, as compaction leaves them.

use agentd_store::{Append, SqliteStore, Store as _};
use anyhow::{Result, ensure};

use crate::journal::Story;

const TEXT: usize = 400;
/// The number of turns from one compaction to the next, which of them compacts, and how many messages it keeps. A
/// compaction leaves a summary, [`KEPT`] messages and an answer, and five turns follow: the window has 20 items,
/// however long the history is.
const STRETCH: usize = 25;
const COMPACTS: usize = 20;
const KEPT: usize = 8;
/// Events after the newest snapshot of a long history: half of the maximum. A short history has no snapshot yet.
const TAIL: usize = 256;
const BATCH: usize = 1000;
/// The length of a short message.
const SHORT: usize = 40;

/// Writes an agent with this many short messages, all in its window; returns how many there are.
pub async fn write_window(store: &SqliteStore, name: &str, messages: usize) -> Result<usize> {
    let (mut story, mut pending) = Story::begin(name, 1);
    let agent = story.agent;
    let fence = store.claim(agent, "bench").await?.fence;
    story.context(&mut pending);
    for turn in 1..=messages / 2 {
        story.turn(SHORT, &mut pending);
        if pending.len() >= BATCH || turn == messages / 2 {
            store
                .append(Append::new(fence, std::mem::take(&mut pending)))
                .await?;
        }
    }
    store.wait_caught_up().await?;
    let loaded = store.load(agent).await?;
    ensure!(loaded.damage.is_none(), "the journal is damaged");
    Ok(loaded.window.items().len())
}

/// A turn that compacts, about half way through this many messages. The window after it is as long as at the end.
pub const fn half_way(messages: usize) -> usize {
    messages / 4 / STRETCH * STRETCH + COMPACTS
}

/// Writes an agent with this many messages; returns how many items its window has.
pub async fn write(store: &SqliteStore, name: &str, messages: usize) -> Result<usize> {
    let (mut story, mut pending) = Story::begin(name, 1);
    let agent = story.agent;
    let fence = store.claim(agent, "bench").await?.fence;
    story.context(&mut pending);
    for turn in 1..=messages / 2 {
        match turn % STRETCH == COMPACTS {
            true => story.compacting_turn(TEXT, KEPT, &mut pending),
            false => story.turn(TEXT, &mut pending),
        }
        // What comes last is held back, to be where we want it.
        if pending.len() >= 2 * BATCH + TAIL {
            let some = pending.drain(..BATCH).collect();
            store.append(Append::new(fence, some)).await?;
        }
    }
    let tail = pending.split_off(pending.len().saturating_sub(TAIL));
    if !pending.is_empty() {
        // So many at once that a snapshot is taken right behind them.
        store.append(Append::new(fence, pending)).await?;
        store.wait_caught_up().await?;
    }
    store.append(Append::new(fence, tail)).await?;
    store.wait_caught_up().await?;
    let loaded = store.load(agent).await?;
    ensure!(loaded.damage.is_none(), "the journal is damaged");
    ensure!(loaded.state.anomalies == 0, "the history is inconsistent");
    Ok(loaded.window.items().len())
}
