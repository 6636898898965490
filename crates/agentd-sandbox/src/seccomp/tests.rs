//! The filter, run by an interpreter of the few instructions that it uses: each number gets the answer of its rule.

use super::*;

const ALL: [Sockets; 3] = [Sockets::All, Sockets::Internet, Sockets::None];
const MODES: [Modes; 3] = [Modes::Any, Modes::NoSetuid, Modes::NoSetuidOrSetgid];
/// Higher than the number of any system call.
const NUMBERS: u32 = 1_000;

/// The first arguments of a call.
struct Args([u32; 4]);

impl From<[u32; 2]> for Args {
    fn from([first, second]: [u32; 2]) -> Self {
        Self([first, second, 0, 0])
    }
}

impl From<[u32; 4]> for Args {
    fn from(args: [u32; 4]) -> Self {
        Self(args)
    }
}

/// What the kernel would answer. The program is checked as the kernel checks it: a jump past the end is a panic.
fn answer(filter: &[sock_filter], arch: u32, call: u32, args: impl Into<Args>) -> u32 {
    let Args(args) = args.into();
    let field = |at| match at {
        NUMBER_AT => call,
        ARCH_AT => arch,
        at => {
            let argument = (0..4).find(|argument| argument_at(*argument) == at);
            let argument = argument.unwrap_or_else(|| panic!("loads from {at}"));
            args[argument as usize]
        }
    };
    let (mut at, mut loaded) = (0, 0);
    loop {
        let sock_filter { code, jt, jf, k } = filter[at];
        let jumped = |is: bool| usize::from(if is { jt } else { jf });
        at += 1;
        match u32::from(code) {
            code if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS => loaded = field(k),
            code if code == libc::BPF_ALU | libc::BPF_AND | libc::BPF_K => loaded &= k,
            code if code == libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K => {
                at += jumped(loaded == k)
            }
            code if code == libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K => {
                at += jumped(loaded >= k)
            }
            code if code == libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K => at += jumped(loaded > k),
            code if code == libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K => {
                at += jumped(loaded & k != 0);
            }
            code if code == libc::BPF_RET | libc::BPF_K => return k,
            code => panic!("instruction {code:#x}"),
        }
    }
}

#[test]
fn each_refused_call_is_refused_and_every_other_is_allowed() {
    let each = |sockets| MODES.map(|modes| (sockets, modes));
    for (sockets, modes) in ALL.into_iter().flat_map(each) {
        let filter = filter(sockets, modes);
        let named = rules(sockets, modes);
        for call in 0..NUMBERS {
            let is_refused = REFUSED.contains(&c_long::from(call));
            let expected = match c_long::from(call) {
                libc::SYS_clone3 => errno(libc::ENOSYS),
                libc::SYS_openat2 if modes != Modes::Any => errno(libc::ENOSYS),
                _ if is_refused => errno(libc::EPERM),
                _ if named.iter().any(|rule| rule.first == call) => continue,
                _ => libc::SECCOMP_RET_ALLOW,
            };
            assert_eq!(answer(&filter, ARCH, call, [0; 2]), expected, "{call}");
        }
    }
}

#[test]
fn calls_are_judged_by_their_arguments() {
    let refused = errno(libc::EPERM);
    let allowed = libc::SECCOMP_RET_ALLOW;
    let judge = |sockets, call: c_long, args: [u32; 2]| {
        let call = u32::try_from(call).unwrap();
        answer(&filter(sockets, Modes::Any), ARCH, call, args)
    };
    let all = |call, args| judge(Sockets::All, call, args);
    let namespace = libc::CLONE_NEWUSER as u32;
    assert_eq!(all(libc::SYS_clone, [namespace | 17, 0]), refused);
    assert_eq!(all(libc::SYS_clone, [17, 0]), allowed);
    assert_eq!(all(libc::SYS_unshare, [NEW_TIME, 0]), refused);
    assert_eq!(
        all(libc::SYS_unshare, [libc::CLONE_FILES as u32, 0]),
        allowed
    );
    assert_eq!(all(libc::SYS_ioctl, [0, libc::TIOCSTI as u32]), refused);
    assert_eq!(all(libc::SYS_ioctl, [0, libc::TIOCGWINSZ as u32]), allowed);
    assert_eq!(
        all(libc::SYS_socketpair, [0, libc::SOCK_DGRAM as u32]),
        allowed
    );
    for (sockets, unix, internet) in [
        (Sockets::All, allowed, allowed),
        (Sockets::Internet, refused, allowed),
        (Sockets::None, refused, refused),
    ] {
        let family = |family: i32| judge(sockets, libc::SYS_socket, [family as u32, 0]);
        assert_eq!(family(libc::AF_UNIX), unix);
        assert_eq!(family(libc::AF_INET6), internet);
        assert_eq!(family(libc::AF_VSOCK), refused);
    }
    let pair = (libc::SOCK_DGRAM | libc::SOCK_CLOEXEC) as u32;
    assert_eq!(
        judge(Sockets::None, libc::SYS_socketpair, [0, pair]),
        refused
    );
}

