//! What this kernel can do, tried with real system calls, and what to change where it cannot.

use crate::sys::{self, Side};
use agentd_files::own;
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{DumpableBehavior, Pid, WaitOptions, set_dumpable_behavior, waitpid};
use std::ffi::CStr;
use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// Which features for a sandbox this machine has.
#[derive(Clone, Debug)]
pub struct Support {
    /// User, mount and PID namespaces with a `/proc` that can be mounted: what [`start`](crate::start) needs.
    pub namespaces: Result<(), Missing>,
    /// Network namespaces, which [`Network::Off`](crate::Network::Off) and a gate need in addition.
    pub network: Result<(), Missing>,
    /// Overlayfs for tool caches. Without it an agent's caches start empty.
    pub overlay: Result<(), Missing>,
    /// The Landlock ABI. [`start_without_namespaces`](crate::start_without_namespaces) and
    /// [`restrict_thread`](crate::restrict_thread) need 3; 6 closes abstract sockets and signals.
    pub landlock: Result<u32, Missing>,
}

/// What is missing, and what to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    what: &'static str,
    errno: i32,
    hint: &'static str,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = io::Error::from_raw_os_error(self.errno);
        write!(f, "{}: {error}; {}", self.what, self.hint)
    }
}

impl std::error::Error for Missing {}

/// Tries everything in forked children that only make system calls. Takes a few milliseconds; may be called from a
/// process with several threads.
pub fn support() -> Support {
    let (namespaces, overlay) = try_namespaces();
    Support {
        namespaces,
        network: try_network(),
        overlay,
        landlock: try_landlock(),
    }
}

/// A step of the probe, as the child reports it through the pipe.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tried {
    Ids,
    Mount,
    Proc,
    Attributes,
    Overlay,
    All,
}

const TRIED: &[Tried] = &[
    Tried::Ids,
    Tried::Mount,
    Tried::Proc,
    Tried::Attributes,
    Tried::Overlay,
    Tried::All,
];

type Tries = (Result<(), Missing>, Result<(), Missing>);

fn try_namespaces() -> Tries {
    let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID;
    // Made before the fork: the child must not allocate.
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    let maps = [format!("{user} {user} 1"), format!("{group} {group} 1")];
    let told = in_child(flags, |pipe| {
        let [user, group] = &maps;
        let (tried, errno) = match build(user.as_bytes(), group.as_bytes()) {
            Ok(()) => (Tried::All, 0),
            Err((tried, errno)) => (tried, errno.raw_os_error()),
        };
        let _ = rustix::io::write(pipe, &[tried as u8]);
        let _ = rustix::io::write(pipe, &errno.to_ne_bytes());
    });
    let (tried, errno) = match told {
        Ok(told) => told,
        Err(errno) => {
            let missing = missing("user, mount and PID namespaces cannot be created", errno);
            return (Err(missing.clone()), Err(missing));
        }
    };
    let what = match tried {
        Tried::All => return (Ok(()), Ok(())),
        Tried::Overlay => {
            let what = "overlayfs cannot be mounted in a user namespace";
            let hint = "tool caches of an agent start empty; it works on Linux 5.11 and later";
            return (Ok(()), Err(Missing { what, errno, hint }));
        }
        Tried::Ids => "the user's id cannot be mapped into a user namespace",
        Tried::Mount => "nothing can be mounted in a user namespace",
        Tried::Proc => "/proc cannot be mounted in a PID namespace",
        Tried::Attributes => "mounts cannot be made read-only as a whole (mount_setattr)",
    };
    let missing = match tried {
        Tried::Attributes => Missing {
            what,
            errno,
            hint: "it works on Linux 5.12 and later",
        },
        Tried::Proc
            if errno == libc::EPERM && !is("kernel/apparmor_restrict_unprivileged_userns", "1") =>
        {
            Missing {
                what,
                errno,
                hint: "in a container parts of /proc are masked: start it with \
                   `--security-opt systempaths=unconfined` (Kubernetes: `procMount: Unmasked`)",
            }
        }
        _ => missing(what, errno),
    };
    (Err(missing.clone()), Err(missing))
}

