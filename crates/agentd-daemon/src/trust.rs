//! Which files of projects the user has trusted, by path and content.

use crate::daemon::Daemon;
use crate::layout::Layout;
use crate::problem::Result;
use crate::project::{self, ProjectFile, rules};
use agentd_client::api::{ProjectTrust, Trust, TrustedFile};
use agentd_client::{Kind, Problem};
use agentd_core::hook::digest;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The digest of each file, by its path.
type Trusted = BTreeMap<String, String>;

pub fn is_trusted(layout: &Layout, path: &Path, hash: &str) -> bool {
    match read(layout) {
        Ok(trusted) => trusted.get(&*path.to_string_lossy()).map(String::as_str) == Some(hash),
        Err(error) => {
            tracing::warn!(%error, "list of trusted files cannot be read: no file is trusted");
            false
        }
    }
}

/// The files of a project, and which of them are trusted with their present content.
pub fn show(daemon: &Daemon, dir: &str) -> Result<ProjectTrust> {
    let dir = canonical(dir)?;
    let files = files_of(&dir)?;
    let trusted = read(&daemon.layout).map_err(|error| cannot_read(&error))?;
    Ok(shown(&dir, &files, &trusted))
}

/// Trusts all files of a project with their present content, or withdraws the trust, also for deleted files.
pub fn set(daemon: &Daemon, ask: &Trust) -> Result<ProjectTrust> {
    let dir = canonical(&ask.dir)?;
    let mut trusted = read(&daemon.layout).map_err(|error| cannot_read(&error))?;
    let of_project = |path: &String| Path::new(path).starts_with(&dir);
    let was_trusted = trusted.keys().any(of_project);
    trusted.retain(|path, _| !of_project(path));
    let files = match (ask.trusted, files_of(&dir)) {
        // Trust can be withdrawn even if the files can no longer be read.
        (false, files) => files.unwrap_or_default(),
        (true, files) => files?,
    };
    if files.is_empty() && !was_trusted {
        let what = format!("{} has no files for agents", dir.display());
        let why = "such files are `.mcp.json` and everything in `.agentd/`";
        return Err(Problem::new(Kind::NotFound, what).because(why));
    }
    if ask.hash.as_ref().is_some_and(|seen| *seen != whole(&files)) {
        let what = "the files have changed since you saw them";
        return Err(Problem::new(Kind::Conflict, what).next("review them again"));
    }
    if ask.trusted {
        check_rules(&dir, &files)?;
        let new = files
            .iter()
            .map(|file| (name(&dir, file), file.hash.clone()));
        trusted.extend(new);
    }
    write(&daemon.layout, &trusted).map_err(|error| {
        let what = "the list of trusted files cannot be written";
        Problem::new(Kind::Unavailable, what).because(error)
    })?;
    Ok(shown(&dir, &files, &trusted))
}

/// Refuses to trust a file of rules that cannot be used: the user would believe that its rules hold.
fn check_rules(dir: &Path, files: &[ProjectFile]) -> Result<()> {
    if !files
        .iter()
        .any(|file| file.below == Path::new(rules::BELOW))
    {
        return Ok(());
    }
    let refused = |why: String| {
        let what = format!("the files of {} cannot be trusted", dir.display());
        Problem::new(Kind::Refused, what).because(why)
    };
    let bytes =
        project::read(dir, Path::new(rules::BELOW)).map_err(|error| refused(error.to_string()))?;
    rules::parse(&bytes).map_err(|error| refused(error.to_string()))?;
    Ok(())
}

/// The canonical path: one project has one name, even if it is reached through a symbolic link.
fn canonical(dir: &str) -> Result<PathBuf> {
    std::fs::canonicalize(dir)
        .map_err(|error| Problem::new(Kind::NotFound, format!("no directory {dir}")).because(error))
}

fn files_of(dir: &Path) -> Result<Vec<ProjectFile>> {
    project::files(dir).map_err(|error| {
        let what = format!("the files of {} cannot be trusted", dir.display());
        Problem::new(Kind::Refused, what).because(error)
    })
}

fn cannot_read(error: &io::Error) -> Problem {
    let what = "the list of trusted files cannot be read";
    Problem::new(Kind::Unavailable, what).because(error)
}

fn name(dir: &Path, file: &ProjectFile) -> String {
    dir.join(&file.below).to_string_lossy().into_owned()
}

/// A digest of all files together. A request that names it proves that its sender has seen them.
fn whole(files: &[ProjectFile]) -> String {
    let parts = files.iter().flat_map(|file| {
        let below = file.below.as_os_str().as_encoded_bytes();
        [below, file.hash.as_bytes()]
    });
    digest(&parts.collect::<Vec<_>>())
}

fn shown(dir: &Path, files: &[ProjectFile], trusted: &Trusted) -> ProjectTrust {
    let each = files.iter().map(|file| {
        let path = name(dir, file);
        TrustedFile {
            trusted: trusted.get(&path) == Some(&file.hash),
            path,
            hash: file.hash.clone(),
        }
    });
    ProjectTrust {
        dir: dir.display().to_string(),
        files: each.collect(),
        hash: whole(files),
    }
}

fn write(layout: &Layout, trusted: &Trusted) -> io::Result<()> {
    let file = layout.trusted();
    let unready = file.with_extension("tmp");
    let mut out = std::fs::File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unready)?;
    out.write_all(&serde_json::to_vec_pretty(trusted)?)?;
    out.sync_all()?;
    std::fs::rename(unready, file)
}

fn read(layout: &Layout) -> io::Result<Trusted> {
    match std::fs::read(layout.trusted()) {
        Ok(text) => serde_json::from_slice(&text).map_err(io::Error::from),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Trusted::new()),
        Err(error) => Err(error),
    }
}
