//! The blocks and the events of a prompt.

use crate::daemon::Daemon;
use crate::error::{Error, Kind, Result};
use crate::spawn;
use agentd_core::attachment::{self, NewAttachment, Refused};
use agentd_core::event::{Body, Prompt, PromptMode, PromptQueued};
use agentd_core::frame::MAX_TEXT_BYTES;
use agentd_core::id::PromptId;
use agentd_core::message::Block;
use agentd_core::request::check_attachments;
use agentd_core::spec::AgentSpec;
use agentd_core::window::Window;

const LONGEST_KEY: usize = 256;

/// The events that accept a prompt; an error if its key is not valid.
pub fn bodies(
    prompt: PromptId,
    blocks: Vec<Block>,
    key: Option<String>,
    mode: PromptMode,
) -> Result<impl Iterator<Item = Body>> {
    if key.as_ref().is_some_and(|key| key.len() > LONGEST_KEY) {
        let what = format!("an idempotency key may have at most {LONGEST_KEY} bytes");
        return Err(Error::new(Kind::TooLarge, what));
    }
    let queued = PromptQueued { prompt, key, mode };
    let bodies: [Body; 2] = [queued.into(), Prompt { prompt, blocks }.into()];
    Ok(bodies.into_iter())
}

/// The blocks of a prompt; an error if its text or one of its files is not valid.
pub async fn blocks(text: &str, attachments: Vec<NewAttachment>) -> Result<Vec<Block>> {
    let mut blocks = text_blocks(text)?;
    if !attachments.is_empty() {
        // Decoding megabytes takes too long for a thread that serves other requests.
        let accepted = spawn::blocking(move || attachment::accept(attachments)).await;
        blocks.extend(accepted.map_err(|refused| not_attached(&refused))?);
    }
    Ok(blocks)
}

/// The blocks of a prompt without files.
pub fn text_blocks(text: &str) -> Result<Vec<Block>> {
    if text.trim().is_empty() {
        return Err(Error::new(Kind::Invalid, "the prompt is empty"));
    }
    if text.len() > MAX_TEXT_BYTES {
        let what = format!(
            "the prompt has {} bytes; the limit is {MAX_TEXT_BYTES}",
            text.len()
        );
        return Err(Error::new(Kind::TooLarge, what).next("put it in a file and attach the file"));
    }
    Ok(vec![Block::text(text)])
}

/// The text of a prompt, without its attachments.
pub fn text_of(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Checks the limits of the agent's provider: those of each file, and those of all files of the conversation. A provider
/// that the configuration no longer contains is not checked.
pub fn check_provider(
    daemon: &Daemon,
    spec: &AgentSpec,
    window: &Window,
    blocks: &[Block],
) -> Result<()> {
    let choice = daemon
        .settings()
        .catalog
        .resolve(spec.provider.as_deref(), spec.model.as_deref());
    let Ok(choice) = choice else {
        return Ok(());
    };
    check_attachments(window, choice.provider.wire, blocks)
        .map_err(|(name, why)| not_attached(&Refused::Unfit { name, why }))
}

fn not_attached(refused: &Refused) -> Error {
    let kind = match refused.is_too_large() {
        true => Kind::TooLarge,
        false => Kind::Invalid,
    };
    Error::new(kind, refused.to_string()).next(refused.next())
}

/// Whether a prompt has files.
pub fn has_attachments(blocks: &[Block]) -> bool {
    blocks.iter().any(|block| block.as_attachment().is_some())
}
