//! Backups of a home that is in use, and homes that are restored from them.

use crate::test_daemon::{KEY, TestDaemon, until};
use agentd_client::Client;
use agentd_client::api::{BackUp, Backup, EventQuery, Purge, Reset, Status};
use agentd_core::event::{Event, Kind};
use agentd_failpoint::plan::Role;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

pub fn stdout(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

pub fn directory(daemon: &TestDaemon) -> PathBuf {
    let dir = daemon.root().join("backups");
    fs::create_dir_all(&dir).unwrap();
    dir
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Makes a backup with the program, and returns what it printed.
pub fn back_up(daemon: &TestDaemon, args: &[&str]) -> Value {
    let dir = directory(daemon);
    let mut all = vec!["backup", text(&dir), "--json"];
    all.extend(args);
    stdout(&daemon.cli(&all))
}

pub fn file_of(made: &Value) -> PathBuf {
    PathBuf::from(made["file"].as_str().unwrap())
}

/// Restores into a new home, and checks its journal.
pub fn restore(daemon: &TestDaemon, file: &Path, name: &str) -> (PathBuf, Value) {
    let home = daemon.root().join(name);
    let restored = daemon.cli_at(&home, &["restore-backup", text(file), "--json"]);
    let restored = stdout(&restored);
    let report = stdout(&daemon.cli_at(&home, &["verify", "--json"]));
    assert_eq!(report["clean"], true, "{report:#}");
    (home, restored)
}

/// The events of an agent in another home. Its daemon must run.
pub fn events(daemon: &TestDaemon, home: &Path, name: &str) -> Vec<Event> {
    let client = Client::new(home.join("run/api.sock"));
    let mut all: Vec<Event> = Vec::new();
    loop {
        let query = EventQuery {
            after: all.last().map_or(0, |event| event.seq.0),
            all: true,
            ..EventQuery::default()
        };
        let (events, next) = daemon.block(client.page(name, &query)).unwrap();
        all.extend(events);
        if next.is_none() {
            return all;
        }
    }
}

/// The files below a directory that contain a text.
pub fn with_text(dir: &Path, words: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(with_text(&path, words));
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap();
            let is_there = bytes
                .windows(words.len())
                .any(|part| part == words.as_bytes());
            found.extend(is_there.then_some(path));
        }
    }
    found
}

pub fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_backup_of_running_agents_has_all_acknowledged_events_and_its_agents_are_stopped() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.create("writer");
    daemon.completed("writer", "do: say hello");
    let wait = "echo ran >> effects; until [ -e go ]; do sleep 0.05; done";
    let call = json!({ "command": wait });
    let sent = daemon.send("coder", &format!("do: call shell {call} ;; say done"));
    until("the command", || {
        (daemon.effects() == ["ran"]).then_some(())
    });
    let before = [daemon.events("coder"), daemon.events("writer")];
    let made = back_up(&daemon, &[]);
    assert_eq!(
        (&made["agents"], &made["incremental"]),
        (&json!(2), &json!(false))
    );
    // The original goes on.
    fs::write(daemon.work().join("go"), "").unwrap();
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Completed
    );

    let (home, restored) = restore(&daemon, &file_of(&made), "restored");
    assert_eq!(restored["stopped"], 2, "{restored:#}");
    assert_eq!(restored["copied_from"], made["home_id"]);
    assert_ne!(restored["home_id"], made["home_id"]);
    let cli = |args: &[&str]| daemon.cli_at(&home, args);
    let status = stdout(&cli(&["daemon", "start", "--json"]));
    assert_eq!(status["read_only"], Value::Null, "{status:#}");
    assert_eq!(status["home_id"], restored["home_id"]);
    for (name, before) in ["coder", "writer"].into_iter().zip(&before) {
        let after = events(&daemon, &home, name);
        assert_eq!(&after[..before.len()], before.as_slice(), "{name}");
        let stopped = after
            .iter()
            .filter(|event| event.kind() == Kind::AgentStopped);
        assert_eq!(stopped.count(), 1, "{name}");
    }
    // The turn ends without a request; nothing runs again until the user starts the agent.
    let requests = daemon.requests().len();
    until("the end of the turn", || {
        let shown = stdout(&cli(&["show", "coder", "--json"]));
        (shown["phase"] == "stopped").then_some(())
    });
    assert_eq!(daemon.requests().len(), requests);
    assert_eq!(daemon.effects(), ["ran"]);
    let started = cli(&["start", "writer"]);
    assert_eq!(started.status.code(), Some(0), "{started:?}");
    let more = cli(&["send", "writer", "do: say more"]);
    assert_eq!(more.status.code(), Some(0), "{more:?}");
    cli(&["daemon", "stop"]);
}

