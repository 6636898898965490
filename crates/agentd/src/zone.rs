//! The name of this computer's time zone, and zones by their names.

use crate::error::{Error, Exit};
use agentd_files::own;
use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// How many clock changes of two zones are compared: several years.
const CHANGES: usize = 12;
const NEXT: &str = "name the zone with `--zone`, for instance `--zone Europe/Zurich`";

/// Why the zone has no name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Unnamed {
    #[error(
        "the environment variable TZ is `{0}`, which is not the name of a zone of the time-zone database"
    )]
    Variable(String),
    #[error(
        "/etc/localtime is not a link to a zone of the time-zone database, and /etc/timezone does not name one"
    )]
    Nowhere,
    #[error(
        "/etc/timezone says {0}, but the clock changes in /etc/localtime are not those of that zone"
    )]
    Differs(String),
}

/// The name of the zone of this computer, from TZ, `/etc/localtime` and `/etc/timezone`. An error if it has none: a guess
/// would move every due time of a schedule.
pub fn system_name() -> Result<String, Error> {
    let variable = std::env::var_os("TZ");
    name_in(variable.as_deref(), Path::new("/etc")).map_err(|why| {
        Error::new(
            Exit::Usage,
            "the time zone of this computer cannot be determined",
        )
        .because(why)
        .next(NEXT)
    })
}

/// The zone with this name, from the database that is part of the program.
pub fn named(name: &str) -> Option<TimeZone> {
    TimeZoneDatabase::bundled().get(name).ok()
}

fn name_in(variable: Option<&OsStr>, etc: &Path) -> Result<String, Unnamed> {
    let localtime = etc.join("localtime");
    if let Some(variable) = variable {
        let variable = variable.to_string_lossy();
        // `:/etc/localtime` is the file that is read without the variable.
        if Path::new(without_colon(&variable)) != localtime {
            return name_of_variable(&variable);
        }
    }
    if let Some(name) = linked(&localtime) {
        return Ok(name);
    }
    let stated = own::read_to_string(etc.join("timezone")).ok();
    let stated = stated.and_then(|text| valid(text.trim()));
    match (own::read(&localtime), stated) {
        // Without the file, the clock of the computer is UTC, unless the name of another zone is stated.
        (Err(error), stated) if error.kind() == ErrorKind::NotFound => {
            Ok(stated.unwrap_or_else(|| "UTC".to_owned()))
        }
        (Err(_), Some(stated)) => Ok(stated),
        (Err(_), None) => Err(Unnamed::Nowhere),
        (Ok(data), stated) => name_of_data(&data, stated),
    }
}

/// The colon says that a name or a path follows, and may be left out.
fn without_colon(variable: &str) -> &str {
    variable.trim_start_matches(':')
}

fn name_of_variable(variable: &str) -> Result<String, Unnamed> {
    let name = without_colon(variable);
    // An empty variable means UTC to the C library.
    if name.is_empty() {
        return Ok("UTC".to_owned());
    }
    let found = match name.starts_with('/') {
        true => name_of_path(Path::new(name)),
        false => valid(name),
    };
    found.ok_or_else(|| Unnamed::Variable(variable.to_owned()))
}

/// The name that the path of a file of the time-zone database ends with.
fn name_of_path(path: &Path) -> Option<String> {
    let (_, name) = path.to_str()?.rsplit_once("zoneinfo/")?;
    let name = name.strip_prefix("posix/").unwrap_or(name);
    valid(name)
}

/// The name that the target of a symlink ends with.
fn linked(path: &Path) -> Option<String> {
    let target = fs::read_link(path).ok()?;
    name_of_path(&target).or_else(|| name_of_path(&fs::canonicalize(path).ok()?))
}

/// The name of the zone whose data `/etc/localtime` contains. The data itself has no name, and several zones may have the
/// same data today and differ tomorrow: only the stated zone, and UTC, are compared with it.
fn name_of_data(data: &[u8], stated: Option<String>) -> Result<String, Unnamed> {
    let Ok(zone) = TimeZone::tzif("", data) else {
        return stated.ok_or(Unnamed::Nowhere);
    };
    match stated {
        Some(name) if named(&name).is_some_and(|stated| are_equal(&zone, &stated)) => Ok(name),
        Some(name) => Err(Unnamed::Differs(name)),
        None if is_utc(&zone) => Ok("UTC".to_owned()),
        None => Err(Unnamed::Nowhere),
    }
}

/// The name as the database spells it.
fn valid(name: &str) -> Option<String> {
    named(name)?.iana_name().map(str::to_owned)
}

/// Whether both zones have the same time now, and change it at the same times.
fn are_equal(one: &TimeZone, other: &TimeZone) -> bool {
    let now = Timestamp::now();
    let has_same_time = one.to_offset(now) == other.to_offset(now);
    has_same_time && changes(one, now) == changes(other, now)
}

/// Whether the zone has always been UTC. A zone that has the time of UTC only now may change it.
fn is_utc(zone: &TimeZone) -> bool {
    zone.to_offset(Timestamp::MIN).is_zero() && changes(zone, Timestamp::MIN).is_empty()
}

