//! Policies that ask for what cannot be given: an error, before anything runs.

use crate::world::{World, worlds};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

#[track_caller]
fn refused(world: &World, why: &str) {
    let ran = world.shell("true");
    let said = ran.first["refused"].as_str().unwrap_or_default();
    assert!(said.contains(why), "{ran:?}");
}

#[test]
fn a_writable_directory_must_exist_and_a_readable_one_need_not() {
    for mut world in worlds() {
        let missing = world.root.join("missing");
        world.policy.readable.push(missing.clone());
        world.shell("true").succeeds();
        world.policy.writable.push(missing);
        refused(&world, "does not exist");
    }
}

#[test]
fn nothing_in_a_closed_directory_can_be_opened_by_a_policy() {
    for mut world in worlds() {
        world.policy.readable.push(world.root.join("state/secret"));
        refused(&world, "closed directory");
        world.policy.readable.pop();
        symlink(world.root.join("state"), world.root.join("alias")).unwrap();
        world.policy.writable.push(world.root.join("alias"));
        refused(&world, "closed directory");
    }
}

#[test]
fn the_whole_file_system_and_the_hosts_proc_cannot_be_given() {
    for mut world in worlds() {
        for (path, why) in [
            ("/", "whole file system"),
            ("/proc", "its own /proc"),
            ("/dev/shm", "its own /proc"),
        ] {
            world.policy.readable = vec![path.into()];
            refused(&world, why);
        }
        world.policy.readable = vec!["relative".into()];
        refused(&world, "not absolute");
    }
}

/// The tool makes a symlink where its next call will be given a directory.
#[test]
fn a_symlink_that_the_tool_made_opens_nothing() {
    for mut world in worlds() {
        let inner = world.tree().join("inner");
        let other = world.path("other");
        world.shell(&format!("ln -s {other} inner")).succeeds();
        world.policy.writable.push(inner.clone());
        refused(&world, "symlink that the tool can change");
        fs::remove_file(&inner).unwrap();
        fs::create_dir(&inner).unwrap();
        world.give_away();
        world.shell("echo x > inner/x").succeeds();
    }
}

#[test]
fn a_missing_temporary_directory_is_an_error() {
    for mut world in worlds() {
        world.policy.tmp = PathBuf::from("/missing");
        refused(&world, "does not exist");
    }
}
