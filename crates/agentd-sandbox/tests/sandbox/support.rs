//! What the kernel supports, and the message if it does not.

use crate::testbed::{SECRET, Testbed, can, landlock, users};
use serde_json::{Value, json};
use std::process::Command;

#[test]
fn support_is_the_same_for_an_ordinary_user() {
    if !can("namespaces") {
        return;
    }
    for user in users() {
        let testbed = Testbed::in_tmp(user);
        let job = json!({ "level": "support", "user": user, "policy": testbed.policy });
        let said = testbed.begin(job).first;
        assert_eq!(said["namespaces"], true, "{said}");
    }
}

/// A user namespace that allows no further namespaces simulates a kernel without them.
fn without_namespaces(job: &Value) -> Vec<Value> {
    let shim = env!("CARGO_BIN_EXE_agentd-sandbox-shim");
    let script =
        format!("echo 0 > /proc/sys/user/max_user_namespaces && printf %s '{job}' | {shim}");
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", &script])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().map(serde_json::from_str);
    let lines: Result<Vec<Value>, _> = lines.collect();
    lines.unwrap_or_else(|_| panic!("{output:?}"))
}

#[test]
fn without_namespaces_it_says_what_to_change() {
    if !can("namespaces") {
        return;
    }
    let testbed = Testbed::in_tmp(None);
    let said = &without_namespaces(&json!({ "level": "support", "policy": testbed.policy }))[0];
    for part in ["namespaces", "network", "overlay"] {
        let text = said[part].as_str().unwrap_or_default();
        assert!(text.contains("user.max_user_namespaces"), "{said}");
    }
}

#[test]
fn without_namespaces_a_start_is_an_error_with_its_step() {
    if !can("namespaces") {
        return;
    }
    let testbed = Testbed::in_tmp(None);
    let said = &without_namespaces(&testbed.job("/bin/true", &[]))[0];
    assert_eq!(said["error"]["step"], "Namespaces");
    assert_eq!(said["error"]["errno"], libc::ENOSPC);
}

#[test]
fn without_namespaces_the_list_holds() {
    if !can("namespaces") || landlock() < 3 {
        return;
    }
    let testbed = Testbed::elsewhere(None);
    let script = format!("cat file {}; echo x > file", testbed.path("state/secret"));
    let mut job = testbed.job("/bin/sh", &["-c", &script]);
    job["level"] = json!("list");
    let said = without_namespaces(&job);
    let output = said[1]["output"].as_str().unwrap();
    assert!(output.starts_with("in the tree"), "{said:?}");
    assert!(!output.contains(SECRET), "{said:?}");
    assert_ne!(said[1]["ended"]["code"], 0);
}
