//! Backups that the daemon makes by itself, and which old ones it deletes: `[backup]` of the user's file.

use super::chain::{self, Found};
use super::make::{self, Kind, NAME, Order, Replace};
use super::{Error, Result};
use crate::clock;
use crate::daemon::Daemon;
use crate::ending::left;
use crate::outbox::trouble::{self, What};
use crate::settings::ScheduledBackups;
use crate::spawn::blocking;
use agentd_core::time::Timestamp;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// The longest wait between two checks, because the clock may be set and the machine may sleep.
const LONGEST: Duration = Duration::from_secs(60);
/// Delay before a backup that failed is tried again.
const TROUBLE: Duration = Duration::from_secs(300);

/// Makes each backup when it is due, for as long as the daemon runs.
pub async fn watch(daemon: Arc<Daemon>) {
    let Some(settings) = daemon.backups.clone() else {
        return;
    };
    // Nothing is written about a home that may be a copy.
    if daemon.is_read_only() {
        return;
    }
    let mut ending = daemon.ending();
    loop {
        let wait = attempt(&daemon, &settings).await;
        tokio::select! {
            // tidy: polls nothing; this is the time until the next backup
            () = tokio::time::sleep(wait) => {}
            () = left(&mut ending) => return,
        }
    }
}

/// Makes a backup if one is due, and records whether it failed. Returns the time until the next attempt.
async fn attempt(daemon: &Arc<Daemon>, settings: &ScheduledBackups) -> Duration {
    match step(daemon, settings).await {
        Ok(wait) => {
            daemon.failing_backup.clear();
            wait.min(LONGEST)
        }
        Err(error) if is_put_off(daemon, &error) => {
            tracing::info!(%error, "scheduled backup put off");
            LONGEST
        }
        Err(error) => {
            let directory = settings.directory.display();
            tracing::error!(%directory, %error, "scheduled backup failed");
            // The user is told of the first of several failures.
            if daemon.failing_backup.add(&settings.directory, &error) == 1 {
                trouble::add(daemon, What::BackupFailed).await;
            }
            TROUBLE
        }
    }
}

/// Whether a backup was not made for a reason that is no failure: another one is being made, or the daemon ends and the next
/// one makes it.
fn is_put_off(daemon: &Daemon, error: &Error) -> bool {
    matches!(error, Error::Busy) || daemon.is_ending()
}

/// Makes a backup if one is due. Returns the time until the next one.
async fn step(daemon: &Arc<Daemon>, settings: &ScheduledBackups) -> Result<Duration> {
    let home = daemon.home.identity.id;
    let now = clock::now();
    let until = due_in(&found(settings, home).await?, settings.every, now);
    if !until.is_zero() {
        return Ok(until);
    }
    let order = Order {
        to: settings.directory.clone(),
        kind: Kind::Full,
        replace: Replace::No,
    };
    let made = make::make(daemon, order, Arc::new(|_| true)).await?;
    match found(settings, home).await {
        Ok(found) => {
            let keep = settings.keep;
            blocking(move || delete(&surplus(found, keep, &made.digest, clock::now()))).await;
        }
        Err(error) => tracing::warn!(%error, "old backups not found"),
    }
    Ok(settings.every)
}

/// The backups of this home in the directory, the newest first.
async fn found(settings: &ScheduledBackups, home: Uuid) -> Result<Vec<Found>> {
    let directory = settings.directory.clone();
    blocking(move || {
        let mut found = chain::all_in(&directory)?;
        found.retain(|backup| backup.home == home);
        Ok(found)
    })
    .await
}

/// Whether it has a name that the daemon gives. Others count and are deleted by their users alone.
fn is_named(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let (begin, end) = NAME;
    name.is_some_and(|name| name.starts_with(begin) && name.ends_with(end))
}