#[test]
fn a_chain_restores_and_a_missing_or_damaged_link_is_named() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let call = json!({ "command": "seq 100000 120000; echo kept" });
    daemon.completed("coder", &format!("do: call shell {call} ;; say one"));
    let first = file_of(&back_up(&daemon, &["--incremental"]));
    daemon.completed("coder", "do: say two");
    let made = back_up(&daemon, &["--incremental"]);
    let second = file_of(&made);
    assert_eq!(made["parent"], json!(first.file_name().unwrap().to_str()));
    assert_eq!(made["files_stored"], 0, "{made:#}");
    assert!(made["files"].as_u64().unwrap() > 0, "{made:#}");
    daemon.completed("coder", "do: say three");
    let third = file_of(&back_up(&daemon, &["--incremental"]));
    let before = daemon.events("coder");

    let verify = |file: &Path| daemon.cli(&["backup", "--verify", text(file), "--json"]);
    let checked = stdout(&verify(&third));
    assert_eq!(checked["chain"].as_array().unwrap().len(), 3, "{checked:#}");
    let (home, _) = restore(&daemon, &third, "restored");
    daemon.cli_at(&home, &["daemon", "start"]);
    let after = events(&daemon, &home, "coder");
    assert_eq!(&after[..before.len()], before.as_slice());
    daemon.cli_at(&home, &["daemon", "stop"]);
    // The output of the tool came with the first backup.
    assert!(!with_text(&home.join("agents"), "110023").is_empty());

    // A renamed link is found by its digest.
    let renamed = second.with_file_name("renamed");
    fs::rename(&second, &renamed).unwrap();
    stdout(&verify(&third));
    fs::remove_file(&renamed).unwrap();
    let refused = verify(&third);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(
        said.contains(second.file_name().unwrap().to_str().unwrap()),
        "{said}"
    );
    // A damaged link is named too. The first backup alone is all that is left.
    let mut bytes = fs::read(&first).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&first, bytes).unwrap();
    let refused = verify(&first);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(
        said.contains(text(&first)) && said.contains("damaged"),
        "{said}"
    );
}

/// The previous backup is as it was, wherever the daemon is killed, and the next one works.
#[test]
fn a_backup_that_is_killed_at_any_point_leaves_the_previous_one_whole() {
    for point in [
        "before-backup",
        "after-backup-part",
        "in-backup",
        "before-backup-sync",
        "before-backup-rename",
        "after-backup-rename",
    ] {
        let daemon = TestDaemon::new();
        daemon.create("coder");
        daemon.completed("coder", "do: say one");
        let file = daemon.root().join("only.backup");
        let made = daemon.cli(&["backup", text(&file)]);
        assert_eq!(made.status.code(), Some(0), "{made:?}");
        let before = fs::read(&file).unwrap();
        daemon.completed("coder", "do: say two");
        daemon.kill_daemon();

        daemon.hold(Role::Daemon, point);
        daemon.start_daemon();
        let (client, to) = (daemon.client(), text(&file).to_owned());
        let asked = daemon.spawn(async move {
            let ask = BackUp {
                to,
                incremental: false,
                replace: true,
            };
            client.back_up(&ask, |_| {}).await
        });
        daemon.until_held();
        daemon.kill_daemon();
        assert!(daemon.block(asked).unwrap().is_err(), "{point}");
        let after = fs::read(&file).unwrap();
        match point {
            "after-backup-rename" => assert_ne!(after, before),
            _ => assert_eq!(after, before, "{point}"),
        }
        let checked = daemon.cli(&["backup", "--verify", text(&file)]);
        assert_eq!(checked.status.code(), Some(0), "{point}: {checked:?}");

        daemon.start_daemon();
        let made = daemon.cli(&["backup", text(&file), "--force"]);
        assert_eq!(made.status.code(), Some(0), "{point}: {made:?}");
        let left = names(&daemon.root());
        assert!(
            !left.iter().any(|name| name.ends_with(".partial")),
            "{left:?}"
        );
    }
}

/// What a backup contains, without its compression.
fn unpacked(file: &Path) -> Vec<u8> {
    let bytes = fs::read(file).unwrap();
    let begin = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let decoder = zstd::stream::read::Decoder::new(&bytes[begin..]).unwrap();
    let mut all = Vec::new();
    std::io::Read::read_to_end(&mut decoder.single_frame(), &mut all).unwrap();
    all.extend(bytes);
    all
}

