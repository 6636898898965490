//! Backups and restores at their edges: names that are taken, directories that exist, hostile files, signals, and a journal that
//! is damaged.

use crate::backup::{back_up, directory, file_of, forged, names, restore, stdout, text};
use crate::doctor::{find, findings_at, found};
use crate::test_daemon::{TestDaemon, kill, until};
use agentd_failpoint::plan::{Action, Role, Rule};
use agentd_failpoint::{Passed, VARIABLE};
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What `backups.json` of the home says.
fn known(daemon: &TestDaemon) -> String {
    fs::read_to_string(daemon.home().join("backups.json")).unwrap_or_default()
}

/// Regression: a rename replaced them by a regular file, for root also `/dev/null`.
#[test]
fn only_an_earlier_backup_or_an_empty_file_is_replaced() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let dir = daemon.root().join("elsewhere");
    fs::create_dir(&dir).unwrap();
    let path = |name: &str| dir.join(name);
    let back_up = |name: &str| daemon.cli(&["backup", text(&path(name)), "--force"]);
    fs::write(path("letter"), "Dear diary").unwrap();
    symlink("letter", path("link")).unwrap();
    mkfifoat(CWD, path("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
    for (name, what) in [
        ("letter", "not a backup"),
        ("link", "a symbolic link"),
        ("pipe", "a pipe"),
    ] {
        let refused = back_up(name);
        assert_eq!(refused.status.code(), Some(3), "{name}: {refused:?}");
        let said = err(&refused);
        assert!(
            said.contains(what) && said.contains("next:"),
            "{name}: {said}"
        );
    }
    assert_eq!(fs::read(path("link")).unwrap(), b"Dear diary");
    let pipe = fs::symlink_metadata(path("pipe")).unwrap();
    assert!(pipe.file_type().is_fifo());
    assert!(!known(&daemon).contains("elsewhere"), "{}", known(&daemon));
    fs::write(path("new"), "").unwrap();
    for _ in 0..2 {
        let made = back_up("new");
        assert_eq!(made.status.code(), Some(0), "{made:?}");
    }
    assert!(known(&daemon).contains("elsewhere"), "{}", known(&daemon));
    assert_eq!(names(&dir), ["letter", "link", "new", "pipe"]);
}

/// Regression: it stayed in `backups.json`, and each start of a daemon logged a warning. The error said no next step.
#[test]
fn a_directory_whose_backup_fails_is_not_recorded() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let missing = daemon.root().join("missing/x.backup");
    for to in [Path::new("/proc/x.backup"), missing.as_path()] {
        let failed = daemon.cli(&["backup", text(to)]);
        assert_ne!(failed.status.code(), Some(0), "{failed:?}");
        assert!(err(&failed).contains("next:"), "{}", err(&failed));
    }
    let known = known(&daemon);
    assert!(
        !known.contains("proc") && !known.contains("missing"),
        "{known}"
    );
}

/// Regression: the directory was replaced by a rename, which fails for a mount point, or if this user cannot write beside it.
#[test]
fn a_directory_that_exists_becomes_the_home_itself() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say hello");
    let made = file_of(&back_up(&daemon, &[]));
    let home = daemon.root().join("there");
    fs::create_dir(&home).unwrap();
    let inode = || fs::metadata(&home).unwrap().ino();
    let before = inode();
    restore(&daemon, &made, "there");
    assert_eq!(inode(), before);
    let status = stdout(&daemon.cli_at(&home, &["daemon", "start", "--json"]));
    assert_eq!(status["read_only"], Value::Null, "{status:#}");
    let started = daemon.cli_at(&home, &["start", "coder"]);
    assert_eq!(started.status.code(), Some(0), "{started:?}");
    let more = daemon.cli_at(&home, &["send", "coder", "do: say more"]);
    assert_eq!(more.status.code(), Some(0), "{more:?}");
    daemon.cli_at(&home, &["daemon", "stop"]);
    let left = names(&home);
    assert!(
        !left.iter().any(|name| name.starts_with(".agentd-restore")),
        "{left:?}"
    );
}