/// The time until a backup is due. One that was made in the future, before the clock was set back, does not count.
fn due_in(found: &[Found], every: Duration, now: Timestamp) -> Duration {
    let named = found.iter().filter(|backup| is_named(&backup.path));
    let made = named.map(|backup| Timestamp::from_millis(backup.made_at));
    let newest = made.filter(|at| *at <= now).max();
    let since = newest.map(|newest| Duration::from_millis(now.since(newest)));
    since.map_or(Duration::ZERO, |since| every.saturating_sub(since))
}

/// The backups that are deleted: all with names of the daemon but the newest, and but those that others need. A backup from
/// the future, before the clock was set back, is older than any other one; the one that was just made stays.
fn surplus(mut found: Vec<Found>, keep: usize, made: &str, now: Timestamp) -> Vec<Found> {
    let is_later = |backup: &Found| Timestamp::from_millis(backup.made_at) > now;
    // Stable: the newest stay first.
    found.sort_by_key(|backup| backup.digest != made && is_later(backup));
    let (named, others): (Vec<&Found>, Vec<&Found>) =
        found.iter().partition(|backup| is_named(&backup.path));
    let mut needed: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&Found> = named.iter().copied().take(keep).chain(others).collect();
    open.extend(named.iter().copied().filter(|backup| backup.digest == made));
    while let Some(kept) = open.pop() {
        if needed.insert(&kept.digest)
            && let Some(parent) = &kept.parent
        {
            open.extend(found.iter().filter(|other| other.digest == parent.digest));
        }
    }
    let is_needed = |backup: &&Found| needed.contains(backup.digest.as_str());
    let surplus = named.into_iter().filter(|backup| !is_needed(backup));
    surplus.cloned().collect()
}

