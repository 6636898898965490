//! The settings that a project adds to those of the user: `.agentd/config.toml` in the root of the project and in the
//! directories below it down to the working directory. A file counts once the user has trusted its content.

use super::trusted::Trusted;
use crate::layout::Layout;
use agentd_core::catalog::{Error, ProjectSettings};
use agentd_core::hook::digest;
use agentd_core::spec::Rule;
use agentd_failpoint as failpoint;
use std::io;
use std::path::{Path, PathBuf};

pub const BELOW: &str = ".agentd/config.toml";

/// A project's file of settings, and whether it counts.
#[derive(Clone, Debug)]
pub struct SettingsFile {
    /// The directory that the user trusts or does not trust.
    pub dir: PathBuf,
    pub state: State,
}

#[derive(Clone, Debug)]
pub enum State {
    Trusted(Box<ProjectSettings>),
    /// The user has never trusted it.
    NotTrusted,
    /// The user has trusted another content: it has changed since, or cannot be read any more.
    Changed,
    /// The user has trusted it, and it does not exist any more.
    Gone,
    /// It is trusted, but not valid: an earlier version accepted it, perhaps.
    Invalid(Error),
    /// A link, a device, a file that is too large, or one without permission.
    Unreadable(String),
}

impl SettingsFile {
    pub fn path(&self) -> PathBuf {
        self.dir.join(BELOW)
    }
}