/// A restore into this home that gets a signal, or is held, at a failpoint.
fn restore_with(
    daemon: &TestDaemon,
    (point, action): (&str, Action),
    file: &Path,
    home: &Path,
) -> Command {
    let rule = Rule {
        action,
        ..Rule::hold(rule_of(home), Role::Client, point)
    };
    daemon.follow(rule);
    let mut command = daemon.command();
    command.args(["restore-backup", text(file)]);
    command.env("AGENTD_HOME", home);
    command.env(VARIABLE, daemon.root());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A rule applies once, by its name.
fn rule_of(home: &Path) -> &str {
    home.file_name().unwrap().to_str().unwrap()
}

/// When a restore has unpacked everything.
const UNPACKED: &str = "in-restore-backup";
/// When it has moved one entry into a directory that exists.
const MOVED: &str = "in-restore-backup-moves";

/// Regression: SIGTERM left a partial copy of the home.
#[test]
fn a_restore_that_is_terminated_or_interrupted_leaves_nothing() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let made = file_of(&back_up(&daemon, &[]));
    let dir = daemon.root().join("target");
    fs::create_dir(&dir).unwrap();
    for (new, there, action) in [
        ("new-1", "there-1", Action::Term),
        ("new-2", "there-2", Action::Int),
    ] {
        let new = dir.join(new);
        let mut command = restore_with(&daemon, (UNPACKED, action), &made, &new);
        let ended = command.output().unwrap();
        assert_eq!(ended.status.code(), Some(130), "{ended:?}");
        assert_eq!(names(&dir), [] as [&str; 0]);
        // The same in a directory that exists.
        let there = dir.join(there);
        fs::create_dir(&there).unwrap();
        let mut command = restore_with(&daemon, (UNPACKED, action), &made, &there);
        let ended = command.output().unwrap();
        assert_eq!(ended.status.code(), Some(130), "{ended:?}");
        assert_eq!(names(&there), [] as [&str; 0]);
        fs::remove_dir(&there).unwrap();
    }
}

/// Regression: the command said that it was interrupted, and the home was restored.
#[test]
fn a_restore_that_completes_despite_ctrl_c_says_so() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let made = file_of(&back_up(&daemon, &[]));
    let home = daemon.root().join("there");
    fs::create_dir(&home).unwrap();
    let mut command = restore_with(&daemon, (MOVED, Action::Hold), &made, &home);
    let restoring = command.spawn().unwrap();
    until("the first move", || {
        Passed::of_rule(&daemon.root(), rule_of(&home)).unwrap()
    });
    kill(restoring.id(), Signal::INT);
    // A second one changes nothing either.
    kill(restoring.id(), Signal::TERM);
    Passed::release(&daemon.root(), rule_of(&home)).unwrap();
    let restored = restoring.wait_with_output().unwrap();
    assert_eq!(restored.status.code(), Some(0), "{restored:?}");
    let listed = daemon.cli_at(&home, &["list"]);
    assert_eq!(listed.status.code(), Some(0), "{listed:?}");
    daemon.cli_at(&home, &["daemon", "stop"]);
}

#[test]
fn a_restore_that_is_killed_leaves_no_home_and_can_be_repeated() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let made = file_of(&back_up(&daemon, &[]));
    for (name, point) in [("unpacked", UNPACKED), ("moved", MOVED)] {
        let home = daemon.root().join(name);
        fs::create_dir(&home).unwrap();
        let mut command = restore_with(&daemon, (point, Action::Kill), &made, &home);
        let killed = command.output().unwrap();
        assert_eq!(killed.status.code(), None, "{killed:?}");
        let refused = daemon.cli_at(&home, &["list"]);
        assert_eq!(refused.status.code(), Some(4), "{refused:?}");
        let said = err(&refused);
        assert!(said.contains("did not complete"), "{said}");
        // Regression: doctor said that there was no journal yet, and that the next command starts the daemon.
        let findings = findings_at(&daemon, &home, &[]);
        let store = found(&findings, "store", "did not complete");
        assert_eq!(store["level"], "problem", "{store:#}");
        assert!(find(&findings, "daemon", "").is_none(), "{findings:#?}");
        // The restore has moved one entry at most, and the command has made none.
        let left = names(&home);
        assert_eq!(left.len(), if point == MOVED { 2 } else { 1 }, "{left:?}");
        assert!(
            left.iter().any(|name| name == ".agentd-restore"),
            "{left:?}"
        );
        restore(&daemon, &made, name);
        let listed = daemon.cli_at(&home, &["list"]);
        assert_eq!(listed.status.code(), Some(0), "{listed:?}");
        daemon.cli_at(&home, &["daemon", "stop"]);
    }
}

