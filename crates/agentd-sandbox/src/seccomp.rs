//! The system calls that no program of a sandbox may make.
//!
//! Most of them would fail without capabilities anyway; they are refused here because each has been the way out of a
//! sandbox before. The filter is a list of refusals: what is not named is allowed.

mod modes;

pub use modes::Modes;
mod outside;

pub use outside::outside;

use libc::{c_long, sock_filter};

#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xc000_00b7;

/// System calls of the x32 interface have this bit in their number, so they would match no number below.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

const NEW_NAMESPACES: u32 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u32;

/// Valid for unshare only: in clone it is part of the exit signal.
const NEW_TIME: u32 = 0x80;

/// Not in every libc: the newest of the mount calls.
const SYS_OPEN_TREE_ATTR: c_long = 467;

/// Refused with EPERM, whatever the arguments.
const REFUSED: &[c_long] = &[
    libc::SYS_setns,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    SYS_OPEN_TREE_ATTR,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_bpf,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_open_by_handle_at,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_clock_settime,
    libc::SYS_settimeofday,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Terminal requests that type into, or reconfigure, the terminal of another process.
const TERMINAL_REQUESTS: &[u32] = &[libc::TIOCSTI as u32, libc::TIOCLINUX as u32];

/// Types of sockets that stay connectable in a socket pair: a datagram can be sent to any other address.
const CONNECTABLE: &[u32] = &[libc::SOCK_DGRAM as u32, libc::SOCK_RAW as u32];

/// Which sockets programs may create. Families that are in neither list reach hypervisors, hardware and little-tested
/// parts of the kernel, and no namespace contains them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sockets {
    /// The view shows only the Unix sockets that the program may reach.
    All,
    /// Without a mount namespace Unix sockets cannot be hidden, and Landlock closes them only from ABI 9.
    Internet,
    /// Without a network namespace the network cannot be removed, so no sockets are allowed.
    None,
}

impl Sockets {
    fn families(self) -> &'static [u32] {
        const ALL: &[u32] = &[
            libc::AF_INET as u32,
            libc::AF_INET6 as u32,
            libc::AF_NETLINK as u32,
            libc::AF_UNIX as u32,
        ];
        match self {
            Self::All => ALL,
            Self::Internet => ALL.split_at(3).0,
            Self::None => &[],
        }
    }
}

/// The filter, ready to install.
pub fn filter(sockets: Sockets, modes: Modes) -> Vec<sock_filter> {
    of_rules(rules(sockets, modes))
}

fn of_rules(rules: Vec<Rule>) -> Vec<sock_filter> {
    let mut program = Program::default();
    program.load(ARCH_AT);
    program.skip_unless_equal(ARCH, 1, 0);
    program.answer(libc::SECCOMP_RET_KILL_PROCESS);
    program.load(NUMBER_AT);
    #[cfg(target_arch = "x86_64")]
    {
        program.jump(libc::BPF_JGE, X32, 0, 1);
        program.answer(errno(libc::ENOSYS));
    }
    program.search(&joined(rules));
    program.0
}

/// What runs for some system calls, and ends with an answer.
struct Rule {
    first: u32,
    last: u32,
    body: Program,
}

/// In the order of their numbers. Neighbours with the same answer are one rule.
fn joined(mut rules: Vec<Rule>) -> Vec<Rule> {
    rules.sort_unstable_by_key(|rule| rule.first);
    rules.dedup_by(|next, rule| {
        let is_same = next.first == rule.last + 1 && next.body == rule.body;
        if is_same {
            rule.last = next.last;
        }
        is_same
    });
    rules
}

fn rules(sockets: Sockets, modes: Modes) -> Vec<Rule> {
    let refused = REFUSED.iter().map(|call| (*call, libc::EPERM));
    // glibc falls back to clone, whose flags the filter can see: those of clone3 are behind a pointer.
    let refused = refused.chain([(libc::SYS_clone3, libc::ENOSYS)]);
    let refused = refused.map(|(call, number)| rule(call, Program::refuse(number)));
    let mut rules: Vec<Rule> = refused.collect();
    rules.push(rule(libc::SYS_clone, Program::refuse_bits(NEW_NAMESPACES)));
    let unshared = NEW_NAMESPACES | NEW_TIME;
    rules.push(rule(libc::SYS_unshare, Program::refuse_bits(unshared)));
    let typed = Program::refuse_values(1, u32::MAX, TERMINAL_REQUESTS);
    rules.push(rule(libc::SYS_ioctl, typed));
    let families = Program::allow_values(0, sockets.families());
    rules.push(rule(libc::SYS_socket, families));
    if sockets != Sockets::All {
        let connectable = Program::refuse_values(1, 0xf, CONNECTABLE);
        rules.push(rule(libc::SYS_socketpair, connectable));
    }
    rules.extend(modes.rules());
    rules
}