/// In the child: system calls only.
fn build(user: &[u8], group: &[u8]) -> Result<(), (Tried, Errno)> {
    let at = |tried| move |errno| (tried, errno);
    set_dumpable_behavior(DumpableBehavior::Dumpable).map_err(at(Tried::Ids))?;
    write(c"/proc/self/setgroups", b"deny").map_err(at(Tried::Ids))?;
    write(c"/proc/self/uid_map", user).map_err(at(Tried::Ids))?;
    write(c"/proc/self/gid_map", group).map_err(at(Tried::Ids))?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change(c"/", private).map_err(at(Tried::Mount))?;
    let plain = MountFlags::NOSUID | MountFlags::NODEV;
    let none: Option<&CStr> = None;
    mount(c"proc", c"/proc", c"proc", plain, none).map_err(at(Tried::Proc))?;
    mount(c"tmpfs", c"/dev", c"tmpfs", plain, none).map_err(at(Tried::Mount))?;
    let dev = open(c"/dev").map_err(at(Tried::Mount))?;
    for name in [c"/dev/lower", c"/dev/upper", c"/dev/work"] {
        rustix::fs::mkdir(name, 0o700.into()).map_err(at(Tried::Mount))?;
    }
    sys::set_mount_attributes(dev.as_fd(), libc::MOUNT_ATTR_NOEXEC, true).map_err(|error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::NOSYS);
        (Tried::Attributes, errno)
    })?;
    let layers = c"lowerdir=/dev/lower,upperdir=/dev/upper,workdir=/dev/work,userxattr";
    mount(c"overlay", c"/dev/lower", c"overlay", plain, Some(layers)).map_err(at(Tried::Overlay))
}

fn open(path: &CStr) -> Result<OwnedFd, Errno> {
    use rustix::fs::{Mode, OFlags};
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

fn write(path: &CStr, bytes: &[u8]) -> Result<(), Errno> {
    use rustix::fs::{Mode, OFlags};
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(file, bytes).map(drop)
}

fn try_network() -> Result<(), Missing> {
    let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNET;
    let told = in_child(flags, |pipe| {
        let _ = rustix::io::write(pipe, &[Tried::All as u8, 0, 0, 0, 0]);
    });
    told.map(drop)
        .map_err(|errno| missing("network namespaces cannot be created", errno))
}

/// Runs the probe in a child and reads its result.
fn in_child(flags: i32, body: impl FnOnce(BorrowedFd<'_>)) -> Result<(Tried, i32), i32> {
    let (told, pipe) = pipe_with(PipeFlags::CLOEXEC).map_err(Errno::raw_os_error)?;
    let mask = sys::block_signals();
    let side = sys::clone(flags);
    if let Ok(Side::Child) = side {
        body(pipe.as_fd());
        sys::exit(0);
    }
    sys::restore_signals(&mask);
    drop(pipe);
    let child = match side {
        Ok(Side::Parent { child }) => child,
        Ok(Side::Child) => return Err(libc::ECHILD),
        Err(error) => return Err(error.raw_os_error().unwrap_or(libc::EIO)),
    };
    let mut bytes = [0; 5];
    let mut length = 0;
    while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match rustix::io::read(&told, rest) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.raw_os_error()),
        }
    }
    if let Some(child) = Pid::from_raw(child) {
        // Another part of the process may have reaped it.
        while let Err(Errno::INTR) = waitpid(Some(child), WaitOptions::empty()) {}
    }
    let [tried, errno @ ..] = bytes;
    let tried = TRIED.get(usize::from(tried)).copied();
    // A child that writes nothing was killed.
    tried
        .filter(|_| length == bytes.len())
        .map(|tried| (tried, i32::from_ne_bytes(errno)))
        .ok_or(libc::ECHILD)
}

fn try_landlock() -> Result<u32, Missing> {
    match sys::landlock_abi() {
        Ok(abi) => Ok(abi),
        Err(error) => Err(Missing {
            what: "Landlock is not available",
            errno: error.raw_os_error().unwrap_or(libc::ENOSYS),
            hint: "it needs Linux 6.2 or later with `landlock` in the kernel's `lsm=` list (see /sys/kernel/security/lsm)",
        }),
    }
}

/// Whether a setting of the kernel has this value.
fn is(setting: &str, value: &str) -> bool {
    own::read_to_string(format!("/proc/sys/{setting}")).is_ok_and(|text| text.trim() == value)
}

/// The hint comes from the kernel's settings: an errno alone does not tell them apart.
fn missing(what: &'static str, errno: i32) -> Missing {
    let counts = [
        "user/max_user_namespaces",
        "user/max_mnt_namespaces",
        "user/max_pid_namespaces",
        "user/max_net_namespaces",
    ];
    let hint = if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        "AppArmor refuses user namespaces: set `sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or give agentd \
         an AppArmor profile that allows `userns`"
    } else if is("kernel/unprivileged_userns_clone", "0") {
        "set `sysctl kernel.unprivileged_userns_clone=1`"
    } else if errno == libc::ENOSPC || counts.iter().any(|count| is(count, "0")) {
        "raise `user.max_user_namespaces` and the other `user.max_*_namespaces` with sysctl"
    } else if errno == libc::ENOSYS || errno == libc::EINVAL {
        "the kernel was built without namespaces (CONFIG_USER_NS, CONFIG_PID_NS, CONFIG_NET_NS)"
    } else {
        "a container or a security module refuses it: in a container, start it with \
         `--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined`"
    };
    Missing { what, errno, hint }
}
