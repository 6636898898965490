//! More that `agentd doctor` finds: a destroyed journal, hooks that fail, keys that cannot be read, schedules whose agent
//! cannot run, what tasks left, and backups and notifications that reach nothing.

use crate::doctor::{find, findings, found};
use crate::hooks_fixture::{command, file, until_ended, user};
use crate::test_daemon::{TestDaemon, until};
use agentd_core::hook::HookEvent;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, SystemTime};

fn config(daemon: &TestDaemon, text: &str) {
    fs::write(daemon.home().join("config.toml"), text).unwrap();
}

#[track_caller]
fn ok(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn fix(finding: &Value) -> &str {
    finding["fix"].as_str().unwrap()
}

/// Regression: it was well, because only the size of the file was looked at.
#[test]
fn a_journal_that_is_gone_or_overwritten_is_a_problem() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say hello");
    let well = findings(&daemon, &[]);
    assert_eq!(found(&well, "store", "intact")["level"], "ok");
    daemon.signal_daemon(rustix::process::Signal::TERM);
    let well = findings(&daemon, &[]);
    assert_eq!(found(&well, "store", "intact")["level"], "ok");
    let journal = daemon.home().join("journal.db");
    let size = usize::try_from(fs::metadata(&journal).unwrap().len()).unwrap();
    for name in ["journal.db-wal", "journal.db-shm"] {
        drop(fs::remove_file(daemon.home().join(name)));
    }
    let is_problem = |name: &str| {
        let findings = findings(&daemon, &[]);
        let store = found(&findings, "store", "cannot be used");
        assert_eq!(store["level"], "problem", "{name}: {store:#}");
        assert!(fix(store).contains("agentd verify"), "{name}: {store:#}");
    };
    fs::write(&journal, vec![b'x'; size]).unwrap();
    is_problem("overwritten");
    assert_eq!(daemon.cli(&["doctor"]).status.code(), Some(4));
    fs::write(&journal, b"").unwrap();
    is_problem("emptied");
    fs::remove_file(&journal).unwrap();
    is_problem("removed");
    fs::remove_file(daemon.home().join("journal.head")).unwrap();
    // The directories of agents still show that there was one.
    is_problem("removed with its head");
}

#[test]
fn hooks_that_failed_when_they_last_ran_are_found_until_they_are_corrected() {
    let daemon = TestDaemon::new();
    let broken = file(&[
        ("PreToolUse", command("exit 7")),
        ("Stop", command("/nonexistent/prog")),
        ("UserPromptSubmit", command("true")),
    ]);
    user(&daemon, &broken);
    daemon.create("coder");
    let prompt = r#"do: call shell {"command": "true"} ;; say done"#;
    daemon.completed("coder", prompt);
    until_ended(&daemon, "coder", HookEvent::Stop);
    let before = findings(&daemon, &[]);
    for (event, code) in [("PreToolUse", "exit code 7"), ("Stop", "exit code 127")] {
        let found = found(&before, "hooks", event);
        assert_eq!(found["level"], "warning");
        let what = found["what"].as_str().unwrap();
        assert!(what.contains("`coder`"), "{found:#}");
        assert!(what.contains(code), "{found:#}");
        let test = format!("agentd hooks test {event} --agent coder");
        assert!(fix(found).contains(&test), "{found:#}");
    }
    assert!(find(&before, "hooks", "UserPromptSubmit").is_none());
    // A hook that was replaced has not failed.
    user(&daemon, &file(&[("PreToolUse", command("true"))]));
    let after = findings(&daemon, &[]);
    assert!(find(&after, "hooks", "failed").is_none(), "{after:#?}");
    daemon.completed("coder", prompt);
    let after = findings(&daemon, &[]);
    assert!(find(&after, "hooks", "failed").is_none(), "{after:#?}");
}

