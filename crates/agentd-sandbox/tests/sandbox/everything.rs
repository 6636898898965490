//! A process that the user let out of the sandbox sees the host as it is, except what agentd keeps; and git's
//! configuration where the policy opens it.

use crate::testbed::{SECRET, testbeds};
use agentd_sandbox::{Extent, GitConfig};
use std::fs;

#[test]
fn all_of_the_host_is_there_and_the_state_is_not() {
    for mut testbed in testbeds() {
        testbed.policy.extent = Extent::Everything;
        let (home, other) = (testbed.path("home"), testbed.path("other"));
        let script = format!(
            "cat {home}/.ssh/id {other}/file && echo x > {other}/new && echo y > {home}/.bashrc && test -c /dev/full"
        );
        let ran = testbed.shell(&script);
        ran.succeeds();
        assert_eq!(ran.output(), format!("{SECRET}{SECRET}"));
        let new = fs::read_to_string(testbed.root.join("other/new")).unwrap();
        assert_eq!(new, "x\n");
        assert!(testbed.root.join("home/.bashrc").exists());
        let state = testbed.path("state");
        for script in [
            format!("cat {state}/secret"),
            format!("cat /proc/self/root/{state}/secret"),
            format!("mv {state} {state}2"),
            format!("mv {0} {0}2", testbed.root.display()),
            format!("echo x > {state}/new"),
            "umount -l /".to_owned(),
            "unshare -Urm true".to_owned(),
        ] {
            let ran = testbed.shell(&script);
            ran.fails();
            assert!(!ran.output().contains(SECRET), "{script}");
        }
        assert!(testbed.root.join("state/secret").exists());
        assert!(!testbed.root.join("state/new").exists());
        let ran = testbed.shell(&format!("cat {state}/kept/output"));
        assert_eq!(ran.succeeds().output(), "kept output");
    }
}

#[test]
fn git_config_is_open_only_where_the_policy_says_so() {
    for mut testbed in testbeds() {
        testbed
            .plain_shell("git init -q && mkdir -p .git/hooks")
            .succeeds();
        testbed.shell("git config a.b first").succeeds();
        let config = fs::read_to_string(testbed.tree().join(".git/config")).unwrap();
        assert!(!config.contains("first"), "{config}");
        testbed.policy.git_config = GitConfig::Open;
        testbed.plain_shell("git init -q other").succeeds();
        testbed.shell("git -C other config a.b c").succeeds();
        let other = testbed.tree().join("other/.git/config");
        assert!(!fs::read_to_string(other).unwrap().contains("b = c"));
        testbed.policy.open_config = testbed.tree();
        testbed.shell("git config a.b c").succeeds();
        let config = fs::read_to_string(testbed.tree().join(".git/config")).unwrap();
        assert!(config.contains("b = c"), "{config}");
        testbed.shell("echo x > .git/hooks/pre-commit").fails();
    }
}

/// A directory of credentials is opened as a whole only if it is named itself.
#[test]
fn one_file_of_a_directory_of_credentials_opens_no_other() {
    for mut testbed in testbeds() {
        let home = testbed.root.join("home");
        fs::write(home.join(".ssh/config"), "a config").unwrap();
        testbed.give_away();
        testbed.policy.readable.push(home.join(".ssh/config"));
        testbed.policy.writable.push(home.clone());
        let (config, id) = (
            testbed.path("home/.ssh/config"),
            testbed.path("home/.ssh/id"),
        );
        let ran = testbed.shell(&format!("cat {config}"));
        assert_eq!(ran.succeeds().output(), "a config");
        testbed.shell(&format!("cat {id}")).fails();
        testbed.policy.readable.push(home.join(".ssh"));
        testbed.shell(&format!("cat {id}")).succeeds();
    }
}
