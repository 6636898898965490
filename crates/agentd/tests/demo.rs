//! `agentd demo`, as a user runs it.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in what it calls too"
)]

#[path = "fixture/program.rs"]
mod program;

use program::{agentd, program, stderr, stdout};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

/// The processes that still use the directory.
fn processes(dir: &Path) -> Vec<String> {
    let dir = dir.display().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().into_string().unwrap_or_default();
        if pid.parse::<u32>().is_err() || pid == std::process::id().to_string() {
            continue;
        }
        let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let all = [read("cmdline"), read("environ")].concat();
        if String::from_utf8_lossy(&all).contains(&dir) {
            found.push(pid);
        }
    }
    found
}

/// The demo, with its output piped, its temporary files in `dir`, and no home.
fn demo(dir: &Path) -> Command {
    let program = program(dir).env_remove("HOME").env_remove("AGENTD_HOME");
    let mut command = program.command();
    command.arg("demo").stdout(Stdio::piped());
    command.stderr(Stdio::null());
    command
}

/// Everything that it prints, and its exit code.
fn ended(mut child: Child) -> (String, Option<i32>) {
    let mut text = String::new();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_to_string(&mut text).unwrap();
    (text, child.wait().unwrap().code())
}

#[test]
fn it_shows_that_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let output = agentd(dir.path(), &["demo"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(stderr(&output), "");
    for claim in [
        "✓ the daemon is running: it is this same program",
        "✓ the agent used three tools and answered",
        "✓ the file that it wrote exists, and its count is correct (2 poem.txt)",
        "✓ the agent's process is dead and could not clean up",
        "✓ the command that it had started is still running",
        "✓ the daemon has started a new process by itself",
        "✓ the command was not run a second time (once)",
        "✓ the interrupted turn continued by itself and completed",
        "✓ the model received the real result of the command",
        "✓ the daemon is dead",
        "✓ the agent's process was not restarted: the new daemon adopted it",
        "no number is missing or repeated (1 to 40)",
        "✓ the model got one request, and its reply is one message",
        "✓ every event was shown once: none is missing, none is duplicated",
        "✓ the next request contains only the new prompt",
        "✓ the old conversation is current again",
        "✓ the next request is byte for byte what it would have been without the reset",
        "✓ the daemon has exited cleanly",
        "✓ no process is left behind",
        "✓ all checksums are correct: `verify` finds no problem",
        "claims checked, all hold",
        "agentd run \"What is in this directory?\"",
    ] {
        assert!(
            stdout(&output).contains(claim),
            "no `{claim}` in {output:?}"
        );
    }
    assert!(!stdout(&output).contains('✗'));
    assert!(!stdout(&output).contains('\u{1b}'), "no colours in a pipe");
    assert!(is_empty(dir.path()), "its directory is removed");
    assert_eq!(processes(dir.path()), Vec::<String>::new());
}

#[test]
fn it_needs_no_home_and_no_directory_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let child = demo(dir.path()).current_dir("/proc").spawn().unwrap();
    let (text, code) = ended(child);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("claims checked, all hold"), "{text}");
    assert!(is_empty(dir.path()), "its directory is removed");
}

/// A claim that does not hold is a failure: here the tool cannot do what the demo claims.
#[test]
fn a_claim_that_is_not_so_fails_it() {
    let dir = tempfile::tempdir().unwrap();
    let child = demo(dir.path()).env("PATH", "/nowhere").spawn().unwrap();
    let (text, code) = ended(child);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("✗ the file that it wrote exists"), "{text}");
    assert!(!text.contains("all hold"), "{text}");
    assert!(!is_empty(dir.path()), "what it found is kept");
    assert_eq!(processes(dir.path()), Vec::<String>::new());
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = demo(dir.path()).spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert!(line.starts_with("agentd demo"), "{line}");
    drop(stdout);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(is_empty(dir.path()), "its directory is removed");
}

/// Ends the demo in the middle, while a daemon, an agent and a command are running.
fn end_in_the_middle(with: Signal) {
    let dir = tempfile::tempdir().unwrap();
    let mut child = demo(dir.path()).spawn().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let mut lines = stdout.lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("sh build.sh")));
    assert_ne!(processes(dir.path()), Vec::<String>::new());
    kill_process(Pid::from_child(&child), with).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(is_empty(dir.path()), "its directory is removed");
    assert_eq!(processes(dir.path()), Vec::<String>::new());
}

#[test]
fn ctrl_c_ends_it_and_leaves_nothing_behind() {
    end_in_the_middle(Signal::INT);
}

#[test]
fn so_do_the_other_signals_that_end_a_program() {
    end_in_the_middle(Signal::TERM);
    end_in_the_middle(Signal::HUP);
}

#[test]
fn without_a_place_for_its_files_it_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let output = agentd(&dir.path().join("nowhere"), &["demo"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(stderr(&output).contains("next: set TMPDIR"), "{output:?}");
}

#[test]
fn a_path_too_long_for_a_socket_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let long = dir.path().join("a".repeat(100));
    fs::create_dir(&long).unwrap();
    let output = agentd(&long, &["demo"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(stderr(&output).contains("a shorter path"), "{output:?}");
    assert!(is_empty(&long), "its directory is removed");
}

/// The first command that a new user types, in an empty state directory.
#[test]
fn a_run_with_the_built_in_model_works_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (home, work) = (dir.path().join("home"), dir.path().join("work"));
    fs::create_dir(&work).unwrap();
    fs::write(work.join("long.txt"), "1\n2\n3\n").unwrap();
    fs::write(work.join("short"), "1\n").unwrap();
    let prompt = "list the files here and count the lines of the largest";
    let cwd = work.display().to_string();
    let args = ["run", "--provider", "demo", "--cwd", &cwd, prompt];
    let output = agentd(&home, &args);
    let stopped = agentd(&home, &["daemon", "stop"]);
    assert_eq!(stopped.status.code(), Some(0), "{stopped:?}");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // The answer, all of it, and nothing else.
    assert_eq!(
        stdout(&output),
        "Files here:\n> long.txt\n> short\n\
         The number of lines in the largest file:\n> 3 long.txt\n\
         All 2 steps are done.\n"
    );
    for call in ["· list ", "· $ "] {
        assert!(stderr(&output).contains(call), "{output:?}");
    }
}
