//! Histories of other programs: imported, continued with the strict fake model, exported and imported again.

use crate::test_daemon::{KEY, TestDaemon, until};
use agentd_core::event::{Body, Event, Kind};
use agentd_core::import_history::Program;
use agentd_core::window::Window;
use agentd_testkit::harness::Poll;
use agentd_testkit::histories;
use agentd_testkit::model::Format;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

/// A daemon, with keys of all providers, and a directory for histories.
fn daemon() -> (TestDaemon, PathBuf) {
    let daemon = TestDaemon::new();
    let openai = daemon.model.base_url(Format::OpenaiResponses);
    daemon.caller_env("OPENAI_API_KEY", KEY);
    daemon.caller_env("OPENAI_BASE_URL", &openai);
    let dir = daemon.root().join("histories");
    fs::create_dir(&dir).unwrap();
    (daemon, dir)
}

#[track_caller]
fn json_of(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Imports a history; returns the entry of its session in the answer.
#[track_caller]
fn import(daemon: &TestDaemon, program: Program, path: &Path, more: &[&str]) -> Value {
    let args = ["import", "--from", program.name(), path.to_str().unwrap()];
    let answer = json_of(&daemon.cli(&[&args, more, &["--json"]].concat()));
    assert_eq!(answer["failed"], json!([]), "{answer}");
    assert_eq!(answer["imported"].as_array().unwrap().len(), 1, "{answer}");
    answer["imported"][0].clone()
}

fn name_of(imported: &Value) -> String {
    imported["agent"]["name"].as_str().unwrap().to_owned()
}

fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> = files
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn a_history_is_continued_rewound_and_found_and_its_source_is_unchanged() {
    for (program, format, words, last) in [
        (
            Program::ClaudeCode,
            Format::Anthropic,
            "fixed and documented",
            "I will tag it.",
        ),
        (
            Program::Codex,
            Format::OpenaiResponses,
            "has 12 files",
            "Which is the largest?",
        ),
        (
            Program::Goose,
            Format::OpenaiResponses,
            "a.md and b.md",
            "Merge them",
        ),
        (
            Program::Opencode,
            Format::Anthropic,
            "renamed to read",
            "I run them.",
        ),
    ] {
        let (daemon, dir) = daemon();
        let path = histories::write(program, &dir, &daemon.work()).unwrap();
        let before = files(&dir);
        let imported = import(&daemon, program, &path, &["--keep-model"]);
        assert_eq!(files(&dir), before, "{program} was written to");
        assert_eq!(imported["agent"]["held"], true, "{imported}");
        let name = name_of(&imported);
        let prompts = daemon.count(&name, Kind::Prompt);
        assert_eq!(imported["prompts"], prompts);
        assert!(daemon.cli(&["start", &name, "--yes"]).status.success());
        // `completed` fails if the strict model refuses the request.
        assert_eq!(daemon.completed(&name, "do: say hello").text, "hello");
        let requests = daemon.requests();
        let request = requests.last().unwrap();
        assert_eq!(request.format, format, "{program}");
        let body = request.body.to_string();
        for words in [words, last, "took place in another program"] {
            assert!(body.contains(words), "{program}: {words}: {body}");
        }
        // What was summarised is found by a search, and can be returned to.
        let first = match program {
            Program::ClaudeCode => "lexer drops",
            Program::Codex => "Count the files",
            Program::Goose => "list them",
            Program::Opencode => "rename it",
        };
        until("the index", || {
            let found = json_of(&daemon.cli(&["search", first, "--json"]));
            found.to_string().contains(&name).then_some(())
        });
        let rewound = daemon.cli(&["rewind", &name, "--to", "1"]);
        assert!(rewound.status.success(), "{program}: {rewound:?}");
        assert_eq!(daemon.completed(&name, "do: say again").text, "again");
        let body = daemon.requests().last().unwrap().body.to_string();
        assert!(body.contains(first), "{program}: {body}");
        assert!(!body.contains(last), "{program}: {body}");
        daemon.verify();
    }
}

/// Without what an import adds.
fn own(daemon: &TestDaemon, name: &str) -> Vec<Event> {
    let mut events = daemon.events(name);
    let added = [
        Kind::AgentHeld,
        Kind::Operation,
        Kind::AgentImported,
        Kind::AgentRenamed,
    ];
    events.retain(|event| !added.contains(&event.kind()));
    events
}

fn window(events: &[Event]) -> Window {
    let mut window = Window::new();
    events.iter().for_each(|event| window.apply(event));
    window
}

#[test]
fn import_export_import_gives_the_same_fold() {
    for program in Program::ALL {
        let (one, dir) = daemon();
        let two = TestDaemon::new();
        let path = histories::write(program, &dir, &one.work()).unwrap();
        let imported = import(&one, program, &path, &["--provider", "demo"]);
        let name = name_of(&imported);
        let archive = two.root().join("agent.zst");
        let archive = archive.to_str().unwrap();
        assert!(one.cli(&["export", &name, archive]).status.success());
        let again = json_of(&two.cli(&["import", archive, "--json"]));
        assert_eq!(again["id"], imported["agent"]["id"]);
        let (first, second) = (own(&one, &name), own(&two, &name));
        assert_eq!(first, second, "{program}");
        assert_eq!(window(&first), window(&second));
        // Under another name it is the same conversation of another agent.
        let copy = import(
            &one,
            program,
            &path,
            &["--provider", "demo", "--as", "copy"],
        );
        assert_ne!(copy["agent"]["id"], imported["agent"]["id"]);
        let items = |events: &[Event]| window(events).items().len();
        assert_eq!(items(&own(&one, "copy")), items(&first), "{program}");
        let bodies = |events: Vec<Event>| {
            let bodies = events.into_iter().map(|event| event.body);
            let bodies =
                bodies.filter(|body| !matches!(body, Body::Compacted(_) | Body::Summary(_)));
            bodies.collect::<Vec<_>>()
        };
        assert_eq!(bodies(own(&one, "copy")), bodies(first), "{program}");
        two.verify();
        one.verify();
    }
}

#[test]
fn a_second_import_is_refused_and_one_under_the_same_op_is_the_first() {
    let (daemon, dir) = daemon();
    let path = histories::write(Program::Codex, &dir, &daemon.work()).unwrap();
    let more = ["--provider", "demo", "--op", "import-1"];
    let first = import(&daemon, Program::Codex, &path, &more);
    let again = import(&daemon, Program::Codex, &path, &more);
    assert_eq!(again["agent"]["id"], first["agent"]["id"]);
    let args = [
        "import",
        "--from",
        "codex",
        path.to_str().unwrap(),
        "--provider",
        "demo",
    ];
    let refused = daemon.cli(&args);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains("--as NAME"), "{text}");
}

