//! Without namespaces: read-only, by a Landlock allow-list.

use crate::testbed::{ATTACK, Ran, SECRET, Testbed, landlock, users};
use agentd_sandbox::Network;
use serde_json::json;
use std::net::TcpListener;
use std::os::unix::net::{UnixDatagram, UnixListener};

fn list_worlds() -> Vec<Testbed> {
    if landlock() < 3 {
        println!("skipped: this takes Landlock ABI 3");
        return Vec::new();
    }
    users().into_iter().map(Testbed::elsewhere).collect()
}

fn shell(testbed: &Testbed, script: &str) -> Ran {
    let mut job = testbed.job("/bin/sh", &["-c", script]);
    job["level"] = json!("list");
    testbed.run(job)
}

fn attack(testbed: &Testbed, args: &[&str]) -> String {
    let mut job = testbed.job(ATTACK, args);
    job["level"] = json!("list");
    testbed.run(job).output().trim().to_owned()
}

#[test]
fn the_work_tree_is_read_and_nothing_is_written() {
    for testbed in list_worlds() {
        assert_eq!(
            shell(&testbed, "cat file").succeeds().output(),
            "in the tree"
        );
        shell(&testbed, "ls / > /dev/null; echo x > /dev/null").succeeds();
        for path in [
            "file",
            "new",
            "/tmp/new",
            "/dev/shm/new",
            &testbed.path("tmp/new"),
            "/proc/sys/kernel/core_pattern",
        ] {
            shell(&testbed, &format!("echo x > {path}")).fails();
        }
        shell(&testbed, "rm -f file").fails();
        shell(&testbed, "mkdir d").fails();
        shell(&testbed, "mv file file2").fails();
    }
}

#[test]
fn what_is_closed_is_not_read() {
    for testbed in list_worlds() {
        for name in [
            "state/secret",
            "other/file",
            "home/.ssh/id",
            "home/private/file",
        ] {
            let path = testbed.path(name);
            shell(&testbed, &format!("cat {path}"))
                .fails()
                .has_no_secret();
        }
        assert_eq!(
            shell(
                &testbed,
                &format!("cat {}", testbed.path("state/kept/output"))
            )
            .output(),
            "kept output"
        );
        let ran = shell(&testbed, "cat /etc/shadow");
        ran.fails();
        shell(&testbed, "cat /etc/passwd").succeeds();
    }
}

#[test]
fn a_closed_path_in_a_readable_tree_is_not_read_and_its_neighbours_are() {
    for mut testbed in list_worlds() {
        testbed.policy.readable.push(testbed.root.clone());
        let other = shell(&testbed, &format!("cat {}", testbed.path("other/file")));
        assert_eq!(other.succeeds().output(), SECRET);
        let state = testbed.path("state/secret");
        shell(&testbed, &format!("cat {state}"))
            .fails()
            .has_no_secret();
    }
}

#[test]
fn unix_sockets_are_refused() {
    for testbed in list_worlds() {
        let path = testbed.path("tree/socket");
        let _listener = UnixListener::bind(&path).unwrap();
        let datagrams = testbed.path("tree/datagrams");
        let _server = UnixDatagram::bind(&datagrams).unwrap();
        testbed.give_away();
        assert_eq!(testbed.plain_attack(&["unix", &path]), "ok");
        assert_eq!(
            attack(&testbed, &["unix", &path]),
            format!("errno {}", libc::EPERM)
        );
        assert_eq!(testbed.plain_attack(&["datagram", &datagrams]), "ok");
        assert_eq!(
            attack(&testbed, &["datagram", &datagrams]),
            format!("errno {}", libc::EPERM)
        );
    }
}

#[test]
fn the_network_is_on_or_off() {
    for mut testbed in list_worlds() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert_eq!(attack(&testbed, &["tcp", &address]), "ok");
        testbed.policy.network = Network::Off;
        assert_eq!(
            attack(&testbed, &["tcp", &address]),
            format!("errno {}", libc::EPERM)
        );
        assert_eq!(
            attack(&testbed, &["udp", &address]),
            format!("errno {}", libc::EPERM)
        );
    }
}

#[test]
fn processes_outside_are_neither_signalled_nor_read() {
    for testbed in list_worlds() {
        let pid = std::process::id().to_string();
        if landlock() >= 6 {
            assert_eq!(
                attack(&testbed, &["signal", &pid, "0"]),
                format!("errno {}", libc::EPERM)
            );
        }
        shell(&testbed, &format!("cat /proc/{pid}/environ")).fails();
        shell(&testbed, "cat /proc/$PPID/environ").fails();
        let call = libc::SYS_ptrace.to_string();
        assert_eq!(
            attack(&testbed, &["syscall", &call, "16", &pid]),
            format!("errno {}", libc::EPERM)
        );
        assert_eq!(
            attack(&testbed, &["clone", &libc::CLONE_NEWUSER.to_string()]),
            format!("errno {}", libc::EPERM)
        );
    }
}

#[test]
fn the_leader_is_the_child_and_its_end_is_told() {
    for testbed in list_worlds() {
        let ran = shell(&testbed, "exit 6");
        assert_eq!(
            ran.last["ended"],
            json!({ "code": 6, "signal": null, "child": true })
        );
        let mut job = testbed.job("/missing", &[]);
        job["level"] = json!("list");
        assert_eq!(testbed.run(job).first["error"]["step"], "Exec");
        let ran = shell(
            &testbed,
            "for fd in /proc/self/fd/*; do echo ${fd##*/}; done | sort -n | tail -1",
        );
        assert!(ran.output().trim().parse::<u32>().unwrap() <= 3, "{ran:?}");
        let ran = shell(&testbed, "grep CapEff /proc/self/status");
        assert_eq!(ran.output(), "CapEff:\t0000000000000000\n");
    }
}
