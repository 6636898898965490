//! The hooks files that concern an agent, and which of them may be used.

use crate::daemon::Daemon;
use crate::project;
use crate::trust;
use agentd_core::hook::{Config, Layer, digest};
use agentd_core::spec::AgentSpec;
use agentd_failpoint as failpoint;
use rustix::fs::{Mode, OFlags};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

/// A project's hooks file, in its directory.
const BELOW: &str = ".agentd/hooks.json";

/// One layer of hooks, as it was read.
#[derive(Clone, Debug)]
pub struct Source {
    pub layer: Layer,
    /// None for an agent's own settings.
    pub path: Option<PathBuf>,
    /// The digest of its content.
    pub hash: Option<String>,
    pub is_trusted: bool,
    pub config: Config,
}

impl Source {
    pub fn usable(self) -> Option<(Layer, Config)> {
        self.is_trusted.then_some((self.layer, self.config))
    }
}

/// The hooks file of a project.
pub fn project_file(cwd: &Path) -> PathBuf {
    cwd.join(BELOW)
}

/// All layers of an agent, in their order. A file that is ignored is logged once.
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
    for source in &sources {
        if !source.is_trusted {
            let what = "the user has not trusted its present content (agentd trust)";
            tell_once(daemon, source, what);
        } else if let Some(why) = source.config.why_unusable() {
            tell_once(daemon, source, why);
        }
    }
    sources
}

/// What is wrong with the first trusted source that cannot be used. It is unknown what its hooks would decide.
pub fn broken(sources: &[Source]) -> Option<String> {
    let trusted = sources.iter().filter(|source| source.is_trusted);
    let mut broken = trusted.filter_map(|source| {
        let why = source.config.why_unusable()?;
        let what = match &source.path {
            Some(path) => path.display().to_string(),
            None => "`hooks` of the agent's settings".to_owned(),
        };
        Some(format!("{what} cannot be used: {why}"))
    });
    broken.next()
}

/// The first source whose present content the user has not trusted.
pub fn untrusted(sources: &[Source]) -> Option<String> {
    let source = sources.iter().find(|source| !source.is_trusted)?;
    Some(source.path.as_ref()?.display().to_string())
}

/// The user's own file.
pub fn of_user(daemon: &Daemon) -> Vec<Source> {
    let path = daemon.layout.user_hooks();
    let source = read(|| of_users_own(&path)).map(|text| Source {
        layer: Layer::User,
        path: Some(path),
        hash: text.as_ref().ok().map(|text| digest(&[text.as_bytes()])),
        is_trusted: true,
        config: text.map_or_else(Config::unusable, |text| Config::parse(&text)),
    });
    source.into_iter().collect()
}

/// The project's file, if it exists.
pub fn of_project(daemon: &Daemon, cwd: &Path) -> Option<Source> {
    let path = project_file(cwd);
    let text = read(|| project::read(cwd, Path::new(BELOW)))?;
    // The canonical path: one file has one name, even if its project is reached through a symbolic link.
    let path = std::fs::canonicalize(cwd).map_or(path, |cwd| project_file(&cwd));
    let hash = text.as_ref().ok().map(|text| digest(&[text.as_bytes()]));
    let is_trusted = |hash: &String| trust::is_trusted(&daemon.layout, &path, hash);
    Some(Source {
        layer: Layer::Project,
        // A file that cannot be read has no digest, and is not trusted.
        is_trusted: hash.as_ref().is_some_and(is_trusted)
            || failpoint::injected_bug("hooks_untrusted"),
        path: Some(path),
        hash,
        config: text.map_or_else(Config::unusable, |text| Config::parse(&text)),
    })
}

/// The user's own file may be a symbolic link.
fn of_users_own(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    project::bounded(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// None if there is no file; an error if it cannot be read.
fn read(read: impl FnOnce() -> io::Result<Vec<u8>>) -> Option<Result<String, String>> {
    let text = read().and_then(|bytes| {
        String::from_utf8(bytes).map_err(|_| io::Error::other("it is not valid UTF-8"))
    });
    match text {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        text => Some(text.map_err(|error| error.to_string())),
    }
}

fn tell_once(daemon: &Daemon, source: &Source, why: &str) {
    let Some(path) = &source.path else { return };
    let hash = source.hash.clone().unwrap_or_default();
    let mut told = daemon
        .hooks
        .told
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if told.insert(format!("{} {hash}", path.display())) {
        tracing::warn!(path = %path.display(), why, "hooks file ignored");
    }
}
