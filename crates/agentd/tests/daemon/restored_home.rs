//! What a restored home has, and that nothing in it acts before the user starts an agent.

use crate::backup::{back_up, directory, events, file_of, purge, restore, stdout, text, with_text};
use crate::hooks_fixture::{file, heard_of, keep_and, until_heard, user};
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{AddSchedule, BackUp, Purge, Reset, When};
use agentd_core::event::{Kind, MissedPolicy, ScheduleAction};
use agentd_failpoint::plan::Role;
use serde_json::json;
use std::fs;
use std::path::PathBuf;

/// Regression: a daemon in the copy ran the hooks of a reset that was in progress when the backup was made.
#[test]
fn a_reset_that_was_in_progress_is_not_carried_out() {
    let waits = "until [ -e \"$AGENTD_PROJECT_DIR/go\" ]; do sleep 0.05; done";
    for (event, ends) in [
        ("PreReset", Kind::ResetWithdrawn),
        ("SessionStart", Kind::ResetEnded),
    ] {
        let daemon = TestDaemon::new();
        daemon.create("coder");
        daemon.completed("coder", "do: say hello");
        // After the agent was created: its first conversation opens without a hook.
        user(&daemon, &file(&[(event, keep_and(waits))]));
        let client = daemon.client();
        let asked = daemon.spawn(async move { client.reset("coder", &Reset::default()).await });
        until_heard(&daemon, event);
        let made = back_up(&daemon, &[]);
        fs::write(daemon.work().join("go"), "").unwrap();
        daemon.block(asked).unwrap().unwrap();

        let (home, restored) = restore(&daemon, &file_of(&made), "restored");
        assert_eq!(restored["stopped"], 1, "{restored:#}");
        let cli = |args: &[&str]| stdout(&daemon.cli_at(&home, args));
        let shown = cli(&["show", "coder", "--json"]);
        assert_eq!(shown["phase"], "stopped", "{event}: {shown:#}");
        let kinds: Vec<Kind> = events(&daemon, &home, "coder")
            .iter()
            .map(|event| event.kind())
            .collect();
        assert!(kinds.contains(&ends), "{event}: {kinds:?}");
        cli(&["daemon", "stop", "--json"]);
        assert_eq!(heard_of(&daemon, event).len(), 1, "{event}");
    }
}

/// Regression: the error had no next step, and the documentation said that `continue` continues the turn.
#[test]
fn a_turn_that_was_running_is_over_and_a_prompt_goes_on() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let call = json!({ "command": "until [ -e go ]; do sleep 0.05; done" });
    let sent = daemon.send("coder", &format!("do: call shell {call} ;; say done"));
    daemon.until_kind("coder", Kind::ToolStarted);
    let made = back_up(&daemon, &[]);
    fs::write(daemon.work().join("go"), "").unwrap();
    daemon.answer("coder", sent.prompt);
    let (home, _) = restore(&daemon, &file_of(&made), "restored");
    let cli = |args: &[&str]| daemon.cli_at(&home, args);
    let started = cli(&["start", "coder"]);
    assert_eq!(started.status.code(), Some(0), "{started:?}");
    let refused = cli(&["continue", "coder"]);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains("was interrupted") && said.contains("agentd send coder"),
        "{said}"
    );
    let more = cli(&["send", "coder", "do: say more"]);
    assert_eq!(more.status.code(), Some(0), "{more:?}");
    cli(&["daemon", "stop"]);
}

/// Regression: the directory was recorded only after the backup had its name. No purge knew of a backup whose daemon died
/// between the two.
#[test]
fn a_backup_whose_daemon_died_is_known_to_later_purges() {
    let daemon = TestDaemon::empty();
    daemon.hold(Role::Daemon, "after-backup-rename");
    daemon.start_daemon();
    daemon.create("coder");
    daemon.completed("coder", "do: say plugh");
    let (client, dir) = (daemon.client(), directory(&daemon));
    let file = dir.join("only.backup");
    let ask = BackUp {
        to: text(&file).to_owned(),
        ..BackUp::default()
    };
    let asked = daemon.spawn(async move { client.back_up(&ask, |_| {}).await });
    daemon.until_held();
    daemon.kill_daemon();
    assert!(daemon.block(asked).unwrap().is_err());
    daemon.start_daemon();
    purge(&daemon);
    let (home, restored) = restore(&daemon, &file, "restored");
    assert_eq!(restored["purged"], 1, "{restored:#}");
    assert_eq!(with_text(&home, "plugh"), [] as [PathBuf; 0]);
}

/// Regression: the lists beside backups stayed as they were until the next purge or backup.
#[test]
fn a_purge_whose_daemon_died_reaches_the_lists_of_purges() {
    let daemon = TestDaemon::empty();
    daemon.hold(Role::Daemon, "before-purge_lists");
    daemon.start_daemon();
    daemon.create("coder");
    daemon.completed("coder", "do: say plugh");
    let made = file_of(&back_up(&daemon, &[]));
    let purged = daemon.show("coder").conversation.unwrap().id;
    let reset = Reset::default();
    daemon
        .block(daemon.client().reset("coder", &reset))
        .unwrap();
    let (client, ask) = (
        daemon.client(),
        Purge {
            conversation: Some(purged),
            dry_run: false,
        },
    );
    let asked = daemon.spawn(async move { client.purge("coder", &ask).await });
    daemon.until_held();
    daemon.kill_daemon();
    assert!(daemon.block(asked).unwrap().is_err());
    let is_listed = || {
        let found = with_text(&directory(&daemon), &purged.to_string());
        found
            .iter()
            .any(|path| path.extension().is_some_and(|it| it == "jsonl"))
    };
    assert!(!is_listed());
    daemon.start_daemon();
    until("the list", || is_listed().then_some(()));
    let (home, restored) = restore(&daemon, &made, "restored");
    assert_eq!(restored["purged"], 1, "{restored:#}");
    assert_eq!(with_text(&home, "plugh"), [] as [PathBuf; 0]);
}

/// Regression: a schedule was gone if the conversation that it was added in was purged after the backup.
#[test]
fn a_schedule_keeps_its_prompt_if_its_conversation_was_purged_after_the_backup() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let add = AddSchedule {
        name: None,
        when: When::Every {
            every_ms: 86_400_000,
        },
        action: ScheduleAction::Prompt,
        prompt: Some("do: say good morning".to_owned()),
        missed: MissedPolicy::Once,
        overlap: None,
    };
    let added = daemon.block(daemon.client().add_schedule("coder", &add));
    added.unwrap();
    daemon.completed("coder", "do: say plugh");
    let made = file_of(&back_up(&daemon, &[]));
    purge(&daemon);
    let (home, restored) = restore(&daemon, &made, "restored");
    assert_eq!(restored["purged"], 1, "{restored:#}");
    assert_eq!(with_text(&home, "plugh"), [] as [PathBuf; 0]);
    let listed = daemon.cli_at(&home, &["schedule", "list", "--json"]);
    let listed = stdout(&listed);
    assert_eq!(
        listed["schedules"][0]["prompt"],
        json!("do: say good morning"),
        "{listed:#}"
    );
    daemon.cli_at(&home, &["daemon", "stop"]);
}
