//! Who may be taken into the lab: nobody but those whose files are all in a directory that the lab has marked.

use std::fmt::Display;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Names the lab's directory in the environment of a process, and of all that it starts.
pub const VARIABLE: &str = "AGENTD_LAB";
/// The mark: a file of this name that holds [`TOKEN`].
pub const TOKEN_FILE: &str = "token";
pub const TOKEN: &str = "Everything in this directory may be killed at any moment.\n";

/// The lab's switches were set for a process that is not in the lab.
#[derive(Debug, thiserror::Error)]
#[error("{} is no lab for this process: {why}", .dir.display())]
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

/// The lab's directory as it is really called, where it is one and `inside` is in it.
pub(super) fn open(dir: &Path, inside: &Path) -> Result<PathBuf, Refused> {
    let real = dir.canonicalize();
    let real = real.map_err(|error| refused(dir, error))?;
    match std::fs::read_to_string(real.join(TOKEN_FILE)) {
        Ok(text) if text == TOKEN => {}
        Ok(_) => return Err(refused(dir, "its token is not the lab's")),
        Err(error) => return Err(refused(dir, format_args!("no token: {error}"))),
    }
    let inside = real_path(inside).map_err(|error| refused(dir, error))?;
    match inside.starts_with(&real) {
        true => Ok(real),
        false => {
            let why = format!("{} is not inside of it", inside.display());
            Err(refused(dir, why))
        }
    }
}

/// Where a path leads, though its end may not be there yet.
fn real_path(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let up = |part: Component<'_>| part == Component::ParentDir;
    if path.components().any(up) {
        let what = format!("{} has `..` in it", path.display());
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
