//! The plan of a view, which is data.

use super::*;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

fn dirs(names: &[&str]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    for name in names {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    (dir, root)
}

fn plan(policy: &Policy) -> View {
    View::plan(policy, User::Ordinary).unwrap()
}

#[test]
fn what_a_parent_shows_in_the_same_way_is_not_mounted_again() {
    let (_dir, root) = dirs(&["a/b", "a/c"]);
    let view = plan(&Policy {
        readable: vec![root.join("a"), root.join("a/b"), "/usr/lib".into()],
        writable: vec![root.join("a/c")],
        ..Policy::default()
    });
    assert!(view.at.contains_key(&root.join("a")));
    assert!(!view.at.contains_key(&root.join("a/b")));
    assert!(!view.at.contains_key(Path::new("/usr/lib")));
    let access = Access::Write;
    let from = root.join("a/c");
    assert_eq!(
        view.at[&from],
        What::Bind {
            from: from.clone(),
            access
        }
    );
}

#[test]
fn the_way_to_a_protected_path_is_pinned() {
    let (_dir, root) = dirs(&["tree/.git/info", "tree/.git/modules/a/b/hooks"]);
    for name in [
        "info/attributes",
        "config",
        "modules/a/b/HEAD",
        "modules/a/b/config",
    ] {
        fs::write(root.join("tree/.git").join(name), "").unwrap();
    }
    let view = plan(&Policy {
        writable: vec![root.join("tree")],
        ..Policy::default()
    });
    let git = root.join("tree/.git");
    for name in ["", "info", "modules", "modules/a", "modules/a/b"] {
        let access = Access::Write;
        assert_eq!(view.at[&git.join(name)], What::Pin { access }, "{name}");
    }
    for name in [
        "info/attributes",
        "config",
        "modules/a/b/config",
        "modules/a/b/hooks",
    ] {
        let access = Access::Read;
        assert_eq!(view.at[&git.join(name)], What::Pin { access }, "{name}");
    }
    assert!(!view.at.contains_key(&git.join("hooks")));
}

/// A mount point cannot be replaced, and file tools replace files.
#[test]
fn a_file_of_an_opened_directory_of_credentials_is_no_mount_of_its_own() {
    let (_dir, root) = dirs(&["home/.ssh/keys"]);
    let keys = root.join("home/.ssh/keys");
    fs::write(keys.join("id"), "").unwrap();
    let view = plan(&Policy {
        home: root.join("home"),
        writable: vec![keys.join("id"), keys.clone()],
        ..Policy::default()
    });
    assert!(view.at.contains_key(&keys));
    assert!(!view.at.contains_key(&keys.join("id")));
}

#[test]
fn a_sealed_git_directory_is_read_only_as_a_whole() {
    let (_dir, root) = dirs(&["tree/.git/hooks", "tree/.git/modules/a"]);
    for name in ["config", "modules/a/HEAD", "modules/a/config"] {
        fs::write(root.join("tree/.git").join(name), "").unwrap();
    }
    let view = plan(&Policy {
        writable: vec![root.join("tree")],
        git_config: GitConfig::Sealed,
        ..Policy::default()
    });
    let git = root.join("tree/.git");
    let access = Access::Read;
    assert_eq!(view.at[&git], What::Pin { access });
    assert!(!view.at.keys().any(|at| at != &git && at.starts_with(&git)));
    // Nothing is watched or copied.
    assert!(view.git_dirs.is_empty() && view.with_protected_config().is_empty());
}

#[test]
fn a_symlink_to_hooks_is_held_with_what_it_leads_to() {
    let (_dir, root) = dirs(&["tree/.git", "tree/my-hooks"]);
    symlink("../my-hooks", root.join("tree/.git/hooks")).unwrap();
    let view = plan(&Policy {
        writable: vec![root.join("tree")],
        ..Policy::default()
    });
    let access = Access::Read;
    for path in ["tree/.git/hooks", "tree/my-hooks"] {
        assert_eq!(view.at[&root.join(path)], What::Pin { access }, "{path}");
    }
}

#[test]
fn a_closed_directory_with_something_of_the_agent_in_it_is_hidden() {
    let (_dir, root) = dirs(&["state/kept", "other"]);
    let policy = Policy {
        closed: vec![root.join("state"), root.join("other"), root.join("missing")],
        kept: vec![root.join("state/kept")],
        ..Policy::default()
    };
    let view = plan(&policy);
    assert_eq!(view.at[&root.join("state")], What::Hidden);
    assert_eq!(view.at[&root.join("other")], What::Closed);
    assert!(!view.at.contains_key(&root.join("missing")));
    assert!(view.is_own(&root.join("state/kept/file")));
}

#[test]
fn a_policy_is_the_same_after_json() {
    let policy = Policy {
        writable: vec!["/a".into()],
        network: crate::policy::Network::Off,
        foreground: true,
        ..Policy::default()
    };
    let text = serde_json::to_string(&policy).unwrap();
    assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), policy);
    assert_eq!(
        serde_json::from_str::<Policy>("{}").unwrap(),
        Policy::default()
    );
    assert!(serde_json::from_str::<Policy>("{\"writeable\":[]}").is_err());
}

#[test]
fn a_passed_file_among_credentials_does_not_open_the_directory() {
    let (_dir, root) = dirs(&["home/.ssh", "own"]);
    let hosts = root.join("home/.ssh/known_hosts");
    fs::write(&hosts, "").unwrap();
    let view = plan(&Policy {
        home: root.join("home"),
        readable: vec![root.join("home")],
        passed: vec![hosts.clone(), root.join("home/.ssh/missing")],
        ..Policy::default()
    });
    assert_eq!(view.at[&root.join("home/.ssh")], What::Hidden);
    let (from, access) = (hosts.clone(), Access::Read);
    assert_eq!(view.at[&hosts], What::Bind { from, access });
    assert!(!view.at.contains_key(&root.join("home/.ssh/missing")));
}

