//! A backup together with the earlier ones that it needs, found in the same directory by their digests.

use super::archive::{Archive, Parent, damaged, one_line};
use super::{Error, Result};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// The ending of the name of a file that is being written.
pub const PARTIAL: &str = "partial";

/// The last backup first. Every byte of each has been checked.
#[derive(Debug)]
pub struct Chain {
    pub links: Vec<Archive>,
}

impl Chain {
    pub fn open(path: &Path) -> Result<Self> {
        let last = Archive::open(path)?;
        last.check()?;
        let mut parent = last.manifest.parent.clone();
        let mut links = vec![last];
        // Ends: a backup cannot contain its own digest.
        while let Some(wanted) = parent {
            let child = links.last().map_or(path, |link| link.path.as_path());
            let found = find(child, &wanted)?;
            found.check()?;
            parent = found.manifest.parent.clone();
            links.push(found);
        }
        Ok(Self { links })
    }

    /// The last backup.
    pub fn last(&self) -> Result<&Archive> {
        let last = self.links.first();
        last.ok_or_else(|| damaged(Path::new(""), "an empty chain"))
    }

    pub fn bytes(&self) -> u64 {
        self.links.iter().map(|link| link.bytes).sum()
    }

    /// The names of the files, the first backup first.
    pub fn names(&self) -> Vec<String> {
        let paths = self.links.iter().rev();
        paths.map(|link| link.path.display().to_string()).collect()
    }
}

/// The backups that this one needs, the nearest first. That each is there is checked, and not its content.
pub fn needed_by(archive: &Archive) -> Result<Vec<Archive>> {
    let mut needed: Vec<Archive> = Vec::new();
    loop {
        let child = needed.last().unwrap_or(archive);
        let Some(wanted) = &child.manifest.parent else {
            return Ok(needed);
        };
        needed.push(find(&child.path, wanted)?);
    }
}

/// The parent of a backup: the file of that name if it has the digest, or else any file of the directory that has it.
fn find(child: &Path, wanted: &Parent) -> Result<Archive> {
    let dir = dir_of(child);
    // A name from the file may not lead out of the directory.
    let is_name = Path::new(&wanted.file).file_name() == Some(OsStr::new(&wanted.file));
    let named = is_name.then(|| Archive::open(&dir.join(&wanted.file)));
    let unusable = match named {
        Some(Ok(named)) if named.digest == wanted.digest => return Ok(named),
        Some(Err(error @ Error::Damaged { .. })) => Some(error),
        _ => None,
    };
    let mut others = all_in(&dir)?.into_iter();
    if let Some(found) = others.find(|other| other.digest == wanted.digest) {
        return Archive::open(&found.path);
    }
    Err(unusable.unwrap_or_else(|| Error::ParentMissing {
        file: child.to_owned(),
        parent: one_line(&wanted.file),
        digest: one_line(&wanted.digest),
    }))
}

/// The directory that a file is in.
pub fn dir_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// A backup in a directory.
#[derive(Clone, Debug)]
pub struct Found {
    pub path: PathBuf,
    pub digest: String,
    pub home: Uuid,
    pub made_at: i64,
    pub parent: Option<Parent>,
}

/// The backups in a directory, the newest first. Other files are passed over; the content is not checked.
pub fn all_in(dir: &Path) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io(dir))? {
        let path = entry.map_err(Error::io(dir))?.path();
        if !path.is_file() || is_partial(&path) {
            continue;
        }
        if let Ok(archive) = Archive::open(&path) {
            found.push(Found {
                path,
                digest: archive.digest,
                home: archive.manifest.home,
                made_at: archive.manifest.made_at,
                parent: archive.manifest.parent,
            });
        }
    }
    found.sort_by_key(|found| std::cmp::Reverse(found.made_at));
    Ok(found)
}

/// Whether it is a file that is being written.
fn is_partial(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == PARTIAL)
}
