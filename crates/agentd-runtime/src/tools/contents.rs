//! The contents of files that the model knows: their hashes for the journal, and the newest texts, to show how a file has
//! changed since the model read it.

use super::hash;
use agentd_core::event::FileSeen;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A larger file is not read to its end, so the model cannot know its content.
pub(super) const MAX_KNOWN_BYTES: u64 = 64 * 1024 * 1024;
/// The text of a larger file is not kept.
pub(super) const KEPT_FILE_BYTES: usize = 256 * 1024;
/// How much text of all files is kept.
const KEPT_BYTES: usize = 8 * 1024 * 1024;

/// How the journal names a file: by a hash of its path, with links resolved.
pub(super) fn id(path: &Path) -> String {
    FileSeen::file_of(path.as_os_str().as_bytes())
}

/// For the journal: the model knows this content of the file.
pub(super) fn seen(path: &Path, content: String) -> FileSeen {
    FileSeen {
        file: id(path),
        content,
    }
}

/// The newest contents that the model knows, by their hashes.
#[derive(Default)]
pub(super) struct Contents(Mutex<VecDeque<(String, Arc<str>)>>);

impl Contents {
    pub fn keep(&self, hash: &str, content: &[u8]) {
        if content.len() > KEPT_FILE_BYTES {
            return;
        }
        let Ok(text) = std::str::from_utf8(content) else {
            return;
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| known != hash);
        kept.push_back((hash.to_owned(), text.into()));
        let mut bytes: usize = kept.iter().map(|(_, text)| text.len()).sum();
        while bytes > KEPT_BYTES {
            let Some((_, oldest)) = kept.pop_front() else {
                return;
            };
            bytes -= oldest.len();
        }
    }

    pub fn get(&self, hash: &str) -> Option<Arc<str>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().find(|(known, _)| known == hash)?;
        Some(Arc::clone(&found.1))
    }
}

/// The content of a file that was read to its end.
pub(super) struct WholeFile {
    pub hash: String,
    /// `None` if it is not a text, or large.
    pub text: Option<String>,
}

/// A file that is read to its end once: what is hashed is what was shown.
pub(super) struct Reading {
    file: File,
    hasher: hash::Hasher,
    /// The beginning of the file.
    kept: Vec<u8>,
    is_at_end: bool,
}

impl Reading {
    pub fn new(file: File) -> Self {
        Self {
            file,
            hasher: hash::Hasher::default(),
            kept: Vec::new(),
            is_at_end: false,
        }
    }

    /// The content; `None` if the file was not read to its end.
    pub fn finish(self) -> Option<WholeFile> {
        if !self.is_at_end {
            return None;
        }
        let is_short = self.kept.len() <= KEPT_FILE_BYTES;
        let text = is_short.then(|| String::from_utf8(self.kept).ok());
        Some(WholeFile {
            hash: self.hasher.finish(),
            text: text.flatten(),
        })
    }
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        let bytes = &buffer[..read];
        self.is_at_end |= read == 0 && !buffer.is_empty();
        self.hasher.update(bytes);
        // One byte more than the limit shows that the file is longer.
        let room = (KEPT_FILE_BYTES + 1).saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..read.min(room)]);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::{Contents, KEPT_BYTES, KEPT_FILE_BYTES, Reading};
    use crate::tools::hash;
    use std::fs::{self, File};
    use std::io::Read as _;

    #[test]
    fn the_newest_texts_are_kept() {
        let contents = Contents::default();
        let text = vec![b'x'; KEPT_FILE_BYTES];
        let most = KEPT_BYTES / KEPT_FILE_BYTES;
        for n in 0..=most {
            contents.keep(&n.to_string(), &text);
        }
        assert!(contents.get("0").is_none() && contents.get("1").is_some());
        contents.keep("1", b"again");
        contents.keep("large", &vec![b'x'; KEPT_FILE_BYTES + 1]);
        contents.keep("binary", b"\xff");
        assert!(contents.get("large").is_none() && contents.get("binary").is_none());
        assert_eq!(contents.get("1").as_deref(), Some("again"));
    }

    #[test]
    fn only_a_file_that_was_read_to_its_end_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        for length in [0, 10, KEPT_FILE_BYTES, KEPT_FILE_BYTES + 1] {
            let text = "x".repeat(length);
            fs::write(&path, &text).unwrap();
            let mut reading = Reading::new(File::open(&path).unwrap());
            reading.read_to_end(&mut Vec::new()).unwrap();
            let whole = reading.finish().unwrap();
            assert_eq!(whole.hash, hash::of(text.as_bytes()));
            let kept = (length <= KEPT_FILE_BYTES).then_some(text);
            assert_eq!(whole.text, kept);
            let unread = Reading::new(File::open(&path).unwrap());
            assert!(unread.finish().is_none());
        }
    }
}
