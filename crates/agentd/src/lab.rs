//! The lab, where this very program is killed at every point of its life: its switches work there alone.

use crate::error::{Error, Exit};
use crate::home;
use agentd_process::failpoint::{self, VARIABLE, plan::Role};
use std::ffi::OsString;
use std::path::Path;

/// Takes this process into the lab, where it was started in it.
pub fn enter() -> Result<(), Error> {
    let Some(dir) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) else {
        return Ok(());
    };
    let role = role(std::env::args_os().skip(1));
    failpoint::enter(Path::new(&dir), &home::dir()?, role).map_err(|refused| {
        Error::new(Exit::Usage, format!("{VARIABLE} is for the lab alone"))
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
