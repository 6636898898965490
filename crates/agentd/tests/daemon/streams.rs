//! Streams of events: the end of a stream is explicit, so a part of the journal never counts as all of it.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{AllEventsQuery, Item};
use agentd_client::{Client, Error, Kind};
use rustix::process::Signal;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Stdio;

/// More than one page, and more than the buffers of a pipe and a socket.
const CHANGES: usize = 900;

/// An agent with a long journal.
fn with_a_long_journal(daemon: &TestDaemon) {
    daemon.create("coder");
    let client = daemon.client();
    daemon.block(async {
        for n in 0..CHANGES {
            let spec = agentd_core::spec::AgentSpec {
                system: words(n),
                ..daemon.spec()
            };
            client.set_spec("coder", &spec).await.unwrap();
        }
    });
}

fn words(n: usize) -> String {
    format!("You are number {n:04}.")
}

/// Regression: if the daemon ended in the middle of a stream, the client printed a part of the journal and exited with 0.
#[test]
fn a_replay_goes_on_where_the_daemon_ended() {
    let daemon = TestDaemon::new();
    with_a_long_journal(&daemon);
    let all = daemon.events("coder").len();
    let mut command = daemon.command();
    command.args(["replay", "--json"]).envs(daemon.caller());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    // The first byte has come, and the rest waits for us to read it: the stream is under way.
    let mut first = [0; 1];
    out.read_exact(&mut first).unwrap();
    daemon.signal_daemon(Signal::TERM);
    let mut text = String::from_utf8(first.to_vec()).unwrap();
    out.read_to_string(&mut text).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let seqs: Vec<u64> = text
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["seq"]
                .as_u64()
                .unwrap()
        })
        .collect();
    let expected: Vec<u64> = (1..=all as u64).collect();
    assert_eq!(seqs, expected);
}

/// Regression: an event that cannot be read ended the stream like the end of the journal.
#[test]
fn a_damaged_event_ends_a_replay_with_an_error() {
    let daemon = TestDaemon::new();
    with_a_long_journal(&daemon);
    let sent = daemon.cli(&["daemon", "stop"]);
    assert!(sent.status.success(), "{sent:?}");
    let path = daemon.home().join("journal.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let needle = words(CHANGES - 200);
    let at = bytes
        .windows(needle.len())
        .position(|found| found == needle.as_bytes())
        .unwrap();
    bytes[at] = b'y';
    std::fs::write(&path, bytes).unwrap();
    for args in [&["replay", "--json"][..], &["replay"]] {
        let ran = daemon.cli(args);
        assert!(!ran.status.success(), "{args:?}");
        let err = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(err.contains("damaged") || err.contains("checksum"), "{err}");
    }
    daemon.cli(&["daemon", "stop"]);
}

/// Answers one request with these bytes, and closes the connection.
fn answering(daemon: &TestDaemon, answer: &'static [u8]) -> Client {
    let path = daemon.root().join("fake.sock");
    let _old = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let _read = stream.read(&mut request).unwrap();
        stream.write_all(answer).unwrap();
    });
    Client::new(path)
}

fn items(daemon: &TestDaemon, answer: &'static [u8]) -> Vec<Result<Item, Error>> {
    let client = answering(daemon, answer);
    daemon.block(async {
        let mut events = client.replay(&AllEventsQuery::default()).await.unwrap();
        let mut items = Vec::new();
        while let Some(item) = events.next().await {
            items.push(item);
        }
        items
    })
}

