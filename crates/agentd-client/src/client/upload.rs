//! The body of a request: bytes, or a file that is read while it is sent. Cloned, it is sent again from its beginning.

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// How much of a file is read at a time.
const CHUNK: usize = 256 * 1024;

pub(super) struct Upload {
    content: Source,
    sent: u64,
}

#[derive(Clone)]
enum Source {
    Bytes(Bytes),
    File(Arc<File>, u64),
}

impl Upload {
    pub(super) fn of(bytes: impl Into<Bytes>) -> Self {
        Self {
            content: Source::Bytes(bytes.into()),
            sent: 0,
        }
    }

    pub(super) fn empty() -> Self {
        Self::of(Bytes::new())
    }

    /// As much of the file as it has now.
    pub(super) fn of_file(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self {
            content: Source::File(Arc::new(file), length),
            sent: 0,
        })
    }

    fn left(&self) -> u64 {
        let length = match &self.content {
            Source::Bytes(bytes) => bytes.len() as u64,
            Source::File(_, length) => *length,
        };
        length.saturating_sub(self.sent)
    }

    fn next(&mut self) -> io::Result<Option<Bytes>> {
        let left = self.left();
        if left == 0 {
            return Ok(None);
        }
        let chunk = match &self.content {
            Source::Bytes(bytes) => bytes.clone(),
            Source::File(file, _) => {
                let mut chunk = vec![0; CHUNK.min(usize::try_from(left).unwrap_or(CHUNK))];
                file.read_exact_at(&mut chunk, self.sent)?;
                chunk.into()
            }
        };
        self.sent += chunk.len() as u64;
        Ok(Some(chunk))
    }
}

impl Clone for Upload {
    fn clone(&self) -> Self {
        Self {
            content: self.content.clone(),
            sent: 0,
        }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        Poll::Ready(self.next().transpose().map(|chunk| chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut upload: Upload) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(chunk) = upload.next().unwrap() {
            all.extend_from_slice(&chunk);
        }
        all
    }

    #[test]
    fn a_file_is_sent_in_pieces_and_again_from_its_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let bytes: Vec<u8> = (0..CHUNK * 2 + 7).map(|n| n as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let mut upload = Upload::of_file(File::open(&path).unwrap()).unwrap();
        assert_eq!(upload.size_hint().exact(), Some(bytes.len() as u64));
        assert_eq!(upload.next().unwrap().unwrap().len(), CHUNK);
        let again = upload.clone();
        assert_eq!(all(again), bytes);
        assert_eq!(all(upload).len(), CHUNK + 7);
        assert_eq!(all(Upload::of("abc")), b"abc");
        assert!(Upload::empty().is_end_stream());
    }
}
