//! The children that this process has started and not yet reaped. Any other child is an adopted orphan.

use crate::{memory, open_files};
use std::collections::HashSet;
use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

static CHILDREN: Mutex<Option<HashSet<u32>>> = Mutex::new(None);

fn children() -> MutexGuard<'static, Option<HashSet<u32>>> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a program. Holds the lock until the child is in the list, so that it is never mistaken for an orphan.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    let mut children = children();
    let child = command.spawn()?;
    children.get_or_insert_default().insert(child.id());
    memory::restore_for(child.id());
    open_files::restore_for(child.id());
    Ok(child)
}

/// Reaps a child and removes its pid from the list, under one lock: after reaping, the pid may be reused.
pub fn on_exit<T>(pid: u32, reap: impl FnOnce() -> T) -> T {
    let mut children = children();
    let reaped = reap();
    if let Some(children) = children.as_mut() {
        children.remove(&pid);
    }
    reaped
}

/// The same if the child has ended already: `reap` returns none if it has not.
pub fn on_exit_if_ended<T>(
    pid: u32,
    reap: impl FnOnce() -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    let mut children = children();
    let reaped = reap()?;
    if let (Some(children), Some(_)) = (children.as_mut(), &reaped) {
        children.remove(&pid);
    }
    Ok(reaped)
}

/// Kills and reaps a child that no other code will wait for. A child that cannot be killed is treated as an orphan.
pub fn end(mut child: Child) {
    let ended = on_exit(child.id(), || child.kill().and_then(|()| child.wait()));
    drop(ended);
}

/// Calls `look` with a function that tells whether a pid is in the list. No child is started or reaped meanwhile.
pub fn with<T>(look: impl FnOnce(&dyn Fn(u32) -> bool) -> T) -> T {
    let children = children();
    look(&|pid| {
        children
            .as_ref()
            .is_some_and(|children| children.contains(&pid))
    })
}

/// Puts a pid into the list, as if a new child had been given it.
#[cfg(test)]
pub fn insert(pid: u32) {
    children().get_or_insert_default().insert(pid);
}
