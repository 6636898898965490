//! The system calls that a process outside the sandbox may not make: those that could uncover agentd's own state, or make
//! a namespace in which it could be uncovered.

use super::{NEW_NAMESPACES, NEW_TIME, Program, Rule, SYS_OPEN_TREE_ATTR, of_rules, rule};
use libc::{c_long, sock_filter};

const REFUSED: &[c_long] = &[
    libc::SYS_setns,
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
    libc::SYS_open_by_handle_at,
];

/// The filter, ready to install.
pub fn outside() -> Vec<sock_filter> {
    let refused = REFUSED.iter().map(|call| (*call, libc::EPERM));
    let refused = refused.chain([(libc::SYS_clone3, libc::ENOSYS)]);
    let refused = refused.map(|(call, number)| rule(call, Program::refuse(number)));
    let mut rules: Vec<Rule> = refused.collect();
    rules.push(rule(libc::SYS_clone, Program::refuse_bits(NEW_NAMESPACES)));
    let unshared = NEW_NAMESPACES | NEW_TIME;
    rules.push(rule(libc::SYS_unshare, Program::refuse_bits(unshared)));
    of_rules(rules)
}
