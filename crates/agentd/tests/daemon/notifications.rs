//! Notifications: what the user is told, where, and that nothing is lost and each message is recognisably one.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Bind, BindingMessage, Send};
use agentd_core::event::Kind as EventKind;
use agentd_core::spec::{ApprovalMode, Budget, Notify, Topic};
use agentd_failpoint::plan::Role;
use agentd_testkit::harness::{Received, Reply, Webhooks, is_signed};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NAME: &str = "TEAM_HOOK";

/// A home whose user has one webhook, and the stored secret for it.
fn daemon(webhooks: &Webhooks, more: &str) -> TestDaemon {
    let daemon = TestDaemon::empty();
    configure(&daemon, webhooks, more);
    daemon.daemon_has_keys();
    daemon.start_daemon();
    store(&daemon);
    daemon
}

fn configure(daemon: &TestDaemon, webhooks: &Webhooks, more: &str) {
    let url = webhooks.url();
    let text =
        format!("[notify]\n{more}\n[notify.webhooks.team]\nurl = \"{url}\"\nsecret = \"{NAME}\"\n");
    fs::write(daemon.home().join("config.toml"), text).unwrap();
}

fn store(daemon: &TestDaemon) {
    let set = agentd_client::api::SetSecret {
        value: SECRET.to_owned(),
    };
    daemon
        .block(daemon.client().set_secret(NAME, &set))
        .unwrap();
}

/// Waits until so many different messages were accepted.
fn accepted(webhooks: &Webhooks, count: usize) -> Vec<Received> {
    until("the messages", || {
        let accepted = webhooks.accepted();
        (accepted.len() >= count).then_some(accepted)
    })
}

fn kinds(messages: &[Received]) -> Vec<&str> {
    messages.iter().map(Received::kind).collect()
}

/// The id that an event's message has.
fn id_of(daemon: &TestDaemon, kind: EventKind) -> String {
    let event = daemon.until_kind("coder", kind);
    let agent = event.agent.uuid().simple().to_string();
    format!("msg_{agent}_{}", event.seq)
}

#[test]
fn a_completed_turn_is_one_signed_message_without_text() {
    let webhooks = Webhooks::start().unwrap();
    let daemon = daemon(&webhooks, "");
    daemon.create("coder");
    daemon.completed("coder", "do: say the answer is secret-word");
    let messages = accepted(&webhooks, 1);
    assert_eq!(kinds(&messages), ["agent.completed"]);
    let message = &messages[0];
    assert!(is_signed(message, SECRET), "{message:?}");
    assert_eq!(message.id(), id_of(&daemon, EventKind::TurnEnded));
    assert_eq!(message.body["data"]["agent"]["name"], "coder");
    assert!(!message.raw.contains("secret-word"), "{}", message.raw);
    assert!(!daemon.log().contains("whsec_"), "{}", daemon.log());
    let journal = fs::read(daemon.home().join("journal.db")).unwrap();
    let needle = SECRET.as_bytes();
    assert!(!journal.windows(needle.len()).any(|part| part == needle));
}

