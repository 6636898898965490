//! The log file behind stderr: its length, and its rotation at the limit.

use rustix::fs::{FileType, Stat, fstat, stat};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The destination of log lines.
pub struct LogFile {
    out: Box<dyn io::Write + Send>,
    /// None if stderr is not the log file: its size is then not limited.
    limit: Option<Limit>,
    /// The last write broke off in the middle of a line.
    is_torn: bool,
}

struct Limit {
    path: PathBuf,
    cap: u64,
    length: u64,
}

impl LogFile {
    /// Stderr, with a limit if it is the file at `path`.
    pub fn stderr(path: &Path, cap: u64) -> Self {
        let own = fstat(io::stderr()).ok();
        let limit = own.filter(|own| is_at(own, path)).map(|own| Limit {
            path: path.to_owned(),
            cap,
            length: u64::try_from(own.st_size).unwrap_or(0),
        });
        Self {
            out: Box::new(io::stderr()),
            limit,
            is_torn: false,
        }
    }

    #[cfg(test)]
    pub fn to(out: impl io::Write + Send + 'static) -> Self {
        Self {
            out: Box::new(out),
            limit: None,
            is_torn: false,
        }
    }

    /// Writes a line, or a part of it and an error.
    pub fn put(&mut self, line: &[u8]) -> io::Result<()> {
        if std::mem::take(&mut self.is_torn)
            && let Err(error) = self.out.write_all(b"\n")
        {
            self.is_torn = true;
            return Err(error);
        }
        let written = self.out.write_all(line);
        self.is_torn = written.is_err();
        if let Some(limit) = &mut self.limit {
            limit.length += line.len() as u64;
            if limit.length > limit.cap {
                limit.rotate();
            }
        }
        written
    }
}

impl Limit {
    /// Renames the file to `.1`, replacing an older one, and redirects stderr and stdout to a new file.
    /// If that fails, it is tried again with the next line.
    fn rotate(&mut self) {
        let old = with_suffix(&self.path);
        let is_ours = fstat(io::stderr()).is_ok_and(|own| is_at(&own, &self.path));
        if is_ours && fs::rename(&self.path, &old).is_err() {
            return;
        }
        let stdout_too = same_file(fstat(io::stdout()).ok(), fstat(io::stderr()).ok());
        let Ok(file) = open(&self.path) else { return };
        if rustix::stdio::dup2_stderr(&file).is_ok() {
            self.length = 0;
        }
        if stdout_too {
            let _stays = rustix::stdio::dup2_stdout(&file);
        }
    }
}

/// Opens a log for appending, accessible only to its owner.
pub fn open(path: &Path) -> io::Result<File> {
    File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

/// The name of a log after rotation.
pub fn with_suffix(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

fn is_at(file: &Stat, path: &Path) -> bool {
    let is_file = FileType::from_raw_mode(file.st_mode) == FileType::RegularFile;
    is_file && same_file(Some(*file), stat(path).ok())
}

fn same_file(one: Option<Stat>, other: Option<Stat>) -> bool {
    let id = |file: Stat| (file.st_dev, file.st_ino);
    one.map(id) == other.map(id) && one.is_some()
}

/// The length of the file behind stderr; 0 if it is not a file.
pub fn stderr_length() -> u64 {
    let own = fstat(io::stderr()).ok();
    own.and_then(|own| u64::try_from(own.st_size).ok())
        .unwrap_or(0)
}
