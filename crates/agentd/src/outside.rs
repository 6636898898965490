//! No daemon is started from inside a task: it would belong to that command and end with it, or the command would never
//! end. This applies to every home: processes that a tool starts must end with the tool.

use crate::error::{Error, Exit};
use agentd_process::{Around, task_around};

/// Set in the environment of every command that an agent runs.
const OF_TASKS: &str = "AGENTD_CALL_ID";

/// Fails if this process runs inside a task.
pub fn check() -> Result<(), Error> {
    if !is_in_task() {
        return Ok(());
    }
    let what = "the daemon is not running, and an agent's command cannot start it";
    Err(Error::new(Exit::Unavailable, what)
        .because("the daemon and the agents' processes would end with the command")
        .next("`agentd daemon start` in a terminal; running turns continue in the meantime"))
}

/// Whether the environment marks this process as part of a command that an agent runs.
pub fn is_told() -> bool {
    std::env::var_os(OF_TASKS).is_some_and(|call| !call.is_empty())
}

/// Whether this process belongs to a command that an agent runs, or to a hook.
pub fn is_in_task() -> bool {
    // If the ancestors cannot be inspected, for example because /proc hides processes, the caller counts as the user.
    is_told() || task_around(std::process::id()).is_ok_and(|around| around != Around::Nothing)
}