#[test]
fn no_secret_is_in_a_backup() {
    const SECRET: &str = "tr0ub4dor-and-3-horses";
    const TOKEN: &str = "t0ken-0f-the-address";
    let daemon = TestDaemon::new();
    let settings = format!(
        "[notify.webhooks.team]\nurl = \"https://hooks.example/{TOKEN}\"\nsecret = \"HOOK\"\n"
    );
    fs::write(daemon.home().join("config.toml"), settings).unwrap();
    fs::write(daemon.home().join("key.txt"), SECRET).unwrap();
    let file = daemon.root().join("secret");
    fs::write(&file, SECRET).unwrap();
    let mut set = daemon.command();
    set.args(["secret", "set", "MY_TOKEN"]);
    set.stdin(fs::File::open(&file).unwrap());
    let set = set.output().unwrap();
    assert_eq!(set.status.code(), Some(0), "{set:?}");
    daemon.create("coder");
    // A tool that reads the secret and prints it: its kept output is redacted.
    let read = format!("seq 100000 120000; cat {}; echo xyzzy", text(&file));
    let call = json!({ "command": read });
    daemon.completed("coder", &format!("do: call shell {call} ;; say plugh"));
    let made = file_of(&back_up(&daemon, &[]));
    let all = unpacked(&made);
    let has = |words: &str| {
        all.windows(words.len())
            .any(|part| part == words.as_bytes())
    };
    assert!(has("xyzzy") && has("plugh"), "the search finds text");
    assert!(!has(SECRET) && !has(KEY) && !has(TOKEN));
    let (home, _) = restore(&daemon, &made, "restored");
    let settings = fs::read_to_string(home.join("config.toml")).unwrap();
    assert!(settings.contains("[notify.webhooks.team]"), "{settings}");
    let left_out = agentd_core::catalog::LEFT_OUT;
    assert!(settings.contains(left_out), "{settings}");
    assert_eq!(with_text(&home, SECRET), [] as [PathBuf; 0]);
    assert_eq!(with_text(&home, KEY), [] as [PathBuf; 0]);
    assert!(!home.join("secrets.json").exists() && !home.join("key.txt").exists());
}

/// A restore that fails: its exit code, and nothing is left of it.
#[track_caller]
fn refused(daemon: &TestDaemon, file: &Path) -> i32 {
    let dir = daemon.root().join("target");
    fs::create_dir_all(&dir).unwrap();
    let home = dir.join("home");
    let output = daemon.cli_at(&home, &["restore-backup", text(file)]);
    let code = output.status.code().unwrap();
    assert_ne!(code, 0, "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.starts_with("error:"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(names(&dir), [] as [&str; 0], "{said}");
    code
}

#[test]
fn a_file_that_was_cut_off_or_changed_is_refused_and_leaves_nothing() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say hello");
    let whole = fs::read(file_of(&back_up(&daemon, &[]))).unwrap();
    let file = daemon.root().join("changed.backup");
    for (n, part) in [0, 1, 7, 20, 50, 99].into_iter().enumerate() {
        fs::write(&file, &whole[..whole.len() * part / 100]).unwrap();
        let code = refused(&daemon, &file);
        assert!(code == 1 || (code == 2 && n < 3), "{part}: {code}");
    }
    for at in (0..whole.len()).step_by(whole.len() / 25) {
        let mut changed = whole.clone();
        changed[at] ^= 1 << (at % 8);
        fs::write(&file, changed).unwrap();
        refused(&daemon, &file);
    }
    fs::write(&file, "not a backup, but a text").unwrap();
    assert_eq!(refused(&daemon, &file), 2);
    fs::remove_file(&file).unwrap();
    assert_eq!(refused(&daemon, &file), 2);
}

/// A backup with other records, and with a digest that fits.
pub fn forged(file: &Path, edit: impl Fn(&mut Vec<(u8, Vec<u8>)>, &mut Value)) -> Vec<u8> {
    use sha2::Digest as _;
    let bytes = fs::read(file).unwrap();
    let begin = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let length_at = bytes.len() - 36;
    let length = u32::from_le_bytes(bytes[length_at..length_at + 4].try_into().unwrap());
    let manifest_at = length_at - length as usize;
    let mut manifest: Value = serde_json::from_slice(&bytes[manifest_at..length_at]).unwrap();
    let plain = zstd::stream::decode_all(&bytes[begin..manifest_at]).unwrap();
    let (mut records, mut rest) = (Vec::new(), plain.as_slice());
    while let [tag, after @ ..] = rest {
        let length = u32::from_le_bytes(after[..4].try_into().unwrap()) as usize;
        records.push((*tag, after[4..4 + length].to_vec()));
        rest = &after[4 + length..];
    }
    edit(&mut records, &mut manifest);
    let mut plain = Vec::new();
    for (tag, bytes) in records {
        plain.push(tag);
        plain.extend((bytes.len() as u32).to_le_bytes());
        plain.extend(bytes);
    }
    let mut forged = bytes[..begin].to_vec();
    forged.extend(zstd::stream::encode_all(plain.as_slice(), 3).unwrap());
    let manifest = serde_json::to_vec(&manifest).unwrap();
    forged.extend(&manifest);
    forged.extend((manifest.len() as u32).to_le_bytes());
    let digest = sha2::Sha256::digest(&forged);
    forged.extend(digest);
    forged
}

