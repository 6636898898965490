//! Starting a program in a sandbox. For the shim, which has one thread: its fork continues without exec.

use crate::error::{Error, Failed, Result, Step};
use crate::git::addresses::Places;
use crate::git::after::Repositories;
use crate::git::config_copy::ConfigCopies;
use crate::git::record::Record;
use crate::git::refused::Refused;
use crate::init::{self, Ids, Init};
use crate::leader::{self, Confined, Leader};
use crate::policy::{Extent, Network, Policy};
use crate::seccomp::{Modes, Sockets, filter, outside};
use crate::sys::{self, Image, Side};
use crate::view::{User, View, What};
use crate::{gate, privileges};
use libc::sock_filter;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS;

/// A program to run in a sandbox.
#[derive(Debug)]
pub struct Program {
    /// An absolute path, as the sandbox sees it; there is no search in `PATH`.
    pub path: PathBuf,
    pub args: Vec<String>,
    /// The whole environment: nothing is inherited.
    pub env: BTreeMap<String, String>,
    /// An absolute path, as the sandbox sees it.
    pub cwd: PathBuf,
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

/// A running sandbox. Dropping it does not end it.
#[derive(Debug)]
pub struct Started {
    pid: u32,
    /// `None` if the leader itself is the child.
    report: Option<OwnedFd>,
    gate: Option<OwnedFd>,
    /// `None` without namespaces: the program cannot write.
    repositories: Option<Repositories>,
}

/// How a leader ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Exited(i32),
    Killed { signal: i32 },
}

impl Started {
    /// The child of the caller: the init of the sandbox, or the leader itself without namespaces. The caller waits for
    /// it and signals it. SIGTERM reaches all processes inside; SIGKILL ends them.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The listener of [`Network::Gate`], returned once. Connections wait until the caller serves it.
    pub fn gate(&mut self) -> Option<OwnedFd> {
        self.gate.take()
    }

    /// To be called when the child has ended. Moves away what would make the user's git run a program, makes
    /// repositories that the tool made harmless, adds the settings to repositories that a tool may add, and says what was
    /// refused. A running sandbox that plants something moves it away itself and ends as if by SIGSYS.
    pub fn clean_up(&self) -> Refused {
        let repositories = self.repositories.as_ref();
        repositories.map(Repositories::clean_up).unwrap_or_default()
    }

    /// How the leader ended; to be called when the child has ended. None if the leader ended as the child did: it was
    /// the child, or was killed with it.
    pub fn leader_ended(&self) -> Option<Ended> {
        let mut status = [0; 4];
        match rustix::io::read(self.report.as_ref()?, &mut status) {
            Ok(4) => {
                let status = i32::from_ne_bytes(status);
                if libc::WIFSIGNALED(status) {
                    let signal = libc::WTERMSIG(status);
                    return Some(Ended::Killed { signal });
                }
                Some(Ended::Exited(libc::WEXITSTATUS(status)))
            }
            _ => None,
        }
    }
}

