//! The state directory.

use crate::error::{Error, Exit};
use agentd_daemon::layout::Layout;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variable that names the socket of an agent's tools. It is set for tools in a sandbox, which can see no other
/// socket.
pub const SOCKET: &str = "AGENTD_SOCKET";

/// The socket that the environment gives, if any.
pub fn own_socket() -> Option<PathBuf> {
    let path = std::env::var_os(SOCKET).filter(|path| !path.is_empty());
    path.map(PathBuf::from)
}

/// Fails if the environment gives a socket: this process cannot start a daemon that listens there.
pub fn check_no_own_socket() -> Result<(), Error> {
    let Some(path) = own_socket() else {
        return Ok(());
    };
    let what = format!("no daemon listens at {}", path.display());
    let next = format!("unset {SOCKET} to use the daemon's own socket");
    Err(Error::new(Exit::Unavailable, what).next(next))
}

/// The directory that `AGENTD_HOME` names, or the default.
pub fn dir() -> Result<PathBuf, Error> {
    choose(|name| std::env::var_os(name))
}

/// What the user can do about a directory into which a backup was not restored completely.
pub const RESTORE_AGAIN: &str =
    "run `agentd restore-backup` again, or delete what is in the directory";

/// Says so if a backup was not restored completely into this directory.
pub fn half_restored(home: &Path) -> Option<String> {
    let is_half = Layout::new(home).unfinished_restore().exists();
    is_half.then(|| {
        format!(
            "a restore of a backup into {} is in progress, or did not complete",
            home.display()
        )
    })
}

/// Refuses such a directory: a daemon would write its own files between those of the restore.
pub fn check_whole(home: &Path) -> Result<(), Error> {
    match half_restored(home) {
        Some(what) => Err(Error::new(Exit::Unavailable, what).next(RESTORE_AGAIN)),
        None => Ok(()),
    }
}

/// The user's own providers, models and settings.
pub fn config() -> Result<PathBuf, Error> {
    Ok(dir()?.join("config.toml"))
}

/// The variable that determines the state directory.
pub fn source() -> &'static str {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_absolute =
        |name: &str| std::env::var_os(name).is_some_and(|value| PathBuf::from(value).is_absolute());
    match (is_set("AGENTD_HOME"), is_absolute("XDG_STATE_HOME")) {
        (true, _) => "AGENTD_HOME",
        (_, true) => "XDG_STATE_HOME",
        _ => "HOME",
    }
}

fn choose(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, Error> {
    let named = |name| variable(name).filter(|value| !value.is_empty());
    if let Some(home) = named("AGENTD_HOME").map(PathBuf::from) {
        if home.is_absolute() {
            return Ok(home);
        }
        // Each directory would have a daemon of its own.
        let what = format!("AGENTD_HOME is a relative path: {}", home.display());
        return Err(Error::new(Exit::Usage, what).next(format!(
            "set AGENTD_HOME to an absolute path, for example \"$PWD/{}\"",
            home.display()
        )));
    }
    // Both are used only if absolute: a relative path would depend on the current directory.
    let absolute = |name| {
        named(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .map(|state| state.join("agentd"))
        .ok_or_else(|| {
            Error::new(Exit::Unavailable, "no state directory is configured")
                .because("neither AGENTD_HOME, XDG_STATE_HOME nor HOME is set")
                .next("set AGENTD_HOME to a directory")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir_with(variables: &[(&str, &str)]) -> Result<PathBuf, Error> {
        choose(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.into())
        })
    }

    #[test]
    fn the_most_specific_variable_wins() {
        let all = [
            ("AGENTD_HOME", "/a"),
            ("XDG_STATE_HOME", "/x"),
            ("HOME", "/h"),
        ];
        assert_eq!(dir_with(&all).unwrap(), PathBuf::from("/a"));
        assert_eq!(dir_with(&all[1..]).unwrap(), PathBuf::from("/x/agentd"));
        let usual = PathBuf::from("/h/.local/state/agentd");
        assert_eq!(dir_with(&all[2..]).unwrap(), usual);
    }

    #[test]
    fn empty_and_relative_values_do_not_count() {
        let odd = [("AGENTD_HOME", ""), ("XDG_STATE_HOME", "x"), ("HOME", "/h")];
        let usual = PathBuf::from("/h/.local/state/agentd");
        assert_eq!(dir_with(&odd).unwrap(), usual);
    }

    #[test]
    fn a_relative_state_directory_is_refused() {
        let text = dir_with(&[("AGENTD_HOME", "here")])
            .unwrap_err()
            .to_string();
        assert!(text.contains("relative path: here"), "{text}");
        assert!(text.contains("$PWD/here"), "{text}");
    }

    #[test]
    fn without_any_of_them_it_says_what_to_set() {
        let text = dir_with(&[]).unwrap_err().to_string();
        assert!(text.contains("set AGENTD_HOME"), "{text}");
    }
}
