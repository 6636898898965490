//! The units of this home, and what is done with them through `systemctl`.

use super::account;
use super::programs::{Ran, run_within};
use super::units::Unit;
use crate::error::{Error, Exit};
use agentd_files::own;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the service manager may take to listen. A command that needs the daemon waits for it.
const PATIENCE: Duration = Duration::from_secs(3);

/// Which service manager has the units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manager {
    /// The user's own.
    User,
    System,
}

impl Manager {
    pub const fn of(unit: &Unit) -> Self {
        match unit.user {
            Some(_) => Self::System,
            None => Self::User,
        }
    }

    /// Where units are written.
    pub fn dir(self) -> Result<PathBuf, Error> {
        if self == Self::System {
            return Ok(PathBuf::from("/etc/systemd/system"));
        }
        let absolute = |name: &str| {
            let value = std::env::var_os(name).map(PathBuf::from);
            value.filter(|path| path.is_absolute())
        };
        let config = absolute("XDG_CONFIG_HOME");
        let config = config.or_else(|| absolute("HOME").map(|home| home.join(".config")));
        let config = config.ok_or_else(|| {
            Error::new(Exit::Unavailable, "there is no directory for units").next("set HOME")
        })?;
        Ok(config.join("systemd/user"))
    }

    /// Runs `systemctl`. An error only if it is not installed.
    pub fn ctl(self, args: &[&str]) -> io::Result<Ran> {
        self.ctl_within(args, None)
    }

    fn ctl_within(self, args: &[&str], limit: Option<Duration>) -> io::Result<Ran> {
        let mut all = match self {
            Self::User => vec!["--user"],
            Self::System => vec![],
        };
        all.extend(args);
        run_within("systemctl", &all, "", limit)
    }

    /// The same; a failure is an error.
    pub fn order(self, args: &[&str]) -> Result<(), Error> {
        let what = format!("`systemctl {}` failed", args.join(" "));
        match self.ctl(args) {
            Ok(ran) if ran.is_ok => Ok(()),
            Ok(ran) => Err(Error::new(Exit::Unavailable, what).because(ran.why())),
            Err(error) => Err(Error::new(Exit::Unavailable, what).because(error)),
        }
    }

    /// Why the manager cannot be used; none if it can.
    pub fn missing(self) -> Option<String> {
        self.version().err()
    }

