//! What may be attached to a prompt. A file is recognized by its content, and the limits of agentd and of the agent's
//! provider are checked before the prompt is accepted.

mod measure;
mod provider_limits;
mod recognize;

pub use measure::{image_tokens, pdf_pages, pdf_tokens};
pub use provider_limits::{ProviderLimits, Room, Unfit};
pub use recognize::{Recognized, image_type, recognize};

use crate::message::{AttachedFile, Attachment, Block};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// The most files of one prompt.
pub const MAX_FILES: usize = 20;
/// The most bytes of all files of one prompt, as they are stored: images and PDFs in base64, text as JSON.
pub const MAX_STORED_BYTES: usize = 28 * 1024 * 1024;
/// The largest text file. It is a part of the prompt like its text.
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;
const MAX_NAME_BYTES: usize = 255;

/// A file as a client sends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewAttachment {
    pub name: String,
    /// An error if the content is of another type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Base64.
    pub data: String,
}

impl NewAttachment {
    pub fn of_bytes(name: impl Into<String>, bytes: &[u8]) -> Self {
        Self {
            name: name.into(),
            media_type: None,
            data: STANDARD.encode(bytes),
        }
    }
}

/// Why a file cannot be attached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("a prompt may have at most {MAX_FILES} attachments, not {count}")]
    TooMany { count: usize },
    #[error(
        "`{name}` cannot be the name of an attachment: 1 to {MAX_NAME_BYTES} bytes without control characters"
    )]
    Name { name: String },
    #[error("the data of `{name}` is not base64")]
    NotBase64 { name: String },
    #[error("`{name}` is empty")]
    Empty { name: String },
    #[error("`{name}` is neither UTF-8 text nor an image (PNG, JPEG, GIF, WebP) nor a PDF")]
    Unknown { name: String },
    #[error("`{name}` is {found}, not {given}")]
    OtherType {
        name: String,
        given: String,
        found: String,
    },
    #[error("the text file `{name}` has {bytes} bytes; the limit is {MAX_TEXT_BYTES}")]
    LongText { name: String, bytes: usize },
    #[error(
        "the attachments have {bytes} bytes as they are stored; the limit is {MAX_STORED_BYTES}"
    )]
    TooLarge { bytes: usize },
    #[error("`{name}` cannot be sent to this provider: {why}")]
    Unfit { name: String, why: Unfit },
}

impl Refused {
    /// Whether a smaller or another selection of files would be accepted.
    pub const fn is_too_large(&self) -> bool {
        matches!(
            self,
            Self::TooMany { .. } | Self::LongText { .. } | Self::TooLarge { .. }
        ) || matches!(self, Self::Unfit { why, .. } if why.is_about_size())
    }

    /// What the user can do.
    pub const fn next(&self) -> &'static str {
        match self {
            Self::TooMany { .. } | Self::TooLarge { .. } => {
                "attach fewer or smaller files, or several prompts"
            }
            Self::Name { .. } => "rename the file",
            Self::NotBase64 { .. } => {
                "encode the content of the file in standard base64, with padding"
            }
            Self::Empty { .. } => "leave it out",
            Self::Unknown { .. } => {
                "convert it, or name its path in the prompt: a tool can read it"
            }
            Self::OtherType { .. } => "leave `media_type` out, or correct it",
            Self::LongText { .. } => "name its path in the prompt: a tool can read parts of it",
            Self::Unfit { why, .. } => why.next(),
        }
    }
}

/// The blocks of the attachments of one prompt.
pub fn accept(given: Vec<NewAttachment>) -> Result<Vec<Block>, Refused> {
    if given.len() > MAX_FILES {
        let count = given.len();
        return Err(Refused::TooMany { count });
    }
    let blocks = given.into_iter().map(attachment);
    let blocks = blocks.map(|made| made.map(Block::Attachment));
    let blocks: Vec<Block> = blocks.collect::<Result<_, _>>()?;
    let bytes = stored_bytes(&blocks);
    match bytes > MAX_STORED_BYTES {
        true => Err(Refused::TooLarge { bytes }),
        false => Ok(blocks),
    }
}

fn attachment(given: NewAttachment) -> Result<Attachment, Refused> {
    let NewAttachment {
        name,
        media_type,
        data,
    } = given;
    if name.trim().is_empty() || name.len() > MAX_NAME_BYTES || name.contains(char::is_control) {
        let name = name.chars().filter(|c| !c.is_control()).take(80).collect();
        return Err(Refused::Name { name });
    }
    let Ok(bytes) = STANDARD.decode(&data) else {
        return Err(Refused::NotBase64 { name });
    };
    if bytes.is_empty() {
        return Err(Refused::Empty { name });
    }
    let Some(found) = recognize(&bytes) else {
        return Err(Refused::Unknown { name });
    };
    if let Some(given) = media_type.filter(|given| !found.is_called(given)) {
        let found = found.media_type().to_owned();
        return Err(Refused::OtherType { name, given, found });
    }
    let file = match found {
        Recognized::Text(_) if bytes.len() > MAX_TEXT_BYTES => {
            let bytes = bytes.len();
            return Err(Refused::LongText { name, bytes });
        }
        Recognized::Text(text) => AttachedFile::Text {
            text: text.to_owned(),
        },
        Recognized::Image(media_type) => AttachedFile::Image {
            media_type: media_type.to_owned(),
            data,
        },
        Recognized::Pdf => AttachedFile::Pdf {
            pages: pdf_pages(&bytes),
            data,
        },
    };
    Ok(Attachment { name, file })
}

/// The size of the attachments among these blocks, as they are stored.
pub(crate) fn stored_bytes(blocks: &[Block]) -> usize {
    let attachments = blocks.iter().filter_map(Block::as_attachment);
    let sizes = attachments.map(|attachment| match &attachment.file {
        AttachedFile::Text { text } => {
            serde_json::to_string(text).map_or(usize::MAX / MAX_FILES, |json| json.len())
        }
        AttachedFile::Image { data, .. } | AttachedFile::Pdf { data, .. } => data.len(),
    });
    sizes.sum()
}

#[cfg(test)]
mod tests;
