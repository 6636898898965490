//! The lab, which kills this program at its failpoints. The switches for that work only in a lab run.

use crate::error::{Error, Exit};
use crate::home;
use agentd_failpoint::{self as failpoint, VARIABLE, plan::Role};
use std::ffi::OsString;
use std::path::Path;

/// Enables the failpoints if this process was started by the lab.
pub fn enter() -> Result<(), Error> {
    let Some(dir) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) else {
        return Ok(());
    };
    let role = role(std::env::args_os().skip(1));
    failpoint::enter(Path::new(&dir), &home::dir()?, role).map_err(|refused| {
        Error::new(Exit::Usage, format!("{VARIABLE} is only for the lab"))
            .because(refused)
            .next(format!("unset {VARIABLE}"))
    })
}

fn role(mut args: impl Iterator<Item = OsString>) -> Role {
    let verb = args.next().unwrap_or_default();
    let more = args.next().unwrap_or_default();
    match (verb.to_str(), more.to_str()) {
        (Some("daemon"), Some("run")) => Role::Daemon,
        (Some("runtime"), _) => Role::Runtime,
        (Some("agent"), _) => Role::Agent,
        _ => Role::Client,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn what_a_process_is_shows_in_its_arguments() {
        let role = |args: &[&str]| role(args.iter().map(|arg| OsStr::new(arg).to_owned()));
        assert_eq!(role(&["daemon", "run"]), Role::Daemon);
        assert_eq!(role(&["daemon", "stop"]), Role::Client);
        assert_eq!(role(&["runtime", "--agent"]), Role::Runtime);
        assert_eq!(role(&["agent"]), Role::Agent);
        assert_eq!(role(&[]), Role::Client);
    }
}
