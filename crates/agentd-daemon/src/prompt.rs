//! The events of a prompt.

use crate::error::{Error, Kind, Result};
use agentd_core::event::{Body, Prompt, PromptMode, PromptQueued};
use agentd_core::id::PromptId;
use agentd_core::message::Block;

/// The longest prompt, in bytes.
const LONGEST: usize = 1024 * 1024;
const LONGEST_KEY: usize = 256;

/// The events that accept a prompt; an error if its text or its key is not valid.
pub fn bodies(
    prompt: PromptId,
    text: &str,
    key: Option<String>,
    mode: PromptMode,
) -> Result<impl Iterator<Item = Body>> {
    check(text)?;
    if key.as_ref().is_some_and(|key| key.len() > LONGEST_KEY) {
        let what = format!("an idempotency key may have at most {LONGEST_KEY} bytes");
        return Err(Error::new(Kind::TooLarge, what));
    }
    let queued = PromptQueued { prompt, key, mode };
    let blocks = vec![Block::text(text)];
    let bodies: [Body; 2] = [queued.into(), Prompt { prompt, blocks }.into()];
    Ok(bodies.into_iter())
}

/// An error if a prompt may not have this text.
pub fn check(text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Error::new(Kind::Invalid, "the prompt is empty"));
    }
    if text.len() > LONGEST {
        let what = format!(
            "the prompt has {} bytes; the limit is {LONGEST}",
            text.len()
        );
        return Err(Error::new(Kind::TooLarge, what).next("put it in a file and name the file"));
    }
    Ok(())
}
