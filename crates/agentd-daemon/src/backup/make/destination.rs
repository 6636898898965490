//! Where a backup is written: its name, and the temporary file that becomes it.

use super::{Order, Replace};
use crate::backup::archive::FIRST_LINE;
use crate::backup::chain::{PARTIAL, dir_of};
use crate::backup::{Error, Result};
use agentd_failpoint as failpoint;
use agentd_files::foreign::{self, Links};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, File, FileType};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// The beginning and the end of the names of backups in a directory.
pub const NAME: (&str, &str) = ("agentd-", ".backup");

#[derive(Clone, Debug)]
pub struct Destination {
    pub dir: PathBuf,
    pub file: PathBuf,
    replace: Replace,
}

impl Destination {
    pub fn of(order: &Order, now: i64) -> Result<Self> {
        let is_dir = order.to.is_dir();
        let file = match is_dir {
            true => {
                let (begin, end) = NAME;
                // Names sort by time, and two of the same millisecond differ.
                let id = Uuid::now_v7().simple().to_string();
                let unique = id.get(24..).unwrap_or_default().to_owned();
                order
                    .to
                    .join(format!("{begin}{}-{unique}{end}", stamp(now)))
            }
            false => order.to.clone(),
        };
        if !is_dir && order.to.as_os_str().as_bytes().ends_with(b"/") {
            return Err(Error::io(&order.to)(io::ErrorKind::NotFound.into()));
        }
        let dir = dir_of(&file);
        let about = fs::metadata(&dir).map_err(Error::io(&dir))?;
        if !about.is_dir() {
            return Err(Error::io(&dir)(io::ErrorKind::NotADirectory.into()));
        }
        check_free(&file, order.replace)?;
        Ok(Self {
            dir,
            file,
            replace: order.replace,
        })
    }
}

/// Checks that the backup may get this name: it is free, or it is that of an earlier backup or of an empty file, which is to be
/// replaced. A rename would replace a device or a link like any file.
fn check_free(file: &Path, replace: Replace) -> Result<()> {
    let about = match fs::symlink_metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        about => about.map_err(Error::io(file))?,
    };
    if let Some(what) = other_than_file(about.file_type()) {
        return Err(Error::NotAFile {
            path: file.to_owned(),
            what,
        });
    }
    let file = file.to_owned();
    match replace {
        Replace::No => Err(Error::Exists { file }),
        Replace::Yes if is_backup_or_empty(&file)? => Ok(()),
        Replace::Yes => Err(Error::NotReplaced { file }),
    }
}

/// What it is, unless it is a regular file.
fn other_than_file(kind: FileType) -> Option<&'static str> {
    Some(match kind {
        kind if kind.is_file() => return None,
        kind if kind.is_dir() => "a directory",
        kind if kind.is_symlink() => "a symbolic link",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    })
}

/// Also a backup that is damaged: its first line is enough.
fn is_backup_or_empty(file: &Path) -> Result<bool> {
    // It may have been replaced by a link or a pipe since.
    let opened = match foreign::open(file, Links::NotLast) {
        Ok(opened) => opened,
        Err(foreign::Error::NotRegular) => return Ok(false),
        Err(error) => return Err(Error::io(file)(error.into())),
    };
    let mut begin = Vec::new();
    let read = opened.take(FIRST_LINE.len() as u64).read_to_end(&mut begin);
    read.map_err(Error::io(file))?;
    Ok(begin.is_empty() || begin == FIRST_LINE)
}

/// The UTC time as `20261117T160812345Z`, to the millisecond.
fn stamp(millis: i64) -> String {
    let (seconds, milli) = (millis.div_euclid(1000), millis.rem_euclid(1000));
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // The civil calendar from a count of days: years begin in March, so that a leap day is the last day.
    let shifted = day + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}{milli:03}Z")
}

/// The temporary file. It is deleted unless it was given its final name. Its own name is the same for every backup of a home, so
/// that one that a crash has left is replaced by the next.
#[derive(Debug)]
pub struct Partial {
    path: PathBuf,
}

impl Partial {
    pub fn create(destination: &Destination, home: Uuid) -> Result<Self> {
        let path = destination
            .dir
            .join(format!(".agentd-backup-{home}.{PARTIAL}"));
        if destination.replace == Replace::Yes && failpoint::injected_bug("backup_removed_early") {
            let _gone = fs::remove_file(&destination.file);
        }
        Ok(Self { path })
    }

