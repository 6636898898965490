//! The hooks files of an agent, and which of them may be used.

use crate::daemon::Daemon;
use crate::layout::Layout;
use crate::project;
use crate::project::claude;
use crate::project::trusted::is_trusted;
use crate::spawn::blocking;
use crate::users_own;
use agentd_core::hook::{Config, Layer, digest};
use agentd_core::spec::AgentSpec;
use agentd_failpoint as failpoint;
use serde_json::Value;
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
    fn name(&self) -> String {
        match &self.path {
            Some(path) => path.display().to_string(),
            None => "`hooks` of the agent's settings".to_owned(),
        }
    }

    fn usable(self) -> Option<(Layer, Config)> {
        self.is_trusted.then_some((self.layer, self.config))
    }
}

/// The hooks file of a project.
fn project_file(cwd: &Path) -> PathBuf {
    cwd.join(BELOW)
}

/// The hooks files of an agent, as they were read, and the directory in which its hooks run.
pub struct Sources {
    pub cwd: PathBuf,
    /// In the order of their layers.
    pub all: Vec<Source>,
}

impl Sources {
    /// The hooks of the trusted sources, by layer.
    pub fn usable(self) -> Vec<(Layer, Config)> {
        self.all.into_iter().filter_map(Source::usable).collect()
    }

    /// What is wrong with the first trusted source that cannot be used: what its hooks would decide is unknown.
    pub fn broken(&self) -> Option<String> {
        let trusted = self.all.iter().filter(|source| source.is_trusted);
        let mut broken = trusted.filter_map(|source| {
            let why = source.config.why_unusable()?;
            Some(format!("{} cannot be used: {why}", source.name()))
        });
        broken.next()
    }

    /// The first hook of a trusted source that does not run, although the rest of the source is used.
    pub fn ignored(&self) -> Option<String> {
        let trusted = self.all.iter().filter(|source| source.is_trusted);
        let mut ignored = trusted.filter_map(|source| {
            let why = source.config.why_ignored()?;
            Some(format!("{}: {why}", source.name()))
        });
        ignored.next()
    }

    /// The first source whose present content the user has not trusted.
    pub fn untrusted(&self) -> Option<String> {
        let source = self.all.iter().find(|source| !source.is_trusted)?;
        Some(source.path.as_ref()?.display().to_string())
    }
}

/// Reads the hooks files of an agent with these settings. A file that is ignored is logged once.
pub async fn of_agent(daemon: &Daemon, spec: &AgentSpec) -> Sources {
    of(daemon, &spec.hooks, spec.cwd.as_deref()).await
}

/// The hooks of the user, of these settings, and of the project in this directory.
pub async fn of(daemon: &Daemon, hooks: &Value, cwd: Option<&str>) -> Sources {
    let (layout, hooks) = (daemon.layout.clone(), hooks.clone());
    let cwd = cwd.map(PathBuf::from);
    let sources = blocking(move || read_all(&layout, &hooks, cwd)).await;
    for source in &sources.all {
        if !source.is_trusted {
            let what = "the user has not trusted its present content (agentd trust)";
            tell_once(daemon, source, |path| {
                tracing::warn!(path, why = what, "hooks file ignored");
            });
        } else if let Some(why) = source.config.why_unusable() {
            tell_once(daemon, source, |path| {
                tracing::warn!(path, why, "hooks file ignored");
            });
        } else if let Some(why) = source.config.why_ignored() {
            tell_once(daemon, source, |path| {
                tracing::warn!(path, why, "hook ignored")
            });
        }
    }
    sources
}

/// Reads the user's own hooks.
pub async fn of_user(daemon: &Daemon) -> Sources {
    let layout = daemon.layout.clone();
    blocking(move || Sources {
        cwd: layout.home().to_owned(),
        all: user_source(&layout).into_iter().collect(),
    })
    .await
}

fn read_all(layout: &Layout, hooks: &Value, cwd: Option<PathBuf>) -> Sources {
    // The state directory if the agent's directory does not exist.
    let cwd = cwd.filter(|cwd| cwd.is_dir());
    let cwd = cwd.unwrap_or_else(|| layout.home().to_owned());
    let spec = (!hooks.is_null()).then(|| Source {
        layer: Layer::Spec,
        path: None,
        hash: None,
        is_trusted: true,
        config: Config::of_spec(hooks),
    });
    let all = user_source(layout).into_iter().chain(spec);
    let all = all.chain(project_source(layout, &cwd));
    let all = all.chain(foreign_source(layout, &cwd)).collect();
    Sources { cwd, all }
}

/// The user's own file.
fn user_source(layout: &Layout) -> Option<Source> {
    let path = layout.user_hooks();
    read(|| users_own::read(&path)).map(|text| Source {
        layer: Layer::User,
        path: Some(path),
        hash: text.as_ref().ok().map(|text| digest(&[text.as_bytes()])),
        is_trusted: true,
        config: text.map_or_else(Config::unusable, |text| Config::parse(&text)),
    })
}

/// The hooks in the project's settings for another program, if it has any. They are hooks of the project: they run in the
/// sandbox, and cannot approve a call.
fn foreign_source(layout: &Layout, cwd: &Path) -> Option<Source> {
    let cwd = std::fs::canonicalize(cwd).ok()?;
    let text = read(|| project::read(&cwd, Path::new(claude::SETTINGS)))?;
    let path = cwd.join(claude::SETTINGS);
    let hash = text.as_ref().ok().map(|text| digest(&[text.as_bytes()]));
    let is_trusted = hash
        .as_ref()
        .is_some_and(|hash| is_trusted(layout, &path, hash));
    let config = text.map_or_else(Config::unusable, |text| Config::of_settings(&text));
    if !is_trusted && config.groups.is_empty() {
        // There is nothing to trust, as far as hooks go.
        return None;
    }
    Some(Source {
        layer: Layer::Project,
        is_trusted,
        path: Some(path),
        hash,
        config,
    })
}

/// The project's file, if it exists.
fn project_source(layout: &Layout, cwd: &Path) -> Option<Source> {
    let own = std::fs::canonicalize(cwd);
    if own.is_ok_and(|cwd| project::is_own(layout, &cwd)) {
        // It is the user's own file, which counts already.
        return None;
    }
    let path = project_file(cwd);
    let text = read(|| project::read(cwd, Path::new(BELOW)))?;
    // The canonical path: one file has one name, even if its project is reached through a symbolic link.
    let path = std::fs::canonicalize(cwd).map_or(path, |cwd| project_file(&cwd));
    let hash = text.as_ref().ok().map(|text| digest(&[text.as_bytes()]));
    let is_known = |hash: &String| is_trusted(layout, &path, hash);
    Some(Source {
        layer: Layer::Project,
        // A file that cannot be read has no digest, and is not trusted.
        is_trusted: hash.as_ref().is_some_and(is_known)
            || failpoint::injected_bug("hooks_untrusted"),
        path: Some(path),
        hash,
        config: text.map_or_else(Config::unusable, |text| Config::parse(&text)),
    })
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

fn tell_once(daemon: &Daemon, source: &Source, tell: impl FnOnce(&str)) {
    let Some(path) = &source.path else { return };
    let hash = source.hash.clone().unwrap_or_default();
    let mut told = daemon
        .hooks
        .told
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let path = path.display().to_string();
    if told.insert(format!("{path} {hash}")) {
        tell(&path);
    }
}