#[test]
fn a_webhook_that_is_broken_slow_or_silent_gets_the_same_message_again() {
    let webhooks = Webhooks::start().unwrap();
    let daemon = daemon(&webhooks, "");
    daemon.create("coder");
    webhooks.then([
        Reply::Close,
        Reply::Status(500),
        Reply::Redirect(webhooks.url()),
        Reply::Slowly(Duration::from_millis(300), 200),
    ]);
    daemon.completed("coder", "do: say one");
    daemon.completed("coder", "do: say two");
    let messages = accepted(&webhooks, 2);
    assert_eq!(messages.len(), 2);
    let received = webhooks.received();
    let first = messages[0].id();
    assert!(received.len() >= 5, "{received:#?}");
    // The second message waits for the first: the order is kept.
    assert!(received[..4].iter().all(|it| it.id() == first));
    assert!(received.iter().all(|it| is_signed(it, SECRET)));
    let bodies: Vec<&str> = received[..4].iter().map(|it| it.raw.as_str()).collect();
    assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn a_daemon_that_dies_between_delivery_and_cursor_sends_the_same_id_again() {
    let webhooks = Webhooks::start().unwrap();
    let daemon = TestDaemon::empty();
    configure(&daemon, &webhooks, "on = [\"completed\"]");
    daemon.daemon_has_keys();
    daemon.hold(Role::Daemon, "after-outbox.send");
    daemon.start_daemon();
    store(&daemon);
    daemon.create("coder");
    daemon.send("coder", "do: say one");
    daemon.until_held();
    daemon.kill_daemon();
    assert_eq!(webhooks.received().len(), 1);
    daemon.start_daemon();
    daemon.completed("coder", "do: say two");
    let messages = accepted(&webhooks, 2);
    let ids: Vec<String> = webhooks
        .received()
        .iter()
        .map(|it| it.id().to_owned())
        .collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
    assert_eq!(ids[0], ids[1]);
    assert_eq!(ids[0], messages[0].id());
}

#[test]
fn what_happens_while_no_daemon_runs_or_the_webhook_is_down_is_told_later() {
    let webhooks = Webhooks::start().unwrap();
    let daemon = daemon(&webhooks, "on = [\"completed\", \"trouble\"]");
    daemon.create("coder");
    webhooks.then(std::iter::repeat_n(Reply::Status(503), 2));
    for n in 1..=3 {
        daemon.completed("coder", &format!("do: say answer {n}"));
    }
    daemon.kill_daemon();
    daemon.start_daemon();
    let messages = accepted(&webhooks, 4);
    let completed = messages.iter().filter(|it| it.kind() == "agent.completed");
    let seqs: Vec<u64> = completed
        .map(|it| it.body["data"]["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(seqs.len(), 3);
    assert!(seqs.is_sorted(), "{seqs:?}");
    // The daemon was killed: the user is told of that, too, once.
    let trouble = messages.iter().filter(|it| it.kind() == "daemon.trouble");
    assert_eq!(trouble.count(), 1, "{messages:#?}");
}

#[test]
fn a_daemon_that_ends_as_it_should_is_no_trouble() {
    let webhooks = Webhooks::start().unwrap();
    let daemon = daemon(&webhooks, "");
    daemon.create("coder");
    daemon.signal_daemon(rustix::process::Signal::TERM);
    daemon.start_daemon();
    daemon.completed("coder", "do: say one");
    let messages = accepted(&webhooks, 1);
    assert_eq!(kinds(&messages), ["agent.completed"]);
}

#[test]
fn a_limit_and_a_question_are_told() {
    let webhooks = Webhooks::start().unwrap();
    let daemon = daemon(&webhooks, "");
    let mut spec = daemon.spec();
    spec.approval = Some(ApprovalMode::Always);
    spec.limits.conversation = Budget {
        tokens: Some(1),
        ..Budget::default()
    };
    daemon.create_with("careful", spec.clone());
    daemon.ask("careful", "do: say one");
    let messages = accepted(&webhooks, 1);
    assert_eq!(messages[0].kind(), "agent.limited");
    spec.limits.conversation = Budget::default();
    daemon.create_with("coder", spec);
    daemon.send("coder", r#"do: call shell {"command":"true"} ;; say done"#);
    let messages = accepted(&webhooks, 2);
    assert_eq!(messages[1].kind(), "agent.approval");
    assert_eq!(
        messages[1].id(),
        id_of(&daemon, EventKind::ApprovalRequested)
    );
    daemon.cli(&["approve", "coder"]);
    let messages = accepted(&webhooks, 3);
    assert_eq!(messages[2].kind(), "agent.completed");
}

#[test]
fn the_user_the_agent_and_the_sender_choose() {
    let webhooks = Webhooks::start().unwrap();
    let daemon = daemon(&webhooks, "on = [\"failed\"]");
    daemon.create("quiet");
    let mut spec = daemon.spec();
    spec.notify = Notify {
        on: Some(vec![Topic::Completed]),
        to: None,
    };
    daemon.create_with("loud", spec.clone());
    spec.notify = Notify {
        on: None,
        to: Some(vec!["elsewhere".to_owned()]),
    };
    daemon.create_with("other", spec);
    daemon.completed("quiet", "do: say nothing of this");
    daemon.completed("loud", "do: say it");
    let send = Send {
        text: "do: say it once".to_owned(),
        notify: true,
        env: daemon.caller(),
        ..Send::default()
    };
    let sent = daemon.block(daemon.client().send("quiet", &send)).unwrap();
    daemon.answer("quiet", sent.prompt);
    let messages = accepted(&webhooks, 2);
    let names: Vec<&str> = messages
        .iter()
        .map(|it| it.body["data"]["agent"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["loud", "quiet"]);
    // A notification that no destination would get is refused.
    let refused = daemon.block(daemon.client().send("other", &send));
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("no destination"), "{error}");
}

/// The name was that of the agent at the time of the attempt: one id, two contents.
#[test]
fn a_message_that_is_sent_again_after_a_rename_has_the_same_content() {
    let webhooks = Webhooks::start().unwrap();
    let daemon = daemon(&webhooks, "on = [\"completed\"]");
    daemon.create("coder");
    webhooks.then(std::iter::repeat_n(Reply::Status(500), 10_000));
    daemon.completed("coder", "do: say one");
    until("an attempt", || {
        (!webhooks.received().is_empty()).then_some(())
    });
    let renamed = daemon.cli(&["rename", "coder", "writer"]);
    assert!(renamed.status.success(), "{renamed:?}");
    daemon.kill_daemon();
    daemon.start_daemon();
    webhooks.works_again();
    daemon.completed("writer", "do: say two");
    let messages = accepted(&webhooks, 2);
    let name = |message: &Received| message.body["data"]["agent"]["name"].clone();
    assert_eq!(name(&messages[0]), "coder");
    assert_eq!(name(&messages[1]), "writer");
    for received in webhooks.received() {
        let accepted = messages.iter().find(|it| it.id() == received.id());
        assert_eq!(received.raw, accepted.unwrap().raw);
    }
}

/// Regression: a receiver that keeps to the ids dropped messages of one of two homes with the same agents, and the copy told
/// of the end of a daemon that was not its own.
#[test]
fn an_adopted_copy_has_ids_of_its_own_and_does_not_report_the_end_of_the_originals_daemon() {
    let webhooks = Webhooks::start().unwrap();
    let daemon = daemon(&webhooks, "");
    daemon.create("coder");
    daemon.completed("coder", "do: say one");
    accepted(&webhooks, 1);
    daemon.kill_daemon();
    assert!(daemon.home().join("outbox/running.mark.json").exists());
    let copy = daemon.root().join("copy");
    let mut copying = Command::new("cp");
    copying.arg("-a").args([daemon.home(), copy.clone()]);
    assert!(copying.status().unwrap().success());
    let cli = |args: &[&str]| {
        let output = daemon.cli_at(&copy, args);
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let adopted: serde_json::Value =
        serde_json::from_slice(&cli(&["adopt-copy", "--json"])).unwrap();
    let home = adopted["home_id"].as_str().unwrap().replace('-', "");
    cli(&["send", "coder", "do: say two"]);
    let messages = until("the message of the copy", || {
        let messages = webhooks.accepted();
        let is_copys = |it: &Received| it.id().starts_with(&format!("msg_{home}_"));
        messages.iter().any(is_copys).then_some(messages)
    });
    // Troubles are told first.
    assert!(
        !kinds(&messages).contains(&"daemon.trouble"),
        "{messages:#?}"
    );
    cli(&["daemon", "stop"]);
}

/// Regression: the proxy of the daemon's environment was asked for webhooks on this machine.
#[test]
fn a_webhook_on_this_machine_is_reached_without_the_proxy() {
    let webhooks = Webhooks::start().unwrap();
    let daemon = daemon(&webhooks, "");
    daemon.kill_daemon();
    daemon.daemon_env("http_proxy", "http://127.0.0.1:9");
    daemon.start_daemon();
    assert_eq!(kinds(&accepted(&webhooks, 1)), ["daemon.trouble"]);
}

/// Without a client, only a notification says that there is no backup.
#[test]
fn a_scheduled_backup_that_fails_is_told_once() {
    let webhooks = Webhooks::start().unwrap();
    let daemon = TestDaemon::empty();
    let file = daemon.root().join("no-directory");
    fs::write(&file, "").unwrap();
    let more = format!("[backup]\ndirectory = \"{}\"\n", file.display());
    configure(&daemon, &webhooks, &more);
    daemon.daemon_has_keys();
    daemon.start_daemon();
    store(&daemon);
    let messages = accepted(&webhooks, 1);
    assert_eq!(kinds(&messages), ["daemon.trouble"]);
    assert_eq!(messages[0].body["data"]["what"], "backup_failed");
    assert!(is_signed(&messages[0], SECRET), "{:?}", messages[0]);
    // What happens to agents is told after it.
    daemon.create("coder");
    daemon.completed("coder", "do: say one");
    assert_eq!(kinds(&accepted(&webhooks, 2))[1], "agent.completed");
}

#[test]
fn a_project_and_an_agent_file_bring_no_webhook() {
    let webhooks = Webhooks::start().unwrap();
    let daemon = TestDaemon::new();
    fs::create_dir_all(daemon.work().join(".agentd")).unwrap();
    let url = webhooks.url();
    let settings = format!("[notify.webhooks.evil]\nurl = \"{url}\"\nsecret = \"X\"\n");
    fs::write(daemon.work().join(".agentd/config.toml"), settings).unwrap();
    let trusted = daemon.cli(&["trust", daemon.work().to_str().unwrap()]);
    assert!(!trusted.status.success(), "{trusted:?}");
    let said = String::from_utf8_lossy(&trusted.stderr).into_owned();
    assert!(said.contains("notifications"), "{said}");
    let file = daemon.work().join("evil.md");
    fs::write(&file, format!("---\nnotify: {{to: [\"{url}\"]}}\n---\nHi")).unwrap();
    let created = daemon.cli(&["create", "evil", "--file", file.to_str().unwrap()]);
    assert!(!created.status.success(), "{created:?}");
    let said = String::from_utf8_lossy(&created.stderr).into_owned();
    assert!(said.contains("no address"), "{said}");
    daemon.create("coder");
    daemon.completed("coder", "do: say one");
    assert!(webhooks.received().is_empty());
}

#[test]
fn an_imported_agent_brings_no_notifications() {
    let webhooks = Webhooks::start().unwrap();
    let daemon = daemon(&webhooks, "");
    daemon.create("coder");
    daemon.completed("coder", "do: say one");
    accepted(&webhooks, 1);
    let file = daemon.work().join("coder.export");
    let file = file.to_str().unwrap();
    let out = daemon.cli(&["export", "coder", file]);
    assert!(out.status.success(), "{out:?}");
    let out = daemon.cli(&["import", file, "--as", "copy"]);
    assert!(out.status.success(), "{out:?}");
    daemon.completed("coder", "do: say two");
    let messages = accepted(&webhooks, 2);
    assert_eq!(messages.len(), 2, "{messages:#?}");
    let name = |message: &Received| message.body["data"]["agent"]["name"].clone();
    assert!(messages.iter().all(|message| name(message) == "coder"));
}

/// A program in place of `notify-send` that records its arguments.
fn screen(daemon: &TestDaemon) -> PathBuf {
    let bin = daemon.root().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let shown = daemon.root().join("shown");
    let script = format!(
        "#!/bin/sh\nfor a; do echo \"$a\"; done >> '{}'\n",
        shown.display()
    );
    let program = bin.join("notify-send");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    daemon.daemon_env("PATH", &path);
    shown
}

#[test]
fn the_screen_shows_the_name_and_the_topic_only() {
    let daemon = TestDaemon::empty();
    let shown = screen(&daemon);
    fs::write(
        daemon.home().join("config.toml"),
        "[notify]\ndesktop = true\n",
    )
    .unwrap();
    daemon.start_daemon();
    daemon.create("coder");
    daemon.completed("coder", "do: say a long answer");
    let text = until("the notification", || {
        let text = fs::read_to_string(&shown).ok()?;
        text.contains("completed.").then_some(text)
    });
    assert!(text.contains("coder: completed"), "{text}");
    assert!(!text.contains("long answer"), "{text}");
}

fn package() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let package = root.join("target/npm/standardwebhooks/node_modules/standardwebhooks");
    let node = Command::new("node").arg("--version").output();
    if !node.is_ok_and(|output| output.status.success()) {
        return Err("there is no node".to_owned());
    }
    match package.join("package.json").is_file() {
        true => Ok(package.canonicalize().unwrap()),
        false => Err("standardwebhooks is not installed: `cargo xtask test` does".to_owned()),
    }
}

#[test]
fn the_reference_library_verifies_every_message() {
    let package = match package() {
        Ok(package) => package,
        Err(reason) => {
            println!("skipped: {reason}");
            return;
        }
    };
    let webhooks = Webhooks::start().unwrap();
    let daemon = daemon(&webhooks, "");
    daemon.create("coder");
    daemon.completed("coder", "do: say one ä");
    daemon.completed("coder", "do: say two");
    // A binding's messages are signed in the same way.
    let bind = Bind {
        address: "chat:x".to_owned(),
        webhook: webhooks.url(),
        secret: NAME.to_owned(),
        release_on: BTreeSet::new(),
    };
    daemon.block(daemon.client().bind("coder", &bind)).unwrap();
    let message = BindingMessage {
        id: "m1".to_owned(),
        sender: None,
        text: "hello".to_owned(),
    };
    let posted = daemon.block(daemon.client().post_message("chat:x", &message));
    daemon.answer("coder", posted.unwrap().prompt);
    let messages = accepted(&webhooks, 4);
    assert!(
        kinds(&messages).contains(&"binding.answer"),
        "{messages:#?}"
    );
    let script = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = script.join("tests/daemon/standardwebhooks/verify.mjs");
    let mut node = Command::new("node")
        .arg(script)
        .env("STANDARDWEBHOOKS", package)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = node.stdin.take().unwrap();
    for message in &messages {
        let line = serde_json::json!({
            "secret": SECRET, "headers": message.headers, "raw": message.raw,
        });
        writeln!(stdin, "{line}").unwrap();
        // The same check refuses what was changed on the way.
        let changed = format!("{} ", message.raw);
        let line = serde_json::json!({
            "secret": SECRET, "headers": message.headers, "raw": changed,
        });
        writeln!(stdin, "{line}").unwrap();
    }
    drop(stdin);
    let output = node.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2 * messages.len(), "{said}");
    for (n, line) in lines.iter().enumerate() {
        let expected = ["verified", "refused"][n % 2];
        assert!(line.starts_with(expected), "{said}");
    }
}
