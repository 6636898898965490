//! The files of a project for Claude Code of which agentd uses a part: `.claude/settings.json` (denials and hooks) and the
//! subagents in `.claude/agents`. They count once the user has trusted their content.

use super::trusted::{self, Trusted};
use crate::layout::Layout;
use agentd_core::foreign_agent;
use agentd_core::foreign_rule::RuleDirs;
use agentd_core::foreign_settings::ForeignSettings;
use agentd_core::hook::digest;
use agentd_core::spec::{Rule, Subagent};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

pub const SETTINGS: &str = ".claude/settings.json";
const AGENTS: &str = ".claude/agents";
/// How many kinds of subagents a project has.
const MOST_AGENTS: usize = 64;

/// The files that can be read, relative to the project. One that is a link, or that cannot be read, is named by [`unused`].
pub fn files(project: &Path) -> Vec<PathBuf> {
    let all = all(project).into_iter();
    all.filter(|below| super::read(project, below).is_ok())
        .collect()
}

/// Whether a path relative to a project is that of such a file, whether it exists or not.
pub fn is_file(below: &Path) -> bool {
    let is_agent = below.parent() == Some(Path::new(AGENTS)) && is_markdown(below);
    is_agent || below == Path::new(SETTINGS)
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "md")
}

fn all(project: &Path) -> Vec<PathBuf> {
    let settings = Path::new(SETTINGS).to_owned();
    let exists = project.join(&settings).symlink_metadata().is_ok();
    let entries = std::fs::read_dir(project.join(AGENTS))
        .into_iter()
        .flatten();
    let agents = entries
        .flatten()
        .map(|entry| Path::new(AGENTS).join(entry.file_name()));
    let mut agents: Vec<PathBuf> = agents
        .filter(|below| is_markdown(below))
        .take(super::MOST)
        .collect();
    agents.sort();
    exists
        .then_some(settings)
        .into_iter()
        .chain(agents)
        .collect()
}

/// What the files contain that agentd does not use, by file.
pub fn unused(project: &Path, home: Option<&Path>) -> Vec<String> {
    let mut unused = Vec::new();
    for below in all(project) {
        let name = below.display();
        let bytes = match super::read(project, &below) {
            Ok(bytes) => bytes,
            Err(error) => {
                unused.push(format!("{name}: not used: {error}"));
                continue;
            }
        };
        if below == Path::new(SETTINGS) {
            // That a file is not valid is said when it is to be trusted.
            let found = parse(&bytes, project, home).map(|found| found.unused);
            let found = found.unwrap_or_default().into_iter();
            unused.extend(found.map(|line| format!("{name}: {line}")));
        } else if let Err(error) = agent(&below, &bytes) {
            unused.push(format!("{name}: not used: {error}"));
        }
    }
    unused
}

/// The settings in a project's file, or what is wrong with it.
pub fn parse(
    bytes: &[u8],
    dir: &Path,
    home: Option<&Path>,
) -> Result<ForeignSettings, serde_json::Error> {
    let (dir, home) = (dir.to_string_lossy(), home.map(Path::to_string_lossy));
    let dirs = RuleDirs {
        dir: &dir,
        home: home.as_deref(),
    };
    ForeignSettings::parse(&String::from_utf8_lossy(bytes), dirs)
}

/// The denials for an agent in this working directory, of trusted files.
pub fn rules(layout: &Layout, cwd: &Path, home: Option<&Path>) -> Vec<Rule> {
    let mut rules = Vec::new();
    for file in settings(layout, cwd, home) {
        let path = file.dir.join(SETTINGS);
        match (file.found, file.is_trusted) {
            (Ok(found), true) => rules.extend(found.rules),
            (Ok(_), false) => {
                tracing::info!(path = %path.display(), "project settings ignored: not trusted");
            }
            (Err(error), _) => {
                tracing::warn!(path = %path.display(), %error, "project settings ignored: not valid");
            }
        }
    }
    rules
}

