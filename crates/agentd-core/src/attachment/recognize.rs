//! The type of a file, from its content.

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognized<'a> {
    Text(&'a str),
    /// With its media type.
    Image(&'static str),
    Pdf,
}

/// A PDF may begin with other bytes.
const PDF_HEADER_WITHIN: usize = 1024;

/// `None` for a file of any other type.
pub fn recognize(bytes: &[u8]) -> Option<Recognized<'_>> {
    if let Some(media_type) = image_type(bytes) {
        return Some(Recognized::Image(media_type));
    }
    let beginning = bytes.get(..PDF_HEADER_WITHIN).unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).ok();
    let text = text.filter(|text| !text.contains('\0'));
    match text {
        // Text may mention the header of a PDF.
        Some(text) if !bytes.starts_with(b"%PDF-") => Some(Recognized::Text(text)),
        _ => {
            let has_header = beginning.windows(5).any(|window| window == b"%PDF-");
            has_header.then_some(Recognized::Pdf)
        }
    }
}

/// The media type of an image, from its first bytes.
pub const fn image_type(beginning: &[u8]) -> Option<&'static str> {
    match beginning {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

impl Recognized<'_> {
    pub const fn media_type(&self) -> &'static str {
        match self {
            Self::Text(_) => "text/plain",
            Self::Image(media_type) => media_type,
            Self::Pdf => "application/pdf",
        }
    }

    /// Whether a client may call it this. Text has many names.
    pub fn is_called(&self, media_type: &str) -> bool {
        match self {
            Self::Text(_) => !media_type.starts_with("image/") && media_type != "application/pdf",
            Self::Image(_) | Self::Pdf => media_type == self.media_type(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_it_contains() {
        let cases: [(&[u8], Option<&str>); 10] = [
            (b"\x89PNG\r\n\x1a\n....", Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF89a..", Some("image/gif")),
            (b"RIFF\x01\x02\x03\x04WEBPVP8 ", Some("image/webp")),
            (b"%PDF-1.7 all of it is ASCII", Some("application/pdf")),
            (b"\xef\xbb\xbf\xff junk %PDF-1.7", Some("application/pdf")),
            ("grüße".as_bytes(), Some("text/plain")),
            (b"how to find %PDF- in a file", Some("text/plain")),
            (b"PK\x03\x04\xff\xfe", None),
            (b"text with\0a NUL", None),
        ];
        for (bytes, expected) in cases {
            let found = recognize(bytes).map(|found| found.media_type());
            assert_eq!(found, expected, "{bytes:?}");
        }
    }

    #[test]
    fn text_has_many_names_and_an_image_one() {
        let text = Recognized::Text("a");
        assert!(text.is_called("text/markdown") && text.is_called("application/json"));
        assert!(!text.is_called("image/png"));
        assert!(!Recognized::Image("image/png").is_called("image/jpeg"));
    }
}
