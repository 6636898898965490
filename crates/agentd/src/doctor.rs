//! What `agentd doctor` looks at. Each check returns findings, and each finding that needs the user says what to do.
//!
//! - `files`: the state directory: its owner, permissions, disk space, growth and times.
//! - `running`: the daemon: whether it answers, and whether it is of this build.
//! - `service`: systemd, lingering and cron.
//! - `keys`: providers whose key an agent could not find by itself.
//! - `hooks`: hooks that do not run, or that failed when they last ran.
//! - `agents`: leftover directories, processes without a daemon or of another build, leftover cgroups.
//! - `tasks`: directories that are left of tasks.
//! - `schedules`: those that cannot run; `webhooks`: destinations that get no messages.

mod agents;
mod files;
mod hooks;
mod keys;
mod running;
mod schedules;
mod service;
mod tasks;
mod webhooks;

use crate::error::Error;
use crate::home;
use agentd_daemon::layout::Layout;
use serde::Serialize;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Ok,
    /// Works, but may not be what the user wants.
    Warning,
    /// Does not work.
    Problem,
}

#[derive(Debug, Serialize)]
pub struct Finding {
    pub area: &'static str,
    pub level: Level,
    /// What was found.
    pub what: String,
    /// What to do about it.
    pub fix: Option<String>,
    /// Whether `--fix` has done it.
    pub fixed: bool,
    #[serde(skip)]
    pub safe: Option<SafeFix>,
}

/// What `--fix` may do without asking: nothing of it deletes anything that was written by an agent or a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SafeFix {
    CloseToOthers {
        path: PathBuf,
        mode: u32,
    },
    RemoveCgroups,
    /// Directories of tasks without a process, an output or an end.
    RemoveTasks {
        dirs: Vec<PathBuf>,
    },
}

impl Finding {
    fn ok(area: &'static str, what: impl Into<String>) -> Self {
        Self {
            area,
            level: Level::Ok,
            what: what.into(),
            fix: None,
            fixed: false,
            safe: None,
        }
    }

    fn warning(area: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            level: Level::Warning,
            fix: Some(fix.into()),
            ..Self::ok(area, what)
        }
    }

    fn problem(area: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            level: Level::Problem,
            ..Self::warning(area, what, fix)
        }
    }

    fn fixed_by(self, safe: SafeFix) -> Self {
        Self {
            safe: Some(safe),
            ..self
        }
    }
}

/// Every finding about the state directory and what belongs to it. Starts no daemon.
pub async fn all(layout: &Layout) -> Result<Vec<Finding>, Error> {
    let mut findings = files::look(layout);
    // Without a home, nothing else is there yet.
    if !layout.home().exists() || home::half_restored(layout.home()).is_some() {
        return Ok(findings);
    }
    let (of_daemon, daemon) = running::look(layout).await;
    findings.extend(of_daemon);
    findings.extend(service::look(layout, daemon.as_ref()));
    let keys = keys::Keys::read();
    findings.extend(keys::look(&keys, daemon.as_ref()).await);
    findings.extend(agents::look(layout, daemon.as_ref()).await?);
    findings.extend(schedules::look(layout, daemon.as_ref(), keys.as_ref().ok()).await?);
    findings.extend(webhooks::look(layout, daemon.as_ref()).await?);
    Ok(findings)
}

/// Does what is safe. A finding whose fix failed stays, with the reason.
pub fn fix(findings: &mut [Finding]) {
    for finding in findings {
        let Some(safe) = &finding.safe else { continue };
        match apply(safe) {
            Ok(()) => finding.fixed = true,
            Err(error) => finding.what = format!("{} (not fixed: {error})", finding.what),
        }
    }
}

fn apply(safe: &SafeFix) -> std::io::Result<()> {
    match safe {
        SafeFix::CloseToOthers { path, mode } => {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode))
        }
        SafeFix::RemoveCgroups => {
            agentd_process::remove_stale_cgroups();
            Ok(())
        }
        SafeFix::RemoveTasks { dirs } => tasks::remove(dirs),
    }
}
