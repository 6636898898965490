//! The layers of settings for a new agent: built in, the user's `config.toml`, the project's trusted `.agentd/config.toml`,
//! the agent file, the command line. Later layers take precedence; a project only narrows.

use crate::connect;
use crate::error::{Error, Exit};
use crate::home;
use crate::output::Output;
use crate::providers;
use agentd_core::catalog::Catalog;
use agentd_core::spec::Sandbox;
use agentd_daemon::confine;
use agentd_daemon::layout::Layout;
use agentd_daemon::project;
use agentd_daemon::project::claude;
use agentd_daemon::project::settings::{self, SettingsFile, State};
use agentd_failpoint as failpoint;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The layers below the agent file, for one working directory.
pub struct Layers {
    /// The user's catalog, narrowed by the project.
    pub catalog: Catalog,
    /// The files of the project, also those that do not count.
    pub files: Vec<SettingsFile>,
    /// Files of the project for another program that would restrict agents, and that are not trusted as they are.
    pub foreign: Vec<PathBuf>,
    /// The sandbox of new agents without a setting; none if the built-in default applies.
    pub level: Option<Sandbox>,
}

/// The keys that the layers above the project set, as in an agent file, with dots for nesting.
#[derive(Clone, Debug, Default)]
pub struct Given {
    pub file: BTreeSet<String>,
    pub flags: BTreeSet<String>,
}

impl Given {
    pub fn all(&self) -> BTreeSet<String> {
        self.file.union(&self.flags).cloned().collect()
    }
}

/// The sandbox that the environment of this program names.
pub fn sandbox_of_environment() -> Option<Sandbox> {
    let level = std::env::var(confine::VARIABLE).ok()?;
    serde_json::from_value(level.into()).ok()
}

/// The sandbox of new agents without a setting. It is that of the daemon; if none runs, the one that this program starts
/// gets its environment. Full access in the environment of this program is stored in each new agent.
async fn default_level() -> Option<Sandbox> {
    let own = sandbox_of_environment();
    if own == Some(Sandbox::FullAccess) {
        return own;
    }
    let client = connect::client_of_any().ok()?;
    client.daemon().await.map_or(own, |daemon| daemon.sandbox)
}

/// The layers for an agent in this working directory. A trusted file that would widen the user's settings, or that has
/// changed since, is an error: the user would believe that it narrows them.
pub async fn of(user: &Catalog, cwd: &Path) -> Result<Layers, Error> {
    let layout = Layout::new(home::dir()?);
    let files = settings::find(&layout, cwd);
    let of_user = providers::variable("HOME").map(PathBuf::from);
    let foreign = claude::untrusted(&layout, cwd, of_user.as_deref());
    let level = default_level().await;
    let mut catalog = user.clone();
    for file in &files {
        catalog = match &file.state {
            State::Trusted(_) | State::Invalid(_) if failpoint::injected_bug("settings_widen") => {
                as_the_user(&catalog, file)
            }
            State::Trusted(of_project) => catalog
                .narrowed(of_project, level)
                .map_err(|error| refused(file, &error))?,
            State::Invalid(error) => return Err(refused(file, error)),
            State::Changed => return Err(changed(file, "have changed")),
            State::Gone => return Err(changed(file, "are gone")),
            State::NotTrusted | State::Unreadable(_) => catalog,
        };
    }
    Ok(Layers {
        catalog,
        files,
        foreign,
        level,
    })
}

impl Layers {
    /// Says which files of the project do not count.
    pub fn tell_ignored(&self, out: &mut Output) -> Result<(), Error> {
        for file in &self.files {
            let (path, dir) = (file.path(), file.dir.display());
            match &file.state {
                State::NotTrusted => out.aside(format_args!(
                    "{} is ignored, because you have not trusted it: read it, then `agentd trust {dir}`",
                    path.display()
                ))?,
                State::Unreadable(why) => {
                    out.aside(format_args!("{} is ignored: {why}", path.display()))?;
                }
                State::Trusted(_) | State::Invalid(_) | State::Changed | State::Gone => {}
            }
        }
        for path in &self.foreign {
            out.aside(format_args!(
                "{} is not used: it denies calls or has hooks, and you have not trusted it as it is; read it, then `agentd trust`",
                path.display()
            ))?;
        }
        Ok(())
    }
}

fn changed(file: &SettingsFile, what: &str) -> Error {
    let dir = file.dir.display();
    let text = format!("the settings of the project {dir} {what} since you trusted them");
    Error::new(Exit::Refused, text).next(format!(
        "read {}, then `agentd trust {dir}`, or `agentd untrust {dir}`",
        file.path().display()
    ))
}

/// The injected bug: the project's file counts as the user's own.
fn as_the_user(catalog: &Catalog, file: &SettingsFile) -> Catalog {
    let mut wider = catalog.clone();
    let bytes = project::read(&file.dir, Path::new(settings::BELOW)).unwrap_or_default();
    let _unusable = wider.extend(&String::from_utf8_lossy(&bytes), settings::BELOW);
    wider
}

fn refused(file: &SettingsFile, error: &agentd_core::catalog::Error) -> Error {
    let dir = file.dir.display();
    Error::new(
        Exit::Refused,
        format!("the settings of the project {dir} cannot be used"),
    )
    .because(error)
    .next(format!(
        "correct {}, or `agentd untrust {dir}`",
        file.path().display()
    ))
}
