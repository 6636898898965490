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

/// Modes say which files of the system others can read; root owns them all.
#[test]
fn what_others_cannot_read_in_etc_and_opt_is_closed() {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    let Some(mut testbed) = root_world() else {
        return;
    };
    let name = format!("agentd-sandbox-test-{}", std::process::id());
    let (etc, opt) = (Path::new("/etc").join(&name), Path::new("/opt").join(&name));
    let made = || {
        fs::create_dir_all(etc.join("shut"))?;
        fs::create_dir_all(opt.join("app/conf"))?;
        for (path, mode) in [
            (etc.join("token"), 0o600),
            (etc.join("group"), 0o640),
            (etc.join("open"), 0o644),
            (etc.join("shut/open"), 0o644),
            (opt.join("app/secret"), 0o600),
            (opt.join("app/conf/deep"), 0o600),
        ] {
            fs::write(&path, crate::testbed::SECRET)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        }
        fs::set_permissions(etc.join("shut"), fs::Permissions::from_mode(0o700))
    };
    let made = made();
    let ran = made.is_ok().then(|| {
        let read = format!(
            "cat {0}/* {0}/shut/* {1}/*/* {1}/*/*/* 2>/dev/null",
            etc.display(),
            opt.display()
        );
        let closed = testbed.shell(&format!("{read} | grep -c ."));
        let seen = testbed.plain_shell(&format!("{read} | grep -o canary | wc -l"));
        // The user's own work in such a directory, and a file that is listed by name.
        testbed.policy.readable.push(opt.join("app"));
        testbed.policy.readable.push(etc.join("token"));
        let given = testbed.shell(&format!(
            "cat {}/app/secret {}/token",
            opt.display(),
            etc.display()
        ));
        (closed, seen, given)
    });
    let removed = [fs::remove_dir_all(&etc), fs::remove_dir_all(&opt)];
    let Some((closed, seen, given)) = ran else {
        println!("skipped: /etc and /opt cannot be written: {made:?}");
        return;
    };
    assert!(removed.iter().all(Result::is_ok), "{removed:?}");
    assert_eq!(closed.output(), "1\n", "only the file that others can read");
    assert_eq!(seen.output(), "6\n");
    assert_eq!(given.output(), crate::testbed::SECRET.repeat(2));
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
