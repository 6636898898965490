//! A file with a line for each request, for tests in which the server is a separate process.

use super::Recorded;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

pub struct Record {
    file: File,
}

impl Record {
    /// Existing lines stay.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file })
    }

    /// In one write, so that a concurrent reader sees whole lines.
    pub fn write(&self, number: u64, request: &Recorded) -> io::Result<()> {
        let verdict = match request.violations.as_slice() {
            [] => json!("accepted"),
            found => found
                .iter()
                .map(|one| Value::from(one.to_string()))
                .collect(),
        };
        let line = json!({
            "n": number,
            "format": request.format.name(),
            "verdict": verdict,
            "status": request.status,
            "prompt": request.prompt,
            "body": request.body,
        });
        let mut file = &self.file;
        file.write_all(format!("{line}\n").as_bytes())?;
        file.flush()
    }
}
