//! System calls that are refused, for root and for ordinary users.

use crate::testbed::testbeds;
use libc::c_long;

#[track_caller]
fn refused(args: &[&str], errno: i32) {
    for testbed in testbeds().into_iter().step_by(2) {
        let said = testbed.attack(args);
        assert_eq!(
            said,
            format!("errno {errno}"),
            "{args:?} user={:?}",
            testbed.user
        );
    }
}

#[track_caller]
fn call_refused(call: c_long, args: &[&str]) {
    let call = call.to_string();
    let args: Vec<&str> = ["syscall", call.as_str()]
        .iter()
        .chain(args)
        .copied()
        .collect();
    refused(&args, libc::EPERM);
}

#[test]
fn ptrace() {
    // PTRACE_ATTACH and PTRACE_SEIZE.
    call_refused(libc::SYS_ptrace, &["16", "1"]);
    call_refused(libc::SYS_ptrace, &["16902", "1"]);
    call_refused(libc::SYS_process_vm_readv, &["1"]);
    call_refused(libc::SYS_process_vm_writev, &["1"]);
    call_refused(libc::SYS_pidfd_getfd, &["0", "0"]);
}

#[test]
fn new_user_namespaces() {
    for flag in [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWPID,
    ] {
        refused(&["clone", &flag.to_string()], libc::EPERM);
        call_refused(libc::SYS_unshare, &[&flag.to_string()]);
    }
    call_refused(libc::SYS_setns, &["0", "0"]);
}

/// Its flags are behind a pointer; programs fall back to clone.
#[test]
fn clone3() {
    refused(&["clone3"], libc::ENOSYS);
}

#[test]
fn mounts() {
    refused(&["mount", "/tmp"], libc::EPERM);
    refused(&["unmount", "/proc/sys"], libc::EPERM);
    for call in [
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_fsopen,
        libc::SYS_fsmount,
        libc::SYS_fsconfig,
        libc::SYS_fspick,
        libc::SYS_move_mount,
        libc::SYS_open_tree,
        libc::SYS_mount_setattr,
    ] {
        call_refused(call, &[]);
    }
}

#[test]
fn keys() {
    call_refused(libc::SYS_keyctl, &["0"]);
    call_refused(libc::SYS_add_key, &[]);
    call_refused(libc::SYS_request_key, &[]);
}

#[test]
fn modules_bpf_and_kexec() {
    for call in [
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_bpf,
        libc::SYS_kexec_load,
        libc::SYS_kexec_file_load,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_open_by_handle_at,
    ] {
        call_refused(call, &[]);
    }
}

#[test]
fn io_uring() {
    refused(&["io-uring"], libc::EPERM);
    call_refused(libc::SYS_io_uring_enter, &[]);
    call_refused(libc::SYS_io_uring_register, &[]);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_x32_interface() {
    let unshare = (0x4000_0000 | libc::SYS_unshare).to_string();
    let flag = libc::CLONE_NEWUSER.to_string();
    refused(&["syscall", &unshare, &flag], libc::ENOSYS);
}

#[test]
fn typing_into_a_terminal() {
    refused(&["keyboard"], libc::EPERM);
}

/// Neither network namespaces nor the view close them.
#[test]
fn sockets_of_other_families() {
    for family in [
        libc::AF_VSOCK,
        libc::AF_PACKET,
        libc::AF_ALG,
        libc::AF_BLUETOOTH,
    ] {
        call_refused(libc::SYS_socket, &[&family.to_string(), "1"]);
    }
}
