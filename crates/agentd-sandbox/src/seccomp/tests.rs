//! The filter, run by an interpreter of the few instructions that it uses: each number gets the answer of its rule.

use super::*;

const ALL: [Sockets; 3] = [Sockets::All, Sockets::Internet, Sockets::None];
/// Higher than the number of any system call.
const NUMBERS: u32 = 1_000;

/// What the kernel would answer. The program is checked as the kernel checks it: a jump past the end is a panic.
fn answer(filter: &[sock_filter], arch: u32, call: u32, args: [u32; 2]) -> u32 {
    let field = |at| match at {
        NUMBER_AT => call,
        ARCH_AT => arch,
        at if at == argument_at(0) => args[0],
        at if at == argument_at(1) => args[1],
        at => panic!("loads from {at}"),
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
    for sockets in ALL {
        let filter = filter(sockets);
        let named = rules(sockets);
        for call in 0..NUMBERS {
            let is_refused = REFUSED.contains(&c_long::from(call));
            let expected = match c_long::from(call) {
                libc::SYS_clone3 => errno(libc::ENOSYS),
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
    let judge = |sockets, call: c_long, args| {
        let call = u32::try_from(call).unwrap();
        answer(&filter(sockets), ARCH, call, args)
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
    assert_eq!(answer(&filter(Sockets::All), ARCH ^ 1, 0, [0; 2]), killed);
    #[cfg(target_arch = "x86_64")]
    assert_eq!(
        answer(&filter(Sockets::All), ARCH, X32 | 1, [0; 2]),
        errno(libc::ENOSYS)
    );
}

#[test]
fn every_jump_fits_its_eight_bits() {
    for sockets in ALL {
        assert!(filter(sockets).len() < usize::from(u8::MAX));
    }
}
