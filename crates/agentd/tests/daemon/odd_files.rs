//! Files that are not what they seem to be, and the bounds on agentd's own processes.

use crate::sandbox::{run, tool};
use crate::test_daemon::TestDaemon;
use agentd_core::spec::Sandbox;
use rustix::process::{Resource, getrlimit};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;

fn sandboxed(prepare: impl FnOnce(&TestDaemon)) -> Option<TestDaemon> {
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return None;
    }
    let daemon = TestDaemon::new();
    prepare(&daemon);
    let mut spec = daemon.spec();
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    daemon.create_with("coder", spec);
    Some(daemon)
}

/// The soft limit on the data of a process, as the kernel shows it.
fn data_limit(limits: &str) -> &str {
    let mut lines = limits.lines();
    let line = lines.find_map(|line| line.strip_prefix("Max data size"));
    line.unwrap().split_whitespace().next().unwrap()
}

#[test]
fn a_runtime_is_bounded_and_its_commands_are_not() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let said = run(&daemon, "cat /proc/self/limits");
    let ours = getrlimit(Resource::Data).current;
    let ours = ours.map_or("unlimited".to_owned(), |bytes| bytes.to_string());
    assert_eq!(data_limit(&said), ours);
    let pid = daemon.show("coder").process.pid.unwrap();
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    assert_eq!(data_limit(&limits), (2_u64 << 30).to_string());
}

#[test]
fn an_odd_ignore_file_is_named_and_not_used() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    symlink("/dev/zero", daemon.work().join(".gitignore")).unwrap();
    fs::write(daemon.work().join("a.rs"), "fn main() {}\n").unwrap();
    let said = tool(&daemon, "list_files", &json!({}));
    assert!(said.contains("a.rs"), "{said}");
    assert!(
        said.contains("not used") && said.contains("symbolic link"),
        "{said}"
    );
    let said = tool(&daemon, "search_files", &json!({"pattern": "main"}));
    assert!(said.contains("a.rs:1"), "{said}");
}

#[test]
fn a_sparse_file_is_refused_before_it_is_read() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let file = fs::File::create(daemon.work().join("sparse")).unwrap();
    file.set_len(20 << 30).unwrap();
    let arguments = json!({"file_path": "sparse", "content": "x"});
    let said = tool(&daemon, "write_file", &arguments);
    assert!(said.contains("1 GiB"), "{said}");
    assert_eq!(file.metadata().unwrap().len(), 20 << 30);
}

/// Known caches are visible, other programs' are not; and every tool can have a cache.
#[test]
fn of_the_users_cache_directory_only_caches_of_tools_are_visible() {
    let daemon = sandboxed(|daemon| {
        let home = daemon.root().join("user");
        for dir in ["pip", "huggingface/hub", "mail"] {
            fs::create_dir_all(home.join(".cache").join(dir)).unwrap();
        }
        for name in ["pip/wheel", "huggingface/hub/model"] {
            fs::write(home.join(".cache").join(name), "cached\n").unwrap();
        }
        for name in [
            "huggingface/token",
            "huggingface/stored_tokens",
            "mail/inbox",
        ] {
            fs::write(home.join(".cache").join(name), "canary-5e0d\n").unwrap();
        }
        daemon.caller_env("HOME", &home.display().to_string());
    });
    let Some(daemon) = daemon else { return };
    let said = run(
        &daemon,
        "cat ~/.cache/pip/wheel ~/.cache/huggingface/hub/model",
    );
    assert!(said.contains("cached\ncached"), "{said}");
    let said = run(
        &daemon,
        "cat ~/.cache/huggingface/* ~/.cache/mail/*; ls -R ~/.cache",
    );
    assert!(
        !said.contains("canary") && !said.contains("inbox"),
        "{said}"
    );
    let said = run(
        &daemon,
        "mkdir -p ~/.cache/new ~/.cache/huggingface/other && echo mine > ~/.cache/new/x && cat ~/.cache/new/x",
    );
    assert!(said.contains("mine"), "{said}");
    let said = run(
        &daemon,
        "cat ~/.cache/new/x; echo mine > ~/.cache/pip/mine; cat ~/.cache/pip/mine",
    );
    assert!(said.contains("mine\nmine"), "{said}");
    let cache = daemon.root().join("user/.cache");
    assert!(!cache.join("new").exists() && !cache.join("pip/mine").exists());
}
