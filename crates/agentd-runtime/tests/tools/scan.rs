//! What commands changed is found with git, and nothing else is.

use crate::fixture::{Fixture, call, shell};
use agentd_core::digest::sha256;
use agentd_core::event::{
    FileState, FilesPlan, FilesRestored, GitBefore, PlannedFile, Position, RestoreTarget,
    RestoredFile, RestoredOutcome, Scan, ScanProblem, ScannedChange, ScannedFile,
};
use agentd_core::id::{AgentId, OpId, Seq};
use agentd_core::message::ToolCall;
use agentd_core::state::ScanSince;
use agentd_core::time::Timestamp;
use agentd_runtime::driver::Tools as _;
use agentd_runtime::tools::Toolbox;
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

/// A work tree with one commit of these files.
fn repository(names: &[&str]) -> Fixture {
    let fixture = Fixture::new();
    for name in names {
        fs::write(fixture.path(name), format!("{name}\n")).unwrap();
    }
    git(&fixture, &["init", "--quiet"]);
    git(&fixture, &["add", "--all"]);
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    let commit = ["commit", "--quiet", "--message", "first"];
    git(&fixture, &[&identity[..], &commit[..]].concat());
    fixture
}

fn git(fixture: &Fixture, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(args).current_dir(fixture.path(""));
    command.env("GIT_CONFIG_GLOBAL", "/dev/null");
    assert!(command.status().unwrap().success(), "{args:?}");
}

fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Timestamp::from_millis(i64::try_from(now.unwrap().as_millis()).unwrap())
}

