//! `agentd doctor` finds what is wrong, says what to do, and shows no key.

use crate::test_daemon::{KEY, TestDaemon, until};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The findings. The exit code depends on the sandbox of the machine too, and is not looked at.
pub fn findings(daemon: &TestDaemon, args: &[&str]) -> Vec<Value> {
    findings_at(daemon, &daemon.home(), args)
}

/// The same about another home.
pub fn findings_at(daemon: &TestDaemon, home: &Path, args: &[&str]) -> Vec<Value> {
    let output = daemon.cli_at(home, &[&["doctor", "--json"][..], args].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains(KEY), "a key is shown: {text}");
    let object: Value = serde_json::from_str(&text).unwrap();
    object["findings"].as_array().unwrap().clone()
}

/// The finding of an area whose text contains this.
pub fn find<'a>(findings: &'a [Value], area: &str, text: &str) -> Option<&'a Value> {
    let mut found = findings.iter().filter(|it| it["area"] == area);
    found.find(|it| it["what"].as_str().unwrap().contains(text))
}

pub fn found<'a>(findings: &'a [Value], area: &str, text: &str) -> &'a Value {
    let found = find(findings, area, text);
    found.unwrap_or_else(|| panic!("no finding about {area} with {text:?}: {findings:#?}"))
}

#[test]
fn a_healthy_home_has_no_problem() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say hello");
    let findings = findings(&daemon, &[]);
    let is_problem = |it: &&Value| it["level"] == "problem";
    assert_eq!(findings.iter().find(is_problem), None, "{findings:#?}");
    assert_eq!(found(&findings, "daemon", "it answers")["level"], "ok");
    // Each finding that is not well says what to do.
    for finding in findings.iter().filter(|it| it["level"] != "ok") {
        assert!(finding["fix"].is_string(), "{finding:#}");
    }
    // The key is only in the environment of this test.
    let keys = found(&findings, "keys", "coder");
    assert!(keys["fix"].as_str().unwrap().contains("agentd secret set"));
}

#[test]
fn a_directory_that_is_open_to_others_is_closed_by_a_fix() {
    let daemon = TestDaemon::new();
    let run = daemon.home().join("run");
    let mode = || fs::metadata(&run).unwrap().permissions().mode() & 0o777;
    fs::set_permissions(&run, fs::Permissions::from_mode(0o755)).unwrap();
    let before = findings(&daemon, &[]);
    assert_eq!(
        found(&before, "permissions", "/run is open")["fixed"],
        false
    );
    assert_eq!(mode(), 0o755, "it was changed without --fix");
    let fixed = findings(&daemon, &["--fix"]);
    assert_eq!(found(&fixed, "permissions", "/run is open")["fixed"], true);
    assert_eq!(mode(), 0o700);
    assert!(find(&findings(&daemon, &[]), "permissions", "/run is open").is_none());
}

#[test]
fn a_directory_of_no_agent_is_found_and_stays() {
    let daemon = TestDaemon::new();
    let agent = daemon.create("coder");
    daemon.completed("coder", "do: say hello");
    let id = "0198c5a2-7d1e-7000-8000-000000000001";
    let left = daemon.home().join("agents").join(id);
    fs::create_dir_all(&left).unwrap();
    let findings = findings(&daemon, &["--fix"]);
    found(&findings, "directories", id);
    assert!(find(&findings, "directories", &agent.id.to_string()).is_none());
    assert!(left.exists());
}

#[test]
fn processes_without_a_daemon_are_found_and_no_daemon_is_started() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say hello");
    let pid = until("a process", || daemon.pid("coder")).to_string();
    daemon.kill_daemon();
    let findings = findings(&daemon, &[]);
    found(&findings, "processes", &pid);
    found(&findings, "daemon", "not running");
    let status = daemon.cli(&["daemon", "status"]);
    assert_eq!(status.status.code(), Some(4), "{status:?}");
}

#[test]
fn agents_that_run_without_their_scopes_are_found() {
    let daemon = TestDaemon::empty();
    let config = daemon.home().join("config.toml");
    fs::create_dir_all(daemon.home()).unwrap();
    fs::write(&config, "[daemon]\nsupervisor = \"systemd\"\n").unwrap();
    let bus = format!("unix:path={}/no-bus", daemon.root().display());
    daemon.daemon_env("DBUS_SESSION_BUS_ADDRESS", &bus);
    daemon.start_daemon();
    // The agent works nevertheless.
    daemon.create("coder");
    daemon.completed("coder", "do: say hello");
    let scopes = "agents run without scopes";
    let before = findings(&daemon, &[]);
    assert_eq!(found(&before, "scopes", scopes)["level"], "warning");
    daemon.signal_daemon(rustix::process::Signal::TERM);
    fs::write(&config, "[daemon]\nsupervisor = \"native\"\n").unwrap();
    daemon.start_daemon();
    assert!(find(&findings(&daemon, &[]), "scopes", scopes).is_none());
}

