//! The system calls that have no safe wrapper elsewhere. The only module with `unsafe` code besides the probe.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// Which side of a [`clone`] this is.
pub enum Side {
    Parent { child: i32 },
    Child,
}

/// Forks, with new namespaces as the flags say.
///
/// The child shares no memory with its parent. In a process with several threads it may only make system calls.
pub fn clone(namespaces: libc::c_int) -> io::Result<Side> {
    let flags = libc::c_long::from(namespaces) | libc::c_long::from(libc::SIGCHLD);
    let zero: libc::c_long = 0;
    #[expect(
        unsafe_code,
        reason = "the namespaces come with the fork, without exec"
    )]
    // SAFETY: without CLONE_VM and with no stack this is fork: the child runs on a copy of everything.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone, flags, zero, zero, zero, zero) })?;
    match i32::try_from(pid).unwrap_or(0) {
        0 => Ok(Side::Child),
        child => Ok(Side::Parent { child }),
    }
}

/// Moves this process, which has a single thread, to new namespaces.
pub fn unshare(namespaces: libc::c_int) -> io::Result<()> {
    #[expect(unsafe_code, reason = "unshare has no safe wrapper")]
    // SAFETY: it takes no pointer; no descriptor or memory is shared with another thread.
    check(libc::c_long::from(unsafe { libc::unshare(namespaces) })).map(drop)
}

/// Far more than needed: one or two pages are used.
const STACK: usize = 256 * 1024;

/// Runs `body` in a child that uses the memory of this process, on a stack of its own; what `body` returns is the
/// child's exit code. This process is suspended until the child has called exec or has ended. Forking, which copies the
/// memory for a child that execs at once, takes longer.
///
/// What `body` changes in memory is changed here too. Descriptors, credentials and signal masks are the child's own.
/// Call it from a process with a single thread.
pub fn spawn(body: impl FnOnce() -> i32) -> io::Result<i32> {
    extern "C" fn run<F: FnOnce() -> i32>(body: *mut c_void) -> c_int {
        #[expect(unsafe_code, reason = "an argument of clone is a pointer")]
        // SAFETY: `spawn` gave a pointer to an option of this type, and stands still while it is used.
        let body = unsafe { &mut *body.cast::<Option<F>>() };
        let body = body.take().map(AssertUnwindSafe);
        // A panic that went further would unwind into the frames of libc.
        body.map_or(1, |body| catch_unwind(body).unwrap_or(1))
    }
    fn entry<F: FnOnce() -> i32>(_: &Option<F>) -> extern "C" fn(*mut c_void) -> c_int {
        run::<F>
    }
    let mut body = Some(body);
    // Stacks grow down and are aligned to 16 bytes.
    let mut stack = vec![0_u128; STACK / size_of::<u128>()];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    #[expect(unsafe_code, reason = "clone takes a stack")]
    // SAFETY: the stack and the body live until the call returns, which is when the child no longer uses this memory.
    // The child takes the body out of its option, so that it is dropped once.
    let pid = unsafe {
        libc::clone(
            entry(&body),
            stack.as_mut_ptr_range().end.cast(),
            flags,
            (&raw mut body).cast(),
        )
    };
    check(pid.into()).map(|_| pid)
}

/// Ends the process at once: no destructor and no exit handler of the parent runs in its copy.
pub fn exit(code: i32) -> ! {
    #[expect(unsafe_code, reason = "a forked copy must not run exit handlers")]
    // SAFETY: takes no pointer and does not return.
    unsafe {
        libc::_exit(code)
    }
}

/// Closes every descriptor but these.
pub fn close_others(keep: &[RawFd]) -> io::Result<()> {
    let mut keep: Vec<u32> = keep
        .iter()
        .filter_map(|fd| u32::try_from(*fd).ok())
        .collect();
    keep.sort_unstable();
    let mut first = 0;
    for fd in keep {
        if fd > first {
            close_range(first, fd - 1)?;
        }
        first = fd + 1;
    }
    close_range(first, u32::MAX)
}