/// A time that is certainly after every change so far: a file system's clock is coarse.
async fn later() -> Timestamp {
    let start = now();
    while now().since(start) <= 60 {
        // tidy: polls the clock, nothing else changes it
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    now()
}

/// Tries again for as long as git takes longer than it may, which it does on a busy machine.
struct Retry {
    until: Instant,
}

impl Retry {
    fn new() -> Self {
        Self {
            until: Instant::now() + Duration::from_secs(60),
        }
    }

    fn again(&self) {
        let is_late = Instant::now() >= self.until;
        assert!(!is_late, "git did not answer in time for 60 seconds");
    }
}

async fn scan(toolbox: &Toolbox, since: Timestamp) -> Scan {
    scan_since(toolbox, ScanSince::turn(since)).await
}

async fn scan_since(toolbox: &Toolbox, since: ScanSince) -> Scan {
    let retry = Retry::new();
    loop {
        match toolbox.scan(since).await {
            Scan::Unknown {
                why: ScanProblem::Timeout,
            } => retry.again(),
            found => return found,
        }
    }
}

async fn files(toolbox: &Toolbox, since: Timestamp) -> Vec<ScannedFile> {
    match scan(toolbox, since).await {
        Scan::Known { files, more: 0 } => files,
        other => panic!("{other:?}"),
    }
}

fn changes(fixture: &Fixture, files: &[ScannedFile]) -> Vec<(String, ScannedChange)> {
    let root = fixture.path("");
    let name = |file: &ScannedFile| {
        let path = std::path::Path::new(&file.path);
        path.strip_prefix(&root).unwrap().display().to_string()
    };
    files.iter().map(|file| (name(file), file.change)).collect()
}

#[tokio::test]
async fn what_commands_changed_since_then_is_listed_with_what_git_has_of_it() {
    let fixture = repository(&["a", "b", "c", "d", "e f"]);
    fs::write(fixture.path("before"), "by the user").unwrap();
    let since = later().await;
    let command = "echo more >> a; rm b; chmod +x c; ln -sf a d; echo new > 'e g'; mv 'e f' h";
    fixture.run(shell(command)).await;
    let found = files(&fixture.toolbox(), since).await;
    let expected = [
        ("a", ScannedChange::Modified),
        ("b", ScannedChange::Deleted),
        ("c", ScannedChange::Modified),
        ("d", ScannedChange::TypeChanged),
        ("e f", ScannedChange::Deleted),
        ("e g", ScannedChange::Added),
        ("h", ScannedChange::Added),
    ];
    let expected = expected.map(|(name, change)| (name.to_owned(), change));
    assert_eq!(changes(&fixture, &found), expected);
    for file in &found {
        let is_known = file.change != ScannedChange::Added;
        assert_eq!(file.head.is_some(), is_known, "{file:?}");
        assert_eq!(file.index.is_some(), is_known, "{file:?}");
        let is_read = file.change != ScannedChange::Deleted;
        assert_eq!(file.after.is_some(), is_read, "{file:?}");
        let is_link = file.change == ScannedChange::TypeChanged;
        assert_eq!(file.link, is_link, "{file:?}");
    }
    assert_eq!(found[2].mode, 0o100_644, "the mode that git has");
    let mode = fs::metadata(fixture.path("c")).unwrap().permissions();
    assert_eq!(mode.mode() & 0o111, 0o111);
}

#[tokio::test]
async fn what_was_deleted_or_changed_before_the_turn_is_not_listed() {
    let fixture = repository(&["a", "b"]);
    let toolbox = fixture.toolbox();
    let since = later().await;
    fs::remove_file(fixture.path("a")).unwrap();
    fs::write(fixture.path("b"), "changed").unwrap();
    assert_eq!(files(&toolbox, since).await.len(), 2);
    let since = later().await;
    assert_eq!(files(&toolbox, since).await, []);
    // Another process knows no more and no less.
    assert_eq!(files(&fixture.toolbox(), since).await, []);
    fs::remove_file(fixture.path("b")).unwrap();
    let found = files(&toolbox, since).await;
    let expected = ("b".to_owned(), ScannedChange::Deleted);
    // When `a` was deleted from the same directory can no longer be told.
    assert!(changes(&fixture, &found).contains(&expected));
}

#[tokio::test]
async fn without_a_repository_nothing_is_known() {
    let fixture = Fixture::new();
    let why = ScanProblem::NoGit;
    let found = fixture.toolbox().scan(ScanSince::turn(now())).await;
    assert_eq!(found, Scan::Unknown { why });
    // A directory that only looks like one.
    fs::create_dir(fixture.path(".git")).unwrap();
    assert_eq!(scan(&fixture.toolbox(), now()).await, Scan::Unknown { why });
}

#[tokio::test]
async fn a_scan_leaves_nothing_behind_and_changes_nothing() {
    let fixture = repository(&["a"]);
    symlink("a", fixture.path("link")).unwrap();
    let index = fixture.path(".git/index");
    let before = fs::read(&index).unwrap();
    files(&fixture.toolbox(), Timestamp::default()).await;
    assert_eq!(fs::read(&index).unwrap(), before);
    let scans = fixture.options.state.join("scans");
    assert_eq!(fs::read_dir(scans).unwrap().count(), 0);
}

/// Runs a command with these tools, so that they remember what git told before it.
async fn run(fixture: &Fixture, toolbox: &Toolbox, command: &str) {
    carry_out(fixture, toolbox, shell(command)).await;
}

async fn carry_out(fixture: &Fixture, toolbox: &Toolbox, call: ToolCall) {
    let started = fixture.started(&call).await;
    let (_never, cancelled) = watch::channel(false);
    toolbox.run(call, started, cancelled).await;
}

/// What git told before the command about the files that it changed, by name. The command must change `b`, which has
/// lines that are not committed: if git does not tell that, it took too long, and this is tried again.
async fn told_before(command: &str) -> Vec<(String, Option<GitBefore>)> {
    let retry = Retry::new();
    loop {
        let fixture = repository(&["a", "b", "c"]);
        fs::write(fixture.path("b"), "of the user\n").unwrap();
        let toolbox = fixture.toolbox();
        let since = later().await;
        run(&fixture, &toolbox, command).await;
        let found = files(&toolbox, since).await;
        let told = changes(&fixture, &found).into_iter().zip(&found);
        let told: Vec<_> = told
            .map(|((name, _), file)| (name, file.git_before))
            .collect();
        assert!(told.iter().any(|(name, _)| name == "b"), "{told:?}");
        if told.contains(&("b".to_owned(), Some(GitBefore::Changed))) {
            return told;
        }
        retry.again();
    }
}

fn told(expected: &[(&str, Option<GitBefore>)]) -> Vec<(String, Option<GitBefore>)> {
    let expected = expected.iter();
    expected
        .map(|(name, git)| ((*name).to_owned(), *git))
        .collect()
}

#[tokio::test]
async fn which_files_had_lines_that_were_not_committed_is_known_before_the_first_command() {
    let command = "echo more >> a; chmod +x a; git add a; echo more >> b; rm c";
    let expected = [
        ("a", Some(GitBefore::Clean)),
        ("b", Some(GitBefore::Changed)),
        ("c", Some(GitBefore::Clean)),
    ];
    assert_eq!(told_before(command).await, told(&expected));
}

/// A command changes `a`, then the user changes `b`, then another command runs. What the scan found.
async fn changed_between_two_commands() -> Vec<ScannedFile> {
    let fixture = repository(&["a", "b"]);
    let toolbox = fixture.toolbox();
    let since = later().await;
    run(&fixture, &toolbox, "echo two > a").await;
    later().await;
    fs::write(fixture.path("b"), "of the user\n").unwrap();
    later().await;
    run(&fixture, &toolbox, "true").await;
    let found = files(&toolbox, since).await;
    let expected = [
        ("a".to_owned(), ScannedChange::Modified),
        ("b".to_owned(), ScannedChange::Modified),
    ];
    assert_eq!(changes(&fixture, &found), expected);
    found
}

/// The user may edit a file while the turn waits, for instance for an approval: git has not what it was.
#[tokio::test]
async fn a_file_that_changed_between_two_commands_is_not_said_to_have_been_clean() {
    let retry = Retry::new();
    let found = loop {
        let found = changed_between_two_commands().await;
        // Otherwise git took too long.
        if found[0].git_before == Some(GitBefore::Clean) {
            break found;
        }
        retry.again();
    };
    assert_eq!(found[1].git_before, None);
}

/// The newest commit is one of the command, so it is not what the file was.
#[tokio::test]
async fn after_a_commit_by_a_command_a_file_is_not_said_to_have_been_clean() {
    let commit = "git -c user.name=a -c user.email=a@example.com commit --quiet --message b a";
    let command = format!("echo two > a; {commit}; echo three > a; echo more >> b");
    let expected = [("a", None), ("b", Some(GitBefore::Changed))];
    assert_eq!(told_before(&command).await, told(&expected));
}

/// The user may have changed them, so a restore asks.
#[tokio::test]
async fn what_changed_while_only_background_commands_ran_is_unsure() {
    let fixture = repository(&["a", "b"]);
    let toolbox = fixture.toolbox();
    let from = later().await;
    fs::write(fixture.path("a"), "late\n").unwrap();
    fs::remove_file(fixture.path("b")).unwrap();
    let began = later().await;
    assert_eq!(files(&toolbox, began).await, []);
    let found = scan_since(&fixture.toolbox(), ScanSince { began, from }).await;
    let Scan::Known { files, more: 0 } = found else {
        panic!("{found:?}");
    };
    let expected = [
        ("a".to_owned(), ScannedChange::Modified),
        ("b".to_owned(), ScannedChange::Deleted),
    ];
    assert_eq!(changes(&fixture, &files), expected);
    assert!(files.iter().all(|file| file.unsure), "{files:?}");
    assert!(files.iter().all(|file| file.git_before.is_none()));
}

/// The daemon has restored these files while a background command ran.
#[tokio::test]
async fn what_a_restore_left_is_not_a_change_by_background_commands() {
    let fixture = repository(&["a", "b", "c"]);
    let toolbox = fixture.toolbox();
    let from = later().await;
    fs::write(fixture.path("a"), "restored\n").unwrap();
    fs::remove_file(fixture.path("b")).unwrap();
    fs::write(fixture.path("c"), "not restored\n").unwrap();
    let began = later().await;
    let op = OpId::from_bytes([1; 16]);
    let path = |name: &str| fixture.path(name).to_str().unwrap().to_owned();
    let planned = |name: &str, state| PlannedFile {
        path: path(name),
        target: RestoreTarget::Kept {
            at: Position {
                agent: AgentId::from_bytes([2; 16]),
                seq: Seq(1),
            },
            state: Some(state),
        },
        expected: FileState::Absent,
    };
    let file = |content: &str| FileState::File {
        mode: fs::metadata(fixture.path("a"))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777,
        hash: sha256(content.as_bytes()),
    };
    let plan = FilesPlan {
        op,
        files: vec![
            planned("a", file("restored\n")),
            planned("b", FileState::Absent),
            planned("c", file("not restored\n")),
        ],
        not_restored: None,
    };
    let outcome = |name: &str, outcome| RestoredFile {
        path: path(name),
        outcome,
    };
    let restored = FilesRestored {
        op,
        files: vec![
            outcome("a", RestoredOutcome::Restored),
            outcome("b", RestoredOutcome::Restored),
            outcome("c", RestoredOutcome::Conflict),
        ],
    };
    toolbox.recorded(&plan.into());
    toolbox.recorded(&restored.into());
    let found = scan_since(&toolbox, ScanSince { began, from }).await;
    let Scan::Known { files, more: 0 } = found else {
        panic!("{found:?}");
    };
    let expected = [("c".to_owned(), ScannedChange::Modified)];
    assert_eq!(changes(&fixture, &files), expected);
}

/// The files that were deleted while only background commands ran. `None` if git took too long.
async fn deleted_later() -> Option<Vec<(String, ScannedChange)>> {
    let fixture = repository(&["a", "b"]);
    fs::remove_file(fixture.path("a")).unwrap();
    let toolbox = fixture.toolbox();
    let from = later().await;
    assert_eq!(files(&toolbox, from).await, []);
    fs::remove_file(fixture.path("b")).unwrap();
    let began = later().await;
    match toolbox.scan(ScanSince { began, from }).await {
        Scan::Known { files, .. } => Some(changes(&fixture, &files)),
        Scan::Unknown { .. } => None,
    }
}

#[tokio::test]
async fn what_was_missing_at_the_last_scan_is_no_deletion_by_a_background_command() {
    let retry = Retry::new();
    let deleted = loop {
        if let Some(deleted) = deleted_later().await {
            break deleted;
        }
        retry.again();
    };
    assert_eq!(deleted, [("b".to_owned(), ScannedChange::Deleted)]);
}

/// A work tree with a repository in it that is not a part of it, in which the directory `lib` has these files.
fn with_vendor(names: &[&str]) -> Fixture {
    let fixture = repository(&["a"]);
    git(&fixture, &["init", "--quiet", "vendor"]);
    fs::create_dir_all(fixture.path("vendor/lib")).unwrap();
    for name in names {
        fs::write(fixture.path("vendor/lib").join(name), "1\n").unwrap();
    }
    fixture
}

/// One repository counts as a file that is not listed.
fn one_more() -> Scan {
    Scan::Known {
        files: Vec::new(),
        more: 1,
    }
}

/// Git does not tell what was changed in it.
#[tokio::test]
async fn a_nested_repository_counts_only_if_something_in_it_was_changed() {
    let fixture = with_vendor(&["a.c"]);
    let toolbox = fixture.toolbox();
    let since = later().await;
    assert_eq!(files(&toolbox, since).await, []);
    fs::write(fixture.path("vendor/.git/description"), "x\n").unwrap();
    assert_eq!(files(&toolbox, since).await, []);
    // This changes no directory.
    fs::write(fixture.path("vendor/lib/a.c"), "2\n").unwrap();
    assert_eq!(scan(&toolbox, since).await, one_more());
}

/// Regression: the write of the tool explained why the directory had changed, and hid the deletion by the command.
#[tokio::test]
async fn a_deletion_in_a_nested_repository_counts_also_if_a_tool_writes_beside_it() {
    let fixture = with_vendor(&["x.c"]);
    let toolbox = fixture.toolbox();
    let since = later().await;
    run(&fixture, &toolbox, "rm vendor/lib/x.c").await;
    let write = json!({ "file_path": "vendor/lib/b.c", "content": "b\n" });
    carry_out(&fixture, &toolbox, call("write_file", write)).await;
    assert!(!fixture.path("vendor/lib/x.c").exists());
    assert!(fixture.path("vendor/lib/b.c").exists());
    assert_eq!(scan(&toolbox, since).await, one_more());
}
