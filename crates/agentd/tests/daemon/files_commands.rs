//! What commands, background commands and tools of MCP servers changed, and what git tells about the files before.

use crate::files_fixture::*;
use crate::test_daemon::{AGENTD, TestDaemon, until};
use agentd_client::api::{
    CannotRestore, ChangeBy, DiffChange, DiffFiles, FileDiff, FilesOutcome, FilesQuery, NotRestored,
};
use agentd_core::event::{GitBefore, Kind, ScannedChange, ScannedFile};
use agentd_core::spec::McpServer;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Of the files that commands of the first turn changed: what git told before. `None` if it took too long.
fn told_before(daemon: &TestDaemon) -> Option<Vec<GitBefore>> {
    let found = found(daemon, 0)?.into_iter();
    found.map(|file| file.git_before).collect()
}

/// A daemon whose agent has run this command in a repository with these files, and what git told before. A busy machine
/// may take longer than git is given: then it is tried again.
fn ran_in(
    files: &[(&str, &str)],
    prepare: impl Fn(&TestDaemon),
    command: &str,
) -> (TestDaemon, Vec<GitBefore>) {
    until("git in time", || {
        let daemon = coder();
        commit(&daemon, files);
        prepare(&daemon);
        turn(&daemon, &[ran(command)]);
        let told = told_before(&daemon)?;
        Some((daemon, told))
    })
}

#[test]
fn a_clean_file_that_a_command_edited_is_restored_without_a_conflict() {
    let files = [("a.txt", "one\n"), ("b.txt", "two\n")];
    let command = "echo more >> a.txt; git add a.txt; rm b.txt";
    let (daemon, told) = ran_in(&files, |_| {}, command);
    assert_eq!(told, [GitBefore::Clean; 2]);
    // It is known what the files were.
    let shown = diff(&daemon, &DiffFiles::default());
    assert!(shown.files.iter().all(|file| file.note.is_none()));
    let done = restore(&daemon, &to("init"));
    assert_eq!(done.files.len(), 2);
    assert_eq!(done.not_restored, []);
    assert_eq!(text(&daemon, "a.txt"), "one\n");
    assert_eq!(text(&daemon, "b.txt"), "two\n");
    undo(&daemon);
    assert_eq!(text(&daemon, "a.txt"), "one\nmore\n");
    // What the user changed since is a conflict nevertheless.
    fs::write(path(&daemon, "a.txt"), "of the user\n").unwrap();
    let done = try_restore(&daemon, &to("init")).unwrap();
    assert_eq!(done.outcome, FilesOutcome::Conflict, "{done:#?}");
    assert_eq!(text(&daemon, "a.txt"), "of the user\n");
    daemon.verify();
}

/// The command has deleted them, and git has an older content.
#[test]
fn lines_that_were_not_committed_are_not_replaced_by_gits_copy_of_a_deleted_file() {
    let edit = |daemon: &TestDaemon| {
        fs::write(path(daemon, "a.txt"), "precious\n").unwrap();
    };
    let (daemon, told) = ran_in(&[("a.txt", "one\n")], edit, "rm a.txt");
    assert_eq!(told, [GitBefore::Changed]);
    let done = try_restore(&daemon, &to("init")).unwrap();
    assert_eq!(done.outcome, FilesOutcome::Conflict, "{done:#?}");
    let why = done.files[0].why.as_deref().unwrap();
    assert!(why.contains("not committed"), "{why}");
    assert_eq!(read(&daemon, "a.txt"), None);
    restore(&daemon, &over("init"));
    assert_eq!(text(&daemon, "a.txt"), "one\n");
}

#[test]
fn permissions_of_a_tracked_file_are_shown_and_restored_to_those_of_git() {
    let prepare = |daemon: &TestDaemon| {
        let of_git = fs::Permissions::from_mode(0o644);
        fs::set_permissions(path(daemon, "run.sh"), of_git).unwrap();
    };
    for command in ["chmod 777 run.sh", "chmod 1755 run.sh"] {
        let (daemon, told) = ran_in(&[("run.sh", "echo\n")], prepare, command);
        assert_eq!(told, [GitBefore::Clean]);
        let shown = diff(&daemon, &DiffFiles::default());
        let [file] = shown.files.as_slice() else {
            panic!("{shown:#?}");
        };
        assert_eq!(file.change, DiffChange::Permissions);
        assert_eq!(
            (file.by, file.added, file.removed),
            (ChangeBy::Command, 0, 0)
        );
        restore(&daemon, &to("init"));
        assert_eq!(mode(&daemon, "run.sh"), 0o644, "{command}");
        assert_eq!(text(&daemon, "run.sh"), "echo\n");
    }
}

#[test]
fn permissions_of_a_file_that_a_tool_wrote_are_not_a_new_file() {
    let file: FileDiff = until("git in time", || {
        let daemon = coder();
        commit(&daemon, &[("first", "1\n")]);
        turn(&daemon, &[wrote("run.sh", "echo\n")]);
        turn(&daemon, &[ran("chmod 0700 run.sh")]);
        found(&daemon, 0)?;
        let ask = DiffFiles {
            turn: Some("2".to_owned()),
            ..DiffFiles::default()
        };
        let [file] = diff(&daemon, &ask).files.try_into().unwrap();
        Some(file)
    });
    assert_eq!(file.change, DiffChange::Permissions);
    assert_eq!(file.note.as_deref(), Some("the content is the same"));
}