#[test]
fn a_forged_backup_cannot_write_outside_its_home_or_change_a_journal() {
    let daemon = TestDaemon::new();
    fs::write(daemon.home().join("config.toml"), "# mine\n").unwrap();
    let agent = daemon.create("coder").id;
    daemon.completed("coder", "do: say hello");
    let made = file_of(&back_up(&daemon, &[]));
    let file = daemon.root().join("forged.backup");
    fs::write(&file, forged(&made, |_, _| {})).unwrap();
    restore(&daemon, &file, "unchanged");
    let outside = daemon.root().join("outside");
    let escape = json!({
        "type": "output", "agent": agent, "name": format!("../../../..{}", text(&outside)),
    });
    let named = |name: Value| {
        forged(&made, move |records, manifest| {
            for (_, bytes) in records.iter_mut().filter(|(tag, _)| *tag == b'F') {
                *bytes = serde_json::to_vec(&name).unwrap();
            }
            for kept in manifest["files"].as_array_mut().unwrap() {
                kept["file"] = name.clone();
            }
        })
    };
    let bad_parent = |name: &str| {
        let name = name.to_owned();
        forged(&made, move |_, manifest| {
            manifest["parent"] = json!({"digest": "0".repeat(64), "file": name});
        })
    };
    let last_journal =
        |records: &[(u8, Vec<u8>)]| records.iter().rposition(|(tag, _)| *tag == b'J').unwrap();
    let attempts = [
        named(escape),
        named(json!({"type": "secrets"})),
        bad_parent("../backups"),
        bad_parent("/etc/passwd"),
        // A journal without some of its rows, with rows twice, and with a huge length.
        forged(&made, |records, _| {
            records.retain(|(tag, _)| *tag != b'J');
        }),
        forged(&made, |records, _| {
            let twice = records[0].clone();
            records.insert(0, twice);
        }),
        forged(&made, |records, _| {
            let at = last_journal(records);
            records[at].1.truncate(6);
        }),
        forged(&made, |records, _| {
            records[0].1[1..5].copy_from_slice(&u32::MAX.to_le_bytes());
        }),
        forged(&made, |records, _| records.push((b'D', vec![0; 8]))),
        forged(&made, |records, _| records.push((b'?', Vec::new()))),
        forged(&made, |_, manifest| manifest["format"] = json!(99)),
        forged(&made, |_, manifest| {
            let text = manifest["journal"].as_str().unwrap();
            let mut mark: Value = serde_json::from_str(text).unwrap();
            mark["schema"] = json!(9999);
            manifest["journal"] = json!(mark.to_string());
        }),
    ];
    for (n, attempt) in attempts.into_iter().enumerate() {
        fs::write(&file, attempt).unwrap();
        println!("attempt {n}");
        refused(&daemon, &file);
        assert!(!outside.exists());
    }
}

#[test]
fn a_home_with_data_is_left_alone() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let made = file_of(&back_up(&daemon, &[]));
    let output = daemon.cli(&["restore-backup", text(&made)]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("not empty") && said.contains("--into"),
        "{said}"
    );
    daemon.completed("coder", "do: say hello");
    // A link to a directory is not replaced either; an empty directory is.
    let (link, empty) = (daemon.root().join("link"), daemon.root().join("empty"));
    fs::create_dir(&empty).unwrap();
    std::os::unix::fs::symlink(&empty, &link).unwrap();
    let into = |dir: &Path| daemon.cli(&["restore-backup", text(&made), "--into", text(dir)]);
    for wrong in [&link, &made] {
        let refused = into(wrong);
        assert_eq!(refused.status.code(), Some(3), "{refused:?}");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            said.contains("not a directory") && said.contains("next:"),
            "{said}"
        );
    }
    assert_eq!(into(&empty).status.code(), Some(0));
    assert!(empty.join("journal.db").is_file());
    // An existing file is replaced only on request.
    let again = daemon.cli(&["backup", text(&made)]);
    assert_eq!(again.status.code(), Some(3), "{again:?}");
    let again = daemon.cli(&["backup", text(&made), "--force"]);
    assert_eq!(again.status.code(), Some(0), "{again:?}");
}