/// The files of settings for this working directory, from the root of the project down.
pub fn find(layout: &Layout, cwd: &Path) -> Vec<SettingsFile> {
    let Ok(cwd) = std::fs::canonicalize(cwd) else {
        return Vec::new();
    };
    let trusted = trusted(layout);
    let mut found = Vec::new();
    let of_project = super::dirs(&cwd);
    // A `.git` that a tool made below a project must not cut off what the user trusted above it.
    let counts = |dir: &Path| {
        let file = dir.join(BELOW);
        of_project.contains(&dir) || trusted.contains_key(&*file.to_string_lossy())
    };
    let all: Vec<&Path> = cwd.ancestors().filter(|dir| counts(dir)).collect();
    for dir in all.into_iter().rev() {
        // The state directory may be called `.agentd`: its file has the user's own settings.
        if super::is_own(layout, dir) {
            continue;
        }
        let trusted = trusted.get(&*dir.join(BELOW).to_string_lossy());
        let state = match super::read(dir, Path::new(BELOW)) {
            Ok(bytes) => state(&bytes, trusted.map(String::as_str)),
            Err(error) if is_missing(&error) => match trusted {
                Some(_) => State::Gone,
                None => continue,
            },
            Err(_) if trusted.is_some() => State::Changed,
            Err(error) => State::Unreadable(error.to_string()),
        };
        let dir = dir.to_owned();
        found.push(SettingsFile { dir, state });
    }
    found
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn trusted(layout: &Layout) -> Trusted {
    super::trusted::read(layout).unwrap_or_else(|error| {
        tracing::warn!(%error, "list of trusted files cannot be read: no file is trusted");
        Trusted::new()
    })
}

/// The state of a file with this content, of which the user has trusted the content with this digest.
fn state(bytes: &[u8], trusted: Option<&str>) -> State {
    let is_checked = !failpoint::injected_bug("settings_untrusted");
    match trusted {
        None if is_checked => return State::NotTrusted,
        Some(hash) if is_checked && hash != digest(&[bytes]) => return State::Changed,
        _ => {}
    }
    match parse(bytes) {
        Ok(settings) => State::Trusted(Box::new(settings)),
        Err(error) => State::Invalid(error),
    }
}

/// The rules that projects add to those of an agent in this working directory.
pub fn rules(layout: &Layout, cwd: &Path) -> Vec<Rule> {
    let mut rules = Vec::new();
    for file in find(layout, cwd) {
        let path = file.path();
        match file.state {
            State::Trusted(settings) => rules.extend_from_slice(settings.rules()),
            State::NotTrusted => {
                tracing::info!(path = %path.display(), "project settings ignored: not trusted");
            }
            State::Changed | State::Gone => {
                tracing::warn!(path = %path.display(), "project settings ignored: changed since they were trusted");
            }
            State::Invalid(error) => {
                tracing::error!(path = %path.display(), %error, "project settings ignored: not valid");
            }
            State::Unreadable(error) => {
                tracing::warn!(path = %path.display(), %error, "project settings ignored: not readable");
            }
        }
    }
    rules
}

/// The settings in a project's file, or what is wrong with it.
pub fn parse(bytes: &[u8]) -> Result<ProjectSettings, Error> {
    ProjectSettings::parse(&String::from_utf8_lossy(bytes), BELOW)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::trusted;
    use std::fs;

    fn write(dir: &Path, text: &str) {
        fs::create_dir_all(dir.join(".agentd")).unwrap();
        fs::write(dir.join(BELOW), text).unwrap();
    }

    fn trust(layout: &Layout, dirs: &[&Path]) {
        let all = dirs.iter().map(|dir| {
            let path = dir.join(BELOW);
            let hash = digest(&[&fs::read(&path).unwrap()]);
            (path.display().to_string(), hash)
        });
        trusted::write(layout, &all.collect()).unwrap();
    }

    /// An agent in a subdirectory can make a repository there.
    #[test]
    fn a_repository_below_a_project_does_not_cut_off_its_trusted_settings() {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout::new(home.path());
        let work = tempfile::tempdir().unwrap();
        let work = fs::canonicalize(work.path()).unwrap();
        let inner = work.join("pkg");
        fs::create_dir_all(work.join(".git")).unwrap();
        fs::create_dir_all(&inner).unwrap();
        write(&work, "[agents]\napproval = \"always\"\n");
        trust(&layout, &[&work]);
        let dirs = |cwd: &Path| {
            let found = find(&layout, cwd).into_iter();
            found.map(|file| file.dir).collect::<Vec<_>>()
        };
        assert_eq!(dirs(&inner), [work.clone()]);
        fs::create_dir_all(inner.join(".git")).unwrap();
        assert_eq!(dirs(&inner), [work.clone()]);
        // What the user did not trust ends at the root of the repository, as before.
        trusted::write(&layout, &trusted::Trusted::new()).unwrap();
        assert_eq!(dirs(&inner), [] as [PathBuf; 0]);
    }

    #[test]
    fn the_state_directory_is_no_project() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        write(&home, "[agents]\nprovider = \"demo\"\n");
        let elsewhere = Layout::new(home.join("state"));
        elsewhere.make().unwrap();
        assert_eq!(find(&elsewhere, &home).len(), 1);
        let own = Layout::new(home.join(".agentd"));
        own.make().unwrap();
        assert!(find(&own, &home).is_empty());
    }

    #[test]
    fn files_from_the_root_down_count_once_they_are_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let layout = Layout::new(root.join("state"));
        layout.make().unwrap();
        let work = root.join("work");
        let inner = work.join("a/b");
        fs::create_dir_all(work.join(".git")).unwrap();
        fs::create_dir_all(&inner).unwrap();
        // Above the project.
        write(&root, "[agents]\nsandbox = \"read-only\"\n");
        write(&work, "[agents]\napproval = \"always\"\n");
        write(&inner, "[agents]\nverbosity = \"low\"\n");
        let found = find(&layout, &inner);
        let dirs: Vec<&Path> = found.iter().map(|file| file.dir.as_path()).collect();
        assert_eq!(dirs, [work.as_path(), inner.as_path()]);
        let is_untrusted = |file: &SettingsFile| matches!(file.state, State::NotTrusted);
        assert!(found.iter().all(is_untrusted));
        trust(&layout, &[&work, &inner]);
        let found = find(&layout, &inner);
        let is_trusted = |file: &SettingsFile| matches!(file.state, State::Trusted(_));
        assert!(found.iter().all(is_trusted), "{found:?}");
        // Another content needs another decision, and a file that is gone is noticed.
        write(&work, "[agents]\napproval = \"never\"\n");
        assert!(matches!(find(&layout, &inner)[0].state, State::Changed));
        fs::remove_file(work.join(BELOW)).unwrap();
        assert!(matches!(find(&layout, &inner)[0].state, State::Gone));
    }

    #[test]
    fn a_link_is_not_followed_and_a_forbidden_key_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let layout = Layout::new(root.join("state"));
        layout.make().unwrap();
        let work = root.join("work");
        write(&work, "[agents]\npass_env = [\"TOKEN\"]\n");
        trust(&layout, &[&work]);
        let found = find(&layout, &work);
        let State::Invalid(error) = &found[0].state else {
            panic!("{found:?}");
        };
        assert!(error.to_string().contains("`agents.pass_env`"), "{error}");
        fs::remove_file(work.join(BELOW)).unwrap();
        trusted::write(&layout, &Trusted::new()).unwrap();
        assert!(find(&layout, &work).is_empty());
        fs::write(root.join("other"), "[agents]\n").unwrap();
        std::os::unix::fs::symlink(root.join("other"), work.join(BELOW)).unwrap();
        let found = find(&layout, &work);
        assert!(matches!(&found[0].state, State::Unreadable(why) if why.contains("symbolic link")));
    }
}
