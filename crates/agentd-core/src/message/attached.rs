//! Files that the user attached to a prompt.

use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// A file that the user attached to a prompt, with its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    pub name: String,
    #[serde(flatten)]
    pub file: AttachedFile,
}

/// The content of an attached file. Its kind follows from the content, not from the name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "file", rename_all = "snake_case")]
pub enum AttachedFile {
    Text {
        text: String,
    },
    Image {
        media_type: String,
        /// Base64.
        data: String,
    },
    Pdf {
        /// An estimate from the file, for the size of the context.
        pages: u32,
        /// Base64.
        data: String,
    },
}

/// A kind of file that some models do not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    Image,
    Pdf,
}

/// What is shown of an attachment: everything except its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachmentInfo {
    pub name: String,
    pub media_type: String,
    pub bytes: u64,
}

impl Attachment {
    pub fn info(&self) -> AttachmentInfo {
        AttachmentInfo {
            name: self.name.clone(),
            media_type: self.media_type().to_owned(),
            bytes: match &self.file {
                AttachedFile::Text { text } => text.len() as u64,
                AttachedFile::Image { data, .. } | AttachedFile::Pdf { data, .. } => {
                    decoded_bytes(data)
                }
            },
        }
    }

    pub fn media_type(&self) -> &str {
        match &self.file {
            AttachedFile::Text { .. } => "text/plain",
            AttachedFile::Image { media_type, .. } => media_type,
            AttachedFile::Pdf { .. } => "application/pdf",
        }
    }
}

/// `[attached: chart.png, 34 KB image]`
impl Display for AttachmentInfo {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let kind = match self.media_type.as_str() {
            "application/pdf" => "PDF",
            other if other.starts_with("image/") => "image",
            _ => "text",
        };
        write!(f, "[attached: {}, ", self.name)?;
        match self.bytes {
            bytes @ 0..1000 => write!(f, "{bytes} bytes {kind}]"),
            bytes @ 1000..1_000_000 => write!(f, "{} KB {kind}]", bytes.div_ceil(1000)),
            bytes => {
                let tenths = bytes.div_ceil(100_000);
                write!(f, "{}.{} MB {kind}]", tenths / 10, tenths % 10)
            }
        }
    }
}

/// The number of bytes that base64 stands for.
pub fn decoded_bytes(base64: &str) -> u64 {
    let padding = base64.bytes().rev().take_while(|byte| *byte == b'=');
    (base64.len() as u64 / 4 * 3).saturating_sub(padding.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_has_the_name_the_size_and_the_kind() {
        let shown = |name: &str, media_type: &str, bytes| {
            let info = AttachmentInfo {
                name: name.to_owned(),
                media_type: media_type.to_owned(),
                bytes,
            };
            info.to_string()
        };
        assert_eq!(
            shown("chart.png", "image/png", 33_500),
            "[attached: chart.png, 34 KB image]"
        );
        assert_eq!(
            shown("a.pdf", "application/pdf", 1_250_000),
            "[attached: a.pdf, 1.3 MB PDF]"
        );
        assert_eq!(
            shown("a.txt", "text/plain", 12),
            "[attached: a.txt, 12 bytes text]"
        );
    }

    #[test]
    fn bytes_are_counted_without_padding() {
        assert_eq!(decoded_bytes("aGk="), 2);
        assert_eq!(decoded_bytes("YQ=="), 1);
        assert_eq!(decoded_bytes("YWJj"), 3);
        assert_eq!(decoded_bytes(""), 0);
        assert_eq!(decoded_bytes("="), 0);
    }

    #[test]
    fn an_attachment_is_one_flat_object_in_the_journal() {
        let pdf = super::super::Block::Attachment(Attachment {
            name: "a.pdf".to_owned(),
            file: AttachedFile::Pdf {
                pages: 2,
                data: "JVBERi0=".to_owned(),
            },
        });
        let value = serde_json::to_value(&pdf).unwrap();
        let expected = serde_json::json!({
            "type": "attachment", "name": "a.pdf", "file": "pdf", "pages": 2, "data": "JVBERi0=",
        });
        assert_eq!(value, expected);
        let again: super::super::Block = serde_json::from_value(value).unwrap();
        assert_eq!(again, pdf);
    }
}
