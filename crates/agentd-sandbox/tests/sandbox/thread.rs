//! The same rules on a thread.

use crate::testbed::{SECRET, Testbed, landlock, users};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

fn run(testbed: &Testbed, reads: &[String], writes: &[String]) -> Value {
    let job = json!({
        "level": "thread", "user": testbed.user, "policy": testbed.policy, "reads": reads, "writes": writes,
    });
    testbed.begin(job).first
}

fn thread_worlds() -> Vec<Testbed> {
    if landlock() < 3 {
        println!("skipped: this takes Landlock ABI 3");
        return Vec::new();
    }
    let testbeds = users().into_iter();
    testbeds
        .flat_map(|user| [Testbed::elsewhere(user), Testbed::in_tmp(user)])
        .collect()
}

#[test]
fn a_thread_reads_what_a_process_would() {
    for testbed in thread_worlds() {
        symlink(testbed.path("state/secret"), testbed.tree().join("link")).unwrap();
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
            .map(|name| testbed.path(name))
            .collect();
        let tried = run(&testbed, &paths, &[]);
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
fn a_thread_sees_no_process_of_the_host() {
    for testbed in thread_worlds() {
        let paths = ["/proc/self/status", "/proc/1/cmdline", "/proc/net/tcp"].map(str::to_owned);
        let tried = run(&testbed, &paths, &[]);
        for (at, path) in paths.iter().enumerate() {
            assert_eq!(tried["reads"][at], libc::EACCES, "{path}: {tried}");
        }
        assert!(tried["others"][0].is_string(), "{tried}");
    }
}

#[test]
fn a_thread_writes_only_to_writable_trees() {
    for testbed in thread_worlds() {
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
        let paths: Vec<String> = names.iter().map(|name| testbed.path(name)).collect();
        let tried = run(&testbed, &[], &paths);
        for (at, name) in names.iter().enumerate() {
            let expected = if at < 3 {
                json!("written")
            } else {
                json!(libc::EACCES)
            };
            assert_eq!(tried["writes"][at], expected, "{name}: {tried}");
        }
        assert_eq!(
            fs::read_to_string(testbed.root.join("other/file")).unwrap(),
            SECRET
        );
    }
}

#[test]
fn a_closed_path_in_a_writable_tree_is_left_out() {
    for mut testbed in thread_worlds() {
        testbed.policy.writable = vec![testbed.root.clone()];
        let names = ["state/secret", "other/file", "tree/file"];
        let paths: Vec<String> = names.iter().map(|name| testbed.path(name)).collect();
        let tried = run(&testbed, &paths, &paths);
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

/// Regression: file tools made a git directory without a `.git`.
#[test]
fn a_file_that_would_make_a_git_directory_is_known() {
    use agentd_sandbox::makes_git_dir;
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::create_dir_all(at("a/objects")).unwrap();
    assert!(!makes_git_dir(&at("a/HEAD")));
    assert!(!makes_git_dir(&at("a/refs/heads/x")));
    std::fs::write(at("a/HEAD"), "").unwrap();
    assert!(makes_git_dir(&at("a/refs/heads/x")));
    assert!(makes_git_dir(&at("a/commondir")));
    assert!(!makes_git_dir(&at("a/src/main.rs")));
    std::fs::create_dir(at("a/refs")).unwrap();
    assert!(makes_git_dir(&at("a/src/main.rs")));
    assert!(!makes_git_dir(&at("b/HEAD")));
}
