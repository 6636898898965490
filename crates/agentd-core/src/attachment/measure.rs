//! About how many tokens an image and a PDF have. Providers count differently; these estimates are rather too high.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// An image whose size cannot be read.
const UNKNOWN_IMAGE: u64 = 1600;
/// The smallest charge of any provider for an image, and the largest one after it has scaled the image down.
const IMAGE: (u64, u64) = (258, 4800);
/// Square pixels for one token.
const PIXELS: u64 = 750;
/// A page is charged as text and as an image.
const PAGE: u64 = 2500;
/// The bytes of a page, if pages cannot be counted because the file is compressed.
const PAGE_BYTES: usize = 50_000;
/// How far the header of an image is searched for its size.
const HEADER_BYTES: usize = 64 * 1024;

pub fn image_tokens(media_type: &str, base64: &str) -> u64 {
    match dimensions(media_type, base64) {
        Some((width, height)) => {
            let pixels = u64::from(width).saturating_mul(u64::from(height));
            pixels.div_ceil(PIXELS).clamp(IMAGE.0, IMAGE.1)
        }
        None => UNKNOWN_IMAGE,
    }
}

pub fn pdf_tokens(pages: u32) -> u64 {
    u64::from(pages.max(1)) * PAGE
}

/// Width and height in pixels, from the header.
pub(super) fn dimensions(media_type: &str, base64: &str) -> Option<(u32, u32)> {
    let wanted = match media_type {
        "image/jpeg" => HEADER_BYTES,
        _ => 48,
    };
    let chars = (wanted.div_ceil(3) * 4).min(base64.len() / 4 * 4);
    let header = STANDARD.decode(base64.get(..chars)?).ok()?;
    let size = match media_type {
        "image/png" => (be32(&header, 16)?, be32(&header, 20)?),
        "image/gif" => (le16(&header, 6)?, le16(&header, 8)?),
        "image/jpeg" => jpeg(&header)?,
        "image/webp" => webp(&header)?,
        _ => return None,
    };
    (size.0 > 0 && size.1 > 0).then_some(size)
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    bytes.try_into().ok().map(u32::from_be_bytes)
}

fn be16(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 2)?;
    bytes.try_into().ok().map(u16::from_be_bytes).map(u32::from)
}

fn le16(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 2)?;
    bytes.try_into().ok().map(u16::from_le_bytes).map(u32::from)
}

fn le24(bytes: &[u8], at: usize) -> Option<u32> {
    Some(le16(bytes, at)? | u32::from(*bytes.get(at + 2)?) << 16)
}

/// The frame header is in the first segment of type SOF.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let marker = match bytes.get(at..at + 2)? {
            [0xff, marker] => *marker,
            _ => return None,
        };
        match marker {
            // Fill bytes.
            0xff => at += 1,
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some((be16(bytes, at + 7)?, be16(bytes, at + 5)?));
            }
            0x01 | 0xd0..=0xd9 => at += 2,
            _ => at += 2 + be16(bytes, at + 2)? as usize,
        }
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8X" => Some((le24(bytes, 24)? + 1, le24(bytes, 27)? + 1)),
        b"VP8L" => {
            let bits = le24(bytes, 21)? | u32::from(*bytes.get(24)?) << 24;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8 " => Some((le16(bytes, 26)? & 0x3fff, le16(bytes, 28)? & 0x3fff)),
        _ => None,
    }
}

