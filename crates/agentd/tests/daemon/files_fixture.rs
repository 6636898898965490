//! For the tests of file history: the work tree of the agent `coder`, its turns, and what is recorded and restored.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::Error;
use agentd_client::api::{
    DiffFiles, FilesDiff, FilesOutcome, RestoreFiles, RestoredFiles, UndoFiles,
};
use agentd_core::event::{Body, Scan, ScannedFile};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

/// The path of a file in the work tree.
pub fn path(daemon: &TestDaemon, name: &str) -> PathBuf {
    daemon.work().canonicalize().unwrap().join(name)
}

pub fn read(daemon: &TestDaemon, name: &str) -> Option<Vec<u8>> {
    fs::read(path(daemon, name)).ok()
}

pub fn text(daemon: &TestDaemon, name: &str) -> String {
    String::from_utf8(read(daemon, name).unwrap()).unwrap()
}

/// A turn that calls these tools.
pub fn turn(daemon: &TestDaemon, calls: &[(&str, Value)]) {
    let calls = calls.iter();
    let calls: Vec<String> = calls
        .map(|(tool, arguments)| format!("call {tool} {arguments}"))
        .collect();
    daemon.completed("coder", &format!("do: {} ;; say done", calls.join(" ;; ")));
}

pub fn wrote(name: &str, content: &str) -> (&'static str, Value) {
    (
        "write_file",
        json!({ "file_path": name, "content": content }),
    )
}

pub fn looked(name: &str) -> (&'static str, Value) {
    ("read_file", json!({ "file_path": name }))
}

pub fn ran(command: &str) -> (&'static str, Value) {
    ("shell", json!({ "command": command }))
}

pub fn to(place: &str) -> RestoreFiles {
    RestoreFiles {
        to: place.to_owned(),
        ..RestoreFiles::default()
    }
}

/// The same. Git's copy is accepted for what a command changed, although the user may have had another content there.
pub fn over(place: &str) -> RestoreFiles {
    RestoreFiles {
        overwrite: true,
        ..to(place)
    }
}

pub fn try_restore(daemon: &TestDaemon, ask: &RestoreFiles) -> Result<RestoredFiles, Error> {
    daemon.block(daemon.client().restore_files("coder", ask))
}

pub fn restore(daemon: &TestDaemon, ask: &RestoreFiles) -> RestoredFiles {
    let done = try_restore(daemon, ask).unwrap();
    assert_eq!(done.outcome, FilesOutcome::Done, "{done:#?}");
    done
}

pub fn undo(daemon: &TestDaemon) -> RestoredFiles {
    let undo = UndoFiles::default();
    let done = daemon.block(daemon.client().undo_files("coder", &undo));
    let done = done.unwrap();
    assert_eq!(done.outcome, FilesOutcome::Done, "{done:#?}");
    done
}

pub fn coder() -> TestDaemon {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon
}

/// A git repository in the work tree, with these files committed.
pub fn commit(daemon: &TestDaemon, files: &[(&str, &str)]) {
    for (name, content) in files {
        fs::write(path(daemon, name), content).unwrap();
    }
    for args in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["commit", "-q", "--allow-empty", "-m", "first"],
    ] {
        git(daemon, args);
    }
}

pub fn git(daemon: &TestDaemon, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
        .args(args)
        .current_dir(daemon.work())
        .env("HOME", daemon.root())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// What the scans have found, the oldest first.
pub fn scans(daemon: &TestDaemon) -> Vec<Scan> {
    let events = daemon.events("coder").into_iter();
    let scans = events.filter_map(|event| match event.body {
        Body::FilesScanned(scanned) => Some(scanned.found),
        _ => None,
    });
    scans.collect()
}

/// What the scan with this number found; `None` if git took too long.
pub fn found(daemon: &TestDaemon, number: usize) -> Option<Vec<ScannedFile>> {
    match until("the scan", || scans(daemon).into_iter().nth(number)) {
        Scan::Known { files, .. } => Some(files),
        Scan::Unknown { .. } => None,
    }
}

/// What turns of the agent changed.
pub fn diff(daemon: &TestDaemon, ask: &DiffFiles) -> FilesDiff {
    daemon.block(daemon.client().diff("coder", ask)).unwrap()
}

/// The permission bits of a file.
pub fn mode(daemon: &TestDaemon, name: &str) -> u32 {
    let metadata = fs::metadata(path(daemon, name)).unwrap();
    metadata.permissions().mode() & 0o7777
}
