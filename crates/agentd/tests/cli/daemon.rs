//! `agentd daemon`, and commands that start the daemon.

use super::test_cli::{TestCli, ended, until};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn started_looked_at_and_stopped() {
    let cli = TestCli::new();
    let text = cli.refused(4, &["daemon", "status"]);
    assert!(text.contains("agentd daemon start"), "{text}");
    assert_eq!(cli.ok(&["daemon", "stop"]), "the daemon is not running\n");
    let started = cli.json(&["daemon", "start"]);
    assert_eq!(cli.json(&["daemon", "start"])["pid"], started["pid"]);
    assert_eq!(cli.json(&["daemon", "status"])["pid"], started["pid"]);
    let stopped = cli.json(&["daemon", "stop"]);
    assert_eq!(stopped["pid"], started["pid"]);
    cli.refused(4, &["daemon", "status"]);
}

#[test]
fn many_that_come_at_once_start_one() {
    let cli = TestCli::new();
    let children: Vec<_> = (0..8)
        .map(|_| cli.start(&["daemon", "start", "--json"]))
        .collect();
    let mut pids: Vec<String> = children
        .into_iter()
        .map(|child| {
            let ran = ended(child);
            assert_eq!(ran.code, Some(0), "{ran:#?}");
            let daemon: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
            daemon["pid"].to_string()
        })
        .collect();
    pids.dedup();
    assert_eq!(pids.len(), 1, "{pids:?}");
}

#[test]
fn one_home_has_one_daemon() {
    let cli = TestCli::new();
    cli.ok(&["daemon", "start"]);
    let text = cli.refused(3, &["daemon", "run"]);
    assert!(text.contains("another daemon runs"), "{text}");
}

#[test]
fn nobody_else_may_ask() {
    let cli = TestCli::new();
    cli.ok(&["daemon", "start"]);
    let mode = |path: &str| {
        let metadata = fs::metadata(cli.home().join(path)).unwrap();
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode("run"), 0o700);
    assert_eq!(mode("run/api.sock"), 0o600);
    assert_eq!(mode("daemon.log"), 0o600);
}

#[test]
fn one_that_cannot_start_says_why() {
    let cli = TestCli::new();
    // Where the journal should be there is something else.
    fs::create_dir(cli.home().join("journal.db")).unwrap();
    let text = cli.refused(4, &["list"]);
    assert!(text.contains("the daemon did not start"), "{text}");
    assert!(text.contains("why:"), "{text}");
    assert!(text.contains("daemon.log"), "{text}");
    fs::remove_dir(cli.home().join("journal.db")).unwrap();
    cli.ok(&["list"]);
}

/// Regression: the processes were named `/proc/self/exe` and `exe`.
#[test]
fn processes_are_called_what_they_are() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "--no-wait", "run `sleep 60`"]);
    cli.until_tool("coder");
    let daemon = cli.daemon_pid().unwrap();
    let runtime = cli.json(&["show", "coder"])["process"]["pid"].as_u64();
    let home = cli.home();
    let shim = until("the shim", || {
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_shim = |pid: &u64| shown(*pid).1.starts_with("agentd shim ");
        let is_ours = |pid: &u64| shown(*pid).1.contains(home.to_str().unwrap());
        pids.find(|pid| is_shim(pid) && is_ours(pid))
    });
    for (pid, wanted) in [
        (daemon, "agentd daemon run "),
        (runtime.unwrap(), "agentd runtime coder "),
        (shim, "agentd shim "),
    ] {
        let (comm, args) = shown(pid);
        assert_eq!(comm, "agentd", "{args}");
        assert!(args.starts_with(wanted), "{args}");
    }
}

/// The name and the arguments of a process.
fn shown(pid: u64) -> (String, String) {
    let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let comm = String::from_utf8_lossy(&read("comm")).trim().to_owned();
    let args = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
    (comm, args)
}
