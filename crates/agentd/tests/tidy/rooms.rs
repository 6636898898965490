//! What may be done in which crate: SQL, processes, the environment.

use super::paths::{self, Named};
use super::tree::{self, File, Finding};
use super::{lexer, manifest};

pub fn in_crates(file: &File, crates: &[&str]) -> bool {
    file.krate().is_some_and(|krate| crates.contains(&krate))
}

fn rust_in_crates(files: &[File]) -> impl Iterator<Item = &File> {
    files
        .iter()
        .filter(|file| file.is_rust() && file.krate().is_some())
}

/// A finding for every path that `is_wrong`.
pub fn paths_that<'a>(
    file: &'a File,
    rule: &'static str,
    advice: &'a str,
    is_wrong: impl Fn(&Named) -> bool,
) -> impl Iterator<Item = Finding> {
    let wrong: Vec<Named> = paths::named(&file.text)
        .into_iter()
        .filter(|named| is_wrong(named))
        .collect();
    wrong.into_iter().map(move |named| {
        let message = format!("`{}`: {advice}", named.shown());
        Finding::new(file, named.line, rule, message)
    })
}

// SQL

const WITH_SQL: &[&str] = &["agentd-store", "agentd-testkit", "agentd-bench"];

/// These tests contain the words that they search for.
const THESE_TESTS: &str = "crates/agentd/tests/tidy/";

/// Of the store, only the backend: its rules and its contract hold for every backend.
fn may_have_sql(file: &File) -> bool {
    const WITHOUT: &[&str] = &[
        "crates/agentd-store/src/",
        "crates/agentd-store/tests/conformance/",
    ];
    const BACKEND: &str = "crates/agentd-store/src/sqlite/";
    let without = WITHOUT.iter().any(|dir| file.path.starts_with(dir));
    in_crates(file, WITH_SQL) && (!without || file.path.starts_with(BACKEND))
}

fn sql(files: &[File]) -> Vec<Finding> {
    const RULE: &str = "sql";
    const ADVICE: &str =
        "SQL lives in agentd-store; give the store a function for it and call that";
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.krate().is_some()) {
        if may_have_sql(file) || file.path.starts_with(THESE_TESTS) {
            continue;
        }
        if file.is_manifest() {
            for dependency in manifest::dependencies(&file.text) {
                if dependency.name == "rusqlite" {
                    findings.push(Finding::new(file, dependency.line, RULE, ADVICE));
                }
            }
        } else if file.is_rust() {
            findings.extend(paths_that(file, RULE, ADVICE, |named| {
                named.is_of_crate("rusqlite")
            }));
            for (line, text) in lexer::lex(&file.text).strings {
                if looks_like_sql(&text) {
                    let message = format!("a string with a statement in it: {ADVICE}");
                    findings.push(Finding::new(file, line, RULE, message));
                }
            }
        }
    }
    findings
}

/// A statement is recognised by its words in capitals, which is how SQL is written here.
fn looks_like_sql(text: &str) -> bool {
    const STATEMENTS: &[&[&str]] = &[
        &["SELECT", "FROM"],
        &["INSERT INTO"],
        &["INSERT OR", "INTO"],
        &["UPDATE", "SET"],
        &["DELETE FROM"],
        &["CREATE TABLE"],
        &["CREATE INDEX"],
        &["CREATE UNIQUE INDEX"],
        &["PRAGMA"],
    ];
    // Whole words with one space around each.
    let words: Vec<&str> = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let text = format!(" {} ", words.join(" "));
    STATEMENTS.iter().any(|parts| {
        let mut rest = text.as_str();
        parts.iter().all(|part| {
            let found = rest.find(&format!(" {part} "));
            if let Some(at) = found {
                rest = &rest[at + part.len() + 1..];
            }
            found.is_some()
        })
    })
}

#[test]
fn sql_is_in_the_store_only() -> std::io::Result<()> {
    tree::assert_none(&sql(&tree::read()?));
    Ok(())
}

#[test]
fn sql_elsewhere_is_found() {
    let text = "use rusqlite::Connection;\n// SELECT a FROM b\nlet a = \"SELECT a\n  FROM b\";\n\
                let b = \"PRAGMA user_version\";\nlet c = \"select one from the list\";\n\
                let d = \"UPDATES ON SETTINGS\";\n";
    let daemon = File::new("crates/agentd-daemon/src/api.rs", text);
    tree::assert_lines(&sql(&[daemon]), &[1, 3, 5]);
    let backend = File::new("crates/agentd-store/src/sqlite/read.rs", text);
    tree::assert_none(&sql(&[backend]));
    for path in ["src/rules/purge.rs", "tests/conformance/purge.rs"] {
        let above = File::new(&format!("crates/agentd-store/{path}"), text);
        tree::assert_lines(&sql(&[above]), &[1, 3, 5]);
    }
    let manifest = File::new(
        "crates/agentd/Cargo.toml",
        "[dependencies]\nrusqlite.workspace = true\n",
    );
    tree::assert_lines(&sql(&[manifest]), &[2]);
}

// Processes

const WITH_PROCESSES: &[&str] = &[
    "agentd-failpoint",
    "agentd-process",
    "agentd-sandbox",
    "agentd-testkit",
    "agentd-bench",
    "xtask",
];

const SIGNALS_AND_STARTS: &[&str] = &[
    "execv",
    "execve",
    "execvp",
    "fork",
    "kill",
    "kill_current_process_group",
    "kill_process",
    "kill_process_group",
    "killpg",
    "pidfd_send_signal",
    "posix_spawn",
    "SYS_pidfd_send_signal",
    "vfork",
];

