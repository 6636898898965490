//! The agent's process dies in the middle of a sentence.

use super::{Scene, is_dead};
use crate::demo::claims::Claims;
use crate::demo::evidence::{self, is_so};
use crate::error::{Error, Exit};
use agentd_core::event::MessageStatus;
use agentd_core::message::Block;
use agentd_core::request;
use agentd_core::window::{Entry, Window};

const TO: u64 = 60;
/// Read before the kill.
const LINES: usize = 12;

/// Returns how much of the reply was kept, in bytes.
pub async fn tell(claims: &mut Claims<'_>, scene: &mut Scene) -> Result<usize, Error> {
    claims.step("Kill it in the middle of a reply")?;
    let prompt = format!("count to {TO}");
    let home = scene.home.to_string_lossy().into_owned();
    let mut worker = scene.worker(&["--resume", &home, &prompt])?;
    let mut seen = String::new();
    while seen.lines().count() < LINES {
        let Some(line) = worker.next().await else {
            let what = "the agent's process ended before it had counted far";
            return Err(Error::new(Exit::Failed, what));
        };
        scene.hear(&line);
        seen.extend(line.delta());
        let far = seen.lines().last().unwrap_or_default();
        claims.out.progress(format_args!("   … {far}"))?;
    }
    let ended = worker.kill()?;
    claims.check("it is dead, in mid-count", is_dead(&worker, ended)?)?;
    while let Some(line) = worker.next().await {
        scene.hear(&line);
        seen.extend(line.delta());
    }

    claims.step("Resume it")?;
    let worker = scene.worker(&["--resume", &home, "--continue"])?;
    let (result, _) = scene.finish(worker).await?;
    let loaded = scene.load().await?;
    let kept = interrupted(&loaded.window).unwrap_or_default();
    claims.check(
        "all that had been shown is kept, marked interrupted",
        is_so(
            kept.starts_with(&seen) && !seen.is_empty(),
            format!("{} bytes", kept.len()),
            format!("{seen:?} was shown, {kept:?} is kept"),
        ),
    )?;
    claims.check(
        "the model went on from there: both halves make a whole, not a number twice",
        evidence::counts_to(TO, &[&kept, result.text()]),
    )?;
    let context = loaded.window.context();
    let next = context.and_then(|context| request::answer(&with_prompt(&loaded.window), context));
    let next = next.as_ref().map_or_else(
        || Err("there is nothing to send".to_owned()),
        evidence::is_valid,
    );
    claims.check(
        "the next request is valid, and nothing has to be repaired",
        next,
    )?;
    scene.journal_is_whole(claims).await?;
    Ok(kept.len())
}

fn interrupted(window: &Window) -> Option<String> {
    window
        .items()
        .iter()
        .rev()
        .find_map(|item| match &item.entry {
            Entry::Reply {
                status: MessageStatus::Interrupted,
                blocks,
            } => Some(blocks.iter().filter_map(text).collect()),
            _ => None,
        })
}

fn text(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text } => Some(text),
        _ => None,
    }
}

/// As if it were prompted next.
fn with_prompt(window: &Window) -> Window {
    super::reset::prompted(window, "and now?")
}
