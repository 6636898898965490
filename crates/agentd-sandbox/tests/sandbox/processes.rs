//! Other processes: neither seen, signalled, traced nor read.

use crate::testbed::{Testbed, can, landlock, testbeds, users};
use std::process::{Command, Stdio};

#[test]
fn host_processes_are_invisible_and_cannot_be_signalled() {
    for testbed in testbeds() {
        let mut victim = Command::new("sleep")
            .arg("1000")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let pid = victim.id().to_string();
        let ran = testbed.shell("ls -d /proc/[0-9]* | wc -l");
        let seen: u32 = ran.succeeds().output().trim().parse().unwrap();
        assert!(seen <= 5, "{ran:?}");
        assert_eq!(
            testbed.attack(&["signal", &pid, "9"]),
            format!("errno {}", libc::ESRCH)
        );
        testbed.attack(&["signal", "-1", "15"]);
        assert!(victim.try_wait().unwrap().is_none());
        victim.kill().unwrap();
        victim.wait().unwrap();
    }
}

#[test]
fn the_init_cannot_be_read_traced_or_killed() {
    for testbed in testbeds() {
        for name in ["environ", "mem", "maps", "root/", "cwd/", "fd/0", "auxv"] {
            let read = if name.ends_with('/') { "ls" } else { "cat" };
            let script = format!("{read} /proc/1/{name}");
            testbed.shell(&script).fails();
        }
        let script =
            "for fd in /proc/1/fd/*; do if : < $fd || : >> $fd; then echo opened; fi; done; true";
        assert!(!testbed.shell(script).output().contains("opened"));
        let ran = testbed.shell("kill -9 1; kill -STOP 1; kill -HUP 1; echo alive");
        assert!(ran.succeeds().output().contains("alive"), "{ran:?}");
    }
}

#[test]
fn the_leader_leads_a_group_and_has_clean_signals() {
    for testbed in testbeds() {
        // Without the two that belong to the C library: no program can set them.
        let script = "grep -E 'SigBlk|SigIgn' /proc/self/status | tr 18 00; ps -o pid=,pgid= -p $$ | awk '{print $1 == $2}'";
        let ran = testbed.shell(script);
        let zero = "0000000000000000";
        assert_eq!(
            ran.succeeds().output(),
            format!("SigBlk:\t{zero}\nSigIgn:\t{zero}\n1\n")
        );
    }
}

#[test]
fn no_capability_is_left_and_none_can_be_gained() {
    for testbed in testbeds() {
        let ran = testbed.shell("grep -E 'Cap|NoNewPrivs|Seccomp:' /proc/self/status");
        for line in ran.succeeds().output().lines() {
            let (name, value) = line.split_once(":\t").unwrap();
            match name {
                "NoNewPrivs" => assert_eq!(value, "1"),
                "Seccomp" => assert_eq!(value, "2"),
                _ => assert_eq!(value, "0000000000000000", "{name}"),
            }
        }
        assert_ne!(testbed.attack(&["setuid", "1"]), "ok");
    }
}

#[test]
fn a_setuid_program_gains_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    if !can("namespaces") || !crate::testbed::is_root() {
        println!("skipped: making a setuid program takes root");
        return;
    }
    for user in users() {
        let testbed = Testbed::elsewhere(user);
        let id = testbed.tree().join("id");
        std::fs::copy("/usr/bin/id", &id).unwrap();
        std::os::unix::fs::chown(&id, Some(0), Some(0)).unwrap();
        std::fs::set_permissions(&id, std::fs::Permissions::from_mode(0o6755)).unwrap();
        if let Some(user) = user {
            assert_eq!(testbed.plain_shell("./id -u").succeeds().output(), "0\n");
            assert_eq!(
                testbed.shell("./id -u").succeeds().output(),
                format!("{user}\n")
            );
        }
        let ran = testbed.shell("cat /etc/shadow; su -c 'cat /etc/shadow' </dev/null; true");
        assert!(!ran.output().contains("root:"), "{ran:?}");
    }
}

#[test]
fn an_abstract_socket_of_the_host_is_unreachable() {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixListener};
    for mut testbed in testbeds() {
        let name = format!("agentd-sandbox-{}", testbed.root.display());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let _listener = UnixListener::bind_addr(&address).unwrap();
        assert_eq!(testbed.plain_attack(&["abstract", &name]), "ok");
        testbed.policy.network = agentd_sandbox::Network::Off;
        if can("network") {
            assert_ne!(testbed.attack(&["abstract", &name]), "ok");
        }
        testbed.policy.network = agentd_sandbox::Network::On;
        if landlock() < 6 {
            println!("skipped: with the network on, this takes Landlock ABI 6");
            continue;
        }
        assert_eq!(
            testbed.attack(&["abstract", &name]),
            format!("errno {}", libc::EPERM)
        );
    }
}

#[test]
fn shared_memory_and_message_queues_of_the_host_are_apart() {
    for testbed in testbeds() {
        let ran = testbed.shell("ipcmk -M 64 > /dev/null && ipcs -m | grep -c 0x");
        assert_eq!(ran.succeeds().output(), "1\n");
        let host = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
        let ours = testbed.shell("cat /proc/sysvipc/shm");
        assert_eq!(ours.output().lines().count(), 1, "{host}");
        let size = testbed.shell("df -B1 --output=size /dev/shm | tail -n 1");
        assert_eq!(size.output().trim(), (1 << 30).to_string());
    }
}
