//! Whom this process started itself and has yet to bury: everybody else who comes to it is an orphan.

use std::collections::HashSet;
use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

static BORN: Mutex<Option<HashSet<u32>>> = Mutex::new(None);

fn born() -> MutexGuard<'static, Option<HashSet<u32>>> {
    BORN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a program. Nobody takes it for an orphan, not even before it is known here.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    let mut born = born();
    let child = command.spawn()?;
    born.get_or_insert_default().insert(child.id());
    Ok(child)
}

/// Takes the pid off the list, together with what makes it free for others.
pub fn bury<T>(pid: u32, reap: impl FnOnce() -> T) -> T {
    let mut born = born();
    let reaped = reap();
    if let Some(born) = born.as_mut() {
        born.remove(&pid);
    }
    reaped
}

/// Asks of each pid whether somebody here waits for it. Nobody is born meanwhile.
pub fn with<T>(look: impl FnOnce(&dyn Fn(u32) -> bool) -> T) -> T {
    let born = born();
    look(&|pid| born.as_ref().is_some_and(|born| born.contains(&pid)))
}
