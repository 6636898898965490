//! The evidence of a run, as lines in files. The checker reads nothing else.

use serde_json::Value;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub struct Record {
    dir: PathBuf,
    files: Mutex<HashMap<String, File>>,
    began: Instant,
    /// The same moment, in microseconds since 1970, for the records of other processes.
    began_unix: u64,
}

impl Record {
    pub fn new(dir: PathBuf) -> io::Result<Self> {
        for inner in ["export", "clients", "restored"] {
            fs::create_dir_all(dir.join(inner))?;
        }
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        let unix = unix.map_or(0, |since| since.as_micros());
        Ok(Self {
            dir,
            files: Mutex::default(),
            began: Instant::now(),
            began_unix: u64::try_from(unix).unwrap_or_default(),
        })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Microseconds since the run began.
    pub fn at(&self) -> u64 {
        self.at_instant(Instant::now())
    }

    pub fn at_instant(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.began).as_micros();
        u64::try_from(since).unwrap_or(u64::MAX)
    }

    /// The same for a time that another process recorded.
    pub const fn at_unix(&self, micros: u64) -> u64 {
        micros.saturating_sub(self.began_unix)
    }

    pub const fn began_unix(&self) -> u64 {
        self.began_unix
    }

    /// Appends a line to a file of this name.
    pub fn line(&self, file: &str, value: &Value) -> io::Result<()> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if !files.contains_key(file) {
            let path = self.dir.join(file);
            let open = File::options().create(true).append(true).open(path)?;
            files.insert(file.to_owned(), open);
        }
        match files.get_mut(file) {
            Some(open) => open.write_all(format!("{value}\n").as_bytes()),
            None => Ok(()),
        }
    }

    pub fn whole(&self, file: &str, value: &Value) -> io::Result<()> {
        fs::write(self.dir.join(file), format!("{value}\n"))
    }
}

/// The readable lines of a file; none if the file does not exist.
pub fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines();
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}
