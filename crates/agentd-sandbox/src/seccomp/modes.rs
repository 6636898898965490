//! No file that makes another user who runs it this one: the modes that programs may give to files.
//!
//! A tree can be visible to other users, and the bits of its files count outside the sandbox.

use super::{Program, Rule, argument_at, errno, rule};
use libc::c_long;

/// Calls whose mode is always an argument, and which one.
const SETTING: &[(c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (SYS_FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
];

/// Calls that have a mode if their flags create a file: the argument of the flags, which the mode follows.
const OPENING: &[(c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];

/// Not in every libc. The number is the same on all architectures.
const SYS_FCHMODAT2: c_long = 452;

/// `O_TMPFILE` contains `O_DIRECTORY`, with which no file is created.
const CREATING: u32 = (libc::O_CREAT | libc::O_TMPFILE & !libc::O_DIRECTORY) as u32;

/// Which modes programs may give to files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modes {
    /// For a program of agentd, which writes modes that files had before.
    Any,
    /// In a tree that passes its group on by this bit, programs set it on new directories.
    NoSetuid,
    NoSetuidOrSetgid,
}

impl Modes {
    fn refused(self) -> u32 {
        match self {
            Self::Any => 0,
            Self::NoSetuid => libc::S_ISUID,
            Self::NoSetuidOrSetgid => libc::S_ISUID | libc::S_ISGID,
        }
    }

    pub(super) fn rules(self) -> Vec<Rule> {
        let refused = self.refused();
        if refused == 0 {
            return Vec::new();
        }
        let setting = SETTING.iter().map(|(call, mode)| {
            let mut body = Program::default();
            body.refuse_mode(*mode, refused);
            rule(*call, body)
        });
        let opening = OPENING.iter().map(|(call, flags)| {
            let mut body = Program::default();
            body.load(argument_at(*flags));
            body.jump(libc::BPF_JSET, CREATING, 1, 0);
            body.answer(libc::SECCOMP_RET_ALLOW);
            body.refuse_mode(*flags + 1, refused);
            rule(*call, body)
        });
        // Its mode is behind a pointer. Programs fall back to openat.
        let unseen = rule(libc::SYS_openat2, Program::refuse(libc::ENOSYS));
        setting.chain(opening).chain([unseen]).collect()
    }
}

impl Program {
    /// Refused if the mode has one of these bits.
    fn refuse_mode(&mut self, argument: u32, bits: u32) {
        self.load(argument_at(argument));
        self.jump(libc::BPF_JSET, bits, 0, 1);
        self.answer(errno(libc::EPERM));
        self.answer(libc::SECCOMP_RET_ALLOW);
    }
}
