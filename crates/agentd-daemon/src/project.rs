//! The files of a project that decide what agents do in it: hooks, settings, skills, agent files, MCP servers. They
//! come with a repository, and are used only after the user has trusted their content.

pub mod claude;
pub mod mcp;
pub mod settings;
pub mod skills;
pub mod trusted;

use crate::layout::Layout;
use agentd_core::hook::digest;
use agentd_failpoint as failpoint;
use agentd_files::foreign;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The largest project file, in bytes.
pub const LARGEST: u64 = 1024 * 1024;
/// How many project files there may be, and how deeply they may be nested.
const MOST: usize = 1000;
const DEEPEST: usize = 8;

/// Every file in this directory is a project file.
const DIR: &str = ".agentd";
/// The project files outside that directory.
const BESIDE: [&str; 1] = [".mcp.json"];

/// A project file with the digest of its present content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectFile {
    /// Relative to the project's directory.
    pub below: PathBuf,
    pub hash: String,
}

/// The working directory, and the directories above it up to the root of the repository.
pub fn dirs(cwd: &Path) -> Vec<&Path> {
    let is_root = |dir: &&Path| dir.join(".git").symlink_metadata().is_ok();
    let above = cwd.ancestors().position(|dir| is_root(&dir));
    cwd.ancestors().take(above.unwrap_or(0) + 1).collect()
}

/// Whether the project directory of this directory is the state directory, whose files are the user's own.
pub fn is_own(layout: &Layout, dir: &Path) -> bool {
    let own = std::fs::canonicalize(layout.home());
    own.is_ok_and(|own| own == dir.join(DIR))
}

/// All files of a project that decide what agents do, sorted by path. An error names the file that cannot be read.
pub fn files(project: &Path) -> io::Result<Vec<ProjectFile>> {
    let mut found = Vec::new();
    let beside = BESIDE.iter().map(PathBuf::from);
    found.extend(beside.filter(|below| project.join(below).symlink_metadata().is_ok()));
    collect(project, Path::new(DIR), 0, &mut found)?;
    found.extend(skills::files(project));
    found.extend(claude::files(project));
    found.sort();
    let hashed = found.into_iter().map(|below| {
        let bytes = read(project, &below).map_err(|error| named(&below, &error))?;
        let hash = digest(&[&bytes]);
        Ok(ProjectFile { below, hash })
    });
    hashed.collect()
}

/// Whether a path names a file of this project, whether it exists or not. Files of a project further down do not count.
pub fn is_file_of(project: &Path, path: &Path) -> bool {
    path.strip_prefix(project).is_ok_and(|below| {
        let is_beside = BESIDE.iter().any(|name| below == Path::new(name));
        is_beside || below.starts_with(DIR) || skills::is_file(below) || claude::is_file(below)
    })
}

fn named(below: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", below.display()))
}

fn collect(project: &Path, dir: &Path, depth: usize, into: &mut Vec<PathBuf>) -> io::Result<()> {
    let too_much = |what: &str| Err(named(dir, &io::Error::other(what)));
    if depth > DEEPEST {
        return too_much("the directory is nested too deeply");
    }
    let at = project.join(dir);
    match at.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(named(dir, &error)),
        Ok(about) if !about.is_dir() => return too_much("it is not a directory"),
        Ok(_) => {}
    }
    for entry in std::fs::read_dir(&at).map_err(|error| named(dir, &error))? {
        let entry = entry.map_err(|error| named(dir, &error))?;
        let below = dir.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            collect(project, &below, depth + 1, into)?;
        } else {
            // A link, a pipe or a device is an error when it is read.
            into.push(below);
        }
        if into.len() > MOST {
            return too_much("the project has too many files");
        }
    }
    Ok(())
}

/// The content of a regular file that is reached without a symbolic link. A pipe or a device is an error, and does not
/// block.
pub fn read(project: &Path, below: &Path) -> io::Result<Vec<u8>> {
    if failpoint::injected_bug("links_followed") {
        let mut bytes = Vec::new();
        let file = File::open(project.join(below))?;
        file.take(LARGEST * 256).read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    Ok(foreign::read_below(project, below, LARGEST)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn every_file_counts_and_no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path();
        assert_eq!(files(at).unwrap(), []);
        fs::create_dir_all(at.join(".agentd/skills/a")).unwrap();
        fs::write(at.join(".agentd/hooks.json"), "{}").unwrap();
        fs::write(at.join(".agentd/skills/a/b"), [0, 255]).unwrap();
        fs::write(at.join(".mcp.json"), "{}").unwrap();
        let found = files(at).unwrap();
        let names: Vec<&str> = found
            .iter()
            .filter_map(|file| file.below.to_str())
            .collect();
        assert_eq!(
            names,
            [".agentd/hooks.json", ".agentd/skills/a/b", ".mcp.json"]
        );
        assert_eq!(found[0].hash, found[2].hash);
        std::os::unix::fs::symlink("/etc/passwd", at.join(".agentd/link")).unwrap();
        let error = files(at).unwrap_err().to_string();
        assert!(
            error.contains(".agentd/link") && error.contains("symbolic link"),
            "{error}"
        );
        fs::remove_file(at.join(".agentd/link")).unwrap();
        let large = fs::File::create(at.join(".agentd/large")).unwrap();
        large.set_len(LARGEST + 1).unwrap();
        assert!(files(at).unwrap_err().to_string().contains("too large"));
    }
}
