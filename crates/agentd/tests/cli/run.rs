//! `agentd run`.

use super::test_cli::{Ran, TestCli, ended, signal};
use rustix::process::Signal;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

#[test]
fn on_an_empty_home_it_works_at_once() {
    let cli = TestCli::new();
    fs::write(cli.work().join("notes.txt"), "a\nb\n").unwrap();
    let prompt = "list the files here and count the lines of the largest";
    let ran = cli.run(&["run", "--provider", "demo", prompt]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.out.contains("notes.txt"), "{ran:#?}");
    // Said once, however it came.
    assert_eq!(ran.out.matches("Files here:").count(), 1, "{ran:#?}");
    assert!(ran.err.contains("· list_files"), "{ran:#?}");
}

#[test]
fn the_result_is_one_object() {
    let cli = TestCli::new();
    let result = cli.json(&["run", "--provider", "demo", "run `echo hello`"]);
    assert_eq!(result["status"], "completed");
    assert!(
        result["text"].as_str().unwrap().contains("hello"),
        "{result}"
    );
    assert!(result["usage"]["input_tokens"].as_u64().unwrap() > 0);
    for key in ["agent", "conversation", "turn", "error"] {
        assert!(result.get(key).is_some(), "{key}: {result}");
    }
}

#[test]
fn a_long_reply_is_shown_whole() {
    let cli = TestCli::new();
    let out = cli.ok(&["run", "--provider", "demo", "count to 40"]);
    let expected: Vec<String> = (1..=40).map(|n| n.to_string()).collect();
    let found: Vec<&str> = out
        .lines()
        .filter(|line| line.parse::<u32>().is_ok())
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn detached_it_prints_the_name() {
    let cli = TestCli::new();
    let name = cli.ok(&["run", "--provider", "demo", "--detach", "run `echo hello`"]);
    cli.ok(&["wait", name.trim()]);
    assert_eq!(cli.json(&["show", name.trim()])["mode"], "oneshot");
}

#[test]
fn ctrl_c_interrupts_the_turn() {
    let cli = TestCli::new();
    let child = cli.start(&["run", "--provider", "demo", "run `sleep 100`"]);
    let name = super::test_cli::until("the agent", || {
        let list = cli.json(&["list"]);
        list["agents"][0]["name"].as_str().map(str::to_owned)
    });
    cli.until_tool(&name);
    signal(child.id(), Signal::INT);
    let ran = ended(child);
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    assert!(ran.err.contains("the turn was interrupted"), "{ran:#?}");
    let agent = cli.json(&["show", &name]);
    assert_eq!(agent["last_turn"]["status"], "interrupted", "{agent}");
}

#[test]
fn a_missing_key_is_waited_for() {
    let cli = TestCli::new();
    let text = cli.refused(
        6,
        &["run", "--provider", "anthropic", "--model", "x", "hello"],
    );
    assert!(text.contains("ANTHROPIC_API_KEY"), "{text}");
    assert!(text.contains("next: "), "{text}");
}

#[test]
fn without_a_provider_it_says_what_to_choose() {
    let cli = TestCli::new();
    let text = cli.refused(2, &["run", "hello"]);
    assert!(text.contains("--provider demo"), "{text}");
    let text = cli.refused(2, &["run", "--provider", "demo", "  "]);
    assert!(text.contains("the prompt is empty"), "{text}");
    let text = cli.refused(
        2,
        &["run", "--provider", "demo", "--cwd", "/nowhere", "hello"],
    );
    assert!(text.contains("/nowhere"), "{text}");
}

/// The prompts that the agent got, in order.
fn prompts(cli: &TestCli, name: &str) -> Vec<String> {
    let events = cli.lines(&["logs", name]);
    let prompts = events.iter().filter(|event| event["kind"] == "prompt");
    let texts = prompts.map(|event| event["body"]["blocks"][0]["text"].as_str().unwrap());
    texts.map(str::to_owned).collect()
}

/// Runs it with this input, and returns the prompt that the agent got.
fn asked_with(cli: &TestCli, stdin: impl Into<Stdio>, args: &[&str]) -> (Ran, String) {
    let args = [&["run", "--provider", "demo", "--json"], args].concat();
    let ran: Ran = cli.command(&args).stdin(stdin).output().unwrap().into();
    assert_eq!(ran.code, Some(0), "{args:?}: {ran:#?}");
    let answer: Value = serde_json::from_str(&ran.out).unwrap();
    let asked = prompts(cli, answer["agent"]["name"].as_str().unwrap());
    assert_eq!(asked.len(), 1, "{asked:?}");
    (ran, asked.into_iter().next().unwrap())
}

/// A pipe with this text in it, whose writer has gone.
fn pipe(text: &[u8]) -> std::io::PipeReader {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(text).unwrap();
    reader
}

#[test]
fn piped_input_is_appended_to_the_prompt() {
    let cli = TestCli::new();
    let (_, asked) = asked_with(&cli, pipe(b"one\ntwo\n"), &["say hello"]);
    assert_eq!(asked, "say hello\n\none\ntwo\n");
    let file = cli.work().join("notes.txt");
    fs::write(&file, "from a file").unwrap();
    let (_, asked) = asked_with(&cli, File::open(&file).unwrap(), &["say hello"]);
    assert_eq!(asked, "say hello\n\nfrom a file");
    let (ours, theirs) = UnixStream::pair().unwrap();
    (&ours).write_all(b"from a socket").unwrap();
    drop(ours);
    let (_, asked) = asked_with(&cli, OwnedFd::from(theirs), &["say hello"]);
    assert_eq!(asked, "say hello\n\nfrom a socket");
}

#[test]
fn without_an_argument_piped_input_is_the_prompt() {
    let cli = TestCli::new();
    let (_, asked) = asked_with(&cli, pipe(b"say hello"), &[]);
    assert_eq!(asked, "say hello");
    let (_, asked) = asked_with(&cli, pipe(b"say hello"), &["-"]);
    assert_eq!(asked, "say hello");
    let text = cli.refused(2, &["run", "--provider", "demo"]);
    assert!(text.contains("there is no prompt"), "{text}");
    let text = cli.refused(2, &["run", "--provider", "demo", "--no-stdin", "-"]);
    assert!(text.contains("there is no prompt"), "{text}");
}

#[test]
fn input_without_text_does_not_change_the_prompt() {
    let cli = TestCli::new();
    let empty = cli.work().join("empty");
    fs::write(&empty, "").unwrap();
    let inputs: [(&str, Stdio); 4] = [
        ("/dev/null", Stdio::null()),
        ("a closed pipe", pipe(b"").into()),
        ("blank lines", pipe(b" \n\n").into()),
        ("an empty file", File::open(&empty).unwrap().into()),
    ];
    for (what, stdin) in inputs {
        let (ran, asked) = asked_with(&cli, stdin, &["say hello"]);
        assert_eq!(asked, "say hello", "{what}");
        assert!(!ran.err.contains("standard input"), "{what}: {ran:#?}");
    }
}

/// Programs that start others often leave a pipe open into which they never write: other command lines hang there.
#[test]
fn a_pipe_that_stays_open_without_data_is_waited_for_only_if_that_is_asked() {
    let cli = TestCli::new();
    let (patient, mut late) = std::io::pipe().unwrap();
    let mut command = cli.command(&["run", "--provider", "demo", "--stdin", "say bye"]);
    command.stdin(patient).stdout(Stdio::piped());
    let waiting = command.stderr(Stdio::piped()).spawn().unwrap();
    drop(command);
    let (reader, silent) = std::io::pipe().unwrap();
    let (ran, asked) = asked_with(&cli, reader, &["say hello"]);
    assert_eq!(asked, "say hello");
    assert!(ran.err.contains("--no-stdin"), "{ran:#?}");
    drop(silent);
    // The other command began to wait before this one, and has not given up.
    assert_eq!(cli.json(&["list"])["total"], 1);
    late.write_all(b"late").unwrap();
    drop(late);
    let ran = ended(waiting);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let list = cli.json(&["list"]);
    let name = list["agents"][0]["name"].as_str().unwrap();
    assert_eq!(prompts(&cli, name), ["say bye\n\nlate"]);
}

#[test]
fn input_that_is_not_wanted_is_left_alone() {
    let cli = TestCli::new();
    let mut reader = pipe(b"the rest of a loop's input");
    let stdin = reader.try_clone().unwrap();
    let (_, asked) = asked_with(&cli, stdin, &["--no-stdin", "say hello"]);
    assert_eq!(asked, "say hello");
    let mut left = String::new();
    reader.read_to_string(&mut left).unwrap();
    assert_eq!(left, "the rest of a loop's input");
}

#[test]
fn input_that_cannot_be_a_prompt_is_refused() {
    let cli = TestCli::new();
    let big = cli.work().join("big");
    // Exactly as long as a prompt may be, so that the argument makes it too long.
    fs::write(&big, vec![b'a'; 1024 * 1024]).unwrap();
    for (what, stdin, code) in [
        ("not text", Stdio::from(pipe(b"a\xff")), 2),
        ("longer than", File::open(&big).unwrap().into(), 3),
    ] {
        let args = ["run", "--provider", "demo", "say hello"];
        let ran: Ran = cli.command(&args).stdin(stdin).output().unwrap().into();
        assert_eq!(ran.code, Some(code), "{ran:#?}");
        assert!(ran.err.contains(what), "{ran:#?}");
    }
    assert_eq!(cli.json(&["list"])["total"], 0);
}