fn close_range(first: u32, last: u32) -> io::Result<()> {
    #[expect(
        unsafe_code,
        reason = "descriptors that the parent's copy owns are closed"
    )]
    // SAFETY: called in a forked copy whose owners of these descriptors never run again.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) }).map(drop)
}

/// The program gets the three standard descriptors and no other.
pub fn close_on_exec() -> io::Result<()> {
    let flag = libc::CLOSE_RANGE_CLOEXEC;
    #[expect(unsafe_code, reason = "close_range has no wrapper")]
    // SAFETY: nothing is closed before the exec, which ends every owner of a descriptor.
    check(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, flag) }).map(drop)
}

/// The signals that were blocked before.
pub struct Mask(libc::sigset_t);

fn every_signal() -> libc::sigset_t {
    let mut set = std::mem::MaybeUninit::uninit();
    #[expect(unsafe_code, reason = "sigset_t is made by libc")]
    // SAFETY: sigfillset initializes the whole set and cannot fail with a valid pointer.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Blocks every signal for this thread.
pub fn block_signals() -> Mask {
    let mut before = every_signal();
    #[expect(unsafe_code, reason = "no handler of the shim may run in its copy")]
    // SAFETY: both sets are valid for the call.
    unsafe {
        libc::sigprocmask(libc::SIG_SETMASK, &every_signal(), &mut before);
    }
    Mask(before)
}

pub fn restore_signals(mask: &Mask) {
    #[expect(unsafe_code, reason = "undoes block_signals")]
    // SAFETY: the set was filled in by sigprocmask.
    unsafe {
        libc::sigprocmask(libc::SIG_SETMASK, &mask.0, std::ptr::null_mut());
    }
}

/// Unblocks every signal, as a program expects it.
pub fn unblock_signals() {
    let mut none = every_signal();
    #[expect(unsafe_code, reason = "a program starts with no signal blocked")]
    // SAFETY: the set is valid for both calls.
    unsafe {
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// Restores the default action of every signal: the shim's handlers must not run in its fork.
pub fn reset_handlers() {
    for signal in 1..=libc::SIGRTMAX() {
        #[expect(unsafe_code, reason = "removes the shim's handlers from its copy")]
        // SAFETY: SIG_DFL is no function of ours. Signals that cannot be set are left as they are.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

/// Waits for the next signal; all of them are blocked.
pub fn wait_for_signal() -> i32 {
    #[expect(
        unsafe_code,
        reason = "PID 1 takes its signals one by one, without handlers"
    )]
    // SAFETY: the set is valid, and no details are asked for.
    unsafe {
        libc::sigwaitinfo(&every_signal(), std::ptr::null_mut())
    }
}

/// Signals every other process of the namespace. Only for PID 1 of a namespace of its own.
pub fn signal_all(signal: i32) {
    if std::process::id() != 1 {
        return;
    }
    #[expect(unsafe_code, reason = "PID 1 passes a signal on to its namespace")]
    // SAFETY: takes no pointer; as PID 1 of a PID namespace, -1 is every process inside except ourselves.
    unsafe {
        libc::kill(-1, signal);
    }
}

/// Sets attributes of a mount, and of all below it if `recursive`.
pub fn set_mount_attributes(mount: BorrowedFd<'_>, set: u64, recursive: bool) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: set,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let recursive = if recursive { libc::AT_RECURSIVE } else { 0 };
    #[expect(unsafe_code, reason = "mount_setattr has no wrapper")]
    // SAFETY: path and attributes are valid for the call, and the size is that of the attributes.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | recursive,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })
    .map(drop)
}

/// Installs a seccomp filter for this thread and all that it starts.
pub fn install_filter(filter: &[libc::sock_filter]) -> io::Result<()> {
    let length = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog {
        len: length,
        filter: filter.as_ptr().cast_mut(),
    };
    #[expect(unsafe_code, reason = "seccomp has no wrapper")]
    // SAFETY: the kernel copies `len` instructions from a slice that has as many, and writes none.
    check(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            &raw const program,
        )
    })
    .map(drop)
}

/// A program with its arguments and environment, laid out before the fork.
pub struct Image {
    program: CString,
    args: Vec<CString>,
    env: Vec<CString>,
}

impl Image {
    pub fn new(program: CString, args: Vec<CString>, env: Vec<CString>) -> Self {
        Self { program, args, env }
    }

    /// Returns only if the program cannot be run.
    pub fn exec(&self) -> io::Error {
        let args = pointers(std::iter::once(&self.program).chain(&self.args));
        let env = pointers(&self.env);
        #[expect(unsafe_code, reason = "replaces the leader by its program")]
        // SAFETY: both arrays end with a null pointer and their strings live until the call returns.
        unsafe {
            libc::execve(self.program.as_ptr(), args.as_ptr(), env.as_ptr());
        }
        io::Error::last_os_error()
    }
}

fn pointers<'a>(strings: impl IntoIterator<Item = &'a CString>) -> Vec<*const c_char> {
    let strings = strings.into_iter().map(|string| string.as_ptr());
    strings.chain([std::ptr::null()]).collect()
}

