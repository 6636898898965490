//! What a run recorded of backups: the attempts to make one, the checks of those that were made, and the homes that were
//! restored from them.

use super::journal::Journal;
use super::lines::{files, lines};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

#[derive(Debug, Default)]
pub struct Backups {
    pub attempts: Vec<Attempt>,
    pub checks: Vec<Checked>,
    pub restored: Vec<RestoredHome>,
}

/// A client that asked for a backup.
#[derive(Debug, Deserialize)]
pub struct Attempt {
    pub at: u64,
    /// When the client ended.
    pub until: u64,
    /// The file or directory that it named.
    pub to: String,
    /// The last event of each agent that was shown before.
    #[serde(default)]
    pub heads: BTreeMap<String, u64>,
    /// The file that was acknowledged.
    #[serde(default)]
    pub file: Option<String>,
    #[serde(default)]
    pub digest: Option<String>,
}

/// A backup that was checked, with those that it needs.
#[derive(Debug, Deserialize)]
pub struct Checked {
    pub at: u64,
    pub file: String,
    pub is_whole: bool,
    #[serde(default)]
    pub digest: Option<String>,
    /// What the user was told.
    #[serde(default)]
    pub text: String,
}

/// A home that was made of a backup.
#[derive(Debug, Deserialize)]
pub struct RestoredHome {
    pub at: u64,
    pub number: u64,
    pub file: String,
    pub is_restored: bool,
    /// Its journal has no damage.
    pub is_clean: bool,
    /// What the user was told.
    #[serde(default)]
    pub text: String,
    #[serde(skip)]
    pub journals: Vec<Journal>,
}

impl Backups {
    pub fn read(run: &Path) -> io::Result<Self> {
        let mut backups = Self {
            attempts: lines(run, "backups.jsonl")?,
            checks: lines(run, "backup_checks.jsonl")?,
            restored: lines(run, "restored.jsonl")?,
        };
        // `NUMBER.AGENT.jsonl`, each like an export.
        for name in files(&run.join("restored"))? {
            let number = name.split('.').next().and_then(|n| n.parse::<u64>().ok());
            let copy = Journal::read(&name, lines(run, &format!("restored/{name}"))?);
            let mut homes = backups.restored.iter_mut();
            if let Some(home) = homes.find(|home| Some(home.number) == number) {
                home.journals.push(copy);
            }
        }
        Ok(backups)
    }

    /// The last backup that was acknowledged under this name before this time.
    pub fn made(&self, file: &str, before: u64) -> Option<&Attempt> {
        let mut attempts = self.attempts.iter().rev();
        attempts.find(|it| it.file.as_deref() == Some(file) && it.until <= before)
    }
}
