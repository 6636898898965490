//! Images and documents of a request: their number, their sizes and the contents of PDFs, by each provider's
//! documentation.

use serde_json::Value;

use super::shape::{is_base64, text_at};
use super::violation::Report;

const MB: usize = 1_000_000;

/// The limits of one request. Sizes are those of base64.
pub(super) struct Limits {
    pub files: usize,
    /// One image, if it has a smaller limit than all files together.
    pub image: Option<usize>,
    pub all: usize,
}

pub(super) const ANTHROPIC: Limits = Limits {
    files: 100,
    image: Some(5 * 1024 * 1024),
    all: 32 * MB,
};

pub(super) const OPENAI: Limits = Limits {
    files: 500,
    image: None,
    all: 50 * MB,
};

pub(super) const GEMINI: Limits = Limits {
    files: 3600,
    image: None,
    all: 20 * MB,
};

#[derive(Default)]
struct Found {
    files: usize,
    largest_image: usize,
    bytes: usize,
}

/// Checks the limits of everything in these messages.
pub(super) fn check(report: &mut Report, messages: &[Value], limits: &Limits) {
    let mut found = Found::default();
    messages.iter().for_each(|message| found.walk(message));
    let whole = "$";
    report.require(
        found.files <= limits.files,
        "too_many_files",
        whole,
        format!("{} images and documents", found.files),
    );
    report.require(
        limits
            .image
            .is_none_or(|limit| found.largest_image <= limit),
        "image_too_large",
        whole,
        format!("{} bytes", found.largest_image),
    );
    report.require(
        found.bytes <= limits.all,
        "files_too_large",
        whole,
        format!("{} bytes in all", found.bytes),
    );
}

impl Found {
    fn walk(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.walk(item)),
            Value::Object(map) => {
                let media = text_at(value, "media_type").or_else(|| text_at(value, "mimeType"));
                if let (Some(media), Some(data)) = (media, text_at(value, "data")) {
                    self.add(media, data);
                    return;
                }
                map.values().for_each(|item| self.walk(item));
            }
            Value::String(text) => {
                let url = text.strip_prefix("data:");
                if let Some((media, data)) = url.and_then(|rest| rest.split_once(";base64,")) {
                    self.add(media, data);
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, media: &str, data: &str) {
        self.files += 1;
        self.bytes += data.len();
        if media.starts_with("image/") {
            self.largest_image = self.largest_image.max(data.len());
        }
    }
}

/// Base64 that is a PDF: `%PDF-` is `JVBERi0` in base64.
pub(super) fn is_pdf(data: &str) -> bool {
    is_base64(data) && data.starts_with("JVBERi0")
}

/// A data URL of a PDF.
pub(super) fn is_pdf_url(url: &str) -> bool {
    url.strip_prefix("data:application/pdf;base64,")
        .is_some_and(is_pdf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pdfs() {
        assert!(is_pdf_url("data:application/pdf;base64,JVBERi0xLjQ="));
        assert!(!is_pdf_url("data:application/pdf;base64,aGk="));
        assert!(!is_pdf_url("data:image/png;base64,JVBERi0xLjQ="));
        assert!(!is_pdf("JVBERi0xLjQ"));
    }
}
