//! Sockets and files of services that the user has chosen.

use crate::testbed::{SECRET, testbeds};
use agentd_sandbox::Network;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

#[test]
fn a_socket_is_reached_only_if_it_is_passed_with_any_network() {
    for mut testbed in testbeds() {
        for name in ["other/agent", "home/.ssh/agent"] {
            let path = testbed.path(name);
            let _listener = UnixListener::bind(&path).unwrap();
            testbed.give_away();
            testbed.policy.passed.clear();
            assert_eq!(testbed.plain_attack(&["unix", &path]), "ok");
            let said = testbed.attack(&["unix", &path]);
            assert!(said.starts_with("errno"), "{name}: {said}");
            testbed.policy.passed = vec![path.clone().into()];
            for network in [Network::On, Network::Off] {
                testbed.policy.network = network;
                assert_eq!(testbed.attack(&["unix", &path]), "ok", "{name} {network:?}");
            }
        }
    }
}

#[test]
fn a_file_among_credentials_is_shown_read_only_and_the_others_stay_hidden() {
    for mut testbed in testbeds() {
        let (path, key) = (
            testbed.path("home/.ssh/known_hosts"),
            testbed.path("home/.ssh/id"),
        );
        fs::write(&path, "a host").unwrap();
        testbed.give_away();
        testbed.policy.passed = vec![path.clone().into()];
        // With a home of its own, and with the whole home of the user.
        for home in [None, Some(testbed.root.join("home"))] {
            testbed.policy.readable.extend(home);
            let seen = testbed.shell(&format!("cat {path}"));
            assert_eq!(seen.output().trim(), "a host");
            testbed.shell(&format!("echo x >> {path}")).fails();
            let key = testbed.shell(&format!("cat {key}"));
            assert!(!key.output().contains(SECRET));
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "a host");
    }
}

/// A service that is not there, or a path that would give away more than the service, is left out: tools still run.
#[test]
fn what_may_not_be_shown_is_left_out() {
    for mut testbed in testbeds() {
        let link = testbed.tree().join("link");
        symlink(testbed.root.join("other/file"), &link).unwrap();
        testbed.policy.passed = vec![
            testbed.root.join("missing"),
            testbed.root.join("state/secret"),
            link,
            "/proc/1/environ".into(),
            "relative".into(),
        ];
        let (state, other) = (testbed.path("state/secret"), testbed.path("other/file"));
        let seen = testbed.shell(&format!("cat {state} link {other}; echo done"));
        assert!(!seen.output().contains(SECRET));
        assert!(seen.output().contains("done"));
    }
}

#[test]
fn a_link_to_a_file_is_found_where_programs_look_for_it() {
    for mut testbed in testbeds() {
        let (path, real) = (
            testbed.root.join("home/.kube"),
            testbed.root.join("other/kube"),
        );
        fs::write(&real, "a cluster").unwrap();
        symlink(&real, &path).unwrap();
        testbed.give_away();
        testbed.policy.passed = vec![path.clone()];
        // Twice: the first sandbox leaves a mount point in the agent's own home.
        for _ in 0..2 {
            let seen = testbed.shell(&format!("cat {}", path.display()));
            assert_eq!(seen.output().trim(), "a cluster");
        }
    }
}