#[test]
fn a_daemon_of_another_build_is_found() {
    let daemon = TestDaemon::new();
    let before = findings(&daemon, &[]);
    assert!(
        find(&before, "daemon", "another build").is_none(),
        "{before:#?}"
    );
    daemon.replace_program();
    let after = findings(&daemon, &[]);
    let found = found(&after, "daemon", "another build of the same version");
    assert_eq!(found["level"], "warning");
}

/// It continues its turn, and is replaced afterwards.
#[test]
fn a_process_of_another_build_than_the_daemon_is_found() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.send("coder", "do: hang");
    daemon.until_kind("coder", agentd_core::event::Kind::RequestSent);
    let build = "of another build than the daemon's";
    assert!(find(&findings(&daemon, &[]), "processes", build).is_none());
    daemon.signal_daemon(rustix::process::Signal::TERM);
    daemon.replace_program();
    daemon.start_daemon();
    until("its adoption", || {
        let known = daemon.block(daemon.client().daemon()).unwrap();
        (known.outdated == 1).then_some(())
    });
    let after = findings(&daemon, &[]);
    let found = found(&after, "processes", build);
    let what = found["what"].as_str().unwrap();
    assert!(what.ends_with(": 1"), "{found:#}");
}

#[test]
fn a_full_disk_and_a_broken_file_of_settings_are_problems() {
    let daemon = TestDaemon::new();
    let config = daemon.home().join("config.toml");
    fs::write(&config, "[daemon]\nmin_free_mb = 1000000000\n").unwrap();
    let full = findings(&daemon, &[]);
    assert_eq!(found(&full, "disk", "MB are free")["level"], "problem");
    fs::write(&config, "[daemon]\nno_such_key = 1\n").unwrap();
    let broken = findings(&daemon, &[]);
    assert_eq!(
        found(&broken, "settings", "config.toml")["level"],
        "problem"
    );
}

#[test]
fn schedules_that_cannot_run_are_found_with_their_fix() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let add = ["schedule", "add", "coder", "--every", "1h", "do: say it"];
    let added = daemon.cli(&[&add[..], &["--name", "hourly"]].concat());
    assert!(added.status.success(), "{added:?}");
    let well = findings(&daemon, &[]);
    assert_eq!(found(&well, "schedules", "can run")["level"], "ok");
    let stopped = daemon.cli(&["stop", "coder"]);
    assert!(stopped.status.success(), "{stopped:?}");
    let waits = findings(&daemon, &[]);
    let waits = found(&waits, "schedules", "`hourly` of `coder`");
    assert_eq!(waits["level"], "warning");
    assert!(
        waits["fix"]
            .as_str()
            .unwrap()
            .contains("agentd start coder")
    );
}

#[test]
fn webhooks_that_get_no_messages_are_found_with_their_fix() {
    let daemon = TestDaemon::empty();
    let dead = "http://127.0.0.1:9/t0ken";
    let config = format!("[notify.webhooks.team]\nurl = \"{dead}\"\nsecret = \"TEAM_HOOK\"\n");
    fs::write(daemon.home().join("config.toml"), config).unwrap();
    daemon.daemon_has_keys();
    daemon.start_daemon();
    let unsigned = findings(&daemon, &[]);
    let unsigned = found(&unsigned, "webhooks", "no secret `TEAM_HOOK`");
    assert_eq!(unsigned["level"], "problem");
    assert_eq!(unsigned["fix"], "`agentd secret set TEAM_HOOK`");
    let set = agentd_client::api::SetSecret {
        value: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned(),
    };
    daemon
        .block(daemon.client().set_secret("TEAM_HOOK", &set))
        .unwrap();
    daemon.create("coder");
    let bound = daemon.cli(&[
        "bind",
        "coder",
        "chat:x",
        "--webhook",
        dead,
        "--secret",
        "TEAM_HOOK",
    ]);
    assert!(bound.status.success(), "{bound:?}");
    let renamed = daemon.cli(&["rename", "coder", "writer"]);
    assert!(renamed.status.success(), "{renamed:?}");
    daemon.completed("writer", "do: say one");
    let failing = until("failed attempts", || {
        let findings = findings(&daemon, &[]);
        let webhook = find(&findings, "webhooks", "`team`").cloned()?;
        let binding = find(&findings, "bindings", "`chat:x`").cloned()?;
        Some([webhook, binding])
    });
    for finding in failing {
        assert_eq!(finding["level"], "warning");
        assert!(finding["fix"].is_string(), "{finding:#}");
        assert!(!finding.to_string().contains("t0ken"), "{finding:#}");
    }
}
