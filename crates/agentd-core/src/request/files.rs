//! Images, PDFs and text files of the window as a provider accepts them. A file that it does not accept is replaced by
//! a sentence that says so.

use super::omission::Omission;
use crate::attachment::{Room, Unfit};
use crate::event::Context;
use crate::message::{AttachedFile, Attachment, Block, ToolResult, Wire};
use crate::window::{Entry, Window};
use std::borrow::Cow;

/// Decides about files in the order of the window: what was sent stays as it was.
pub(super) struct Files {
    room: Room,
}

impl Files {
    pub(super) fn new(context: &Context) -> Self {
        Self {
            room: Room::new(context.wire, &context.omits),
        }
    }

    /// The blocks of a prompt or of a result.
    pub(super) fn shown(&mut self, blocks: &[Block], omissions: &mut Vec<Omission>) -> Vec<Block> {
        let mut shown = Vec::with_capacity(blocks.len());
        for block in blocks {
            match block {
                Block::Image { media_type, data } => match self.room.image(media_type, data) {
                    Ok(()) => shown.push(block.clone()),
                    Err(why) => {
                        omissions.push(Omission::UnfitFile { name: None, why });
                        shown.push(Block::text(format!("[An image is not included: {why}.]")));
                    }
                },
                Block::Attachment(attachment) => {
                    self.attachment(attachment, &mut shown, omissions);
                }
                Block::ToolResult(result) => shown.push(Block::ToolResult(ToolResult {
                    blocks: self.shown(&result.blocks, omissions),
                    call: result.call.clone(),
                    outcome: result.outcome,
                })),
                other => shown.push(other.clone()),
            }
        }
        shown
    }

    fn attachment(
        &mut self,
        attachment: &Attachment,
        shown: &mut Vec<Block>,
        omissions: &mut Vec<Omission>,
    ) {
        let (block, fits) = match &attachment.file {
            AttachedFile::Text { text } => {
                let name = framed_name(&attachment.name);
                let text = framed(text);
                shown.push(Block::text(format!(
                    "<attached_file name=\"{name}\">\n{text}\n</attached_file>"
                )));
                return;
            }
            AttachedFile::Image { media_type, data } => (
                Block::Image {
                    media_type: media_type.clone(),
                    data: data.clone(),
                },
                self.room.image(media_type, data),
            ),
            AttachedFile::Pdf { pages, data } => (
                Block::Attachment(attachment.clone()),
                self.room.pdf(*pages, data),
            ),
        };
        let marker = attachment.info();
        match fits {
            Ok(()) => shown.extend([Block::text(marker.to_string()), block]),
            Err(why) => {
                let name = Some(attachment.name.clone());
                omissions.push(Omission::UnfitFile { name, why });
                shown.push(Block::text(format!("{marker} It is not included: {why}.")));
            }
        }
    }
}

/// The tag of the frame of a text file.
const TAG: &str = "attached_file";

/// The text of a file in its frame. A tag in it that would end the frame, or begin another one, is written with `&lt;`:
/// what follows it stays in the frame.
fn framed(text: &str) -> Cow<'_, str> {
    let is_tag = |(at, _): &(usize, &str)| {
        let after = text[at + 1..].trim_start_matches(|c: char| c == '/' || c.is_whitespace());
        let name = after.get(..TAG.len());
        name.is_some_and(|name| name.eq_ignore_ascii_case(TAG))
    };
    let mut tags = text.match_indices('<').filter(is_tag).peekable();
    if tags.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let (mut escaped, mut from) = (String::with_capacity(text.len() + 16), 0);
    for (at, _) in tags {
        escaped.push_str(&text[from..at]);
        escaped.push_str("&lt;");
        from = at + 1;
    }
    escaped.push_str(&text[from..]);
    Cow::Owned(escaped)
}

/// The name of a file in the frame, which it cannot end. Other names are unchanged.
fn framed_name(name: &str) -> Cow<'_, str> {
    match name.contains(['"', '<', '>', '\n', '\r']) {
        false => Cow::Borrowed(name),
        true => {
            let name = name.replace('"', "&quot;");
            let name = name.replace('<', "&lt;").replace('>', "&gt;");
            Cow::Owned(name.replace(['\n', '\r'], " "))
        }
    }
}

/// Whether a provider would accept these new attachments after everything in the window; the name of the first one that
/// it would not accept. A model without an input of their kind is no reason to refuse them.
pub fn check_attachments(
    window: &Window,
    wire: Wire,
    new: &[Block],
) -> Result<(), (String, Unfit)> {
    let mut room = Room::new(wire, &[]);
    for item in window.items() {
        match &item.entry {
            Entry::Prompt(blocks) => count(&mut room, blocks),
            Entry::Result(result) => count(&mut room, &result.blocks),
            Entry::Reply { .. } | Entry::Notice(_) | Entry::Summary(_) => {}
        }
    }
    for blocks in window.all_pending() {
        count(&mut room, blocks);
    }
    for attachment in new.iter().filter_map(Block::as_attachment) {
        admit(&mut room, &attachment.file).map_err(|why| (attachment.name.clone(), why))?;
    }
    Ok(())
}

fn count(room: &mut Room, blocks: &[Block]) {
    for block in blocks {
        // One that does not fit is not sent.
        let _fits = match block {
            Block::Image { media_type, data } => room.image(media_type, data),
            Block::Attachment(attachment) => admit(room, &attachment.file),
            _ => Ok(()),
        };
    }
}

fn admit(room: &mut Room, file: &AttachedFile) -> Result<(), Unfit> {
    match file {
        AttachedFile::Text { .. } => Ok(()),
        AttachedFile::Image { media_type, data } => room.image(media_type, data),
        AttachedFile::Pdf { pages, data } => room.pdf(*pages, data),
    }
}

#[cfg(test)]
mod tests;
