//! No file that a tool leaves makes another user this one; and programs work without `openat2`.

use crate::testbed::{Testbed, testbeds};
use libc::c_long;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;

fn mode(testbed: &Testbed, name: &str) -> u32 {
    let metadata = fs::symlink_metadata(testbed.tree().join(name));
    metadata.map_or(0, |metadata| metadata.permissions().mode() & 0o7777)
}

fn refused() -> String {
    format!("errno {}", libc::EPERM)
}

#[test]
fn a_command_cannot_make_a_setuid_file() {
    for testbed in testbeds() {
        for script in [
            "chmod 4755 file",
            "chmod u+s file",
            "chmod 6755 file",
            "chmod g+s file",
            "install -m 4755 file installed",
            "cp -p kept copied",
        ] {
            // The kernel clears the bits if the owner changes.
            testbed.give_away();
            let kept = testbed.tree().join("kept");
            fs::write(&kept, "a").unwrap();
            fs::set_permissions(&kept, fs::Permissions::from_mode(0o6755)).unwrap();
            testbed.shell(script);
            for name in ["file", "installed", "copied"] {
                assert_eq!(mode(&testbed, name) & 0o6000, 0, "{script}: {name}");
            }
            // Outside of the sandbox it works, or the test shows nothing.
            testbed.plain_shell(&format!("{script}; true")).succeeds();
            let names = ["file", "installed", "copied"];
            let made = names.iter().map(|name| mode(&testbed, name) & 0o6000);
            assert_ne!(made.max(), Some(0), "{script}");
            testbed.plain_shell("chmod 0644 file; rm -f installed copied");
        }
    }
}

#[test]
fn no_call_makes_a_setuid_file() {
    let number = |call: c_long| call.to_string();
    for testbed in testbeds().into_iter().step_by(2) {
        let path = testbed.path("tree/new");
        for call in ["openat", "tmpfile", "mknodat", "fchmodat", "fchmodat2"] {
            let said = testbed.attack(&["mode", call, &path, &(SETUID | 0o755).to_string()]);
            assert_eq!(said, refused(), "{call}");
            let said = testbed.attack(&["mode", call, &path, &(SETGID | 0o755).to_string()]);
            assert_eq!(said, refused(), "{call}");
            let said = testbed.attack(&["mode", call, &path, &0o755.to_string()]);
            assert_eq!(said, "ok", "{call}");
            let _ = fs::remove_file(&path);
        }
        let said = testbed.attack(&["mode", "openat2", &path, &(SETUID | 0o755).to_string()]);
        assert_eq!(said, format!("errno {}", libc::ENOSYS));
        #[cfg(target_arch = "x86_64")]
        for call in [libc::SYS_chmod, libc::SYS_creat, libc::SYS_mknod] {
            // The filter answers before the kernel looks at the path.
            let said = testbed.attack(&["syscall", &number(call), "0", &SETUID.to_string()]);
            assert_eq!(said, refused(), "{call}");
        }
        let fchmod = number(libc::SYS_fchmod);
        let said = testbed.attack(&["syscall", &fchmod, "0", &SETUID.to_string()]);
        assert_eq!(said, refused());
    }
}

/// A tree of a group passes its group on by the setgid bit of its directories.
#[test]
fn a_tree_of_a_group_keeps_its_setgid_bit() {
    for testbed in testbeds() {
        let tree = testbed.tree();
        // Without the bit at the root, a directory that has it passes it on by itself.
        fs::create_dir(tree.join("shared")).unwrap();
        testbed.give_away();
        let group = |name| fs::set_permissions(name, fs::Permissions::from_mode(0o2775)).unwrap();
        group(tree.join("shared"));
        testbed.shell("mkdir shared/inner").succeeds();
        assert_eq!(mode(&testbed, "shared/inner") & SETGID, SETGID);
        testbed.shell("mkdir own && chmod 2775 own").fails();
        group(tree.clone());
        testbed
            .shell("chmod 2775 own && mkdir own/inner")
            .succeeds();
        assert_eq!(mode(&testbed, "own/inner") & SETGID, SETGID);
        testbed.shell("chmod 6755 file").fails();
        assert_eq!(mode(&testbed, "file") & SETUID, 0);
    }
}

#[test]
fn an_archive_is_unpacked_without_its_setuid_bits() {
    for testbed in testbeds() {
        let pack = "mkdir a && echo hi > a/plain && echo hi > a/suid && chmod 4755 a/suid \
                    && tar cf a.tar a && rm -r a";
        testbed.plain_shell(pack).succeeds();
        testbed.shell("tar xf a.tar").succeeds();
        assert_eq!(mode(&testbed, "a/suid"), 0o755);
        // Asked to keep modes, it reports the one that it cannot keep, and unpacks the rest.
        let ran = testbed.shell("rm -r a; tar xpf a.tar && exit 9; cat a/plain a/suid");
        assert!(ran.succeeds().output().ends_with("hi\nhi\n"), "{ran:?}");
        assert_eq!(mode(&testbed, "a/suid") & SETUID, 0);
    }
}

/// agentd's own workers write back modes that files had.
#[test]
fn a_program_of_agentd_keeps_its_calls() {
    for mut testbed in testbeds() {
        testbed.policy.is_own_program = true;
        let path = testbed.path("tree/new");
        let said = testbed.attack(&["mode", "openat2", &path, &0o755.to_string()]);
        assert_eq!(said, "ok");
        testbed.shell("chmod 4755 file").succeeds();
        assert_eq!(mode(&testbed, "file"), 0o4755);
    }
}
