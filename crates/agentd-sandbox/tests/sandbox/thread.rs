//! The same rules on a thread.

use crate::world::{SECRET, World, landlock, users};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

fn run(world: &World, reads: &[String], writes: &[String]) -> Value {
    let job = json!({
        "level": "thread", "user": world.user, "policy": world.policy, "reads": reads, "writes": writes,
    });
    world.begin(job).first
}

fn thread_worlds() -> Vec<World> {
    if landlock() < 3 {
        println!("skipped: this takes Landlock ABI 3");
        return Vec::new();
    }
    let worlds = users().into_iter();
    worlds
        .flat_map(|user| [World::elsewhere(user), World::in_tmp(user)])
        .collect()
}

#[test]
fn a_thread_reads_what_a_process_would() {
    for world in thread_worlds() {
        symlink(world.path("state/secret"), world.tree().join("link")).unwrap();
        let closed = [
            "state/secret",
            "other/file",
            "home/.ssh/id",
            "tree/link",
            "home/.config/git/credentials",
        ];
        let open = ["tree/file", "home/.gitconfig", "state/kept/output"];
        let paths: Vec<String> = closed
            .iter()
            .chain(&open)
            .map(|name| world.path(name))
            .collect();
        let tried = run(&world, &paths, &[]);
        for (at, name) in closed.iter().enumerate() {
            assert_eq!(tried["reads"][at], libc::EACCES, "{name}: {tried}");
            // Another thread is not restricted.
            assert_eq!(tried["others"][at], SECRET, "{name}");
        }
        for at in closed.len()..paths.len() {
            assert!(tried["reads"][at].is_string(), "{}: {tried}", paths[at]);
        }
    }
}

#[test]
fn a_thread_writes_only_to_writable_trees() {
    for world in thread_worlds() {
        let names = [
            "tree/file",
            "tree/new",
            "tmp/new",
            "other/file",
            "other/new",
            "home/.bashrc",
            "state/new",
            "home/.gitconfig",
        ];
        let paths: Vec<String> = names.iter().map(|name| world.path(name)).collect();
        let tried = run(&world, &[], &paths);
        for (at, name) in names.iter().enumerate() {
            let expected = if at < 3 {
                json!("written")
            } else {
                json!(libc::EACCES)
            };
            assert_eq!(tried["writes"][at], expected, "{name}: {tried}");
        }
        assert_eq!(
            fs::read_to_string(world.root.join("other/file")).unwrap(),
            SECRET
        );
    }
}

#[test]
fn a_closed_path_in_a_writable_tree_is_left_out() {
    for mut world in thread_worlds() {
        world.policy.writable = vec![world.root.clone()];
        let names = ["state/secret", "other/file", "tree/file"];
        let paths: Vec<String> = names.iter().map(|name| world.path(name)).collect();
        let tried = run(&world, &paths, &paths);
        assert_eq!(tried["reads"][0], libc::EACCES);
        assert_eq!(tried["writes"], json!([libc::EACCES, "written", "written"]));
    }
}

#[test]
fn paths_in_a_git_directory_are_told() {
    use agentd_sandbox::is_protected;
    use std::path::Path;
    for path in ["/w/.git", "/w/.git/config", "/w/sub/.GIT/hooks/x"] {
        assert!(is_protected(Path::new(path)), "{path}");
    }
    for path in ["/w/.gitignore", "/w/git/config", "/w/.github/x"] {
        assert!(!is_protected(Path::new(path)), "{path}");
    }
}
