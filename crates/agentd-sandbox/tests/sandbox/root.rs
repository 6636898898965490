//! Root without capabilities still owns files: what its modes do not close, the view does.

use crate::world::{World, can, is_root, worlds};
use std::path::Path;

fn root_world() -> Option<World> {
    if !is_root() {
        println!("skipped: not root");
        return None;
    }
    can("namespaces").then(|| World::elsewhere(None))
}

#[test]
fn kernel_settings_are_not_writable() {
    for world in worlds() {
        for path in [
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/kernel/hostname",
            "/proc/sys/vm/drop_caches",
        ] {
            assert_ne!(world.attack(&["write", path, "x"]), "ok", "{path}");
        }
        for path in [
            "/proc/sysrq-trigger",
            "/sys/fs/cgroup/cgroup.procs",
            "/proc/irq/0/smp_affinity",
        ] {
            if Path::new(path).exists() {
                assert_ne!(world.attack(&["write", path, "h"]), "ok", "{path}");
            }
        }
        world.shell("mkdir /sys/fs/cgroup/mine").fails();
    }
}

#[test]
fn password_hashes_and_host_keys_are_closed() {
    let Some(world) = root_world() else { return };
    world.shell("cat /etc/passwd").succeeds();
    for path in ["/etc/shadow", "/etc/gshadow", "/etc/shadow-"] {
        if Path::new(path).exists() {
            assert_eq!(world.plain_attack(&["read", path]), "ok");
            assert_eq!(
                world.attack(&["read", path]),
                format!("errno {}", libc::EACCES),
                "{path}"
            );
        }
    }
    let ran = world.shell("cat /etc/ssh/ssh_host_*_key");
    assert!(!ran.output().contains("PRIVATE KEY"), "{ran:?}");
}

#[test]
fn block_devices_are_closed() {
    let Some(world) = root_world() else { return };
    // A node that root made on the host, in the work tree.
    let node = world.path("tree/node");
    if world.plain_attack(&["device", &node, "b", "254", "0"]) != "ok" {
        println!("skipped: no device node can be made here");
        return;
    }
    assert_eq!(
        world.attack(&["read", &node]),
        format!("errno {}", libc::EACCES)
    );
    assert_ne!(world.attack(&["device", "mine", "b", "254", "0"]), "ok");
    assert_ne!(world.attack(&["device", "/tmp/mine", "c", "1", "1"]), "ok");
    let ran = world.shell("find / -type b 2>/dev/null");
    assert_eq!(ran.output().trim(), node);
}

#[test]
fn kernel_memory_is_closed() {
    let Some(world) = root_world() else { return };
    world.shell("head -c 64 /proc/kcore").fails();
    let ran = world.shell("cat /proc/timer_list /proc/vmallocinfo /proc/keys | wc -c");
    assert_eq!(ran.output().trim(), "0");
    let ran = world.shell("grep -vc '^0000000000000000 ' /proc/kallsyms");
    assert_eq!(ran.output().trim(), "0", "addresses of the kernel");
}

#[test]
fn tar_extracts_as_root_without_capabilities() {
    let Some(world) = root_world() else { return };
    let script = "set -e; mkdir d; echo x > d/f; tar cf d.tar --owner=1234 --group=1234 d; rm -r d; tar xf d.tar; cat d/f";
    assert_eq!(world.shell(script).succeeds().output(), "x\n");
}
