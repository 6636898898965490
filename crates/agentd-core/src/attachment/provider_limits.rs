//! The providers' limits for images and PDFs, as their documentation states them. Sizes are those of base64, which is
//! what a request contains.

use super::measure::dimensions;
use crate::message::{FileKind, Wire};

const MB: usize = 1_000_000;

/// The limits of one provider's format.
#[derive(Clone, Copy, Debug)]
pub struct ProviderLimits {
    pub image_types: &'static [&'static str],
    pub image_bytes: usize,
    /// The longest edge of an image, in pixels.
    pub image_edge: u32,
    pub pdf_bytes: usize,
    pub pdf_pages: u32,
    /// Images and PDFs of one request.
    pub files: usize,
    /// All files of one request. It is less than the provider's limit of a request, because of the text.
    pub total_bytes: usize,
}

const FOUR: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A request has at most 32 MB, an image 5 MB in base64 and 8000 pixels, a request 100 images (for all models) and 600
/// pages.
const ANTHROPIC: ProviderLimits = ProviderLimits {
    image_types: FOUR,
    image_bytes: 5 * 1024 * 1024,
    image_edge: 8000,
    pdf_bytes: 28 * MB,
    pdf_pages: 600,
    files: 100,
    total_bytes: 28 * MB,
};

/// A request has at most 50 MB of files and 500 images. PDFs have no limit of pages.
const OPENAI: ProviderLimits = ProviderLimits {
    image_types: FOUR,
    image_bytes: 45 * MB,
    image_edge: u32::MAX,
    pdf_bytes: 45 * MB,
    pdf_pages: u32::MAX,
    files: 500,
    total_bytes: 45 * MB,
};

/// A request with inline files has at most 20 MB, a PDF 1000 pages. GIF is not accepted. (It accepts 3,600 images, which
/// do not fit into 20 MB.)
const GEMINI: ProviderLimits = ProviderLimits {
    image_types: &["image/png", "image/jpeg", "image/webp"],
    image_bytes: 17 * MB,
    image_edge: u32::MAX,
    pdf_bytes: 17 * MB,
    pdf_pages: 1000,
    files: 3000,
    total_bytes: 17 * MB,
};

impl ProviderLimits {
    pub const fn of(wire: Wire) -> &'static Self {
        match wire {
            Wire::AnthropicMessages => &ANTHROPIC,
            Wire::OpenaiChat | Wire::OpenaiResponses => &OPENAI,
            Wire::Gemini => &GEMINI,
        }
    }
}

/// Why a provider would not accept a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("this model accepts no images")]
    NoImages,
    #[error("this model accepts no PDFs")]
    NoPdfs,
    #[error("this provider does not accept images of this type")]
    ImageType,
    #[error("this provider accepts images of up to {limit} bytes in base64")]
    ImageBytes { limit: usize },
    #[error("this provider accepts images of up to {limit} pixels in width and height")]
    ImageEdge { limit: u32 },
    #[error("this provider accepts PDFs of up to {limit} bytes in base64")]
    PdfBytes { limit: usize },
    #[error("this provider accepts PDFs of up to {limit} pages")]
    PdfPages { limit: u32 },
    #[error("the conversation has {limit} images and PDFs already, which is the provider's limit")]
    Files { limit: usize },
    #[error("the images and PDFs of the conversation would have more than {limit} bytes in base64")]
    TotalBytes { limit: usize },
}

impl Unfit {
    pub const fn is_about_size(self) -> bool {
        !matches!(self, Self::NoImages | Self::NoPdfs | Self::ImageType)
    }

    /// What the user can do.
    pub const fn next(self) -> &'static str {
        match self {
            Self::NoImages | Self::NoPdfs => "choose another model",
            Self::ImageType => "convert it to PNG",
            Self::ImageBytes { .. } | Self::ImageEdge { .. } => "scale it down",
            Self::PdfBytes { .. } | Self::PdfPages { .. } => "split it",
            Self::Files { .. } | Self::TotalBytes { .. } => {
                "`agentd compact` or `agentd reset` first: they take earlier files out of the context"
            }
        }
    }
}