fn with_own_home(root: &Path) -> Policy {
    Policy {
        home: root.join("home"),
        own_home: root.join("own"),
        writable: vec![root.join("home/src/tree")],
        ..Policy::default()
    }
}

#[test]
fn directories_on_the_way_to_a_mount_in_the_own_home_are_pinned() {
    let (_dir, root) = dirs(&["home/.cargo/bin", "home/.ssh", "home/src/tree", "own"]);
    let view = plan(&with_own_home(&root));
    let home = root.join("home");
    for (name, access) in [(".cargo", Access::Write), ("src", Access::Read)] {
        assert_eq!(view.at[&home.join(name)], What::Way { access }, "{name}");
    }
    // Nothing of the user's is there to be covered, and that it exists is not told.
    assert!(!view.at.contains_key(&home.join(".ssh")));
    assert!(view.is_closed(&home.join(".ssh/id")));
}

#[test]
fn only_hidden_directories_beside_a_tree_are_writable() {
    let names = [
        "home/a/b/tree",
        "home/.x/y/tree",
        "home/go/bin",
        "home/go/src/p",
        "own",
        "tmp",
    ];
    let (_dir, root) = dirs(&names);
    let home = root.join("home");
    let trees = ["a/b/tree", ".x/y/tree"].map(|name| home.join(name));
    let mut policy = Policy {
        writable: trees.to_vec(),
        readable: vec![home.join("a/b")],
        tmp: root.join("tmp"),
        ..with_own_home(&root)
    };
    let view = plan(&policy);
    let (read, write) = (Access::Read, Access::Write);
    for (name, access) in [("a", read), (".x", write), (".x/y", write), ("go", write)] {
        assert_eq!(view.at[&home.join(name)], What::Way { access }, "{name}");
    }
    // A tool chain is no tree, but what is beside a tree is read-only, whatever else is there.
    policy.readable = vec![home.join("go/src/p")];
    let view = plan(&policy);
    for name in ["a", "a/b", "go", "go/src"] {
        let access = Access::Read;
        assert_eq!(view.at[&home.join(name)], What::Way { access }, "{name}");
    }
    assert!(!view.at.contains_key(Path::new("/tmp/x")));
}

#[test]
fn a_git_directory_in_the_users_home_is_not_looked_for_in_the_own_home() {
    let (_dir, root) = dirs(&["home/.git/hooks", "home/src/tree", "own"]);
    let view = plan(&with_own_home(&root));
    assert!(!view.at.contains_key(&root.join("home/.git")));
}

#[test]
fn reach_tells_what_is_hidden_own_readable_and_writable() {
    let (_dir, root) = dirs(&[
        "home/.cargo/bin",
        "home/.ssh",
        "home/src/tree/.git",
        "own",
        "other",
    ]);
    let home = root.join("home");
    fs::write(home.join("src/tree/.git/config"), "").unwrap();
    let reach = |path: PathBuf| reach::reach(&with_own_home(&root), &[path]).unwrap()[0];
    use reach::Reach;
    for (name, expected) in [
        (".cargo/bin/tool", Reach::Read),
        (".cargo/other", Reach::Own),
        (".ssh/id", Reach::Own),
        ("src/tree/file", Reach::Write),
        ("src/tree/.git/config", Reach::Read),
        ("src/beside", Reach::OwnRead),
        ("beside", Reach::Own),
    ] {
        assert_eq!(reach(home.join(name)), expected, "{name}");
    }
    assert_eq!(reach(root.join("other/file")), Reach::Hidden);
    assert_eq!(reach("/usr/file".into()), Reach::Read);
    assert_eq!(reach("/nowhere/file".into()), Reach::Hidden);
    assert_eq!(reach("/tmp/file".into()), Reach::Write);
}

#[test]
fn only_the_files_of_the_host_are_shared() {
    let (_dir, root) = dirs(&[
        "home/.cargo/bin",
        "home/src/tree/.git/info",
        "home/.cache/tool",
        "own",
        "other",
        "readable",
        "tmp",
        "upper/tool",
        "work",
    ]);
    let home = root.join("home");
    fs::write(home.join("src/tree/.git/config"), "").unwrap();
    let mut policy = Policy {
        readable: vec![root.join("readable")],
        tmp: root.join("tmp"),
        ..with_own_home(&root)
    };
    let shared = |policy: &Policy, path: PathBuf| reach::shared(policy, &[path]).unwrap()[0];
    use reach::Shared;
    for (name, expected) in [
        ("home/src/tree/file", Shared::Write),
        ("home/src/tree/.git/description", Shared::Write),
        ("home/src/tree/.git/config", Shared::Read),
        ("home/.cargo/bin/tool", Shared::Read),
        ("readable/file", Shared::Read),
        ("home/.bashrc", Shared::No),
        ("home/src/beside", Shared::No),
        ("other/file", Shared::No),
    ] {
        assert_eq!(shared(&policy, root.join(name)), expected, "{name}");
    }
    assert_eq!(shared(&policy, "/tmp/file".into()), Shared::No);
    assert_eq!(shared(&policy, "/nowhere/file".into()), Shared::No);
    // The user made the whole home writable: a cache in it is still a layer of the agent's own.
    policy.writable = vec![home.clone()];
    policy.caches = vec![Caches {
        lower: home.join(".cache"),
        names: vec!["tool".into()],
        upper: root.join("upper"),
        work: root.join("work"),
    }];
    assert_eq!(shared(&policy, home.join(".vimrc")), Shared::Write);
    assert_eq!(shared(&policy, home.join(".cache/tool/a")), Shared::No);
}