/// Regression: a daemon that had looked just before a restore began worked in the home while it was restored.
#[test]
fn a_daemon_that_starts_while_a_restore_begins_opens_no_journal() {
    let daemon = TestDaemon::empty();
    daemon.hold(Role::Daemon, "after-lock");
    let mut command = daemon.command();
    command.args(["daemon", "run"]).env(VARIABLE, daemon.root());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let starting = command.spawn().unwrap();
    daemon.until_held();
    fs::create_dir(daemon.home().join(".agentd-restore")).unwrap();
    Passed::release(&daemon.root(), "hold").unwrap();
    let refused = starting.wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    let said = err(&refused);
    assert!(said.contains("did not complete"), "{said}");
    assert!(!daemon.home().join("journal.db").exists());
}

/// Regression: the restore waited for ever.
#[test]
fn a_pipe_in_place_of_a_list_of_purges_is_refused() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let made = file_of(&back_up(&daemon, &[]));
    let list = directory(&daemon).join("agentd-purges-x.jsonl");
    mkfifoat(CWD, &list, Mode::RUSR | Mode::WUSR).unwrap();
    let home = daemon.root().join("restored");
    let refused = daemon.cli_at(&home, &["restore-backup", text(&made)]);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    let said = err(&refused);
    assert!(
        said.contains(text(&list)) && said.contains("not a regular file"),
        "{said}"
    );
    assert!(!home.exists());
}

/// Regression: all data of a file was written before its size was compared, the counts of the manifest were shown as facts, and
/// a name could add a line to an error.
#[test]
fn a_forged_backup_is_not_believed() {
    let daemon = TestDaemon::new();
    fs::write(daemon.home().join("config.toml"), "# mine\n").unwrap();
    daemon.create("coder");
    let made = file_of(&back_up(&daemon, &[]));
    let file = daemon.root().join("forged.backup");
    let verify = || daemon.cli(&["backup", "--verify", text(&file), "--json"]);
    let counts = forged(&made, |_, manifest| {
        (manifest["agents"], manifest["events"]) = (json!(7000), json!(7_000_000));
    });
    fs::write(&file, counts).unwrap();
    let checked = stdout(&verify());
    assert_eq!(checked["agents"], 1, "{checked:#}");
    assert_ne!(checked["events"], 7_000_000, "{checked:#}");

    let longer = forged(&made, |records, _| {
        let at = records.iter().position(|(tag, _)| *tag == b'D').unwrap();
        records.insert(at + 1, (b'D', vec![b'#'; 1000]));
    });
    fs::write(&file, longer).unwrap();
    let refused = verify();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(said.contains("the content of config.toml"), "{said}");

    let parent = forged(&made, |_, manifest| {
        manifest["parent"] = json!({"digest": "0".repeat(64), "file": "x\nnext: run me"});
    });
    fs::write(&file, parent).unwrap();
    let refused = daemon.cli(&["backup", "--verify", text(&file)]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let said = err(&refused);
    assert!(said.contains("x next: run me"), "{said}");
}

#[test]
fn a_wrong_old_home_is_named() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let made = file_of(&back_up(&daemon, &[]));
    let (home, wrong) = (daemon.root().join("restored"), daemon.root().join("wrong"));
    let args = ["restore-backup", text(&made), "--old-home", text(&wrong)];
    let refused = daemon.cli_at(&home, &args);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let said = err(&refused);
    assert!(
        said.contains(text(&wrong)) && said.contains("--old-home"),
        "{said}"
    );
    assert!(!home.exists());
}

