//! Input from outside has limits. Beyond a limit the connection is closed or the request fails with a typed error.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::Kind;
use agentd_client::api::{Send, Start, Status, Stop};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a test waits for the daemon to close a connection.
const PATIENCE: Duration = Duration::from_secs(50);

fn connect(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn until_logged(daemon: &TestDaemon, words: &str) {
    until(words, || daemon.log().contains(words).then_some(()));
}

#[test]
fn connections_beyond_the_limit_wait_for_their_turn() {
    let daemon = TestDaemon::new();
    let id = daemon.create("coder").id;
    daemon.completed("coder", "do: say hello");
    let run = daemon.home().join("run");
    let tools = run.join(format!("a/{id}/s"));
    for (path, limit) in [(run.join("api.sock"), 512), (tools, 16)] {
        let held: Vec<UnixStream> = (0..=limit).map(|_| connect(&path)).collect();
        until_logged(&daemon, &format!("new connections wait limit={limit}"));
        // A further client waits for a free connection.
        let client = agentd_client::Client::new(&path);
        let asked = daemon.spawn(async move { client.daemon().await });
        drop(held);
        daemon.block(asked).unwrap().unwrap();
    }
    daemon.completed("coder", "do: say still here");
}

#[test]
fn a_full_queue_refuses_a_prompt_and_keeps_what_it_has() {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.limits.max_queue = 2;
    daemon.create_with("coder", spec);
    let client = daemon.client();
    daemon
        .block(client.stop("coder", &Stop::default()))
        .unwrap();
    let kept: Vec<_> = ["do: say one", "do: say two"]
        .map(|text| daemon.send("coder", text))
        .into();
    let third = Send {
        text: "do: say three".to_owned(),
        ..Send::default()
    };
    let refused = daemon.block(client.send("coder", &third));
    let Err(agentd_client::Error::Problem(problem)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((problem.kind, problem.status), (Kind::QueueFull, 429));
    daemon
        .block(client.start("coder", &Start::default()))
        .unwrap();
    for sent in kept {
        let answer = daemon.answer("coder", sent.prompt);
        assert_eq!(answer.status, Status::Completed);
    }
    daemon.completed("coder", "do: say three");
}

#[test]
fn a_request_that_does_not_come_ends_its_connection() {
    let daemon = TestDaemon::new();
    let api = daemon.home().join("run/api.sock");
    let silent = connect(&api);
    let mut begun = connect(&api);
    begun
        .write_all(b"GET /v1/daemon HTTP/1.1\r\nhost: ag")
        .unwrap();
    let mut headless = connect(&api);
    headless
        .write_all(
            b"POST /v1/agents HTTP/1.1\r\nhost: agentd\r\ncontent-type: application/json\r\n\
              content-length: 100\r\n\r\n{\"name\":",
        )
        .unwrap();
    let begin = Instant::now();
    for mut stream in [silent, begun] {
        let mut said = Vec::new();
        stream.read_to_end(&mut said).unwrap();
        assert!(said.is_empty(), "{}", String::from_utf8_lossy(&said));
    }
    assert!(begin.elapsed() < PATIENCE);
    until_logged(&daemon, "API connection closed: no request in time");
    let mut said = [0; 64];
    let length = headless.read(&mut said).unwrap();
    let said = String::from_utf8_lossy(&said[..length]);
    assert!(said.starts_with("HTTP/1.1 408"), "{said}");
}

/// Connections to the link that send nothing are closed, so runtimes can connect.
#[test]
fn silent_links_end_and_runtimes_come() {
    let daemon = TestDaemon::new();
    let link = daemon.home().join("run/link.sock");
    let mut silent: Vec<UnixStream> = (0..33).map(|_| connect(&link)).collect();
    until_logged(&daemon, "limit=32");
    daemon.create("coder");
    assert_eq!(daemon.completed("coder", "do: say hello").text, "hello");
    until_logged(&daemon, "link closed: no hello in time");
    let mut said = Vec::new();
    silent[0].read_to_end(&mut said).unwrap();
    assert!(said.is_empty());
}

#[test]
fn the_first_frame_of_a_link_is_short() {
    let daemon = TestDaemon::new();
    let mut link = connect(&daemon.home().join("run/link.sock"));
    let frame = vec![b'x'; 2 * 1024 * 1024 + 1];
    // The other side may have hung up before all of it is out.
    let _cut = link.write_all(&frame);
    let mut said = Vec::new();
    let _reset = link.read_to_end(&mut said);
    assert!(said.is_empty());
    until_logged(&daemon, "a frame is longer than the limit");
    daemon.create("coder");
    assert_eq!(daemon.completed("coder", "do: say hello").text, "hello");
}

#[test]
fn a_reply_without_an_end_fails_and_is_not_asked_for_again() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let sent = daemon.send("coder", "do: flood 40000000 | say hello");
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Failed);
    let error = answer.error.unwrap();
    assert!(error.contains("more than 33554432 bytes"), "{error}");
    assert_eq!(daemon.requests().len(), 1);
    assert_eq!(daemon.completed("coder", "do: say next").text, "next");
}

/// Regression: `show` and `status` of an agent whose turn reached a limit said neither which, nor how it continues.
#[test]
fn show_and_status_name_the_limit_and_how_the_turn_continues() {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.limits.max_iterations = 1;
    daemon.create_with("coder", spec);
    let call = serde_json::json!({ "command": "true" });
    let answer = daemon.ask("coder", &format!("do: call shell {call} ;; say done"));
    assert_eq!(answer.status, Status::Limited);
    for verb in ["show", "status"] {
        let said = daemon.cli(&[verb, "coder"]);
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        for part in [
            "limited (model requests of one turn)",
            "agentd set coder limits.max_iterations=",
            "agentd continue coder",
        ] {
            assert!(said.contains(part), "{verb}: {said}");
        }
    }
    // What the conversation has used, and what the agent has.
    daemon.cli(&["reset", "coder"]);
    let agent = daemon.show("coder");
    assert_eq!(agent.conversation.unwrap().usage.output_tokens, 0);
    assert!(agent.usage.output_tokens > 0);
}