/// The files of settings that would restrict an agent in this working directory, and that are not trusted as they are.
pub fn untrusted(layout: &Layout, cwd: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let files = settings(layout, cwd, home).into_iter();
    let is_of_use = |file: &SettingsFile| file.found.as_ref().is_ok_and(ForeignSettings::is_of_use);
    let files = files.filter(|file| !file.is_trusted && (file.was_trusted || is_of_use(file)));
    files.map(|file| file.dir.join(SETTINGS)).collect()
}

struct SettingsFile {
    dir: PathBuf,
    /// With its present content.
    is_trusted: bool,
    /// With some content.
    was_trusted: bool,
    found: Result<ForeignSettings, String>,
}

/// The files of settings for this working directory, from the root of the project down.
fn settings(layout: &Layout, cwd: &Path, home: Option<&Path>) -> Vec<SettingsFile> {
    let Ok(cwd) = std::fs::canonicalize(cwd) else {
        return Vec::new();
    };
    let trusted = trusted_files(layout);
    let of_project = super::dirs(&cwd);
    let hash_of = |dir: &Path| trusted.get(&*dir.join(SETTINGS).to_string_lossy());
    // A `.git` that a tool made below a project must not cut off what the user trusted above it.
    let counts = |dir: &&Path| of_project.contains(dir) || hash_of(dir).is_some();
    let dirs: Vec<&Path> = cwd.ancestors().filter(counts).collect();
    let found = dirs.into_iter().rev().filter_map(|dir| {
        let read = super::read(dir, Path::new(SETTINGS));
        let hash = hash_of(dir);
        if read.as_ref().is_err_and(is_missing) && hash.is_none() {
            return None;
        }
        let is_trusted = read
            .as_ref()
            .is_ok_and(|bytes| hash == Some(&digest(&[bytes])));
        let parsed = read
            .map_err(|error| error.to_string())
            .and_then(|bytes| parse(&bytes, dir, home).map_err(|error| error.to_string()));
        Some(SettingsFile {
            dir: dir.to_owned(),
            is_trusted,
            was_trusted: hash.is_some(),
            found: parsed,
        })
    });
    found.collect()
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn trusted_files(layout: &Layout) -> Trusted {
    trusted::read(layout).unwrap_or_else(|error| {
        tracing::warn!(%error, "list of trusted files cannot be read: no file is trusted");
        Trusted::new()
    })
}

/// The kinds of subagents of trusted files for an agent in this working directory. A file further down takes precedence.
pub fn agents(layout: &Layout, cwd: &Path) -> BTreeMap<String, Subagent> {
    let mut found = BTreeMap::new();
    let Ok(cwd) = std::fs::canonicalize(cwd) else {
        return found;
    };
    let trusted = trusted_files(layout);
    for project in super::dirs(&cwd).into_iter().rev() {
        let files = all(project).into_iter();
        for below in files.filter(|below| below != Path::new(SETTINGS)) {
            let path = project.join(&below);
            let Ok(bytes) = super::read(project, &below) else {
                continue;
            };
            if trusted.get(&*path.to_string_lossy()) != Some(&digest(&[&bytes])) {
                tracing::info!(path = %path.display(), "subagent ignored: not trusted");
                continue;
            }
            match agent(&below, &bytes) {
                Ok((name, kind)) if found.len() < MOST_AGENTS => {
                    found.insert(name, kind);
                }
                Ok(_) => {
                    tracing::warn!(path = %path.display(), "subagent ignored: there are too many");
                }
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "subagent ignored: not valid");
                }
            }
        }
    }
    found
}

fn agent(below: &Path, bytes: &[u8]) -> Result<(String, Subagent), foreign_agent::Error> {
    let stem = below.file_stem().unwrap_or_default().to_string_lossy();
    foreign_agent::parse(&String::from_utf8_lossy(bytes), &stem)
}

#[cfg(test)]
mod tests;