    /// An empty file. A link or a file that is there is removed, not followed.
    pub fn open(&self) -> Result<File> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io(&self.path)(error));
            }
            _ => {}
        }
        File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.path)
            // Its name means nothing to the user.
            .map_err(Error::io(dir_of(&self.path)))
    }

    /// Makes the file durable under its final name.
    pub fn place(&self, file: &File, destination: &Destination) -> Result<()> {
        file.sync_all().map_err(Error::io(&destination.file))?;
        failpoint::hit("before", "backup-rename");
        match destination.replace {
            Replace::Yes => {
                // Another program may have put something else there since the backup began.
                check_free(&destination.file, Replace::Yes)?;
                fs::rename(&self.path, &destination.file).map_err(Error::io(&destination.file))?
            }
            Replace::No => self.rename_new(destination)?,
        }
        failpoint::hit("after", "backup-rename");
        let synced = File::open(&destination.dir).and_then(|dir| dir.sync_all());
        synced.map_err(Error::io(&destination.dir))
    }

    fn rename_new(&self, destination: &Destination) -> Result<()> {
        let renamed = renameat_with(
            CWD,
            &self.path,
            CWD,
            &destination.file,
            RenameFlags::NOREPLACE,
        );
        match renamed {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(Error::Exists {
                file: destination.file.clone(),
            }),
            // The file system has no such rename. The name was free when the backup began.
            Err(Errno::INVAL | Errno::NOSYS) => {
                fs::rename(&self.path, &destination.file).map_err(Error::io(&destination.file))
            }
            Err(error) => Err(Error::io(&destination.file)(error.into())),
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After the rename there is none.
        let _gone = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::make::Kind;

    #[test]
    fn a_time_is_a_date() {
        for (millis, text) in [
            (0, "19700101T000000000Z"),
            (951_782_400_000, "20000229T000000000Z"),
            (1_709_251_199_999, "20240229T235959999Z"),
            (1_794_931_692_007, "20261117T160812007Z"),
        ] {
            assert_eq!(stamp(millis), text);
        }
    }

    /// Regression: two backups of one second had names in any order, so the last name was not always the newest.
    #[test]
    fn names_in_a_directory_sort_by_time() {
        let dir = tempfile::tempdir().unwrap();
        let order = order(dir.path().to_owned(), Replace::No);
        let made: Vec<PathBuf> = (0..50)
            .map(|n| Destination::of(&order, 1_794_931_692_000 + n).unwrap())
            .map(|destination| destination.file)
            .collect();
        assert!(made.is_sorted(), "{made:#?}");
    }

    fn order(to: PathBuf, replace: Replace) -> Order {
        Order {
            to,
            kind: Kind::Full,
            replace,
        }
    }

    #[test]
    fn an_existing_file_is_replaced_only_on_request() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x");
        fs::write(&file, FIRST_LINE).unwrap();
        let refused = Destination::of(&order(file.clone(), Replace::No), 0);
        assert!(matches!(refused, Err(Error::Exists { .. })));
        let destination = Destination::of(&order(file.clone(), Replace::Yes), 0).unwrap();
        let partial = Partial::create(&destination, Uuid::nil()).unwrap();
        let new = partial.open().unwrap();
        partial.place(&new, &destination).unwrap();
        drop(partial);
        assert_eq!(fs::read(&file).unwrap(), b"");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    /// Regression: a rename replaced them, for root also `/dev/null`.
    #[test]
    fn only_an_earlier_backup_or_an_empty_file_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let destination = |name: &str| Destination::of(&order(path(name), Replace::Yes), 0);
        fs::write(path("letter"), "Dear diary").unwrap();
        assert!(matches!(
            destination("letter"),
            Err(Error::NotReplaced { .. })
        ));
        fs::write(path("empty"), "").unwrap();
        fs::write(path("cut-off"), [FIRST_LINE, b"..."].concat()).unwrap();
        for name in ["empty", "cut-off", "missing"] {
            destination(name).unwrap();
        }
        let pipe = path("pipe");
        rustix::fs::mkfifoat(CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        std::os::unix::fs::symlink("cut-off", path("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", path("dangling")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        for (name, kind) in [
            ("pipe", "a pipe"),
            ("socket", "a socket"),
            ("link", "a symbolic link"),
            ("dangling", "a symbolic link"),
        ] {
            match destination(name) {
                Err(Error::NotAFile { what, .. }) => assert_eq!(what, kind, "{name}"),
                other => panic!("{name}: {other:?}"),
            }
        }
        let null = Destination::of(&order(PathBuf::from("/dev/null"), Replace::Yes), 0);
        assert!(matches!(null, Err(Error::NotAFile { what, .. }) if what == "a device"));
    }

    #[test]
    fn a_pipe_that_appears_in_place_of_an_earlier_backup_stays() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x");
        fs::write(&file, FIRST_LINE).unwrap();
        let destination = Destination::of(&order(file.clone(), Replace::Yes), 0).unwrap();
        let partial = Partial::create(&destination, Uuid::nil()).unwrap();
        let new = partial.open().unwrap();
        fs::remove_file(&file).unwrap();
        rustix::fs::mkfifoat(CWD, &file, rustix::fs::Mode::RUSR).unwrap();
        let refused = partial.place(&new, &destination);
        assert!(matches!(refused, Err(Error::NotAFile { .. })));
        assert!(fs::symlink_metadata(&file).unwrap().file_type().is_fifo());
    }

    /// Another program may create the file while the backup is being made.
    #[test]
    fn a_file_that_appears_meanwhile_stays() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x");
        let destination = Destination::of(&order(file.clone(), Replace::No), 0).unwrap();
        let partial = Partial::create(&destination, Uuid::nil()).unwrap();
        let new = partial.open().unwrap();
        fs::write(&file, "theirs").unwrap();
        let refused = partial.place(&new, &destination);
        assert!(matches!(refused, Err(Error::Exists { .. })));
        drop(partial);
        assert_eq!(fs::read(&file).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_in_place_of_the_temporary_file_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        fs::write(&victim, "safe").unwrap();
        let destination = Destination::of(&order(dir.path().join("x"), Replace::No), 0).unwrap();
        let partial = Partial::create(&destination, Uuid::nil()).unwrap();
        std::os::unix::fs::symlink(&victim, &partial.path).unwrap();
        drop(partial.open().unwrap());
        assert_eq!(fs::read(&victim).unwrap(), b"safe");
    }
}
