//! No daemon is started from inside a task: it would be a part of that command, and end with it, or the command would
//! never end. That holds for every home: what a tool starts is to be over when the tool is.

use crate::error::{Error, Exit};
use agentd_process::{Around, task_around};

/// In the environment of every command that an agent runs.
const OF_TASKS: &str = "AGENTD_CALL_ID";

/// Refuses for whoever is within a task.
pub fn check() -> Result<(), Error> {
    if !is_in_task() {
        return Ok(());
    }
    let what = "no daemon runs, and a command of an agent does not start one";
    Err(Error::new(Exit::Unavailable, what)
        .because("it would end with the command, and the agents' processes with it")
        .next("`agentd daemon start` in a terminal; what has begun here goes on meanwhile"))
}

/// Whether the environment says that this process is a part of a command that an agent runs.
pub fn is_told() -> bool {
    std::env::var_os(OF_TASKS).is_some_and(|call| !call.is_empty())
}

/// Whether this process is a part of a command that an agent runs, or of a hook.
pub fn is_in_task() -> bool {
    // Whose parents cannot be looked at, as where others' processes are hidden, is a person as far as that goes.
    is_told() || task_around(std::process::id()).is_ok_and(|around| around != Around::Nothing)
}