/// An agent with a server whose tool `append` writes to the tracked file `mcp-effects`.
fn with_server(read_only: &[&str]) -> TestDaemon {
    let daemon = TestDaemon::new();
    let program = Path::new(AGENTD).with_file_name("agentd-fake-mcp");
    let server = McpServer {
        command: Some(program.display().to_string()),
        read_only: read_only.iter().map(|&name| name.to_owned()).collect(),
        ..McpServer::default()
    };
    let mut spec = daemon.spec();
    spec.mcp.insert("fake".to_owned(), server);
    daemon.create_with("coder", spec);
    commit(&daemon, &[("mcp-effects", "first\n")]);
    daemon
}

#[test]
fn what_a_tool_of_an_mcp_server_changed_is_found_and_restored() {
    let append = ("mcp__fake__append", json!({ "text": "more" }));
    let (daemon, told) = until("git in time", || {
        let daemon = with_server(&[]);
        turn(&daemon, std::slice::from_ref(&append));
        let told = told_before(&daemon)?;
        Some((daemon, told))
    });
    assert_eq!(told, [GitBefore::Clean]);
    assert_eq!(text(&daemon, "mcp-effects"), "first\nmore\n");
    let shown = diff(&daemon, &DiffFiles::default());
    assert_eq!((shown.files.len(), shown.added), (1, 1), "{shown:#?}");
    restore(&daemon, &to("init"));
    assert_eq!(text(&daemon, "mcp-effects"), "first\n");
    daemon.verify();
}

/// The user has said that it changes nothing.
#[test]
fn a_turn_with_a_read_only_tool_of_an_mcp_server_is_not_scanned() {
    let daemon = with_server(&["echo"]);
    turn(&daemon, &[("mcp__fake__echo", json!({ "text": "hi" }))]);
    // It would be before the next turn.
    daemon.completed("coder", "do: say hi");
    assert_eq!(scans(&daemon), []);
}

fn has_background(unknown: &[NotRestored]) -> bool {
    let mut unknown = unknown.iter();
    unknown.any(|it| it.why == CannotRestore::Background && it.turn_number == Some(1))
}

/// A background command that has changed a file after its turn, and what the scan of the next turn found.
fn wrote_late() -> Option<(TestDaemon, Vec<ScannedFile>)> {
    let daemon = coder();
    commit(&daemon, &[("a.txt", "one\n")]);
    let command = "until test -e go; do sleep 0.02; done; echo late > a.txt";
    let command = json!({ "command": command, "run_in_background": true });
    turn(&daemon, &[("shell", command)]);
    // What it will have changed is not known, and nothing else is claimed.
    let done = try_restore(&daemon, &to("init")).unwrap();
    assert_eq!(done.outcome, FilesOutcome::Unchanged, "{done:#?}");
    assert!(has_background(&done.not_restored), "{done:#?}");
    assert!(has_background(
        &diff(&daemon, &DiffFiles::default()).unknown
    ));
    let listed = daemon.block(daemon.client().files("coder", &FilesQuery::default()));
    assert!(has_background(&listed.unwrap().unknown));
    fs::write(path(&daemon, "go"), "").unwrap();
    daemon.until_kind("coder", Kind::TaskEnded);
    assert_eq!(text(&daemon, "a.txt"), "late\n");
    assert!(has_background(
        &diff(&daemon, &DiffFiles::default()).unknown
    ));
    daemon.completed("coder", "do: say hi");
    let files = found(&daemon, 1)?;
    Some((daemon, files))
}

/// A background command runs while a file is restored. What the scan of the next turn found; `None` if git took too long.
fn restored_meanwhile() -> Option<(TestDaemon, Vec<ScannedFile>)> {
    let daemon = coder();
    commit(&daemon, &[("a.txt", "one\n")]);
    let command = "until test -e go; do sleep 0.02; done";
    let command = json!({ "command": command, "run_in_background": true });
    let wrote = wrote("a.txt", "two\n");
    turn(&daemon, &[("shell", command), looked("a.txt"), wrote]);
    found(&daemon, 0)?;
    restore(&daemon, &to("init"));
    assert_eq!(text(&daemon, "a.txt"), "one\n");
    daemon.completed("coder", "do: say hi");
    let files = found(&daemon, 1)?;
    Some((daemon, files))
}

#[test]
fn a_restore_while_a_background_command_runs_is_not_one_of_its_changes() {
    let (daemon, files) = until("git in time", restored_meanwhile);
    assert_eq!(files, []);
    // All states of the file are known, so nothing is asked.
    restore(&daemon, &to("1"));
    assert_eq!(text(&daemon, "a.txt"), "two\n");
    fs::write(path(&daemon, "go"), "").unwrap();
    daemon.until_kind("coder", Kind::TaskEnded);
    daemon.verify();
}

#[test]
fn what_a_background_command_writes_after_its_turn_is_found_after_the_next_one() {
    let (daemon, files) = until("git in time", wrote_late);
    let edited = files.iter().find(|file| file.path.ends_with("/a.txt"));
    let edited = edited.expect("the file is listed");
    assert_eq!(edited.change, ScannedChange::Modified);
    assert!(edited.unsure);
    let shown = diff(&daemon, &DiffFiles::default());
    assert!(!has_background(&shown.unknown), "{shown:#?}");
    // The user may have edited it meanwhile.
    let done = try_restore(&daemon, &to("1")).unwrap();
    assert_eq!(done.outcome, FilesOutcome::Conflict, "{done:#?}");
    restore(&daemon, &over("1"));
    assert_eq!(text(&daemon, "a.txt"), "one\n");
    // Nothing runs any more, so nothing is scanned any more.
    daemon.completed("coder", "do: say hi");
    daemon.completed("coder", "do: say hi");
    assert_eq!(scans(&daemon).len(), 2);
    daemon.verify();
}
