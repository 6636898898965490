//! A daemon is not started by what its own agents run: it would be a part of that command, and end with it,
//! or the command would never end.

use crate::error::{Error, Exit};
use agentd_process::{Around, task_around};
use std::path::Path;

/// Refuses for whoever is within a task of an agent of this home.
pub fn check(home: &Path) -> Result<(), Error> {
    let around = task_around(std::process::id());
    let is_within = match around {
        Ok(Around::None) | Err(_) => false,
        Ok(Around::Unnamed) => true,
        Ok(Around::Task(folder)) => real(&folder).starts_with(real(home)),
    };
    if !is_within {
        return Ok(());
    }
    let what = "no daemon runs, and a command of an agent does not start one";
    Err(Error::new(Exit::Unavailable, what)
        .because("it would end with the command, and the agents' processes with it")
        .next("`agentd daemon start` in a terminal; what has begun here goes on meanwhile"))
}

fn real(path: &Path) -> std::path::PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