#[test]
fn a_stream_without_its_end_is_an_error() {
    let daemon = TestDaemon::empty();
    // Ended in order, as far as HTTP is concerned.
    let cut = items(
        &daemon,
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
          1d\r\nevent: caught_up\ndata: {}\n\n\n\r\n0\r\n\r\n",
    );
    assert!(
        matches!(&cut[..], [Ok(Item::CaughtUp), Err(Error::Broken(_))]),
        "{cut:?}"
    );
    let whole = items(
        &daemon,
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
          16\r\nevent: end\ndata: {}\n\n\n\r\n0\r\n\r\n",
    );
    assert!(whole.is_empty(), "{whole:?}");
    let problem = items(
        &daemon,
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
          event: problem\ndata: {\"type\":\"about:blank\",\"kind\":\"internal\",\"title\":\"damaged\",\"status\":500}\n\n",
    );
    match &problem[..] {
        [Err(Error::Problem(problem))] => assert_eq!(problem.kind, Kind::Internal),
        other => panic!("{other:?}"),
    }
}

/// A body that was cut off is not written as a file.
#[test]
fn an_export_that_was_cut_off_is_an_error() {
    let daemon = TestDaemon::empty();
    let client = answering(
        &daemon,
        b"HTTP/1.1 200 OK\r\ncontent-type: application/zstd\r\ncontent-length: 100\r\n\r\nhalf",
    );
    let cut = daemon.block(client.export("coder"));
    assert!(matches!(cut, Err(Error::Broken(_))), "{cut:?}");
}

/// `logs -f` continues after the daemon was killed, and shows each event once.
#[test]
fn logs_of_one_agent_go_on_where_the_daemon_ended() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let mut command = daemon.command();
    command
        .args(["logs", "coder", "-f", "--json"])
        .envs(daemon.caller());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut first = [0; 1];
    out.read_exact(&mut first).unwrap();
    daemon.kill_daemon();
    // The client that follows the events starts another daemon.
    let answer = until("a daemon", || daemon.block(daemon.client().daemon()).ok());
    assert!(answer.pid > 0);
    daemon.completed("coder", "do: say hello");
    let last = daemon.events("coder").last().unwrap().seq.0;
    let mut text = String::from_utf8(first.to_vec()).unwrap();
    let mut buffer = [0; 4096];
    while !text
        .lines()
        .any(|line| line.contains(&format!("\"seq\":{last},")))
    {
        let count = out.read(&mut buffer).unwrap();
        assert!(count > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let seqs: Vec<u64> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()?["seq"].as_u64())
        .collect();
    assert!(
        seqs.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "{seqs:?}"
    );
}

/// A control: the same replay with a daemon that reports a part of the journal as all of it.
#[test]
fn a_daemon_that_cuts_a_stream_short_is_found_out() {
    let daemon = TestDaemon::empty();
    daemon.mistake("short_stream");
    daemon.start_daemon();
    with_a_long_journal(&daemon);
    let all = daemon.events("coder").len();
    let ran = daemon.cli(&["replay", "--json"]);
    let shown = String::from_utf8_lossy(&ran.stdout).lines().count();
    assert!(shown < all, "{shown} of {all}");
}

/// Sends a request without a body over a connection of its own, and returns the connection and what came first.
fn request(daemon: &TestDaemon, path: &str, headers: &str) -> (UnixStream, String) {
    let mut stream = UnixStream::connect(daemon.home().join("run/api.sock")).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: agentd\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut first = [0; 4096];
    let read = stream.read(&mut first).unwrap();
    let text = String::from_utf8_lossy(&first[..read]).into_owned();
    (stream, text)
}

/// Regression: 600 followers held all connections, and `agentd list` got no answer.
#[test]
fn streams_leave_room_for_short_requests() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let followers: Vec<(UnixStream, String)> = (0..600)
        .map(|_| request(&daemon, "/v1/agents/coder/events?follow=true", ""))
        .collect();
    for (_, first) in &followers {
        assert!(first.starts_with("HTTP/1.1 200"), "{first}");
    }
    let mut list = daemon.command();
    list.arg("list").stdout(Stdio::null());
    let mut list = list.spawn().unwrap();
    let ended = until("the list", || list.try_wait().unwrap());
    assert!(ended.success());
}

/// Starts a daemon that may have only few files open.
fn start_with_few_files(daemon: &TestDaemon, limit: &str) {
    let program = daemon.program();
    let mut shell = program.command_of("sh");
    let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
    shell.arg("-c").arg(script).arg(program.path());
    daemon.start_daemon_by(program.daemon_by(shell).unwrap());
}

/// The soft limit of open files of a process.
fn open_files(pid: u32) -> u64 {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let soft = line.unwrap().split_whitespace().nth(3).unwrap();
    soft.parse().unwrap()
}

/// Regression: a daemon kept a low soft limit of open files, and so did nothing about it.
#[test]
fn a_daemon_raises_its_limit_of_open_files_and_not_that_of_programs() {
    let daemon = TestDaemon::empty();
    start_with_few_files(&daemon, "-Sn 256");
    assert!(open_files(daemon.daemon_pid().unwrap()) > 256);
    daemon.create("coder");
    let call = serde_json::json!({ "command": "ulimit -Sn > limit" });
    daemon.completed("coder", &format!("do: call shell {call} ;; say done"));
    let limit = std::fs::read_to_string(daemon.work().join("limit")).unwrap();
    assert_eq!(limit.trim(), "256");
}

/// Regression: a daemon with few open files said nothing about it, and did not answer again when files were free.
#[test]
fn a_daemon_whose_open_files_ran_out_answers_again() {
    let daemon = TestDaemon::empty();
    start_with_few_files(&daemon, "-n 64");
    let said = daemon.log();
    assert!(said.contains("few open files allowed"), "{said}");
    let path = daemon.home().join("run/api.sock");
    let held: Vec<UnixStream> = (0..100)
        .filter_map(|_| UnixStream::connect(&path).ok())
        .collect();
    until("the last file", || {
        daemon.log().contains("not accepted").then_some(())
    });
    drop(held);
    let listed = daemon.cli(&["list"]);
    assert!(listed.status.success(), "{listed:?}");
}

/// Regression: a path that is not UTF-8 was answered with plain text, and an invalid `Last-Event-ID` was ignored.
#[test]
fn requests_that_cannot_be_read_are_problems() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    for (path, headers) in [
        ("/v1/agents/%ff", ""),
        ("/v1/agents/coder/events", "Last-Event-ID: x\r\n"),
        (
            "/v1/agents/coder/events?follow=true",
            "Last-Event-ID: -1\r\n",
        ),
    ] {
        let (_, answer) = request(&daemon, path, headers);
        assert!(answer.starts_with("HTTP/1.1 400"), "{path}: {answer}");
        assert!(
            answer.contains("application/problem+json"),
            "{path}: {answer}"
        );
    }
    let (_, answer) = request(&daemon, "/v1/agents/coder/events", "Last-Event-ID: 1\r\n");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
