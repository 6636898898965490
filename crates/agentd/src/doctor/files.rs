//! The state directory: its owner, permissions, disk space, growth and times.

use super::{Finding, SafeFix};
use crate::home;
use agentd_daemon::layout::Layout;
use agentd_store::{Checked, Disk, Options, SqliteStore};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

const MEGABYTE: u64 = 1_000_000;
/// A write-ahead log of this size shows that no checkpoint is made.
const LARGE_WAL: u64 = 500 * MEGABYTE;
const DAY: Duration = Duration::from_secs(86_400);
/// Below this many days until the disk is full, the growth is a warning.
const SOON: u64 = 30;
/// How long the check of the journal's file may take.
const CHECK: Duration = Duration::from_secs(3);
/// A file may be this much newer than the clock: file systems round.
const SKEW: Duration = Duration::from_secs(60);

pub fn look(layout: &Layout) -> Vec<Finding> {
    let home = layout.home();
    let Ok(own) = std::fs::metadata(home) else {
        let what = format!("{} does not exist yet", home.display());
        return vec![Finding::ok("store", what)];
    };
    let mut findings = vec![owner(home, &own)];
    findings.extend(open_to_others(layout));
    findings.push(match home::half_restored(home) {
        Some(what) => Finding::problem("store", what, home::RESTORE_AGAIN),
        None => journal(layout),
    });
    findings.extend(disk(home));
    findings.extend(clock(home));
    findings
}

fn owner(home: &Path, own: &Metadata) -> Finding {
    match own.uid() == rustix::process::geteuid().as_raw() {
        true => Finding::ok("permissions", format!("{} is yours", home.display())),
        false => Finding::problem(
            "permissions",
            format!("{} belongs to another user", home.display()),
            "use a directory of your own (AGENTD_HOME), or change its owner",
        ),
    }
}

/// Files that other users can read or enter.
fn open_to_others(layout: &Layout) -> Vec<Finding> {
    let home = layout.home();
    let private = [
        (home.to_owned(), 0o700),
        (layout.run(), 0o700),
        (layout.api_socket(), 0o600),
        (layout.secrets(), 0o600),
        (home.join("journal.db"), 0o600),
    ];
    let is_open = |path: &Path| {
        let found = std::fs::symlink_metadata(path);
        found.is_ok_and(|found| found.mode() & 0o077 != 0 && !found.is_symlink())
    };
    let open = private.into_iter().filter(|(path, _)| is_open(path));
    open.map(|(path, mode)| {
        let what = format!("{} is open to other users", path.display());
        let fix = format!("chmod {mode:o} {}", path.display());
        Finding::warning("permissions", what, fix).fixed_by(SafeFix::CloseToOthers { path, mode })
    })
    .collect()
}

/// Whether the daemon could open the journal, and whether its file is intact as far as the time allows.
fn journal(layout: &Layout) -> Finding {
    let home = layout.home();
    let options = Options {
        beside: vec![layout.agents()],
        ..Options::new(home)
    };
    let checked = match SqliteStore::quick_check(&options, CHECK) {
        Ok(Checked::Absent) => return Finding::ok("store", "there is no journal yet"),
        Ok(checked) => checked,
        Err(error) => return unusable(&error),
    };
    let size = std::fs::metadata(home.join("journal.db")).map_or(0, |journal| journal.len());
    let wal = std::fs::metadata(home.join("journal.db-wal")).map_or(0, |wal| wal.len());
    if wal > LARGE_WAL {
        return Finding::warning(
            "store",
            format!("the journal's write-ahead log has {} MB", wal / MEGABYTE),
            "restart the daemon (`agentd daemon stop`), then run `agentd verify`",
        );
    }
    let extent = match checked {
        Checked::SoFar => "the part that was checked is intact",
        Checked::Sound | Checked::Absent => "its file is intact",
    };
    let size = size / MEGABYTE;
    Finding::ok(
        "store",
        format!("the journal has {size} MB and {extent}; `agentd verify` checks each event"),
    )
}

