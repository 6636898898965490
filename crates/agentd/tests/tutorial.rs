//! Runs every command of `docs/tutorial.md`, `docs/files.md`, `docs/imports.md`, `docs/backup.md`, `docs/schedules.md`, `docs/notifications.md` and `docs/bindings.md`, each page in one shell, and compares its output with the page.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in what it calls too"
)]

use agentd_testkit::harness::Program;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

const TUTORIAL: &str = include_str!("../../../docs/tutorial.md");
const FILES: &str = include_str!("../../../docs/files.md");
const IMPORTS: &str = include_str!("../../../docs/imports.md");
const BACKUP: &str = include_str!("../../../docs/backup.md");
const SCHEDULES: &str = include_str!("../../../docs/schedules.md");
const NOTIFICATIONS: &str = include_str!("../../../docs/notifications.md");
const BINDINGS: &str = include_str!("../../../docs/bindings.md");
/// Printed after the output of each command, with its exit code.
const MARK: &str = "--- end of command ";

/// A command, and the output that the page shows.
struct Step {
    command: String,
    output: Vec<String>,
}

/// The commands in the blocks that are marked as `console`.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_console = false;
    for line in page.lines() {
        if line.starts_with("```") {
            is_console = line == "```console";
        } else if is_console && let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                command: command.to_owned(),
                output: Vec::new(),
            });
        } else if is_console {
            steps.last_mut().unwrap().output.push(line.to_owned());
        }
    }
    steps
}

/// Whether a line is what the page shows; `…` stands for any text.
fn is_line(shown: &str, line: &str) -> bool {
    let Some((begin, rest)) = shown.split_once('…') else {
        return shown.trim_end() == line.trim_end();
    };
    let Some(mut line) = line.strip_prefix(begin.trim_end()) else {
        return false;
    };
    let mut parts = rest.split('…').peekable();
    while let Some(part) = parts.next() {
        let part = part.trim();
        let Some(at) = line.find(part) else {
            return false;
        };
        line = &line[at + part.len()..];
        if parts.peek().is_none() && !part.is_empty() && !line.trim().is_empty() {
            return false;
        }
    }
    true
}

/// Whether the lines are what the page shows; a line with `…` alone stands for any lines.
fn is_output(shown: &[String], lines: &[String]) -> bool {
    let Some((first, rest)) = shown.split_first() else {
        return lines.is_empty();
    };
    if first == "…" {
        return (0..=lines.len()).any(|skipped| is_output(rest, &lines[skipped..]));
    }
    let Some((line, others)) = lines.split_first() else {
        return false;
    };
    is_line(first, line) && is_output(rest, others)
}

struct Shell {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Shell {
    fn new(home: &Path) -> Self {
        let agentd = Path::new(env!("CARGO_BIN_EXE_agentd"));
        let bin = agentd.parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let mut program = Program::new(agentd, home.join("state"), home)
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("HOME", home);
        // What is shown here is the same without a sandbox.
        if agentd_sandbox::support().namespaces.is_ok() {
            program = program.sandboxed();
        }
        let mut command = program.command_of("bash");
        command.args(["--noprofile", "--norc"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            input,
            output,
        }
    }

    /// The exit code of a command, and the lines that it printed.
    fn run(&mut self, command: &str) -> (String, Vec<String>) {
        writeln!(self.input, "{command}\nprintf '\\n{MARK}%s\\n' $?").unwrap();
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert!(
                self.output.read_line(&mut line).unwrap() > 0,
                "the shell ended"
            );
            let line = line.trim_end_matches('\n');
            if let Some(code) = line.strip_prefix(MARK) {
                // The line break before the mark is the test's own.
                if lines.last().is_some_and(String::is_empty) {
                    lines.pop();
                }
                return (code.to_owned(), lines);
            }
            lines.push(line.to_owned());
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _gone = writeln!(self.input, "agentd daemon stop; exit");
        let _reaped = self.child.wait();
    }
}

#[test]
fn every_command_of_the_tutorial_does_what_the_page_says() {
    check(TUTORIAL, 20);
}

#[test]
fn every_command_of_the_page_about_files_does_what_the_page_says() {
    check(FILES, 15);
}

#[test]
fn every_command_of_the_page_about_imports_does_what_the_page_says() {
    check(IMPORTS, 12);
}

#[test]
fn every_command_of_the_page_about_backups_does_what_the_page_says() {
    check(BACKUP, 14);
}

#[test]
fn every_command_of_the_page_about_schedules_does_what_the_page_says() {
    check(SCHEDULES, 18);
}

#[test]
fn every_command_of_the_page_about_notifications_does_what_the_page_says() {
    check(NOTIFICATIONS, 8);
}

#[test]
fn every_command_of_the_page_about_bindings_does_what_the_page_says() {
    check(BINDINGS, 8);
}

fn check(page: &str, at_least: usize) {
    let home = tempfile::tempdir().unwrap();
    let mut shell = Shell::new(home.path());
    let steps = steps(page);
    assert!(steps.len() > at_least, "{} commands", steps.len());
    for step in steps {
        let (code, lines) = shell.run(&step.command);
        let text = lines.join("\n");
        assert_eq!(code, "0", "$ {}\n{text}", step.command);
        assert!(
            is_output(&step.output, &lines),
            "$ {}\n{text}\n\nThe page shows:\n{}",
            step.command,
            step.output.join("\n")
        );
    }
}

#[test]
fn output_that_differs_from_the_page_is_found() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let is = |shown: &str, output: &str| is_output(&lines(shown), &lines(output));
    assert!(is("a\n…\nd", "a\nb\nc\nd"));
    assert!(is("a …", "a b c"));
    assert!(is("a … c", "a b c"));
    assert!(is("", ""));
    for (shown, output) in [("a", "b"), ("a", "a\nb"), ("a\nb", "a"), ("", "a")] {
        assert!(!is(shown, output), "{shown:?} {output:?}");
    }
    assert!(!is("a … c", "a b c d"));
    assert!(!is("a\n…\nd", "a\nb"));
}
