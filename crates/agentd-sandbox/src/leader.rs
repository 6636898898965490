//! The last steps of a leader before its program runs.

use crate::error::{Failed, Step};
use crate::policy::{Extent, Policy};
use crate::rules::{Writes, restrict_by_list, restrict_in_view};
use crate::sys::{self, Image};
use crate::view::View;
use libc::sock_filter;
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// A program with everything that its exec takes.
pub struct Leader {
    pub program: PathBuf,
    pub image: Image,
    pub cwd: PathBuf,
    /// Input, output and errors.
    pub streams: [OwnedFd; 3],
    pub filter: Vec<sock_filter>,
}

/// What Landlock has to restrict.
pub enum Confined<'a> {
    /// The leader sees a view of its own.
    View(&'a View),
    /// It sees the host, and Landlock decides what it can open.
    List(&'a View, &'a Policy),
}

/// Returns only if the program cannot be run.
pub fn exec(
    leader: &Leader,
    confined: Confined<'_>,
    limit: impl FnOnce() -> io::Result<()>,
) -> Failed {
    let prepared = rustix::process::setpgid(None, None)
        .map_err(|errno| Failed::new(Step::Group, errno))
        .and_then(|()| connect(&leader.streams).map_err(|errno| Failed::new(Step::Streams, errno)))
        .and_then(|()| {
            rustix::process::chdir(&leader.cwd)
                .map_err(|errno| Failed::at(Step::WorkingDir, &leader.cwd, errno))
        })
        .and_then(|()| match confined {
            // The whole host is writable for it, and abstract sockets are part of the host.
            Confined::View(view) if view.extent == Extent::Everything => Ok(()),
            Confined::View(view) => restrict_in_view(view),
            Confined::List(view, policy) => {
                restrict_by_list(view, Writes::None, policy.network, true)
            }
        })
        .and_then(|()| limit().map_err(|error| Failed::new(Step::LimitLeader, error)))
        .and_then(|()| {
            sys::close_on_exec().map_err(|error| Failed::new(Step::CloseDescriptors, error))
        })
        .and_then(|()| {
            sys::unblock_signals();
            sys::install_filter(&leader.filter).map_err(|error| Failed::new(Step::Seccomp, error))
        });
    match prepared {
        Ok(()) => Failed::at(Step::Exec, &leader.program, leader.image.exec()),
        Err(failed) => failed,
    }
}

/// Past the three standard ones, so that none is overwritten before it is copied.
const PAST_STANDARD: i32 = 3;

fn connect(streams: &[OwnedFd; 3]) -> Result<(), Errno> {
    let [input, output, errors] = streams
        .each_ref()
        .map(|stream| rustix::io::fcntl_dupfd_cloexec(stream, PAST_STANDARD));
    rustix::stdio::dup2_stdin(input?)?;
    rustix::stdio::dup2_stdout(output?)?;
    rustix::stdio::dup2_stderr(errors?)
}
