//! Without namespaces: read-only, by a Landlock allow-list.

use crate::world::{ATTACK, Ran, SECRET, World, landlock, users};
use agentd_sandbox::Network;
use serde_json::json;
use std::net::TcpListener;
use std::os::unix::net::{UnixDatagram, UnixListener};

fn list_worlds() -> Vec<World> {
    if landlock() < 3 {
        println!("skipped: this takes Landlock ABI 3");
        return Vec::new();
    }
    users().into_iter().map(World::elsewhere).collect()
}

fn shell(world: &World, script: &str) -> Ran {
    let mut job = world.job("/bin/sh", &["-c", script]);
    job["level"] = json!("list");
    world.run(job)
}

fn attack(world: &World, args: &[&str]) -> String {
    let mut job = world.job(ATTACK, args);
    job["level"] = json!("list");
    world.run(job).output().trim().to_owned()
}

#[test]
fn the_work_tree_is_read_and_nothing_is_written() {
    for world in list_worlds() {
        assert_eq!(shell(&world, "cat file").succeeds().output(), "in the tree");
        shell(&world, "ls / > /dev/null; echo x > /dev/null").succeeds();
        for path in [
            "file",
            "new",
            "/tmp/new",
            "/dev/shm/new",
            &world.path("tmp/new"),
            "/proc/sys/kernel/core_pattern",
        ] {
            shell(&world, &format!("echo x > {path}")).fails();
        }
        shell(&world, "rm -f file").fails();
        shell(&world, "mkdir d").fails();
        shell(&world, "mv file file2").fails();
    }
}

#[test]
fn what_is_closed_is_not_read() {
    for world in list_worlds() {
        for name in [
            "state/secret",
            "other/file",
            "home/.ssh/id",
            "home/private/file",
        ] {
            let path = world.path(name);
            shell(&world, &format!("cat {path}"))
                .fails()
                .has_no_secret();
        }
        assert_eq!(
            shell(&world, &format!("cat {}", world.path("state/kept/output"))).output(),
            "kept output"
        );
        let ran = shell(&world, "cat /etc/shadow");
        ran.fails();
        shell(&world, "cat /etc/passwd").succeeds();
    }
}

#[test]
fn a_closed_path_in_a_readable_tree_is_not_read_and_its_neighbours_are() {
    for mut world in list_worlds() {
        world.policy.readable.push(world.root.clone());
        let other = shell(&world, &format!("cat {}", world.path("other/file")));
        assert_eq!(other.succeeds().output(), SECRET);
        let state = world.path("state/secret");
        shell(&world, &format!("cat {state}"))
            .fails()
            .has_no_secret();
    }
}

#[test]
fn unix_sockets_are_refused() {
    for world in list_worlds() {
        let path = world.path("tree/socket");
        let _listener = UnixListener::bind(&path).unwrap();
        let datagrams = world.path("tree/datagrams");
        let _server = UnixDatagram::bind(&datagrams).unwrap();
        world.give_away();
        assert_eq!(world.plain_attack(&["unix", &path]), "ok");
        assert_eq!(
            attack(&world, &["unix", &path]),
            format!("errno {}", libc::EPERM)
        );
        assert_eq!(world.plain_attack(&["datagram", &datagrams]), "ok");
        assert_eq!(
            attack(&world, &["datagram", &datagrams]),
            format!("errno {}", libc::EPERM)
        );
    }
}

#[test]
fn the_network_is_on_or_off() {
    for mut world in list_worlds() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert_eq!(attack(&world, &["tcp", &address]), "ok");
        world.policy.network = Network::Off;
        assert_eq!(
            attack(&world, &["tcp", &address]),
            format!("errno {}", libc::EPERM)
        );
        assert_eq!(
            attack(&world, &["udp", &address]),
            format!("errno {}", libc::EPERM)
        );
    }
}

#[test]
fn processes_outside_are_neither_signalled_nor_read() {
    for world in list_worlds() {
        let pid = std::process::id().to_string();
        if landlock() >= 6 {
            assert_eq!(
                attack(&world, &["signal", &pid, "0"]),
                format!("errno {}", libc::EPERM)
            );
        }
        shell(&world, &format!("cat /proc/{pid}/environ")).fails();
        shell(&world, "cat /proc/$PPID/environ").fails();
        let call = libc::SYS_ptrace.to_string();
        assert_eq!(
            attack(&world, &["syscall", &call, "16", &pid]),
            format!("errno {}", libc::EPERM)
        );
        assert_eq!(
            attack(&world, &["clone", &libc::CLONE_NEWUSER.to_string()]),
            format!("errno {}", libc::EPERM)
        );
    }
}

#[test]
fn the_leader_is_the_child_and_its_end_is_told() {
    for world in list_worlds() {
        let ran = shell(&world, "exit 6");
        assert_eq!(
            ran.last["ended"],
            json!({ "code": 6, "signal": null, "child": true })
        );
        let mut job = world.job("/missing", &[]);
        job["level"] = json!("list");
        assert_eq!(world.run(job).first["error"]["step"], "Exec");
        let ran = shell(
            &world,
            "for fd in /proc/self/fd/*; do echo ${fd##*/}; done | sort -n | tail -1",
        );
        assert!(ran.output().trim().parse::<u32>().unwrap() <= 3, "{ran:?}");
        let ran = shell(&world, "grep CapEff /proc/self/status");
        assert_eq!(ran.output(), "CapEff:\t0000000000000000\n");
    }
}