#[test]
fn another_architecture_ends_the_process() {
    let killed = libc::SECCOMP_RET_KILL_PROCESS;
    let filter = filter(Sockets::All, Modes::NoSetuid);
    assert_eq!(answer(&filter, ARCH ^ 1, 0, [0; 2]), killed);
    #[cfg(target_arch = "x86_64")]
    assert_eq!(answer(&filter, ARCH, X32 | 1, [0; 2]), errno(libc::ENOSYS));
}

#[test]
fn every_jump_fits_its_eight_bits() {
    for sockets in ALL {
        for modes in MODES {
            // The longest jump is over the lower half of the rules.
            let rules = joined(rules(sockets, modes));
            let mut lower = Program::default();
            lower.search(&rules[..rules.len() / 2]);
            assert!(lower.0.len() < usize::from(u8::MAX));
        }
    }
}

/// `umask` does not matter: the filter sees what the program asks for.
#[test]
fn no_mode_makes_a_file_run_as_its_owner() {
    let create = libc::O_CREAT as u32;
    let unnamed = libc::O_TMPFILE as u32;
    let at = libc::AT_FDCWD as u32;
    // Each call with a mode as its argument, or none.
    let mut calls: Vec<(c_long, [u32; 4], Option<usize>)> = vec![
        (libc::SYS_fchmod, [3, 0, 0, 0], Some(1)),
        (libc::SYS_fchmodat, [at, 1, 0, 0], Some(2)),
        (452, [at, 1, 0, 0], Some(2)),
        (libc::SYS_mknodat, [at, 1, 0, 0], Some(2)),
        (libc::SYS_openat, [at, 1, create, 0], Some(3)),
        (libc::SYS_openat, [at, 1, unnamed, 0], Some(3)),
        (libc::SYS_openat, [at, 1, 0, 0o7777], None),
        (
            libc::SYS_openat,
            [at, 1, libc::O_DIRECTORY as u32, 0o7777],
            None,
        ),
        // The kernel takes neither bit from a new directory's mode, and passes the group's on by itself.
        (libc::SYS_mkdirat, [at, 1, 0o6777, 0], None),
    ];
    #[cfg(target_arch = "x86_64")]
    calls.extend([
        (libc::SYS_chmod, [1, 0, 0, 0], Some(1)),
        (libc::SYS_creat, [1, 0, 0, 0], Some(1)),
        (libc::SYS_mknod, [1, 0, 0, 0], Some(1)),
        (libc::SYS_open, [1, create, 0, 0], Some(2)),
        (libc::SYS_open, [1, unnamed, 0, 0], Some(2)),
        (libc::SYS_open, [1, 0, 0o7777, 0], None),
    ]);
    for modes in MODES {
        let filter = filter(Sockets::All, modes);
        for (call, args, mode) in &calls {
            let number = u32::try_from(*call).unwrap();
            for (bits, is_refused) in [
                (0o1777, false),
                (0o4755, modes != Modes::Any),
                (0o2755, modes == Modes::NoSetuidOrSetgid),
                (0o6755, modes != Modes::Any),
            ] {
                let mut args = *args;
                if let Some(mode) = mode {
                    args[*mode] = bits;
                }
                let expected = match is_refused && mode.is_some() {
                    true => errno(libc::EPERM),
                    false => libc::SECCOMP_RET_ALLOW,
                };
                let answer = answer(&filter, ARCH, number, args);
                assert_eq!(answer, expected, "{call} {bits:o} {modes:?}");
            }
        }
    }
}