/// Purges the first conversation of the agent.
pub fn purge(daemon: &TestDaemon) {
    let current = daemon.show("coder").conversation.unwrap().id;
    let reset = Reset::default();
    daemon
        .block(daemon.client().reset("coder", &reset))
        .unwrap();
    let purge = Purge {
        conversation: Some(current),
        dry_run: false,
    };
    daemon
        .block(daemon.client().purge("coder", &purge))
        .unwrap();
}

#[test]
fn what_was_purged_after_a_backup_does_not_come_back() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let call = json!({ "command": "seq 100000 120000; echo xyzzy" });
    daemon.completed("coder", &format!("do: call shell {call} ;; say plugh"));
    let made = file_of(&back_up(&daemon, &[]));
    let apart = daemon.root().join("apart");
    fs::create_dir(&apart).unwrap();
    let copy = apart.join("copy.backup");
    fs::copy(&made, &copy).unwrap();
    purge(&daemon);

    // The list beside the backup says so.
    let (home, restored) = restore(&daemon, &made, "restored");
    assert_eq!(restored["purged"], 1, "{restored:#}");
    for word in ["xyzzy", "plugh", "110023"] {
        assert_eq!(with_text(&home, word), [] as [PathBuf; 0], "{word}");
    }
    // The agent has begun a conversation in place of the purged one.
    let started = daemon.cli_at(&home, &["start", "coder"]);
    assert_eq!(started.status.code(), Some(0), "{started:?}");
    let more = daemon.cli_at(&home, &["send", "coder", "do: say more"]);
    assert_eq!(more.status.code(), Some(0), "{more:?}");
    daemon.cli_at(&home, &["daemon", "stop"]);

    // Without the list, the old home says so, and without both the content is there.
    let (home, restored) = restore(&daemon, &copy, "without");
    assert_eq!(restored["purged"], 0, "{restored:#}");
    assert!(!with_text(&home, "plugh").is_empty());
    let home = daemon.root().join("with");
    let args = ["restore-backup", text(&copy), "--json", "--old-home"];
    let old = daemon.home();
    let restored = daemon.cli_at(&home, &[&args[..], &[text(&old)]].concat());
    assert_eq!(stdout(&restored)["purged"], 1);
    assert_eq!(with_text(&home, "plugh"), [] as [PathBuf; 0]);
}

#[test]
fn the_daemon_makes_backups_by_itself_and_keeps_the_newest() {
    let daemon = TestDaemon::empty();
    let dir = directory(&daemon);
    fs::create_dir_all(daemon.home()).unwrap();
    let settings = format!(
        "[backup]\ndirectory = \"{}\"\nevery = \"1d\"\nkeep = 1\n",
        text(&dir)
    );
    fs::write(daemon.home().join("config.toml"), settings).unwrap();
    // For its clock only: no daemon gets to this failpoint.
    daemon.hold(Role::Daemon, "never-reached");
    daemon.start_daemon();
    let backups = || -> Vec<String> {
        let mut names = names(&dir);
        names.retain(|name| name.ends_with(".backup"));
        names
    };
    let first = until("a backup", || backups().pop());
    daemon.create("coder");
    // Not due yet.
    daemon.kill_daemon();
    daemon.start_daemon();
    daemon.completed("coder", "do: say hello");
    assert_eq!(backups(), [first.as_str()]);
    daemon.kill_daemon();
    fs::write(daemon.root().join("clock"), "172800000").unwrap();
    daemon.start_daemon();
    let second = until("the next backup alone", || {
        let found = backups();
        (found.len() == 1 && found[0] != first).then(|| dir.join(&found[0]))
    });
    let (_, restored) = restore(&daemon, &second, "restored");
    assert_eq!(restored["agents"], 1, "{restored:#}");
}

/// Only the user may read everything.
#[test]
fn tools_of_an_agent_make_no_backup() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let program = crate::test_daemon::AGENTD;
    let call = json!({ "command": format!("{program} backup stolen.backup; echo code $?") });
    daemon.completed("coder", &format!("do: call shell {call} ;; say done"));
    assert!(!daemon.work().join("stolen.backup").exists());
    let ask = BackUp {
        to: "relative".to_owned(),
        ..BackUp::default()
    };
    let refused: Result<Backup, _> = daemon.block(daemon.client().back_up(&ask, |_| {}));
    assert!(refused.is_err());
}