fn rule(call: c_long, body: Program) -> Rule {
    let call = u32::try_from(call).unwrap_or(u32::MAX);
    let (first, last) = (call, call);
    Rule { first, last, body }
}

/// Up to this many rules are tried one after the other; more are searched by halves.
const TRIED_IN_TURN: usize = 4;

/// Offsets in `seccomp_data`.
const NUMBER_AT: u32 = 0;
const ARCH_AT: u32 = 4;

/// The low half of an argument: each argument that the filter checks is 32 bits wide, or has no flag in the high half.
fn argument_at(argument: u32) -> u32 {
    16 + 8 * argument
}

fn errno(number: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | number.unsigned_abs()
}

/// Instructions of the kernel's packet filter. The number of the system call is loaded before a search.
#[derive(Default)]
struct Program(Vec<sock_filter>);

impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        let fields = |at: &sock_filter| (at.code, at.jt, at.jf, at.k);
        self.0.iter().map(fields).eq(other.0.iter().map(fields))
    }
}

impl Program {
    fn push(&mut self, code: u32, k: u32, jt: u8, jf: u8) {
        let code = u16::try_from(code).unwrap_or_default();
        self.0.push(sock_filter { code, jt, jf, k });
    }

    fn load(&mut self, at: u32) {
        self.push(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at, 0, 0);
    }

    fn jump(&mut self, condition: u32, k: u32, then: u8, otherwise: u8) {
        self.push(libc::BPF_JMP | condition | libc::BPF_K, k, then, otherwise);
    }

    fn skip_unless_equal(&mut self, k: u32, then: u8, otherwise: u8) {
        self.jump(libc::BPF_JEQ, k, then, otherwise);
    }

    fn answer(&mut self, action: u32) {
        self.push(libc::BPF_RET | libc::BPF_K, action, 0, 0);
    }

    /// The distance of a jump over this block. The kernel's jumps have eight bits; a test checks that this suffices.
    fn length(&self) -> u8 {
        u8::try_from(self.0.len()).unwrap_or(u8::MAX)
    }

    /// Finds the rule of a call by binary search, because the kernel runs the filter for every number when it is
    /// installed, and that takes most of the time. A call without a rule is allowed.
    fn search(&mut self, rules: &[Rule]) {
        if rules.len() <= TRIED_IN_TURN {
            for Rule { first, last, body } in rules {
                if first == last {
                    self.skip_unless_equal(*first, 0, body.length());
                } else {
                    self.jump(libc::BPF_JGE, *first, 0, body.length() + 1);
                    self.jump(libc::BPF_JGT, *last, body.length(), 0);
                }
                self.0.extend(&body.0);
            }
            self.answer(libc::SECCOMP_RET_ALLOW);
            return;
        }
        let (lower, upper) = rules.split_at(rules.len() / 2);
        let middle = upper.first().map_or(u32::MAX, |rule| rule.first);
        let mut below = Self::default();
        below.search(lower);
        self.jump(libc::BPF_JGE, middle, below.length(), 0);
        self.0.append(&mut below.0);
        self.search(upper);
    }

    fn refuse(number: i32) -> Self {
        let mut rule = Self::default();
        rule.answer(errno(number));
        rule
    }

    /// Refused if the first argument has one of these bits.
    fn refuse_bits(bits: u32) -> Self {
        let mut rule = Self::default();
        rule.load(argument_at(0));
        rule.jump(libc::BPF_JSET, bits, 0, 1);
        rule.answer(errno(libc::EPERM));
        rule.answer(libc::SECCOMP_RET_ALLOW);
        rule
    }

    /// Refused if the argument, under the mask, is one of these.
    fn refuse_values(argument: u32, mask: u32, values: &[u32]) -> Self {
        let mut rule = Self::default();
        rule.load(argument_at(argument));
        rule.push(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, mask, 0, 0);
        for value in values {
            rule.skip_unless_equal(*value, 0, 1);
            rule.answer(errno(libc::EPERM));
        }
        rule.answer(libc::SECCOMP_RET_ALLOW);
        rule
    }

    /// Refused unless the argument is one of these.
    fn allow_values(argument: u32, values: &[u32]) -> Self {
        let mut rule = Self::default();
        rule.load(argument_at(argument));
        for value in values {
            rule.skip_unless_equal(*value, 0, 1);
            rule.answer(libc::SECCOMP_RET_ALLOW);
        }
        rule.answer(errno(libc::EPERM));
        rule
    }
}

#[cfg(test)]
mod tests;
