//! Root without capabilities still owns files: the view closes those that file modes do not protect from it.

use crate::testbed::{Testbed, can, is_root, testbeds};
use std::path::Path;

fn root_world() -> Option<Testbed> {
    if !is_root() {
        println!("skipped: not root");
        return None;
    }
    can("namespaces").then(|| Testbed::elsewhere(None))
}

#[test]
fn kernel_settings_are_not_writable() {
    for testbed in testbeds() {
        for path in [
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/kernel/hostname",
            "/proc/sys/vm/drop_caches",
        ] {
            assert_ne!(testbed.attack(&["write", path, "x"]), "ok", "{path}");
        }
        for path in [
            "/proc/sysrq-trigger",
            "/sys/fs/cgroup/cgroup.procs",
            "/proc/irq/0/smp_affinity",
        ] {
            if Path::new(path).exists() {
                assert_ne!(testbed.attack(&["write", path, "h"]), "ok", "{path}");
            }
        }
        testbed.shell("mkdir /sys/fs/cgroup/mine").fails();
    }
}

#[test]
fn password_hashes_and_host_keys_are_closed() {
    let Some(testbed) = root_world() else { return };
    testbed.shell("cat /etc/passwd").succeeds();
    for path in ["/etc/shadow", "/etc/gshadow", "/etc/shadow-"] {
        if Path::new(path).exists() {
            assert_eq!(testbed.plain_attack(&["read", path]), "ok");
            assert_eq!(
                testbed.attack(&["read", path]),
                format!("errno {}", libc::EACCES),
                "{path}"
            );
        }
    }
    let ran = testbed.shell("cat /etc/ssh/ssh_host_*_key");
    assert!(!ran.output().contains("PRIVATE KEY"), "{ran:?}");
}

#[test]
fn block_devices_are_closed() {
    let Some(testbed) = root_world() else { return };
    // A node that root made on the host, in the work tree.
    let node = testbed.path("tree/node");
    if testbed.plain_attack(&["device", &node, "b", "254", "0"]) != "ok" {
        println!("skipped: no device node can be made here");
        return;
    }
    assert_eq!(
        testbed.attack(&["read", &node]),
        format!("errno {}", libc::EACCES)
    );
    assert_ne!(testbed.attack(&["device", "mine", "b", "254", "0"]), "ok");
    assert_ne!(
        testbed.attack(&["device", "/tmp/mine", "c", "1", "1"]),
        "ok"
    );
    let ran = testbed.shell("find / -type b 2>/dev/null");
    assert_eq!(ran.output().trim(), node);
}

#[test]
fn kernel_memory_is_closed() {
    let Some(testbed) = root_world() else { return };
    testbed.shell("head -c 64 /proc/kcore").fails();
    let ran = testbed.shell("cat /proc/timer_list /proc/vmallocinfo /proc/keys | wc -c");
    assert_eq!(ran.output().trim(), "0");
    let ran = testbed.shell("grep -vc '^0000000000000000 ' /proc/kallsyms");
    assert_eq!(ran.output().trim(), "0", "addresses of the kernel");
}

#[test]
fn tar_extracts_as_root_without_capabilities() {
    let Some(testbed) = root_world() else { return };
    let script = "set -e; mkdir d; echo x > d/f; tar --mode=4755 -cf d.tar --owner=1234 --group=1234 d; rm -r d; tar xf d.tar; cat d/f";
    assert_eq!(testbed.shell(script).succeeds().output(), "x\n");
}
