//! The hooks files that concern an agent, and which of them may be used.

use super::trust;
use crate::daemon::Daemon;
use agentd_core::hook::{Config, Layer, digest};
use agentd_core::spec::AgentSpec;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

/// The most that a hooks file may hold.
const LARGEST: u64 = 1024 * 1024;

/// One layer, as it was read.
#[derive(Clone, Debug)]
pub struct Source {
    pub layer: Layer,
    /// None for an agent's own settings.
    pub path: Option<PathBuf>,
    /// Of its content.
    pub hash: Option<String>,
    pub is_trusted: bool,
    pub config: Config,
}

impl Source {
    pub fn usable(self) -> Option<(Layer, Config)> {
        self.is_trusted.then_some((self.layer, self.config))
    }
}

/// Where a project has its hooks.
pub fn project_file(cwd: &Path) -> PathBuf {
    cwd.join(".agentd").join("hooks.json")
}

/// All layers of an agent, in their order. What is passed over for want of trust is told once.
pub fn of_agent(daemon: &Daemon, spec: &AgentSpec, cwd: &Path) -> Vec<Source> {
    let mut sources = of_user(daemon);
    if !spec.hooks.is_null() {
        sources.push(Source {
            layer: Layer::Spec,
            path: None,
            hash: None,
            is_trusted: true,
            config: Config::of_spec(&spec.hooks),
        });
    }
    sources.extend(of_project(daemon, cwd));
    for source in sources.iter().filter(|source| !source.is_trusted) {
        tell_once(daemon, source);
    }
    sources
}

/// The user's own file.
pub fn of_user(daemon: &Daemon) -> Vec<Source> {
    let path = daemon.layout.user_hooks();
    let source = read(&path).map(|text| Source {
        layer: Layer::User,
        path: Some(path),
        hash: Some(digest(&[text.as_bytes()])),
        is_trusted: true,
        config: Config::parse(&text),
    });
    source.into_iter().collect()
}

/// The project's file, where there is one.
pub fn of_project(daemon: &Daemon, cwd: &Path) -> Option<Source> {
    let path = project_file(cwd);
    let text = read(&path)?;
    // One file has one name, whichever way leads to it.
    let path = std::fs::canonicalize(&path).unwrap_or(path);
    let hash = digest(&[text.as_bytes()]);
    Some(Source {
        layer: Layer::Project,
        is_trusted: trust::is_trusted(&daemon.layout, &path, &hash),
        path: Some(path),
        hash: Some(hash),
        config: Config::parse(&text),
    })
}

fn read(path: &Path) -> Option<String> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Ok(known) if known.len() <= LARGEST => {}
        Ok(_) => {
            tracing::warn!(path = %path.display(), "a hooks file is too large to be read");
            return None;
        }
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a hooks file cannot be read");
            return None;
        }
    }
    match std::fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a hooks file cannot be read");
            None
        }
    }
}

fn tell_once(daemon: &Daemon, source: &Source) {
    let Some(path) = &source.path else { return };
    let hash = source.hash.clone().unwrap_or_default();
    let mut told = daemon
        .hooks
        .told
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if told.insert(format!("{} {hash}", path.display())) {
        tracing::warn!(
            path = %path.display(),
            "hooks are passed over: nobody has trusted this file as it is (agentd hooks trust)"
        );
    }
}
