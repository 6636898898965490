//! `agentd demo`, as a user runs it.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in what it calls too"
)]

#[path = "fixture/program.rs"]
mod program;

use agentd_process::{Delivery, Exit, Signal, Start, signal};
use program::{agentd, stderr, stdout};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

/// The program, with its output piped and its temporary files in `folder`.
fn start(folder: &Path, args: &[&str]) -> Start {
    let mut start = Start::new(env!("CARGO_BIN_EXE_agentd"));
    start.args = args.iter().map(Into::into).collect();
    start.env = vec![("TMPDIR".into(), folder.into())];
    start.stdout = Stdio::piped();
    start
}

#[test]
fn it_shows_that_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let output = agentd(folder.path(), &["demo"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(stderr(&output), "");
    for claim in [
        "✓ it wrote a file and ran a command, and answered",
        "✓ the file is there, and its words were counted (3 words)",
        "✓ it is dead, and had no chance to tidy up",
        "✓ the command was not run a second time",
        "✓ the turn that was cut off went on by itself, and completed",
        "✓ the model was told what really came of it",
        "✓ every event that was acknowledged is there",
        "✓ they are numbered without a gap",
        "✓ all that had been shown is kept, marked interrupted",
        "not a number twice (1 to 60)",
        "✓ the next request is valid, and nothing has to be repaired",
        "✓ the new one is empty: there is nothing to send",
        "✓ the next request is what it would have been, byte for byte",
        "claims, all true",
    ] {
        assert!(
            stdout(&output).contains(claim),
            "no `{claim}` in {output:?}"
        );
    }
    assert!(!stdout(&output).contains('✗'));
    assert!(!stdout(&output).contains('\u{1b}'), "no colours in a pipe");
    assert!(is_empty(folder.path()), "its folder is removed");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = start(folder.path(), &["demo"]).spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.take_stdout().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert!(line.starts_with("agentd demo"), "{line}");
    drop(stdout);
    assert_eq!(child.wait().unwrap(), Exit::Code(0));
    assert!(is_empty(folder.path()), "its folder is removed");
}

#[test]
fn ctrl_c_ends_it_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = start(folder.path(), &["demo"]).spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.take_stdout().unwrap());
    stdout.read_line(&mut line).unwrap();
    let delivery = signal(child.identity(), Signal::INT).unwrap();
    assert_eq!(delivery, Delivery::Sent);
    assert_eq!(child.wait().unwrap(), Exit::Code(130));
    assert!(is_empty(folder.path()), "its folder is removed");
}

#[test]
fn without_a_place_for_its_files_it_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let output = agentd(&folder.path().join("nowhere"), &["demo"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(stderr(&output).contains("next: set TMPDIR"), "{output:?}");
}