#[test]
fn damaged_files_give_what_can_be_saved_and_a_report() {
    let (daemon, dir) = daemon();
    let path = histories::write(Program::ClaudeCode, &dir, &daemon.work()).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len() - 900;
    bytes.truncate(end);
    let text = String::from_utf8(bytes)
        .unwrap()
        .replacen("\n", "\n\u{0}garbage\n", 4);
    fs::write(&path, text).unwrap();
    let imported = import(&daemon, Program::ClaudeCode, &path, &["--keep-model"]);
    let left = imported["left_out"].as_array().unwrap();
    let bad = left
        .iter()
        .find(|left| left["reason"] == "bad_line")
        .unwrap();
    assert_eq!(bad["count"], 5, "{imported}");
    assert!(imported["prompts"].as_u64().unwrap() >= 2, "{imported}");
    let name = name_of(&imported);
    assert!(daemon.cli(&["start", &name, "--yes"]).status.success());
    assert_eq!(daemon.completed(&name, "do: say hello").text, "hello");
    daemon.requests();
}

#[test]
fn a_directory_is_listed_and_imported_without_subagents() {
    let (daemon, dir) = daemon();
    let path = histories::write(Program::ClaudeCode, &dir, &daemon.work()).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let subagent: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("\"isSidechain\":true"))
        .collect();
    let below = dir.join("more");
    fs::create_dir(&below).unwrap();
    fs::write(below.join("agent-a1.jsonl"), subagent.join("\n")).unwrap();
    fs::write(below.join("empty.jsonl"), "").unwrap();
    fs::write(below.join("notes.txt"), "not a history").unwrap();
    let from = ["import", "--from", "claude-code", dir.to_str().unwrap()];
    let listed = json_of(&daemon.cli(&[&from[..], &["--list", "--json"]].concat()));
    let sessions = listed["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 3, "{listed}");
    let subagents = sessions.iter().filter(|it| it["subagent"] == true);
    assert_eq!(subagents.count(), 1);
    let main = sessions.iter().find(|it| it["prompts"] == 4).unwrap();
    assert_eq!(main["title"], "Fixing the parser tests");
    let done = json_of(&daemon.cli(&[&from[..], &["--provider", "demo", "--json"]].concat()));
    assert_eq!(done["imported"].as_array().unwrap().len(), 1, "{done}");
    assert_eq!(done["subagents"], 2);
    assert_eq!(done["imported"][0]["agent"]["name"], main["name"]);
    // A subagent that is chosen is imported.
    let id = sessions.iter().find(|it| it["subagent"] == true).unwrap()["session"].clone();
    let chosen = [
        "--session",
        id.as_str().unwrap(),
        "--provider",
        "demo",
        "--json",
    ];
    let done = json_of(&daemon.cli(&[&from[..], &chosen].concat()));
    assert_eq!(done["imported"][0]["prompts"], 1, "{done}");
    let missing = daemon.cli(&[&from[..], &["--session", "none"]].concat());
    assert_eq!(missing.status.code(), Some(2), "{missing:?}");
}

