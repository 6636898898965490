//! Which processes may enter the lab: only those whose files are all in a directory that the lab has marked.

use std::fmt::Display;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The environment variable with the lab's directory, for a process and all its descendants.
pub const VARIABLE: &str = "AGENTD_LAB";
/// The mark: a file with this name that contains [`TOKEN`].
pub const TOKEN_FILE: &str = "token";
pub const TOKEN: &str = "Everything in this directory may be killed at any moment.\n";

/// The lab's variable is set for a process that is not in the lab.
#[derive(Debug, thiserror::Error)]
#[error("{} is not a lab for this process: {why}", .dir.display())]
pub struct Refused {
    dir: PathBuf,
    why: String,
}

pub(super) fn refused(dir: &Path, why: impl Display) -> Refused {
    Refused {
        dir: dir.to_owned(),
        why: why.to_string(),
    }
}

/// The resolved path of the lab's directory, if it is a lab and contains `inside`.
pub(super) fn open(dir: &Path, inside: &Path) -> Result<PathBuf, Refused> {
    let real = dir.canonicalize();
    let real = real.map_err(|error| refused(dir, error))?;
    match std::fs::read_to_string(real.join(TOKEN_FILE)) {
        Ok(text) if text == TOKEN => {}
        Ok(_) => return Err(refused(dir, "its token is wrong")),
        Err(error) => return Err(refused(dir, format_args!("no token: {error}"))),
    }
    let inside = real_path(inside).map_err(|error| refused(dir, error))?;
    match inside.starts_with(&real) {
        true => Ok(real),
        false => {
            let why = format!("{} is not inside it", inside.display());
            Err(refused(dir, why))
        }
    }
}

/// The resolved path; its last components need not exist.
fn real_path(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let up = |part: Component<'_>| part == Component::ParentDir;
    if path.components().any(up) {
        let what = format!("{} contains `..`", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let mut there = path.as_path();
    loop {
        match (there.canonicalize(), there.parent()) {
            (Ok(real), _) => {
                let rest = path.strip_prefix(there).unwrap_or(Path::new(""));
                return Ok(match rest.as_os_str().is_empty() {
                    true => real,
                    false => real.join(rest),
                });
            }
            (Err(error), Some(above)) if error.kind() == io::ErrorKind::NotFound => there = above,
            (Err(error), _) => return Err(error),
        }
    }
}
