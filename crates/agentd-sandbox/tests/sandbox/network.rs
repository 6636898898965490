//! The network: on, or off with a loopback of its own.

use crate::world::{World, can, worlds};
use agentd_sandbox::Network;
use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

fn offline() -> Vec<World> {
    if !can("network") {
        return Vec::new();
    }
    let mut worlds = worlds();
    for world in &mut worlds {
        world.policy.network = Network::Off;
    }
    worlds
}

#[test]
fn off_reaches_no_tcp_server() {
    for world in offline() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert_eq!(world.plain_attack(&["tcp", &address]), "ok");
        assert_eq!(
            world.attack(&["tcp", &address]),
            format!("errno {}", libc::ECONNREFUSED)
        );
        assert_eq!(
            world.attack(&["tcp", "192.0.2.1:80"]),
            format!("errno {}", libc::ENETUNREACH)
        );
    }
}

#[test]
fn off_sends_no_datagram() {
    for world in offline() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        server
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let address = server.local_addr().unwrap().to_string();
        world.attack(&["udp", &address]);
        assert_ne!(world.attack(&["udp", "192.0.2.1:53"]), "ok");
        // The next one to arrive is from outside: none came from inside.
        assert_eq!(world.plain_attack(&["udp", &address]), "ok");
        let mut bytes = [0; 8];
        server.recv(&mut bytes).unwrap();
        server.set_nonblocking(true).unwrap();
        assert!(server.recv(&mut bytes).is_err());
    }
}

#[test]
fn off_resolves_no_name() {
    for world in offline() {
        world.shell("getent ahosts example.com").fails();
    }
}

#[test]
fn off_has_a_loopback_of_its_own() {
    for world in offline() {
        assert_eq!(world.attack(&["loopback"]), "ok");
        let ran = world.shell("tail -n +3 /proc/net/dev | cut -d: -f1");
        assert_eq!(ran.succeeds().output().trim(), "lo");
    }
}

#[test]
fn on_reaches_loopback_and_resolves_names_as_the_host_does() {
    for world in worlds() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert_eq!(world.attack(&["tcp", &address]), "ok");
        assert_eq!(world.attack(&["loopback"]), "ok");
        let inside = world.shell("cat /etc/resolv.conf");
        let outside = std::fs::read_to_string("/etc/resolv.conf").unwrap();
        assert_eq!(inside.succeeds().output(), outside);
    }
}