/// The number of page objects; for a file that compresses them, the largest `/Count`, or an estimate from its size. It
/// is at least 1, and not more than such a file can have.
pub fn pdf_pages(bytes: &[u8]) -> u32 {
    let (mut pages, mut count) = (0_usize, 0_usize);
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == b'/') {
        rest = rest.get(at + 1..).unwrap_or_default();
        if let Some(value) = rest.strip_prefix(b"Type") {
            let value = value.trim_ascii_start();
            let is_page = value.strip_prefix(b"/Page");
            let ends = |after: &[u8]| !after.first().is_some_and(u8::is_ascii_alphanumeric);
            pages += usize::from(is_page.is_some_and(ends));
        } else if let Some(value) = rest.strip_prefix(b"Count") {
            count = count.max(number(value.trim_ascii_start()));
        }
    }
    let found = match pages.max(count) {
        0 => bytes.len().div_ceil(PAGE_BYTES),
        found => found,
    };
    // A page needs some bytes, whatever the file claims.
    let most = (bytes.len() / 16).max(1);
    u32::try_from(found.clamp(1, most)).unwrap_or(u32::MAX)
}

fn number(text: &[u8]) -> usize {
    let digits = text.iter().take(7).take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(media_type: &str, bytes: &[u8]) -> Option<(u32, u32)> {
        dimensions(media_type, &STANDARD.encode(bytes))
    }

    #[test]
    fn the_size_of_an_image_is_in_its_header() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x04\0\0\0\x02\0\x08\x02";
        assert_eq!(size("image/png", png), Some((1024, 512)));
        assert_eq!(
            size("image/gif", b"GIF89a\x40\x01\xf0\0\0"),
            Some((320, 240))
        );
        let jpeg = b"\xff\xd8\xff\xe0\0\x04JF\xff\xff\xc2\0\x0b\x08\x01\xe0\x02\x80\x03";
        assert_eq!(size("image/jpeg", jpeg), Some((640, 480)));
        let vp8x = b"RIFF....WEBPVP8X\x0a\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0";
        assert_eq!(size("image/webp", vp8x), Some((640, 480)));
        let vp8l = b"RIFF....WEBPVP8L\x0a\0\0\0\x2f\x7f\xc2\x77\0\0";
        assert_eq!(size("image/webp", vp8l), Some((640, 480)));
        let vp8 = b"RIFF....WEBPVP8 \x0a\0\0\0...\x9d\x01\x2a\x80\x02\xe0\x01";
        assert_eq!(size("image/webp", vp8), Some((640, 480)));
        for cut in [b"\x89PNG\r\n\x1a\n".as_slice(), b"", b"\xff\xd8\xff"] {
            assert_eq!(size("image/png", cut), None);
            assert_eq!(size("image/jpeg", cut), None);
        }
        assert_eq!(dimensions("image/png", "no base64 at all"), None);
    }

    #[test]
    fn the_tokens_of_an_image_follow_its_size_within_bounds() {
        let png = |width: u32, height: u32| {
            let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
            bytes.extend(width.to_be_bytes());
            bytes.extend(height.to_be_bytes());
            image_tokens("image/png", &STANDARD.encode(bytes))
        };
        assert_eq!(png(1, 1), 258);
        assert_eq!(png(1000, 750), 1000);
        assert_eq!(png(u32::MAX, u32::MAX), 4800);
        assert_eq!(image_tokens("image/png", "aGk="), 1600);
    }

    #[test]
    fn pages_are_counted_or_estimated() {
        let filler = [b' '; 200];
        let of = |text: &[u8]| pdf_pages(&[text, &filler].concat());
        let two = b"%PDF-1.4 <</Type/Pages/Count 2>> <</Type /Page>> <</Type\n/Page/Parent 1 0 R>>";
        assert_eq!(of(two), 2);
        assert_eq!(of(b"%PDF-1.7 <</Linearized 1>> /Count 7 ..."), 7);
        assert_eq!(of(b"%PDF-1.7 nothing of it can be read"), 1);
        assert_eq!(pdf_pages(&[b'x'; 120_000]), 3);
        // It claims more pages than it has bytes.
        assert!(of(b"%PDF-1.7 /Count 99999999999999999999") < 20);
        assert_eq!(pdf_pages(b""), 1);
        assert_eq!((pdf_tokens(0), pdf_tokens(3)), (2500, 7500));
    }
}