/// Starts the program in namespaces of its own, under Landlock and seccomp.
///
/// `enter` runs first in the init, while the init has all descriptors of the caller; it can join a cgroup. `limit` runs
/// in the leader directly before its exec, when only the standard descriptors are left; it can set resource limits. Call it from a process with a single thread. An error means that nothing is left running.
pub fn start(
    policy: &Policy,
    program: Program,
    enter: impl FnOnce() -> io::Result<()>,
    limit: impl FnOnce() -> io::Result<()>,
) -> Result<Started> {
    let user = User::current();
    let mut view = View::plan(policy, user)?;
    let repositories = repositories(&mut view, policy)?;
    let filter = match policy.extent {
        Extent::Listed => filter(Sockets::All, modes(policy)),
        Extent::Everything => outside(),
    };
    let leader = prepare(program, user, filter)?;
    let (failures, told) = pipe(PipeFlags::CLOEXEC)?;
    let (report, status) = pipe(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let shim = pidfd_open(rustix::process::getpid(), PidfdFlags::empty());
    let (outside, inside) = match policy.network {
        Network::Gate { .. } => {
            let pair = gate::pair().map_err(|error| Failed::new(Step::Prepare, error))?;
            (Some(pair.0), Some(pair.1))
        }
        Network::On | Network::Off => (None, None),
    };
    let init = Init {
        policy,
        view: &view,
        user,
        ids: Ids::current(),
        leader,
        shim: shim.map_err(|errno| Failed::new(Step::Prepare, errno))?,
        failures: told,
        report: status,
        gate: inside,
    };
    let network = match policy.network {
        Network::On => 0,
        Network::Off | Network::Gate { .. } => libc::CLONE_NEWNET,
    };
    let pid = fork(NAMESPACES | network, move || init::run(init, enter, limit))?;
    wait_for_exec(pid, &failures)?;
    Ok(Started {
        pid: pid.as_raw_nonzero().get().unsigned_abs(),
        report: Some(report),
        // Without it the program runs without a network.
        gate: outside.and_then(|outside| gate::take(&outside).ok()),
        repositories: Some(repositories),
    })
}

/// Starts the program on a kernel without namespaces: it reads what the policy shows and writes nothing but devices
/// such as `/dev/null`. It can make no Unix socket, and no socket at all where the network is off. It sees the names of
/// other processes. Needs Landlock ABI 3. `limit` is as in [`start`], and may join a cgroup as well: descriptors are
/// closed by the exec.
pub fn start_without_namespaces(
    policy: &Policy,
    program: Program,
    limit: impl FnOnce() -> io::Result<()>,
) -> Result<Started> {
    let user = User::current();
    let view = View::plan(policy, user)?;
    let sockets = match policy.network {
        Network::On => Sockets::Internet,
        // There is no network to make a gate for.
        Network::Off | Network::Gate { .. } => Sockets::None,
    };
    if policy.extent == Extent::Everything {
        // The state of agentd cannot be hidden.
        let path = PathBuf::from("/");
        let why = "everything but agentd's own state can be shown only with namespaces";
        return Err(Error::Policy { path, why });
    }
    let leader = prepare(program, user, filter(sockets, modes(policy)))?;
    let (failures, told) = pipe(PipeFlags::CLOEXEC)?;
    let pid = fork(0, || {
        sys::reset_handlers();
        let confined = match user {
            User::Root => privileges::drop_capabilities(),
            User::Ordinary => privileges::gain_nothing(),
        };
        let failed = match confined {
            Ok(()) => leader::exec(&leader, Confined::List(&view, policy), limit),
            Err(failed) => failed,
        };
        init::fail(&told, &failed)
    })?;
    drop(told);
    wait_for_exec(pid, &failures)?;
    Ok(Started {
        pid: pid.as_raw_nonzero().get().unsigned_abs(),
        report: None,
        gate: None,
        repositories: None,
    })
}

/// Holds the repositories, and gives the tool copies of their configurations. What was planted in one before and cannot be
/// moved away keeps every tool from starting.
fn repositories(view: &mut View, policy: &Policy) -> Result<Repositories> {
    if let Some(path) = view.with_second_name() {
        let why = "it has a second name (a hard link), by which a tool could change it; replace it by a copy of itself";
        return Err(Error::Policy { path, why });
    }
    let tmp = &policy.tmp;
    let stays = |path| Error::Policy { path, why: STAYS };
    let record = Record::at(&policy.planted);
    if let Some(path) = record.first() {
        return Err(stays(path));
    }
    let dirs = match view.is_sealed() || tmp.as_os_str().is_empty() {
        true => Vec::new(),
        false => view.with_protected_config(),
    };
    let (copies, links) = ConfigCopies::make(&dirs, tmp);
    view.at
        .extend(links.into_iter().map(|(at, to)| (at, What::Over { to })));
    let known = (!view.is_sealed()).then(|| view.known_repositories());
    let held = Repositories::hold(
        &view.git_dirs,
        &view.user_trees,
        known,
        copies,
        record,
        own_places(policy),
    );
    let held = held.map_err(|(path, errno)| Failed::at(Step::Source, &path, errno))?;
    match held.clear() {
        Some(path) => Err(stays(path)),
        None => Ok(held),
    }
}

/// Directories of agentd in which a tool can write.
fn own_places(policy: &Policy) -> Places {
    let own = [&policy.tmp, &policy.own_home].into_iter();
    let own = own.filter(|dir| !dir.as_os_str().is_empty());
    let caches = policy.caches.iter().map(|caches| &caches.upper);
    Places {
        own: own.chain(caches).chain(&policy.closed).cloned().collect(),
        ..Places::default()
    }
}

const STAYS: &str = "git would run programs that it names, and it cannot be moved away; remove it";

/// Which modes the program may give to files.
fn modes(policy: &Policy) -> Modes {
    let passes_group = |tree: &PathBuf| {
        fs::metadata(tree).is_ok_and(|tree| tree.is_dir() && tree.mode() & libc::S_ISGID != 0)
    };
    if policy.is_own_program {
        Modes::Any
    } else if policy.writable.iter().any(passes_group) {
        Modes::NoSetuid
    } else {
        Modes::NoSetuidOrSetgid
    }
}

/// As root, tar changes the owner of files by default, which needs a capability, and keeps setuid bits, which the filter
/// refuses.
const TAR_OPTIONS: (&str, &str) = ("TAR_OPTIONS", "--no-same-owner --no-same-permissions");

fn prepare(program: Program, user: User, filter: Vec<sock_filter>) -> Result<Leader> {
    let text = |text: &[u8]| {
        let why = "it contains a NUL byte";
        let path = PathBuf::from(String::from_utf8_lossy(text).into_owned());
        CString::new(text).map_err(|_| Error::Policy { path, why })
    };
    let mut env = program.env;
    if user == User::Root {
        let (key, value) = TAR_OPTIONS;
        env.entry(key.to_owned())
            .or_insert_with(|| value.to_owned());
    }
    let args = program.args.iter().map(|arg| text(arg.as_bytes()));
    let env = env.iter();
    let env = env.map(|(key, value)| text(format!("{key}={value}").as_bytes()));
    let image = Image::new(
        text(program.path.as_os_str().as_encoded_bytes())?,
        args.collect::<Result<_>>()?,
        env.collect::<Result<_>>()?,
    );
    Ok(Leader {
        program: program.path,
        image,
        cwd: program.cwd,
        streams: [program.stdin, program.stdout, program.stderr],
        filter,
    })
}

fn pipe(flags: PipeFlags) -> Result<(OwnedFd, OwnedFd)> {
    let pipe = pipe_with(flags);
    Ok(pipe.map_err(|errno| Failed::new(Step::Prepare, errno))?)
}

/// Runs `body` in a copy of this process, which exits with the code that it returns.
fn fork(namespaces: libc::c_int, body: impl FnOnce() -> i32) -> Result<Pid> {
    // Until its handlers are gone, none may run in the copy: they would write to the shim's pipes.
    let mask = sys::block_signals();
    let side = sys::clone(namespaces);
    if let Ok(Side::Child) = side {
        // Nothing of the shim may run on the way up.
        sys::exit(catch_unwind(AssertUnwindSafe(body)).unwrap_or(1));
    }
    sys::restore_signals(&mask);
    let child = match side {
        Ok(Side::Parent { child }) => Ok(child),
        Ok(Side::Child) => Err(io::Error::from_raw_os_error(libc::ECHILD)),
        Err(error) => Err(error),
    };
    let step = if namespaces == 0 {
        Step::Fork
    } else {
        Step::Namespaces
    };
    let child = child.map_err(|error| Failed::new(step, error))?;
    let pid = Pid::from_raw(child);
    Ok(pid.ok_or_else(|| Failed::new(step, Errno::CHILD))?)
}

/// Waits until the program runs, or until a step has failed and the child has ended.
fn wait_for_exec(child: Pid, failures: &OwnedFd) -> Result<()> {
    let mut told = Vec::new();
    let mut bytes = [0; 512];
    loop {
        match rustix::io::read(failures, &mut bytes) {
            Ok(0) => break,
            Ok(length) => told.extend(bytes.iter().take(length)),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Failed::new(Step::Prepare, errno).into()),
        }
    }
    let Some(failed) = Failed::decode(&told) else {
        return Ok(());
    };
    while let Err(Errno::INTR) = waitpid(Some(child), WaitOptions::empty()) {}
    Err(failed.into())
}