#[test]
fn a_key_file_or_command_without_a_key_is_found_with_the_agents_and_schedules_that_need_it() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let add = ["schedule", "add", "coder", "--every", "1h", "do: say it"];
    ok(&daemon.cli(&[&add[..], &["--name", "hourly"]].concat()));
    let path = daemon.root().join("key");
    let of_file = format!("key_file = \"{}\"", path.display());
    for (setting, text, why) in [
        (of_file.as_str(), None, "cannot use the key file"),
        (of_file.as_str(), Some("\n"), "it is empty"),
        (
            "key_command = \"echo s3cret; exit 3\"",
            None,
            "exited with code 3",
        ),
    ] {
        if let Some(text) = text {
            fs::write(&path, text).unwrap();
        }
        config(&daemon, &format!("[providers.anthropic]\n{setting}\n"));
        let findings = findings(&daemon, &[]);
        assert!(!format!("{findings:?}").contains("s3cret"), "{findings:#?}");
        // This shell has a key: only agents that start by themselves have none.
        assert_eq!(found(&findings, "keys", why)["level"], "warning");
        let agents = found(&findings, "keys", "yields no key");
        assert!(
            agents["what"].as_str().unwrap().ends_with(": coder"),
            "{agents:#}"
        );
        let schedule = found(&findings, "schedules", "`hourly` of `coder` may not run");
        assert_eq!(schedule["level"], "warning");
        assert!(
            schedule["what"].as_str().unwrap().contains(why),
            "{schedule:#}"
        );
    }
    fs::write(&path, "s3cret\n").unwrap();
    config(&daemon, &format!("[providers.anthropic]\n{of_file}\n"));
    let well = findings(&daemon, &[]);
    assert!(find(&well, "keys", "").is_none(), "{well:#?}");
    assert_eq!(found(&well, "schedules", "can run")["level"], "ok");
}

#[test]
fn a_schedule_of_an_agent_without_its_working_directory_cannot_run() {
    let daemon = TestDaemon::new();
    let gone = daemon.root().join("gone");
    fs::create_dir_all(&gone).unwrap();
    let mut spec = daemon.spec();
    spec.cwd = Some(gone.display().to_string());
    daemon.create_with("coder", spec);
    let add = ["schedule", "add", "coder", "--every", "1h", "do: say it"];
    ok(&daemon.cli(&[&add[..], &["--name", "hourly"]].concat()));
    assert_eq!(
        found(&findings(&daemon, &[]), "schedules", "can run")["level"],
        "ok"
    );
    fs::remove_dir_all(&gone).unwrap();
    let after = findings(&daemon, &[]);
    let found = found(&after, "schedules", "`hourly` of `coder` cannot run");
    assert_eq!(found["level"], "problem");
    assert!(fix(found).contains("agentd set coder cwd="), "{found:#}");
}

#[test]
fn what_is_left_of_a_task_is_removed_by_a_fix() {
    let daemon = TestDaemon::new();
    let agent = daemon.create("coder");
    let prompt = r#"do: call shell {"command": "echo kept"} ;; say done"#;
    daemon.completed("coder", prompt);
    let tasks = daemon.home().join(format!("agents/{}/tasks", agent.id));
    let old = SystemTime::now() - Duration::from_secs(7200);
    let make = |id: &str| {
        let dir = tasks.join(id);
        fs::create_dir_all(&dir).unwrap();
        dir
    };
    let fresh = make("0198c5a2-7d1e-7000-8000-000000000001");
    let left = make("0198c5a2-7d1e-7000-8000-000000000002");
    let output = make("0198c5a2-7d1e-7000-8000-000000000003");
    fs::write(output.join("output"), "text").unwrap();
    for dir in [&left, &output] {
        File::open(dir).unwrap().set_modified(old).unwrap();
    }
    let what = "1 task of `coder` left a directory";
    let before = findings(&daemon, &[]);
    assert_eq!(found(&before, "directories", what)["fixed"], false);
    assert!(left.exists(), "it was removed without --fix");
    let fixed = findings(&daemon, &["--fix"]);
    assert_eq!(found(&fixed, "directories", what)["fixed"], true);
    assert!(!left.exists() && fresh.exists() && output.exists());
    assert!(find(&findings(&daemon, &[]), "directories", what).is_none());
}

