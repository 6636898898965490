//! The network: on, or off with a loopback of its own.

use crate::testbed::{Testbed, can, testbeds};
use agentd_sandbox::Network;
use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

fn offline() -> Vec<Testbed> {
    if !can("network") {
        return Vec::new();
    }
    let mut testbeds = testbeds();
    for testbed in &mut testbeds {
        testbed.policy.network = Network::Off;
    }
    testbeds
}

#[test]
fn off_reaches_no_tcp_server() {
    for testbed in offline() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert_eq!(testbed.plain_attack(&["tcp", &address]), "ok");
        assert_eq!(
            testbed.attack(&["tcp", &address]),
            format!("errno {}", libc::ECONNREFUSED)
        );
        assert_eq!(
            testbed.attack(&["tcp", "192.0.2.1:80"]),
            format!("errno {}", libc::ENETUNREACH)
        );
    }
}

#[test]
fn off_sends_no_datagram() {
    for testbed in offline() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        server
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let address = server.local_addr().unwrap().to_string();
        testbed.attack(&["udp", &address]);
        assert_ne!(testbed.attack(&["udp", "192.0.2.1:53"]), "ok");
        // The next one to arrive is from outside: none came from inside.
        assert_eq!(testbed.plain_attack(&["udp", &address]), "ok");
        let mut bytes = [0; 8];
        server.recv(&mut bytes).unwrap();
        server.set_nonblocking(true).unwrap();
        assert!(server.recv(&mut bytes).is_err());
    }
}

#[test]
fn off_resolves_no_name() {
    for testbed in offline() {
        testbed.shell("getent ahosts example.com").fails();
    }
}

#[test]
fn off_has_a_loopback_of_its_own() {
    for testbed in offline() {
        assert_eq!(testbed.attack(&["loopback"]), "ok");
        let ran = testbed.shell("tail -n +3 /proc/net/dev | cut -d: -f1");
        assert_eq!(ran.succeeds().output().trim(), "lo");
    }
}

#[test]
fn on_reaches_loopback_and_resolves_names_as_the_host_does() {
    for testbed in testbeds() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert_eq!(testbed.attack(&["tcp", &address]), "ok");
        assert_eq!(testbed.attack(&["loopback"]), "ok");
        let inside = testbed.shell("cat /etc/resolv.conf");
        let outside = std::fs::read_to_string("/etc/resolv.conf").unwrap();
        assert_eq!(inside.succeeds().output(), outside);
    }
}