/// The first changes of the clock after an instant.
fn changes(zone: &TimeZone, from: Timestamp) -> Vec<(Timestamp, Offset)> {
    let mut last = from;
    // Data without a rule for the future repeats its last change for ever.
    let later = zone.following(from).take_while(|change| {
        let is_later = change.timestamp() > last;
        last = change.timestamp();
        is_later
    });
    let changes = later.map(|change| (change.timestamp(), change.offset()));
    changes.take(CHANGES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    /// A file of version 1 with one type of local time, this many seconds ahead of UTC.
    fn data(offset: i32) -> Vec<u8> {
        let mut data = b"TZif\0".to_vec();
        data.extend([0; 15]);
        // The counts: only one type of local time, and four bytes of abbreviations.
        for count in [0_u32, 0, 0, 0, 1, 4] {
            data.extend(count.to_be_bytes());
        }
        data.extend(offset.to_be_bytes());
        data.extend(b"\0\0XXT\0");
        data
    }

    fn etc() -> TempDir {
        tempfile::tempdir().unwrap()
    }

    fn name(variable: Option<&str>, etc: &TempDir) -> Result<String, Unnamed> {
        name_in(variable.map(OsStr::new), etc.path())
    }

    fn is(name: &str) -> Result<String, Unnamed> {
        Ok(name.to_owned())
    }

    #[test]
    fn tz_names_the_zone() {
        let etc = etc();
        assert_eq!(name(Some("Asia/Tokyo"), &etc), is("Asia/Tokyo"));
        assert_eq!(name(Some(":Asia/Tokyo"), &etc), is("Asia/Tokyo"));
        assert_eq!(name(Some(""), &etc), is("UTC"));
        let path = ":/usr/share/zoneinfo/Asia/Tokyo";
        assert_eq!(name(Some(path), &etc), is("Asia/Tokyo"));
    }

    /// Regression: a usual setting was refused, although it names the file that counts without it.
    #[test]
    fn tz_may_name_the_file_that_is_read_without_it() {
        let etc = etc();
        let localtime = etc.path().join("localtime");
        symlink("/usr/share/zoneinfo/Asia/Tokyo", &localtime).unwrap();
        for colon in ["", ":"] {
            let variable = format!("{colon}{}", localtime.display());
            assert_eq!(name(Some(&variable), &etc), is("Asia/Tokyo"));
        }
    }

    #[test]
    fn another_path_or_a_rule_in_tz_is_an_error_that_names_it() {
        let etc = etc();
        symlink(
            "/usr/share/zoneinfo/Asia/Tokyo",
            etc.path().join("localtime"),
        )
        .unwrap();
        for wrong in [
            "/srv/zones/Asia/Tokyo",
            "/usr/share/zoneinfo/Asia/Nowhere",
            "CET-1CEST,M3.5.0,M10.5.0/3",
            "Asia/Nowhere",
        ] {
            let error = name(Some(wrong), &etc).unwrap_err();
            assert_eq!(error, Unnamed::Variable(wrong.to_owned()));
            assert!(error.to_string().contains("TZ"), "{error}");
        }
    }

    #[test]
    fn a_symlink_names_the_zone_even_without_its_target() {
        for target in [
            "/usr/share/zoneinfo/Asia/Tokyo",
            "../usr/share/zoneinfo/Asia/Tokyo",
            "/nowhere/zoneinfo/posix/Asia/Tokyo",
        ] {
            let etc = etc();
            symlink(target, etc.path().join("localtime")).unwrap();
            assert_eq!(name(None, &etc), is("Asia/Tokyo"), "{target}");
        }
    }

    /// Regression: a regular file counted as UTC.
    #[test]
    fn a_regular_file_has_no_name_of_its_own() {
        let etc = etc();
        fs::write(etc.path().join("localtime"), data(9 * 3600)).unwrap();
        assert_eq!(name(None, &etc), Err(Unnamed::Nowhere));
        fs::write(etc.path().join("timezone"), "Asia/Tokyo\n").unwrap();
        assert_eq!(name(None, &etc), is("Asia/Tokyo"));
        // The file that the clock follows was changed without the other one.
        fs::write(etc.path().join("timezone"), "Europe/Zurich\n").unwrap();
        let differs = Unnamed::Differs("Europe/Zurich".to_owned());
        assert_eq!(name(None, &etc), Err(differs));
        fs::write(etc.path().join("timezone"), "no zone\n").unwrap();
        assert_eq!(name(None, &etc), Err(Unnamed::Nowhere));
    }

    #[test]
    fn a_computer_whose_clock_is_utc_is_in_utc() {
        let etc = etc();
        assert_eq!(name(None, &etc), is("UTC"));
        fs::write(etc.path().join("localtime"), data(0)).unwrap();
        assert_eq!(name(None, &etc), is("UTC"));
        fs::write(etc.path().join("localtime"), "no zone").unwrap();
        assert_eq!(name(None, &etc), Err(Unnamed::Nowhere));
    }

    #[test]
    fn a_zone_that_was_not_always_utc_is_not_utc() {
        // London has the time of UTC in winter.
        let london = named("Europe/London").unwrap();
        assert!(!is_utc(&london));
        assert!(is_utc(&named("Etc/UTC").unwrap()));
        assert!(!are_equal(&london, &named("Etc/UTC").unwrap()));
    }
}