/// Brings an interface of this network namespace up.
pub fn bring_up(interface: &CStr) -> io::Result<()> {
    let domain = libc::c_long::from(libc::AF_INET);
    let kind = libc::c_long::from(libc::SOCK_DGRAM | libc::SOCK_CLOEXEC);
    #[expect(unsafe_code, reason = "an interface is brought up by an ioctl")]
    // SAFETY: `ifreq` is plain data for which all zeroes are valid; the name is shorter than its field and ends with
    // a zero; the new descriptor has no other owner.
    unsafe {
        let socket = check(libc::syscall(libc::SYS_socket, domain, kind, 0))?;
        let socket = OwnedFd::from_raw_fd(RawFd::try_from(socket).unwrap_or(-1));
        let mut request: libc::ifreq = std::mem::zeroed();
        let name = interface.to_bytes().iter();
        for (to, from) in request
            .ifr_name
            .iter_mut()
            .take(libc::IFNAMSIZ - 1)
            .zip(name)
        {
            *to = *from as c_char;
        }
        request.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_UP).unwrap_or(1);
        // Not `libc::ioctl`: the type of its second argument depends on the C library.
        check(libc::syscall(
            libc::SYS_ioctl,
            libc::c_long::from(socket.as_raw_fd()),
            libc::SIOCSIFFLAGS,
            &raw const request,
        ))?;
    }
    Ok(())
}

/// The version of Landlock that the kernel has.
pub fn landlock_abi() -> io::Result<u32> {
    const VERSION: libc::c_long = 1;
    let none = std::ptr::null::<libc::c_void>();
    #[expect(unsafe_code, reason = "asking for the version has no wrapper")]
    // SAFETY: with this flag the kernel takes no attributes.
    let abi = check(unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0, VERSION) })?;
    u32::try_from(abi).map_err(|_| io::ErrorKind::Unsupported.into())
}

/// Sends SIGIO to this process whenever an entry is created in the directory, while the descriptor is open.
///
/// By dnotify: the end of an inotify instance waits for a grace period of the kernel, which is several milliseconds.
pub fn signal_new_entries(dir: BorrowedFd<'_>) -> io::Result<()> {
    const CREATE: libc::c_int = 0x4;
    const RENAME: libc::c_int = 0x10;
    const AGAIN: libc::c_int = i32::MIN;
    let events = CREATE | RENAME | AGAIN;
    #[expect(unsafe_code, reason = "F_NOTIFY has no wrapper")]
    // SAFETY: takes no pointer.
    check(unsafe { libc::fcntl(dir.as_raw_fd(), libc::F_NOTIFY, events) }.into()).map(drop)
}