    /// The version of the manager, if it says one; an error if the manager cannot be used.
    pub fn version(self) -> Result<Option<u32>, String> {
        match self.ctl(&["show", "--property=Version"]) {
            Ok(ran) if ran.is_ok => Ok(version(&ran.out)),
            Ok(ran) => Err(ran.why()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err("systemctl is not installed".to_owned())
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The number in `Version=252.22-1~deb12u1` or `Version=v257.4`.
fn version(shown: &str) -> Option<u32> {
    let shown = shown.trim().strip_prefix("Version=")?;
    let number = shown.trim_start_matches('v');
    let end = number.find(|c: char| !c.is_ascii_digit());
    number[..end.unwrap_or(number.len())].parse().ok()
}

/// The files of a unit, with their contents.
pub fn files(unit: &Unit) -> Result<Vec<(PathBuf, String)>, Error> {
    let dir = Manager::of(unit).dir()?;
    let units = units(unit).into_iter();
    Ok(units.map(|(name, text)| (dir.join(name), text)).collect())
}

/// The names of the units, with their contents; the socket first, so that nothing starts the service while both stop.
fn units(unit: &Unit) -> Vec<(String, String)> {
    let name = unit.name();
    let socket = unit.socket().map(|text| (format!("{name}.socket"), text));
    let service = (format!("{name}.service"), unit.service());
    socket.into_iter().chain([service]).collect()
}

/// The names of the units, the socket first.
pub fn names(unit: &Unit) -> Vec<String> {
    units(unit).into_iter().map(|(name, _)| name).collect()
}

/// The file of the service.
fn service_file(unit: &Unit) -> Result<PathBuf, Error> {
    let dir = Manager::of(unit).dir()?;
    Ok(dir.join(format!("{}.service", unit.name())))
}

/// The service that is installed for the user's own manager, if it serves this home.
pub fn serves(home: &Path) -> bool {
    let unit = Unit::new(Path::new("agentd"), home, None, None);
    unit.is_ok_and(|unit| is_for(&unit))
}

/// The name of the system's service, if one that runs as the user of this command serves this home.
pub fn system_service(home: &Path) -> Option<String> {
    let user = account::own()?.name;
    system_service_in(&Manager::System.dir().ok()?, home, user)
}

fn system_service_in(dir: &Path, home: &Path, user: String) -> Option<String> {
    let unit = Unit::new(Path::new("agentd"), home, None, Some(user)).ok()?;
    let name = format!("{}.service", unit.name());
    names_home(&dir.join(&name), &unit).then_some(name)
}

/// The command that prints the last messages of the service of this home; none if it has none.
pub fn journal(home: &Path) -> Option<String> {
    if serves(home) {
        return Some("journalctl --user -u agentd -n 20".to_owned());
    }
    let name = system_service(home)?;
    Some(format!("journalctl -u {name} -n 20"))
}

/// Whether the installed service serves the home of this unit.
fn is_for(unit: &Unit) -> bool {
    service_file(unit).is_ok_and(|path| names_home(&path, unit))
}

/// Whether the file of a service names the home of this unit.
fn names_home(path: &Path, unit: &Unit) -> bool {
    let text = own::read_to_string(path).unwrap_or_default();
    text.lines().any(|line| line == unit.home_line())
}

/// Refuses a second service of a home that a service of the system serves.
pub fn check_only(unit: &Unit) -> Result<(), Error> {
    let other = match unit.user {
        Some(_) => None,
        None => system_service(Path::new(&unit.home)),
    };
    let Some(name) = other else { return Ok(()) };
    let what = format!("{name} of the system serves this state directory already");
    Err(Error::new(Exit::Refused, what).next("`sudo agentd daemon uninstall --system` removes it"))
}

/// Refuses to replace the service of another home.
pub fn check_free(unit: &Unit) -> Result<(), Error> {
    let path = service_file(unit)?;
    if !path.exists() || is_for(unit) {
        return Ok(());
    }
    let what = format!("{} belongs to another state directory", path.display());
    Err(Error::new(Exit::Refused, what)
        .next("run `agentd daemon uninstall` with the AGENTD_HOME that it names"))
}

/// Writes the units, each in one step.
pub fn write(unit: &Unit) -> Result<Vec<PathBuf>, Error> {
    let mut written = Vec::new();
    for (path, text) in files(unit)? {
        write_file(&path, &text).map_err(|error| {
            let what = format!("{} cannot be written", path.display());
            let error = Error::new(Exit::Unavailable, what).because(error);
            match Manager::of(unit) {
                Manager::System => error.next("run the command as root"),
                Manager::User => error,
            }
        })?;
        written.push(path);
    }
    Ok(written)
}

fn write_file(path: &Path, text: &str) -> io::Result<()> {
    let dir = path.parent().ok_or(io::ErrorKind::NotFound)?;
    std::fs::create_dir_all(dir)?;
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(text.as_bytes())?;
    let public = std::fs::Permissions::from_mode(0o644);
    file.as_file().set_permissions(public)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Removes the units. Returns the files that existed.
pub fn remove(unit: &Unit) -> Result<Vec<PathBuf>, Error> {
    let mut removed = Vec::new();
    for (path, _) in files(unit)? {
        match std::fs::remove_file(&path) {
            Ok(()) => removed.push(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let what = format!("{} cannot be removed", path.display());
                return Err(Error::new(Exit::Unavailable, what).because(error));
            }
        }
    }
    Ok(removed)
}

/// Listens on the API socket through the service manager: the first connection starts the daemon. False if the service
/// is not installed for this home, or the manager cannot be reached in time.
pub fn start(home: &Path) -> bool {
    serves(home) && is_done(&["start", "agentd.socket"])
}

/// Listens again on a socket whose file is gone. False if that fails.
pub fn restart_socket() -> bool {
    is_done(&["restart", "agentd.socket"])
}

fn is_done(args: &[&str]) -> bool {
    let ran = Manager::User.ctl_within(args, Some(PATIENCE));
    ran.is_ok_and(|ran| ran.is_ok)
}

/// Stops listening, so that no connection starts the daemon again. The daemon itself keeps running. False if the service
/// is not installed for this home.
pub fn stop_socket(home: &Path) -> Result<bool, Error> {
    if !serves(home) {
        return Ok(false);
    }
    match Manager::User.missing() {
        // Without the manager there is no socket that it listens on.
        Some(_) => Ok(false),
        None => Manager::User
            .order(&["stop", "agentd.socket"])
            .map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_first_number() {
        for (shown, expected) in [
            ("Version=252.22-1~deb12u1\n", Some(252)),
            ("Version=257", Some(257)),
            ("Version=v258~rc1", Some(258)),
            ("", None),
            ("Version=", None),
        ] {
            assert_eq!(version(shown), expected, "{shown}");
        }
    }

    #[test]
    fn a_service_of_the_system_is_found_by_its_user_and_its_home() {
        let dir = tempfile::tempdir().unwrap();
        let home = Path::new("/home/ann/.local/state/agentd");
        let ann = || "ann".to_owned();
        let found = |home: &Path, user| system_service_in(dir.path(), home, user);
        assert_eq!(found(home, ann()), None);
        let unit = Unit::new(Path::new("/usr/bin/agentd"), home, None, Some(ann())).unwrap();
        std::fs::write(dir.path().join("agentd-ann.service"), unit.service()).unwrap();
        assert_eq!(found(home, ann()).as_deref(), Some("agentd-ann.service"));
        assert_eq!(found(Path::new("/home/ann/other"), ann()), None);
        assert_eq!(found(home, "ben".to_owned()), None);
    }
}
