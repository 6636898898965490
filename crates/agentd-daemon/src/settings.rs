//! The settings of a daemon.

use crate::service::Service;
use agentd_client::api::Env;
use agentd_core::catalog::Catalog;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Reads the user's settings again. The error is a text for the user.
pub type Reload = fn() -> Result<Catalog, String>;

#[derive(Clone, Debug)]
pub struct Settings {
    /// The state directory.
    pub home: PathBuf,
    /// The program that runs an agent, with `runtime` as its first argument: this program itself.
    pub program: PathBuf,
    /// How long a runtime continues without a daemon.
    pub orphan: Duration,
    /// The environment variables of agents for which no client has sent any.
    pub env: Env,
    /// The user's settings, and the providers and models.
    pub catalog: Catalog,
    pub reload: Reload,
    /// The service manager that started the daemon.
    pub service: Service,
    /// The backups that the daemon makes by itself; none if the user's file has no section about them.
    pub backups: Option<ScheduledBackups>,
    /// The environment of a runtime process. It never contains a key.
    pub runtime_env: Vec<(OsString, OsString)>,
    /// The environment of `notify-send`: how it finds the user's screen.
    pub desktop_env: Vec<(OsString, OsString)>,
}

/// `[backup]` of the user's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledBackups {
    /// An absolute path.
    pub directory: PathBuf,
    pub every: Duration,
    /// How many backups are kept; older ones are deleted.
    pub keep: usize,
}
