//! The state directory: its owner, permissions, disk space, growth and times.

use super::{Finding, SafeFix};
use agentd_daemon::layout::Layout;
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
    findings.push(journal(home));
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

fn journal(home: &Path) -> Finding {
    let Ok(journal) = std::fs::metadata(home.join("journal.db")) else {
        return Finding::ok("store", "there is no journal yet");
    };
    let size = journal.len() / MEGABYTE;
    let wal = std::fs::metadata(home.join("journal.db-wal")).map_or(0, |wal| wal.len());
    match wal > LARGE_WAL {
        true => Finding::warning(
            "store",
            format!("the journal's write-ahead log has {} MB", wal / MEGABYTE),
            "restart the daemon (`agentd daemon stop`), then run `agentd verify`",
        ),
        false => Finding::ok(
            "store",
            format!("the journal has {size} MB; `agentd verify` checks all of it"),
        ),
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