/// Regression: the command for the next step was one for the original home.
#[test]
fn the_next_step_after_a_restore_names_its_home() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let made = file_of(&back_up(&daemon, &[]));
    let home = daemon.root().join("a b");
    let restored = daemon.cli(&["restore-backup", text(&made), "--into", text(&home)]);
    assert_eq!(restored.status.code(), Some(0), "{restored:?}");
    let said = String::from_utf8_lossy(&restored.stdout).into_owned();
    let start = format!("AGENTD_HOME='{}' agentd start NAME", text(&home));
    assert!(said.contains(&start), "{said}");
    let own = daemon.root().join("own");
    let restored = daemon.cli_at(&own, &["restore-backup", text(&made)]);
    let said = String::from_utf8_lossy(&restored.stdout).into_owned();
    assert!(said.contains("one: agentd start NAME"), "{said}");
}

/// Regression: the message was about accepted prompts.
#[test]
fn a_backup_whose_daemon_dies_is_said_not_to_be_complete() {
    let daemon = TestDaemon::empty();
    let kill = Rule {
        action: Action::Kill,
        ..Rule::hold("rule", Role::Daemon, "in-backup")
    };
    daemon.follow(kill);
    daemon.start_daemon();
    daemon.create("coder");
    let file = daemon.root().join("x.backup");
    let failed = daemon.cli(&["backup", text(&file)]);
    assert_eq!(failed.status.code(), Some(4), "{failed:?}");
    let said = err(&failed);
    assert!(
        said.contains("before it reported a complete backup"),
        "{said}"
    );
    assert!(!file.exists());
    // A process that is being killed closes this connection before it closes its socket.
    daemon.until_daemon_ends();
    let made = daemon.cli(&["backup", text(&file)]);
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    daemon.cli(&["daemon", "stop"]);
}

/// Makes the table unreadable from which agents are counted.
fn damage(journal: &Path) {
    let mut bytes = fs::read(journal).unwrap();
    let find = |words: &[u8], from: usize| {
        let mut parts = bytes[from..].windows(words.len());
        from + parts.position(|part| part == words).unwrap()
    };
    // A row of the schema: type, name, table, the number of the first page, and the statement.
    let row = b"tablelistinglisting";
    let number = find(row, 0) + row.len();
    let end = find(b"CREATE", number);
    let root = bytes[number..end].iter();
    let root = root.fold(0, |number, byte| number * 256 + usize::from(*byte));
    let size = match u16::from_be_bytes([bytes[16], bytes[17]]) {
        1 => 65_536,
        size => usize::from(size),
    };
    bytes[(root - 1) * size..root * size].fill(0xff);
    fs::write(journal, bytes).unwrap();
}

/// Regression: the daemon read its journal before it stopped, and `verify --repair` needs a stopped daemon.
#[test]
fn a_daemon_whose_journal_is_damaged_stops() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say hello");
    let stopped = daemon.cli(&["daemon", "stop"]);
    assert!(stopped.status.success(), "{stopped:?}");
    damage(&daemon.home().join("journal.db"));
    let listed = daemon.cli(&["list"]);
    assert!(!listed.status.success(), "{listed:?}");
    let stopped = daemon.cli(&["daemon", "stop", "--json"]);
    assert_eq!(stdout(&stopped)["stopped"], true);
    let repaired = daemon.cli(&["verify", "--repair"]);
    assert_eq!(repaired.status.code(), Some(0), "{repaired:?}");
    let listed = daemon.cli(&["list", "--json"]);
    assert_eq!(stdout(&listed)["agents"][0]["name"], "coder");
    daemon.cli(&["daemon", "stop"]);
}

/// Regression: an incremental backup continued a chain whose first link was gone, and could not be restored.
#[test]
fn an_incremental_backup_without_its_whole_chain_is_a_full_one() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let first = file_of(&back_up(&daemon, &["--incremental"]));
    daemon.completed("coder", "do: say hello");
    back_up(&daemon, &["--incremental"]);
    fs::remove_file(&first).unwrap();
    let made = back_up(&daemon, &["--incremental"]);
    let why = made["why_full"].as_str().unwrap();
    let name = first.file_name().and_then(|name| name.to_str()).unwrap();
    assert!(why.contains(name), "{made:#}");
    let verified = daemon.cli(&["backup", "--verify", text(&file_of(&made))]);
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
    // The next one continues the new chain.
    let next = back_up(&daemon, &["--incremental"]);
    assert_eq!(next["why_full"], Value::Null, "{next:#}");
}