/// One that cannot be deleted is surplus after the next backup too, and is tried again then. The new backup is made nevertheless.
fn delete(surplus: &[Found]) {
    for backup in surplus {
        let file = backup.path.display();
        match std::fs::remove_file(&backup.path) {
            Ok(()) => tracing::info!(%file, "old backup deleted"),
            Err(error) => tracing::warn!(%file, %error, "old backup not deleted"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::archive::Parent;
    use super::*;
    use crate::ending::Ending;
    use crate::supervisor::tests::bed;

    /// Regression: the user was told of a failed backup.
    #[tokio::test]
    async fn a_backup_of_the_user_and_the_end_of_the_daemon_are_no_failures() {
        let (bed, dir) = (bed(), tempfile::tempdir().unwrap());
        let daemon = &bed.daemon;
        let settings = ScheduledBackups {
            directory: dir.path().to_owned(),
            every: Duration::from_secs(3600),
            keep: 1,
        };
        let of_user = daemon.backing_up.lock().await;
        let busy = step(daemon, &settings).await.unwrap_err();
        assert!(is_put_off(daemon, &busy), "{busy}");
        drop(of_user);
        // Nothing else is passed over in silence while the daemon runs.
        let missing = ScheduledBackups {
            directory: dir.path().join("missing"),
            ..settings
        };
        let failed = step(daemon, &missing).await.unwrap_err();
        assert!(!is_put_off(daemon, &failed), "{failed}");
        assert!(!is_put_off(daemon, &Error::Cancelled));
        daemon.choose_end(Ending::Alone);
        assert!(is_put_off(daemon, &Error::Cancelled));
    }

    #[tokio::test]
    async fn a_failure_is_known_until_a_backup_is_made() {
        let (bed, root) = (bed(), tempfile::tempdir().unwrap());
        let daemon = &bed.daemon;
        let settings = ScheduledBackups {
            directory: root.path().join("missing"),
            every: Duration::from_secs(3600),
            keep: 1,
        };
        for attempts in 1..=2 {
            assert_eq!(attempt(daemon, &settings).await, TROUBLE);
            let failing = daemon.failing_backup.get().unwrap();
            assert_eq!(failing.attempts, attempts);
        }
        std::fs::create_dir(&settings.directory).unwrap();
        assert_eq!(attempt(daemon, &settings).await, LONGEST);
        assert_eq!(daemon.failing_backup.get(), None);
        let home = daemon.home.identity.id;
        assert_eq!(found(&settings, home).await.unwrap().len(), 1);
    }

    fn backup(n: u64, parent: Option<u64>) -> Found {
        Found {
            path: format!("agentd-{n}.backup").into(),
            digest: n.to_string(),
            home: Uuid::nil(),
            made_at: i64::try_from(n).unwrap(),
            parent: parent.map(|parent| Parent {
                digest: parent.to_string(),
                file: String::new(),
            }),
        }
    }

    fn surplus_of(found: &[Found], keep: usize, made: u64, now: i64) -> Vec<String> {
        let now = Timestamp::from_millis(now);
        let surplus = surplus(found.to_vec(), keep, &made.to_string(), now);
        surplus.into_iter().map(|found| found.digest).collect()
    }

    #[test]
    fn the_newest_stay_with_everything_that_they_need() {
        let all = [
            backup(6, Some(5)),
            backup(5, Some(2)),
            backup(4, None),
            backup(3, Some(1)),
            backup(2, None),
            backup(1, None),
        ];
        let surplus = |keep| surplus_of(&all, keep, 6, 6);
        assert_eq!(surplus(1), ["4", "3", "1"]);
        assert_eq!(surplus(3), ["3", "1"]);
        assert_eq!(surplus(9), [""; 0]);
    }

    /// Regression: the scheduled backup counted as not made, and those after it stayed.
    #[test]
    fn an_old_backup_that_cannot_be_deleted_is_no_failure() {
        let dir = tempfile::tempdir().unwrap();
        let mut old = [backup(1, None), backup(2, None)];
        for backup in &mut old {
            backup.path = dir.path().join(&backup.path);
        }
        std::fs::create_dir(&old[0].path).unwrap();
        std::fs::write(&old[1].path, "").unwrap();
        delete(&old);
        assert!(old[0].path.exists() && !old[1].path.exists());
    }

    /// A user made an incremental backup beside those of the daemon.
    #[test]
    fn a_backup_with_another_name_is_left_alone_and_so_is_what_it_needs() {
        let mut own = backup(3, Some(1));
        own.path = "before-upgrade".into();
        let all = [backup(4, None), own, backup(2, None), backup(1, None)];
        assert_eq!(surplus_of(&all, 1, 4, 4), ["2"]);
        let due = due_in(
            &all[1..2],
            Duration::from_secs(1),
            Timestamp::from_millis(3),
        );
        assert_eq!(due, Duration::ZERO);
    }

    /// Regression: each new backup was deleted as soon as it was made, because those from the future counted as newer.
    #[test]
    fn backups_from_the_future_do_not_displace_the_new_one() {
        let all = [
            backup(900, None),
            backup(800, None),
            backup(50, None),
            backup(40, None),
        ];
        assert_eq!(surplus_of(&all, 1, 50, 60), ["40", "900", "800"]);
        assert_eq!(surplus_of(&all, 3, 50, 60), ["800"]);
        assert_eq!(surplus_of(&all, 4, 50, 60), [""; 0]);
        // Also if the clock was set back while it was made.
        assert_eq!(surplus_of(&all, 1, 50, 45), ["40", "900", "800"]);
        assert_eq!(surplus_of(&all, 1, 800, 45), ["40", "900", "50"]);
    }

    #[test]
    fn a_backup_is_due_after_its_time_also_across_a_clock_that_is_set_back() {
        let every = Duration::from_millis(100);
        let due = |found: &[Found], now| due_in(found, every, Timestamp::from_millis(now));
        assert_eq!(due(&[], 0), Duration::ZERO);
        let all = [backup(50, None), backup(10, None)];
        assert_eq!(due(&all, 60), Duration::from_millis(90));
        assert_eq!(due(&all, 150), Duration::ZERO);
        assert_eq!(due(&all, 20), Duration::from_millis(90));
        assert_eq!(due(&all, 5), Duration::ZERO);
    }
}
