//! Policies that cannot be fulfilled: an error before anything runs.

use crate::testbed::{Testbed, testbeds};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

#[track_caller]
fn refused(testbed: &Testbed, why: &str) {
    let ran = testbed.shell("true");
    let said = ran.first["refused"].as_str().unwrap_or_default();
    assert!(said.contains(why), "{ran:?}");
}

#[test]
fn a_writable_directory_must_exist_and_a_readable_one_need_not() {
    for mut testbed in testbeds() {
        let missing = testbed.root.join("missing");
        testbed.policy.readable.push(missing.clone());
        testbed.shell("true").succeeds();
        testbed.policy.writable.push(missing);
        refused(&testbed, "does not exist");
    }
}

#[test]
fn nothing_in_a_closed_directory_can_be_opened_by_a_policy() {
    for mut testbed in testbeds() {
        testbed
            .policy
            .readable
            .push(testbed.root.join("state/secret"));
        refused(&testbed, "closed directory");
        testbed.policy.readable.pop();
        symlink(testbed.root.join("state"), testbed.root.join("alias")).unwrap();
        testbed.policy.writable.push(testbed.root.join("alias"));
        refused(&testbed, "closed directory");
    }
}

#[test]
fn the_whole_file_system_and_the_hosts_proc_cannot_be_given() {
    for mut testbed in testbeds() {
        for (path, why) in [
            ("/", "whole file system"),
            ("/proc", "its own /proc"),
            ("/dev/shm", "its own /proc"),
        ] {
            testbed.policy.readable = vec![path.into()];
            refused(&testbed, why);
        }
        testbed.policy.readable = vec!["relative".into()];
        refused(&testbed, "not absolute");
    }
}

/// The tool creates a symlink at a path that its next call uses as a directory of its policy.
#[test]
fn a_symlink_that_the_tool_made_opens_nothing() {
    for mut testbed in testbeds() {
        let inner = testbed.tree().join("inner");
        let other = testbed.path("other");
        testbed.shell(&format!("ln -s {other} inner")).succeeds();
        testbed.policy.writable.push(inner.clone());
        refused(&testbed, "symlink that the tool can change");
        fs::remove_file(&inner).unwrap();
        fs::create_dir(&inner).unwrap();
        testbed.give_away();
        testbed.shell("echo x > inner/x").succeeds();
    }
}

#[test]
fn a_missing_temporary_directory_is_an_error() {
    for mut testbed in testbeds() {
        testbed.policy.tmp = PathBuf::from("/missing");
        refused(&testbed, "does not exist");
    }
}
