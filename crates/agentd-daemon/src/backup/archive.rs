//! The file of a backup: a first line, records under zstd, the manifest, its length, and the SHA-256 of everything before it.
//!
//! The manifest is at the end, because it says what was written, and outside the compression, so that it can be read alone.

mod records;

pub use records::{CHUNK, Record, Records};

use super::home_file::HomeFile;
use super::{Error, Result};
use agentd_files::foreign::{self, Links};
use agentd_store::BackupMark;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// By this a file is recognized as a backup.
pub const FIRST_LINE: &[u8] = b"agentd-backup\n";
const FORMAT: u32 = 1;
const LEVEL: i32 = 3;
const DIGEST: u64 = 32;
/// The digest and the length of the manifest.
const TAIL: u64 = DIGEST + 4;
/// The largest manifest that is read: that of some hundred thousand files.
const MAX_MANIFEST: u64 = 128 * 1024 * 1024;

/// What a backup contains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    /// The version of the program.
    pub agentd: String,
    /// In milliseconds since 1970.
    pub made_at: i64,
    /// The id of the home.
    pub home: Uuid,
    pub journal: BackupMark,
    pub agents: u64,
    pub events: u64,
    /// The backup that this one continues.
    pub parent: Option<Parent>,
    /// All files of the home, also those that only an earlier backup of the chain has.
    pub files: Vec<KeptFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    pub digest: String,
    /// Its name when the incremental backup was made. It may have been renamed since.
    pub file: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFile {
    pub file: HomeFile,
    pub size: u64,
    pub sha256: String,
    pub stored: Stored,
}

/// Which backup has the content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stored {
    Here,
    /// The parent, or a backup before it.
    Earlier,
}

impl Manifest {
    pub fn new(home: Uuid, made_at: i64, journal: BackupMark) -> Self {
        Self {
            format: FORMAT,
            agentd: String::new(),
            made_at,
            home,
            journal,
            agents: 0,
            events: 0,
            parent: None,
            files: Vec::new(),
        }
    }
}

/// Hashes what is written.
struct Hashing {
    file: File,
    hash: Sha256,
    bytes: u64,
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(bytes.get(..written).unwrap_or_default());
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a backup.
pub struct ArchiveWriter {
    out: zstd::stream::write::Encoder<'static, Hashing>,
    /// Bytes before the compression.
    taken: u64,
}

/// A file that was written completely, but is not synced.
pub struct Written {
    pub file: File,
    pub digest: String,
    pub bytes: u64,
}

impl ArchiveWriter {
    pub fn begin(file: File) -> io::Result<Self> {
        let mut out = Hashing {
            file,
            hash: Sha256::new(),
            bytes: 0,
        };
        out.write_all(FIRST_LINE)?;
        let out = zstd::stream::write::Encoder::new(out, LEVEL)?;
        Ok(Self { out, taken: 0 })
    }

    pub fn record(&mut self, record: &Record) -> io::Result<()> {
        let (tag, bytes) = record.encode()?;
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        self.out.write_all(&[tag])?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&bytes)?;
        self.taken += u64::from(length);
        Ok(())
    }

    pub const fn taken(&self) -> u64 {
        self.taken
    }