fn processes(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in rust_in_crates(files) {
        if in_crates(file, WITH_PROCESSES) || file.is_tests() {
            continue;
        }
        let code = lexer::lex(&file.text).code;
        let own_command = code.contains("struct Command") || code.contains("enum Command");
        findings.extend(paths_that(
            file,
            "processes",
            "processes are started and signalled in agentd-process only; call it",
            |named| {
                let system = matches!(named.first(), "libc" | "nix" | "rustix");
                let signals = named
                    .segments
                    .iter()
                    .any(|segment| SIGNALS_AND_STARTS.contains(&segment.as_str()));
                let starts = named.has(&["process", "Command"]) && !named.is_own();
                // Where no import says what it is, it came with a glob.
                let new = named.first() == "Command" && named.has(&["Command", "new"]);
                (system && signals) || starts || (new && !own_command)
            },
        ));
    }
    findings
}

#[test]
fn processes_are_started_in_one_crate_only() -> std::io::Result<()> {
    tree::assert_none(&processes(&tree::read()?));
    Ok(())
}

#[test]
fn a_process_started_elsewhere_is_found() {
    let text = "use std::process::{self, ExitCode};\nuse clap::Command;\nuse crate::process::Command as Own;\n\
                fn f() {\n    process::exit(1);\n    process::id();\n    Command::new(\"agentd\");\n\
                process::Command::new(\"sh\");\n    unsafe { libc::kill(1, 9) };\n    child.kill();\n}\n";
    let daemon = File::new("crates/agentd-daemon/src/run.rs", text);
    tree::assert_lines(&processes(&[daemon]), &[8, 9]);

    let grouped = "use std::{io, process::{Child, Command}};\nuse rustix::process::{kill_process, Pid};\n\
                   use tokio::process;\nfn f() { process::Command::new(\"sh\") }\n";
    let runtime = File::new("crates/agentd-runtime/src/tool.rs", grouped);
    tree::assert_lines(&processes(&[runtime]), &[1, 2, 4]);

    let glob = "use std::process::*;\nfn f() { Command::new(\"sh\") }\n";
    let binary = File::new("crates/agentd/src/main.rs", glob);
    tree::assert_lines(&processes(&[binary]), &[2]);

    for path in [
        "crates/agentd-process/src/lib.rs",
        "crates/agentd-store/tests/crash.rs",
        "xtask/src/main.rs",
    ] {
        tree::assert_none(&processes(&[File::new(path, text)]));
    }
}

// The environment

const WITHOUT_ENVIRONMENT: &[&str] = &[
    "agentd-core",
    "agentd-sandbox",
    "agentd-store",
    "agentd-process",
    "agentd-runtime",
    "agentd-daemon",
    "agentd-client",
];

const ENVIRONMENT: &[&str] = &[
    "args",
    "args_os",
    "home_dir",
    "remove_var",
    "set_var",
    "var",
    "var_os",
    "vars",
    "vars_os",
];

fn environment(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in rust_in_crates(files) {
        if !in_crates(file, WITHOUT_ENVIRONMENT) || !file.is_src() {
            continue;
        }
        findings.extend(paths_that(
            file,
            "environment",
            "only the binary reads the environment; take the value as an argument",
            |named| {
                let read = ENVIRONMENT.iter().any(|name| named.has(&["env", name]));
                read && !named.is_own()
            },
        ));
    }
    findings
}

#[test]
fn only_the_binary_reads_the_environment() -> std::io::Result<()> {
    tree::assert_none(&environment(&tree::read()?));
    Ok(())
}

#[test]
fn a_library_that_reads_the_environment_is_found() {
    let text = "use std::env as e;\n/// Not `std::env::var`.\nfn f() {\n    e::var(\"HOME\");\n    \
                env!(\"CARGO_PKG_VERSION\");\n    command.env(\"A\", \"b\");\n}\n";
    let client = File::new("crates/agentd-client/src/lib.rs", text);
    tree::assert_lines(&environment(&[client]), &[4]);
    for path in [
        "crates/agentd/src/main.rs",
        "crates/agentd-client/tests/socket.rs",
    ] {
        tree::assert_none(&environment(&[File::new(path, text)]));
    }
}

// Tasks of the daemon

fn tasks(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in rust_in_crates(files) {
        let is_where_they_are_made = file.path.ends_with("agentd-daemon/src/spawn.rs");
        if !in_crates(file, &["agentd-daemon"]) || !file.is_src() || is_where_they_are_made {
            continue;
        }
        findings.extend(paths_that(
            file,
            "tasks",
            "the daemon's tasks are started by `crate::spawn`, which notices when one dies",
            |named| named.has(&["tokio", "spawn"]) || named.has(&["task", "spawn"]),
        ));
    }
    findings
}

#[test]
fn tasks_of_the_daemon_are_started_in_one_place_only() -> std::io::Result<()> {
    tree::assert_none(&tasks(&tree::read()?));
    Ok(())
}

#[test]
fn a_task_that_is_started_elsewhere_is_found() {
    let text = "use tokio::task;\nfn f() {\n    tokio::spawn(work);\n    task::spawn(work);\n    \
                task::spawn_blocking(work);\n    spawn(\"a name\", work);\n}\n";
    let daemon = File::new("crates/agentd-daemon/src/link.rs", text);
    tree::assert_lines(&tasks(&[daemon]), &[3, 4]);
    let spawn = File::new("crates/agentd-daemon/src/spawn.rs", text);
    tree::assert_none(&tasks(&[spawn]));
}
