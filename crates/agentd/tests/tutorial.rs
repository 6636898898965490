//! Runs every command of `docs/tutorial.md`, `docs/files.md`, `docs/imports.md`, `docs/backup.md`, `docs/schedules.md`, `docs/notifications.md`, `docs/bindings.md`, `docs/service.md` and `examples/README.md`, each page in one shell, and compares its output with the page.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, in what it calls too; a test that cannot be run here says so"
)]

#[path = "fixture/page.rs"]
mod page;

use agentd_testkit::harness::Program;
use page::{Shell, is_output, steps};
use std::fs;
use std::path::{Path, PathBuf};

const TUTORIAL: &str = include_str!("../../../docs/tutorial.md");
const FILES: &str = include_str!("../../../docs/files.md");
const IMPORTS: &str = include_str!("../../../docs/imports.md");
const BACKUP: &str = include_str!("../../../docs/backup.md");
const SCHEDULES: &str = include_str!("../../../docs/schedules.md");
const NOTIFICATIONS: &str = include_str!("../../../docs/notifications.md");
const BINDINGS: &str = include_str!("../../../docs/bindings.md");
const SERVICE: &str = include_str!("../../../docs/service.md");
const EXAMPLES: &str = include_str!("../../../examples/README.md");

/// A shell in a home of its own.
fn shell(home: &Path) -> Shell {
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
    Shell::start(command).unwrap()
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

#[test]
fn every_command_of_the_page_about_the_service_does_what_the_page_says() {
    check(SERVICE, 10);
}

#[test]
fn the_code_reviewer_works_with_the_demo_model() {
    check_example("A code reviewer", 7);
}

#[test]
fn the_log_watcher_works_on_a_schedule_with_the_demo_model() {
    check_example("A log watcher on a schedule", 6);
}

#[test]
fn the_researcher_works_with_subagents_and_the_demo_model() {
    check_example("A researcher with subagents", 5);
}

#[test]
fn the_dependency_updater_works_with_the_demo_model() {
    check_example("A nightly dependency updater", 9);
}

#[test]
fn every_example_is_on_their_page() {
    for entry in fs::read_dir(examples()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_linked = EXAMPLES.contains(&format!("[{name}]({name})"));
        assert!(is_linked || name == "README.md", "{name}");
    }
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Runs a section of the page of the examples, beside a copy of them.
fn check_example(heading: &str, at_least: usize) {
    // The agent files ask for sandboxes of certain levels.
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return;
    }
    let (_, section) = EXAMPLES.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let home = tempfile::tempdir().unwrap();
    let copy = home.path().join("examples");
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(examples()).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
    }
    check_in(home.path(), section, at_least);
}

fn check(page: &str, at_least: usize) {
    let home = tempfile::tempdir().unwrap();
    check_in(home.path(), page, at_least);
}

fn check_in(home: &Path, page: &str, at_least: usize) {
    let mut shell = shell(home);
    let steps = steps(page);
    assert!(steps.len() > at_least, "{} commands", steps.len());
    for step in &steps {
        let wrong = shell.step(step).err();
        assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
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
