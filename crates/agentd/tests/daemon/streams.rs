//! Streams of events: the end of a stream is explicit, so a part of the journal never counts as all of it.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{AllEventsQuery, Item};
use agentd_client::{Client, Error, Kind};
use rustix::process::Signal;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
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