/// The files that fit into one request. They are admitted in the order of the conversation, so that later ones do not
/// change what was sent before.
#[derive(Clone, Debug)]
pub struct Room {
    limits: &'static ProviderLimits,
    omits: Vec<FileKind>,
    files: usize,
    bytes: usize,
}

impl Room {
    pub fn new(wire: Wire, omits: &[FileKind]) -> Self {
        Self {
            limits: ProviderLimits::of(wire),
            omits: omits.to_vec(),
            files: 0,
            bytes: 0,
        }
    }

    /// Admits an image. One that does not fit takes no room.
    pub fn image(&mut self, media_type: &str, base64: &str) -> Result<(), Unfit> {
        let limits = self.limits;
        if self.omits.contains(&FileKind::Image) {
            return Err(Unfit::NoImages);
        }
        if !limits.image_types.contains(&media_type) {
            return Err(Unfit::ImageType);
        }
        let limit = limits.image_bytes;
        if base64.len() > limit {
            return Err(Unfit::ImageBytes { limit });
        }
        let limit = limits.image_edge;
        let size = dimensions(media_type, base64).unwrap_or_default();
        if size.0.max(size.1) > limit {
            return Err(Unfit::ImageEdge { limit });
        }
        self.admit(base64.len())
    }

    /// Admits a PDF.
    pub fn pdf(&mut self, pages: u32, base64: &str) -> Result<(), Unfit> {
        let limits = self.limits;
        if self.omits.contains(&FileKind::Pdf) {
            return Err(Unfit::NoPdfs);
        }
        let limit = limits.pdf_bytes;
        if base64.len() > limit {
            return Err(Unfit::PdfBytes { limit });
        }
        let limit = limits.pdf_pages;
        if pages > limit {
            return Err(Unfit::PdfPages { limit });
        }
        self.admit(base64.len())
    }

    const fn admit(&mut self, bytes: usize) -> Result<(), Unfit> {
        let limit = self.limits.files;
        if self.files >= limit {
            return Err(Unfit::Files { limit });
        }
        let limit = self.limits.total_bytes;
        if self.bytes + bytes > limit {
            return Err(Unfit::TotalBytes { limit });
        }
        self.files += 1;
        self.bytes += bytes;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_checked_and_what_does_not_fit_takes_no_room() {
        let mut room = Room::new(Wire::AnthropicMessages, &[]);
        let image = |room: &mut Room, length: usize| room.image("image/png", &"A".repeat(length));
        assert_eq!(
            image(&mut room, 6 * MB),
            Err(Unfit::ImageBytes { limit: 5_242_880 })
        );
        for _ in 0..5 {
            assert_eq!(image(&mut room, 5 * MB), Ok(()));
        }
        assert_eq!(
            image(&mut room, 4 * MB),
            Err(Unfit::TotalBytes { limit: 28 * MB })
        );
        assert_eq!(image(&mut room, 3 * MB), Ok(()));
        let mut room = Room::new(Wire::AnthropicMessages, &[]);
        for _ in 0..100 {
            assert_eq!(image(&mut room, 4), Ok(()));
        }
        assert_eq!(image(&mut room, 4), Err(Unfit::Files { limit: 100 }));
        assert_eq!(
            Room::new(Wire::AnthropicMessages, &[]).pdf(601, "AAAA"),
            Err(Unfit::PdfPages { limit: 600 })
        );
    }

    #[test]
    fn types_and_models_that_lack_an_input() {
        assert_eq!(
            Room::new(Wire::Gemini, &[]).image("image/gif", "AAAA"),
            Err(Unfit::ImageType)
        );
        assert_eq!(
            Room::new(Wire::OpenaiChat, &[]).image("image/gif", "AAAA"),
            Ok(())
        );
        let omits = [FileKind::Image, FileKind::Pdf];
        let mut room = Room::new(Wire::OpenaiChat, &omits);
        assert_eq!(room.image("image/png", "AAAA"), Err(Unfit::NoImages));
        assert_eq!(room.pdf(1, "AAAA"), Err(Unfit::NoPdfs));
    }
}