    pub fn finish(mut self, manifest: &Manifest) -> io::Result<Written> {
        self.record(&Record::End)?;
        let mut out = self.out.finish()?;
        let text = serde_json::to_vec(manifest)?;
        let length = u32::try_from(text.len()).map_err(io::Error::other)?;
        out.write_all(&text)?;
        out.write_all(&length.to_le_bytes())?;
        let digest = out.hash.finalize();
        out.file.write_all(&digest)?;
        Ok(Written {
            file: out.file,
            digest: hex(&digest),
            bytes: out.bytes + DIGEST,
        })
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A backup that is there to be read.
#[derive(Debug)]
pub struct Archive {
    pub path: PathBuf,
    pub manifest: Manifest,
    /// The digest that the file claims to have; see [`Self::check`].
    pub digest: String,
    pub bytes: u64,
    file: File,
    /// Where the records end.
    end: u64,
}

impl Archive {
    /// Opens a backup and reads its manifest. Its content is not checked yet.
    pub fn open(path: &Path) -> Result<Self> {
        let not_one = || Error::NotABackup {
            file: path.to_owned(),
        };
        let file = match foreign::open(path, Links::Follow) {
            Ok(file) => file,
            Err(foreign::Error::NotRegular) => return Err(not_one()),
            Err(error) => return Err(Error::io(path)(error.into())),
        };
        let about = file.metadata().map_err(Error::io(path))?;
        let first = FIRST_LINE.len() as u64;
        if about.len() < first {
            return Err(not_one());
        }
        let mut file = file;
        let mut line = [0; FIRST_LINE.len()];
        file.read_exact(&mut line).map_err(Error::io(path))?;
        if line != FIRST_LINE {
            return Err(not_one());
        }
        let bytes = about.len();
        let tail = Tail::read(&mut file, path, bytes)?;
        let manifest = tail.manifest(&mut file, path)?;
        Ok(Self {
            path: path.to_owned(),
            manifest,
            digest: tail.digest,
            bytes,
            file,
            end: tail.begin,
        })
    }

    /// Checks that every byte is what was written.
    pub fn check(&self) -> Result<()> {
        let mut file = self.reopened(0)?.take(self.bytes - DIGEST);
        let mut hash = Sha256::new();
        let mut chunk = vec![0; 256 * 1024];
        loop {
            let read = file.read(&mut chunk).map_err(Error::io(&self.path))?;
            match chunk.get(..read) {
                Some([]) | None => break,
                Some(bytes) => hash.update(bytes),
            }
        }
        match hex(&hash.finalize()) == self.digest {
            true => Ok(()),
            false => Err(damaged(&self.path, "its digest does not match its content")),
        }
    }

    /// The records, from the first one.
    pub fn records(&self) -> Result<Records> {
        let begin = FIRST_LINE.len() as u64;
        let file = self.reopened(begin)?;
        let taken = BufReader::new(file).take(self.end - begin);
        Records::new(self.path.clone(), taken)
    }

    fn reopened(&self, at: u64) -> Result<File> {
        let mut file = self.file.try_clone().map_err(Error::io(&self.path))?;
        file.seek(SeekFrom::Start(at))
            .map_err(Error::io(&self.path))?;
        Ok(file)
    }
}

pub fn damaged(path: &Path, what: impl Into<String>) -> Error {
    Error::Damaged {
        file: path.to_owned(),
        what: one_line(&what.into()),
    }
}

/// A text that may come from a forged backup, as part of a message: it adds no line, and has an end.
pub fn one_line(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(plain).take(500).collect()
}

/// The end of a file: where its manifest is, and its digest.
struct Tail {
    begin: u64,
    length: u64,
    digest: String,
}

impl Tail {
    fn read(file: &mut File, path: &Path, bytes: u64) -> Result<Self> {
        let first = FIRST_LINE.len() as u64;
        let cut = || damaged(path, "it is cut off");
        let at = bytes.checked_sub(TAIL).filter(|at| *at >= first);
        let at = at.ok_or_else(cut)?;
        let mut tail = [0; TAIL as usize];
        file.seek(SeekFrom::Start(at)).map_err(Error::io(path))?;
        file.read_exact(&mut tail).map_err(Error::io(path))?;
        let (length, digest) = tail.split_first_chunk::<4>().ok_or_else(cut)?;
        let length = u64::from(u32::from_le_bytes(*length));
        let begin = at.checked_sub(length).filter(|begin| *begin >= first);
        match begin.filter(|_| length <= MAX_MANIFEST) {
            Some(begin) => Ok(Self {
                begin,
                length,
                digest: hex(digest),
            }),
            None => Err(damaged(path, "it is cut off, or its end was changed")),
        }
    }

    fn manifest(&self, file: &mut File, path: &Path) -> Result<Manifest> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        file.seek(SeekFrom::Start(self.begin))
            .map_err(Error::io(path))?;
        let mut text = Vec::new();
        file.take(self.length)
            .read_to_end(&mut text)
            .map_err(Error::io(path))?;
        let unreadable = |error: serde_json::Error| {
            damaged(path, format!("its manifest cannot be read: {error}"))
        };
        let Format { format } = serde_json::from_slice(&text).map_err(unreadable)?;
        if format > FORMAT {
            return Err(Error::Newer {
                file: path.to_owned(),
                format,
            });
        }
        serde_json::from_slice(&text).map_err(unreadable)
    }
}
