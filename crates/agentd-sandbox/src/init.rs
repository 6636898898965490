//! The init: the first process of a sandbox, PID 1 of its namespace. A fork of the shim that never runs the shim's code
//! again.

use crate::error::{Failed, Step};
use crate::git::planted::Watch;
use crate::leader::{self, Leader};
use crate::policy::{Network, Policy};
use crate::sys;
use crate::view::{Locks, User, View, build};
use crate::{gate, privileges, reaper};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// What the init gets from the shim. All of it is created before the fork.
pub struct Init<'a> {
    pub policy: &'a Policy,
    pub view: &'a View,
    pub user: User,
    /// The user's ids on the host: the init cannot query them before they are mapped.
    pub ids: Ids,
    pub leader: Leader,
    /// Shows whether the shim is still alive.
    pub shim: OwnedFd,
    /// Receives a failed step. The leader's exec closes it without writing.
    pub failures: OwnedFd,
    /// Receives the leader's wait status.
    pub report: OwnedFd,
    /// Receives the listener of a gate.
    pub gate: Option<OwnedFd>,
}

#[derive(Clone, Copy)]
pub struct Ids {
    user: u32,
    group: u32,
}

impl Ids {
    pub fn current() -> Self {
        Self {
            user: rustix::process::geteuid().as_raw(),
            group: rustix::process::getegid().as_raw(),
        }
    }
}

/// Runs until the sandbox has ended, and returns the code to exit with.
pub fn run(
    init: Init<'_>,
    enter: impl FnOnce() -> io::Result<()>,
    limit: impl FnOnce() -> io::Result<()>,
) -> i32 {
    let Init {
        policy,
        view,
        user,
        ids,
        leader,
        shim,
        failures,
        report,
        gate,
    } = init;
    let mut keep = vec![shim.as_raw_fd(), failures.as_raw_fd(), report.as_raw_fd()];
    keep.extend(gate.iter().map(AsRawFd::as_raw_fd));
    keep.extend(leader.streams.each_ref().map(|stream| stream.as_raw_fd()));
    let prepared = enter_hook(enter)
        .and_then(|()| die_with(&shim))
        .and_then(|()| {
            sys::reset_handlers();
            sys::close_others(&keep).map_err(|error| Failed::new(Step::CloseDescriptors, error))
        })
        .and_then(|()| map(ids))
        .and_then(|()| confine(policy, view, user, gate))
        .and_then(|locks| lock_mounts(ids).map(|()| locks))
        .and_then(|locks| die_with(&shim).map(|()| locks))
        .and_then(|locks| privileges::drop_capabilities().map(|()| locks));
    let locks = match prepared {
        Ok(locks) => locks,
        Err(failed) => return fail(&failures, &failed),
    };
    let mut watch = match Watch::new(&view.git_dirs) {
        Ok(watch) => watch,
        Err((path, errno)) => return fail(&failures, &Failed::at(Step::Watch, &path, errno)),
    };
    let started = sys::spawn(|| {
        let failed = leader::exec(&leader, leader::Confined::View(view), limit);
        fail(&failures, &failed)
    });
    let pid = match started {
        Ok(pid) => pid,
        Err(error) => return fail(&failures, &Failed::new(Step::Fork, error)),
    };
    // From here on only the program holds its streams, so a reader sees their end.
    drop((leader, failures, shim));
    let code = reaper::run(pid, policy.foreground, &mut watch, &report);
    drop(locks);
    code
}

/// Reports the failed step to the shim, and returns the exit code.
pub fn fail(failures: &OwnedFd, failed: &Failed) -> i32 {
    // If this fails, the shim is gone.
    let _ = rustix::io::write(failures, &failed.encode());
    1
}

fn enter_hook(enter: impl FnOnce() -> io::Result<()>) -> Result<(), Failed> {
    enter().map_err(|error| Failed::new(Step::EnterInit, error))
}

/// The kernel kills the init when the shim dies, and with it everything inside.
fn die_with(shim: &OwnedFd) -> Result<(), Failed> {
    let tie = || {
        // From outside, the init is its own group: a signal to it does not reach the shim's.
        rustix::process::setpgid(None, None)?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent has no pid in this namespace. If it died before the line above, its descriptor shows that.
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut gone = [PollFd::new(shim, PollFlags::IN)];
        match poll(&mut gone, Some(&now))? {
            0 => Ok(()),
            _ => Err(Errno::SRCH),
        }
    };
    tie().map_err(|errno| Failed::new(Step::DieWithShim, errno))
}

fn confine(
    policy: &Policy,
    view: &View,
    user: User,
    gate: Option<OwnedFd>,
) -> Result<Locks, Failed> {
    let locks = build::enter(view, user)?;
    let loopback = || match (policy.network, gate) {
        (Network::On, _) => Ok(()),
        (Network::Gate { port }, Some(gate)) => {
            sys::bring_up(c"lo")?;
            gate::open(port, &gate)
        }
        (Network::Off | Network::Gate { .. }, _) => sys::bring_up(c"lo"),
    };
    loopback().map_err(|error| Failed::new(Step::Loopback, error))?;
    Ok(locks)
}

/// Puts the init into a copy of its mounts that belongs to another user namespace, which locks them to each other.
///
/// Otherwise the end of the sandbox would take them apart: a process of another sandbox to which a directory was passed
/// would then find in it what a mount covered.
fn lock_mounts(ids: Ids) -> Result<(), Failed> {
    sys::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)
        .map_err(|error| Failed::new(Step::Lock, error))?;
    map(ids)
}

/// The user id is the same inside and outside. Files of other users appear to belong to `nobody`.
fn map(ids: Ids) -> Result<(), Failed> {
    let map = || {
        // The shim is not dumpable, and files in /proc of such a process belong to root.
        set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        write("/proc/self/setgroups", "deny")?;
        write("/proc/self/uid_map", &map_of(ids.user))?;
        write("/proc/self/gid_map", &map_of(ids.group))?;
        // The init holds a copy of the shim's memory, which no program inside may read.
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        Ok(())
    };
    map().map_err(|error: io::Error| Failed::new(Step::MapIds, error))
}

fn map_of(id: u32) -> String {
    format!("{id} {id} 1")
}

fn write(path: &str, text: &str) -> io::Result<()> {
    std::fs::OpenOptions::new()
        .write(true)
        .open(Path::new(path))
        .and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()))
}