/// A journal that the daemon would refuse, or that is damaged.
fn unusable(error: &agentd_store::Error) -> Finding {
    let what = format!("the journal cannot be used: {error}");
    match error {
        agentd_store::Error::Unavailable(Disk::Locked) => {
            let what = "another program has locked the journal, and it was not checked";
            Finding::warning("store", what, "close that program, then `agentd verify`")
        }
        agentd_store::Error::NewerSchema { .. } => {
            Finding::problem("store", what, "upgrade agentd")
        }
        _ => {
            let fix = "`agentd verify` lists the damage; restore a backup (`agentd restore-backup`), or stop the daemon \
                       and run `agentd verify --repair`";
            Finding::problem("store", what, fix)
        }
    }
}

fn disk(home: &Path) -> Option<Finding> {
    let found = rustix::fs::statvfs(home).ok()?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let rules = crate::providers::catalog().ok();
    let least = rules.and_then(|catalog| catalog.daemon().min_free_mb);
    let total = found.f_blocks.saturating_mul(found.f_frsize);
    let usual = (100 * MEGABYTE).min(total / 50);
    let least = least.map_or(usual, |mb| mb.saturating_mul(MEGABYTE));
    let said = format!("{} MB are free", free / MEGABYTE);
    if free < least {
        let what = format!("{said}, and new turns need {} MB", least / MEGABYTE);
        let fix = "free some space, or lower daemon.min_free_mb in config.toml";
        return Some(Finding::problem("disk", what, fix));
    }
    Some(match growth(home).filter(|a_day| *a_day > 0) {
        Some(a_day) if (free - least) / a_day < SOON => Finding::warning(
            "disk",
            format!(
                "{said}, and the journal grows by about {} MB a day: {} days are left",
                a_day / MEGABYTE,
                (free - least) / a_day
            ),
            "`agentd prune`, `agentd purge`, or a larger disk",
        ),
        Some(a_day) => {
            let a_day = a_day / MEGABYTE;
            Finding::ok(
                "disk",
                format!("{said}; the journal grows by about {a_day} MB a day"),
            )
        }
        None => Finding::ok("disk", said),
    })
}

/// Bytes a day since the journal was created; none on its first day.
fn growth(home: &Path) -> Option<u64> {
    let journal = std::fs::metadata(home.join("journal.db")).ok()?;
    let age = SystemTime::now()
        .duration_since(journal.created().ok()?)
        .ok()?;
    let days = age.as_secs() / DAY.as_secs();
    (days > 0).then(|| journal.len() / days)
}

fn clock(home: &Path) -> Option<Finding> {
    let written = std::fs::metadata(home.join("journal.db"))
        .ok()?
        .modified()
        .ok()?;
    let ahead = written
        .duration_since(SystemTime::now())
        .unwrap_or_default();
    Some(match ahead > SKEW {
        true => Finding::warning(
            "clock",
            format!(
                "the journal was written {} s in the future",
                ahead.as_secs()
            ),
            "set the clock (`timedatectl set-ntp true`); the order of events does not depend on it",
        ),
        false => Finding::ok("clock", "the journal is not newer than the clock"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_directory_that_is_open_to_others_is_found_and_closed() {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout::new(home.path());
        layout.make().unwrap();
        assert!(open_to_others(&layout).is_empty());
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(layout.run(), open).unwrap();
        let mut found = open_to_others(&layout);
        assert_eq!(found.len(), 1, "{found:?}");
        super::super::fix(&mut found);
        assert!(found[0].fixed, "{found:?}");
        assert!(open_to_others(&layout).is_empty());
    }

    #[test]
    fn a_journal_from_the_future_is_found() {
        let home = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(home.path().join("journal.db")).unwrap();
        assert_eq!(clock(home.path()).unwrap().level, Level::Ok);
        file.set_modified(SystemTime::now() + DAY).unwrap();
        assert_eq!(clock(home.path()).unwrap().level, Level::Warning);
    }
}
