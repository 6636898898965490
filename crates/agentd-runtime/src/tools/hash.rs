//! The hash of a file's content, as the start and the end of a file tool's call record it.

use agentd_core::files::work::HASHED_BYTES;
use agentd_files::foreign::{self, Links};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

pub(super) fn of(bytes: &[u8]) -> String {
    hex(Sha256::digest(bytes).as_slice())
}

/// The hash of a content that comes in pieces.
#[derive(Default)]
pub(super) struct Hasher(Sha256);

impl Hasher {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> String {
        hex(self.0.finalize().as_slice())
    }
}

/// Opens a regular file; `None` if it does not exist. What is not one is neither waited for nor read, and a file that would
/// take minutes to read is refused: a sparse one takes no space on disk.
pub(super) fn open(path: &Path) -> io::Result<Option<File>> {
    match foreign::open(path, Links::Follow) {
        Ok(file) if file.metadata()?.len() > HASHED_BYTES => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "it has more than 1 GiB, the most that file tools can change; use shell",
        )),
        Ok(file) => Ok(Some(file)),
        Err(foreign::Error::NotFound) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The hash of a file; `None` if it does not exist.
pub(super) fn of_file(path: &Path) -> io::Result<Option<String>> {
    let Some(file) = open(path)? else {
        return Ok(None);
    };
    // It may grow meanwhile.
    let mut file = file.take(HASHED_BYTES);
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Some(hasher.finish())),
            read => hasher.update(&buffer[..read]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{of_file, open};
    use std::fs;
    use std::path::Path;

    /// Without a writer, a plain open of a pipe would wait for ever; and a device never ends.
    #[test]
    fn only_a_regular_file_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(open(&pipe).is_err() && of_file(&pipe).is_err());
        assert!(open(Path::new("/dev/zero")).is_err());
        assert!(open(dir.path()).is_err());
        let file = dir.path().join("file");
        assert!(open(&file).unwrap().is_none());
        fs::write(&file, "a").unwrap();
        assert!(open(&file).unwrap().is_some());
        let sparse = fs::File::create(&file).unwrap();
        sparse.set_len(20 << 30).unwrap();
        assert!(open(&file).unwrap_err().to_string().contains("1 GiB"));
        assert!(of_file(&file).is_err());
    }
}
