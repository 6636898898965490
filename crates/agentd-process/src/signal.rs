//! Signals to a process that is known by identity.

use crate::error::{Error, Result};
use crate::identity::Identity;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, getpgrp, kill_process_group, pidfd_open, pidfd_send_signal,
};

pub use rustix::process::Signal;

/// The result of sending a signal.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    Sent,
    /// The process has ended. If another process has its pid now, that one got no signal.
    Gone,
}

/// Sends a signal to exactly that process.
pub fn signal(to: Identity, signal: Signal) -> Result<Delivery> {
    let fail = |errno| outcome_of(to, errno);
    let Some(pid) = pid(to) else {
        return Ok(Delivery::Gone);
    };
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(errno) => return fail(errno),
    };
    // Checked after the handle is open: from here on the pid may be reused, but not the handle.
    if !to.is_alive()? {
        return Ok(Delivery::Gone);
    }
    match pidfd_send_signal(handle, signal) {
        Ok(()) => Ok(Delivery::Sent),
        Err(errno) => fail(errno),
    }
}

/// Sends a signal to the whole process group of `leader`, including `leader` itself.
///
/// A group is identified by its leader, so this works until the leader is reaped: end the group first, then wait for
/// the leader. If another thread reaps the leader between the check and the signal, the signal may reach no process, or
/// another group with the same id. A process that has moved to another group is not reached.
pub fn signal_group(leader: Identity, signal: Signal) -> Result<Delivery> {
    let Some(pid) = pid(leader) else {
        return Ok(Delivery::Gone);
    };
    if leader.look()?.is_none() {
        return Ok(Delivery::Gone);
    }
    match kill_process_group(pid, signal) {
        Ok(()) => Ok(Delivery::Sent),
        Err(errno) => outcome_of(leader, errno),
    }
}

/// Kills the whole process group of a child of ours, whether its leader still exists or not, but never our own group.
/// Use it only if no other code reaps our children: a child that is not reaped keeps its group id from being reused.
pub(crate) fn kill_group_of(child: Identity) -> Result<Delivery> {
    let group = child.look()?.map_or(0, |stat| stat.group);
    let group = i32::try_from(group).ok().and_then(Pid::from_raw);
    match group {
        Some(group) if group != getpgrp() => match kill_process_group(group, Signal::KILL) {
            Ok(()) => Ok(Delivery::Sent),
            Err(errno) => outcome_of(child, errno),
        },
        _ => Ok(Delivery::Gone),
    }
}

pub(crate) fn pid(of: Identity) -> Option<Pid> {
    i32::try_from(of.pid).ok().and_then(Pid::from_raw)
}

fn outcome_of(to: Identity, errno: Errno) -> Result<Delivery> {
    match errno {
        Errno::SRCH => Ok(Delivery::Gone),
        errno => Err(Error::CannotSignal {
            pid: to.pid,
            source: errno.into(),
        }),
    }
}