/// A history of this many bytes. Its text does not compress well, as real text does not.
fn long_history(path: &Path, session: &str, bytes: usize) {
    let mut text = String::with_capacity(bytes + 8192);
    let meta = json!({"id": session, "cwd": "/", "model_provider": "openai"});
    writeln!(text, "{}", json!({"type": "session_meta", "payload": meta})).unwrap();
    let mut random = 1_u64;
    let mut n = 0;
    while text.len() < bytes {
        let mut words = String::new();
        for _ in 0..200 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            write!(words, "{:x} ", random >> 20).unwrap();
        }
        n += 1;
        let (role, kind) = match n % 2 {
            1 => ("user", "input_text"),
            _ => ("assistant", "output_text"),
        };
        let content = json!([{"type": kind, "text": words}]);
        let item = json!({"type": "message", "role": role, "content": content});
        writeln!(
            text,
            "{}",
            json!({"type": "response_item", "payload": item})
        )
        .unwrap();
    }
    fs::write(path, text).unwrap();
}

/// The most memory that a process has used so far, in kilobytes.
fn peak(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Imports a history of this size; returns the peaks of the command and of the daemon.
fn peaks(daemon: &TestDaemon, session: &str, bytes: usize) -> (u64, u64) {
    let path = daemon.root().join(format!("{session}.jsonl"));
    long_history(&path, session, bytes);
    let mut command = daemon.command();
    command
        .env("AGENTD_HOME", daemon.home())
        .envs(daemon.caller());
    command.args([
        "import",
        "--from",
        "codex",
        path.to_str().unwrap(),
        "--provider",
        "demo",
    ]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut most = 0;
    // Without optimisation, a long history takes minutes.
    let poll = Poll::new(Duration::from_millis(20), Duration::from_secs(1800));
    let ended = poll.until("the import", || {
        most = most.max(peak(child.id()).unwrap_or(0));
        child.try_wait().unwrap()
    });
    assert!(ended.unwrap().success());
    (most, peak(daemon.daemon_pid().unwrap()).unwrap())
}

/// A history that is many times as long needs no more memory, in either process: 200 MB with `AGENTD_TEST_LONG`.
#[test]
fn memory_does_not_depend_on_the_length_of_a_history() {
    const MB: usize = 1024 * 1024;
    let (daemon, _) = daemon();
    let large = match std::env::var_os("AGENTD_TEST_LONG") {
        Some(_) => 200 * MB,
        None => 20 * MB,
    };
    let (small_cli, small_daemon) = peaks(&daemon, "small", 4 * MB);
    let (large_cli, large_daemon) = peaks(&daemon, "large", large);
    let grown = |small: u64, large: u64| large.saturating_sub(small) / 1024;
    let (cli, server) = (
        grown(small_cli, large_cli),
        grown(small_daemon, large_daemon),
    );
    println!("{small_cli} {large_cli} {small_daemon} {large_daemon}");
    assert!(cli < 12, "the command used {cli} MB more");
    assert!(server < 16, "the daemon used {server} MB more");
}

/// Regression: the error was "Unknown frame descriptor".
#[test]
fn a_history_without_its_program_leads_to_from() {
    let (daemon, dir) = daemon();
    let path = histories::write(Program::ClaudeCode, &dir, &daemon.work()).unwrap();
    let path = path.to_str().unwrap();
    let refused = daemon.cli(&["import", path]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    let next = format!("agentd import --from claude-code {path}");
    assert!(text.contains(&next), "{text}");
    let other = dir.join("notes.txt");
    fs::write(&other, "notes").unwrap();
    let refused = daemon.cli(&["import", other.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains("--from claude-code|codex"), "{text}");
}