#[test]
fn a_scheduled_backup_that_fails_is_in_the_status_and_found() {
    let daemon = TestDaemon::empty();
    fs::create_dir_all(daemon.home()).unwrap();
    let missing = daemon.root().join("missing");
    let text = format!(
        "[backup]\ndirectory = \"{}\"\nevery = \"1d\"\nkeep = 1\n",
        missing.display()
    );
    config(&daemon, &text);
    daemon.start_daemon();
    let failing = until("a failed backup", || {
        let known = daemon.block(daemon.client().daemon()).unwrap();
        known.failing_backup
    });
    assert!(failing.attempts > 0, "{failing:?}");
    let path = missing.display().to_string();
    assert!(failing.error.contains(&path), "{failing:?}");
    let before = findings(&daemon, &[]);
    let backup = found(&before, "backups", &path);
    assert_eq!(backup["level"], "problem");
    assert!(fix(backup).contains("[backup]"), "{backup:#}");
    let status = ok(&daemon.cli(&["status"]));
    assert!(
        status.contains("backups") && status.contains(&path),
        "{status}"
    );
    // A new daemon makes it at once.
    fs::create_dir_all(&missing).unwrap();
    daemon.signal_daemon(rustix::process::Signal::TERM);
    daemon.start_daemon();
    until("a backup", || {
        let mut entries = fs::read_dir(&missing).unwrap().flatten();
        // While it is made, it has another name.
        let is_made = |path: &Path| path.extension().is_some_and(|it| it == "backup");
        entries.find(|entry| is_made(&entry.path()))
    });
}

#[test]
fn an_agent_with_an_unknown_destination_is_found_and_the_user_is_warned() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let set = daemon.cli(&["set", "coder", "notify.to=[\"nosuch\"]"]);
    ok(&set);
    let warned = String::from_utf8_lossy(&set.stderr);
    assert!(warned.contains("nosuch"), "{warned}");
    let before = findings(&daemon, &[]);
    let found = found(&before, "notify", "nosuch");
    assert_eq!(found["level"], "warning");
    assert!(found["what"].as_str().unwrap().contains("`coder`"));
    ok(&daemon.cli(&["set", "coder", "notify.to="]));
    assert!(find(&findings(&daemon, &[]), "notify", "nosuch").is_none());
}

/// Regression: it was reported twice, the second time as a service that does not run.
#[test]
fn a_webhook_without_its_secret_is_reported_once() {
    let daemon = TestDaemon::empty();
    let hook = "[notify.webhooks.team]\nurl = \"http://127.0.0.1:9/\"\nsecret = \"TEAM_HOOK\"\n";
    config(&daemon, hook);
    daemon.start_daemon();
    daemon.create("coder");
    daemon.completed("coder", "do: say hello");
    until("a failed attempt", || {
        let known = daemon.block(daemon.client().daemon()).unwrap();
        (!known.failing_webhooks.is_empty()).then_some(())
    });
    let all = findings(&daemon, &[]);
    let of_team = all.iter().filter(|it| it["area"] == "webhooks");
    let fixes: Vec<&str> = of_team.map(fix).collect();
    assert_eq!(fixes, ["`agentd secret set TEAM_HOOK`"], "{all:#?}");
    // The secret has a user, and cannot sign.
    let mut set = daemon.command();
    set.envs(daemon.caller())
        .args(["secret", "set", "TEAM_HOOK"]);
    set.stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut set = set.spawn().unwrap();
    set.stdin.take().unwrap().write_all(b"plain\n").unwrap();
    let output = set.wait_with_output().unwrap();
    assert!(ok(&output).contains("webhook `team`"), "{output:?}");
    let warned = String::from_utf8_lossy(&output.stderr);
    assert!(warned.contains("whsec_"), "{warned}");
    assert!(!warned.contains("no provider"), "{warned}");
}

#[test]
fn an_imported_schedule_is_shown_before_it_can_be_resumed() {
    let (daemon, other) = (TestDaemon::new(), TestDaemon::new());
    other.create("evil");
    let add = ["schedule", "add", "evil", "--every", "1h", "do: say plugh"];
    ok(&other.cli(&[&add[..], &["--name", "hourly"]].concat()));
    let export = daemon.root().join("evil.zst");
    let export = export.to_str().unwrap();
    ok(&other.cli(&["export", "evil", export]));
    ok(&daemon.cli(&["import", export]));
    // Without a terminal it is only shown.
    let shown = daemon.cli(&["start", "evil"]);
    assert_eq!(shown.status.code(), Some(6), "{shown:?}");
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.contains("hourly: every 1h: do: say plugh"), "{shown}");
    let findings = findings(&daemon, &[]);
    let found = found(&findings, "schedules", "`hourly` of `evil`");
    assert!(fix(found).starts_with("read it first"), "{found:#}");
}
