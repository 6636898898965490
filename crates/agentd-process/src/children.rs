//! Whom this process started itself and has yet to on_exit: everybody else who comes to it is an orphan.

use std::collections::HashSet;
use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

static CHILDREN: Mutex<Option<HashSet<u32>>> = Mutex::new(None);

fn children() -> MutexGuard<'static, Option<HashSet<u32>>> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a program. Nobody takes it for an orphan, not even before it is known here.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    let mut children = children();
    let child = command.spawn()?;
    children.get_or_insert_default().insert(child.id());
    Ok(child)
}

/// Takes the pid off the list, together with what makes it free for others.
pub fn on_exit<T>(pid: u32, reap: impl FnOnce() -> T) -> T {
    let mut children = children();
    let reaped = reap();
    if let Some(children) = children.as_mut() {
        children.remove(&pid);
    }
    reaped
}

/// Asks of each pid whether somebody here waits for it. Nobody is children meanwhile.
pub fn with<T>(look: impl FnOnce(&dyn Fn(u32) -> bool) -> T) -> T {
    let children = children();
    look(&|pid| {
        children
            .as_ref()
            .is_some_and(|children| children.contains(&pid))
    })
}
