//! Reads a chain of backups: the journal into a directory, and the files into a home or nowhere. Checks everything that it reads.

use super::archive::{Archive, KeptFile, Record, Stored, damaged, hex, one_line};
use super::chain::Chain;
use super::home_file::HomeFile;
use super::{Error, Progress, Result, Step, Watch};
use crate::layout::Layout;
use agentd_store::{JournalRestore, Link, Options, Report, SqliteStore};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

/// What becomes of the files.
#[derive(Clone, Debug)]
pub enum Files {
    /// They are only checked.
    Checked,
    /// They are written into this home.
    Into(Layout),
}

/// Builds the journal in the directory of `options`, and checks it like `agentd verify`.
pub fn unpack(chain: &Chain, options: &Options, files: &Files, watch: &Watch) -> Result<Report> {
    let last = chain.last()?;
    let journal = JournalRestore::begin(options, &last.manifest.journal);
    let mut unpacking = Unpacking {
        journal: journal.map_err(|error| of_store(last, error))?,
        wanted: wanted(last)?,
        files,
        watch,
        bytes: 0,
    };
    for (n, archive) in chain.links.iter().enumerate() {
        let link = if n == 0 { Link::Last } else { Link::Earlier };
        unpacking.archive(archive, link)?;
    }
    if let Some((file, _)) = unpacking.wanted.first_key_value() {
        let what = format!("the content of {file} is in no backup of the chain");
        return Err(damaged(&last.path, what));
    }
    let finished = unpacking.journal.finish();
    finished.map_err(|error| of_store(last, error))?;
    let report = SqliteStore::inspect(options).map_err(|error| of_store(last, error))?;
    match report.is_clean() {
        true => Ok(report),
        false => Err(Error::JournalDamaged {
            file: last.path.clone(),
            what: one_line(&findings(&report)),
        }),
    }
}

/// The files of the last backup, with their digests.
fn wanted(last: &Archive) -> Result<BTreeMap<HomeFile, KeptFile>> {
    let mut wanted = BTreeMap::new();
    for kept in &last.manifest.files {
        if wanted.insert(kept.file.clone(), kept.clone()).is_some() {
            return Err(damaged(&last.path, "its manifest lists a file twice"));
        }
    }
    Ok(wanted)
}

fn findings(report: &Report) -> String {
    let damaged = report.damaged.iter().map(|(agent, damage)| {
        let (from, through) = (damage.from, damage.through);
        format!(
            "events {from} to {through} of agent {agent}: {}",
            damage.reason
        )
    });
    let dangling = report.dangling.iter();
    let dangling = dangling.map(|(agent, what)| format!("agent {agent}: {what}"));
    let all = damaged.chain(dangling).chain(report.file.iter().cloned());
    let few: Vec<String> = all.take(5).collect();
    few.join("; ")
}

/// Parts that the store cannot read are a fault of the backup.
fn of_store(archive: &Archive, error: agentd_store::Error) -> Error {
    match error {
        agentd_store::Error::BadBackup(what) => damaged(&archive.path, what),
        error => Error::Store(error),
    }
}

struct Unpacking<'a> {
    journal: JournalRestore,
    /// The files that have not been found yet.
    wanted: BTreeMap<HomeFile, KeptFile>,
    files: &'a Files,
    watch: &'a Watch,
    bytes: u64,
}

/// A file whose data is being read.
struct Open {
    kept: KeptFile,
    /// None if it is only checked, or if a later backup has another content.
    out: Option<File>,
    hash: Sha256,
    size: u64,
}

impl Unpacking<'_> {
    fn archive(&mut self, archive: &Archive, link: Link) -> Result<()> {
        let stored = archive.manifest.files.iter();
        let stored = stored.filter(|kept| kept.stored == Stored::Here);
        let mut stored: BTreeMap<&HomeFile, &KeptFile> =
            stored.map(|kept| (&kept.file, kept)).collect();
        let mut records = archive.records()?;
        let mut open: Option<Open> = None;
        while let Some(record) = records.next()? {
            match record {
                Record::Journal(part) if open.is_none() => {
                    self.progress(part.len())?;
                    let read = self.journal.part(link, &part);
                    read.map_err(|error| of_store(archive, error))?;
                }
                Record::Journal(_) => return Err(damaged(&archive.path, "records out of order")),
                Record::File(file) => {
                    self.end(archive, open.take())?;
                    let kept = stored.remove(&file);
                    let unknown =
                        || damaged(&archive.path, "a file that its manifest does not list");
                    open = Some(self.begin(kept.ok_or_else(unknown)?)?);
                }
                Record::Data(bytes) => {
                    self.progress(bytes.len())?;
                    let unnamed = || damaged(&archive.path, "data without a file");
                    self.data(archive, open.as_mut().ok_or_else(unnamed)?, &bytes)?;
                }
                Record::End => self.end(archive, open.take())?,
            }
        }
        match stored.is_empty() {
            true => Ok(()),
            false => Err(damaged(&archive.path, "a file of its manifest is missing")),
        }
    }

    fn progress(&mut self, more: usize) -> Result<()> {
        self.bytes += more as u64;
        let progress = Progress {
            bytes: self.bytes,
            of: None,
            step: Step::More,
        };
        match (self.watch)(progress) {
            true => Ok(()),
            false => Err(Error::Cancelled),
        }
    }

    fn begin(&self, kept: &KeptFile) -> Result<Open> {
        let wanted = self.wanted.get(&kept.file);
        let is_wanted = wanted.is_some_and(|wanted| wanted.sha256 == kept.sha256);
        let out = match self.files {
            Files::Into(layout) if is_wanted => Some(create(layout, &kept.file)?),
            _ => None,
        };
        Ok(Open {
            kept: kept.clone(),
            out,
            hash: Sha256::new(),
            size: 0,
        })
    }

    fn data(&self, archive: &Archive, open: &mut Open, bytes: &[u8]) -> Result<()> {
        let size = open.size + bytes.len() as u64;
        // Before it is written: it may expand to any size.
        if size > open.kept.size {
            return Err(changed(archive, &open.kept));
        }
        open.hash.update(bytes);
        open.size = size;
        match (&mut open.out, self.files) {
            (Some(out), Files::Into(layout)) => out
                .write_all(bytes)
                .map_err(Error::io(open.kept.file.path(layout))),
            _ => Ok(()),
        }
    }

    fn end(&mut self, archive: &Archive, open: Option<Open>) -> Result<()> {
        let Some(open) = open else {
            return Ok(());
        };
        let found = (open.size, hex(&open.hash.finalize()));
        if found != (open.kept.size, open.kept.sha256.clone()) {
            return Err(changed(archive, &open.kept));
        }
        let wanted = self.wanted.get(&open.kept.file);
        if wanted.is_some_and(|wanted| wanted.sha256 == open.kept.sha256) {
            self.wanted.remove(&open.kept.file);
        }
        Ok(())
    }
}

fn changed(archive: &Archive, kept: &KeptFile) -> Error {
    let what = format!("the content of {} was changed", kept.file);
    damaged(&archive.path, what)
}

/// Creates a file of a home, which must not exist, with the directories above it.
fn create(layout: &Layout, file: &HomeFile) -> Result<File> {
    let path = file.path(layout);
    if let Some(dir) = path.parent() {
        layout.make_below(dir).map_err(Error::io(dir))?;
    }
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(Error::io(path))
}
