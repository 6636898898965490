//! The exit codes: one test for each code of the table in docs/cli.md.

use super::place::{Place, ended, signal};
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

/// A model server on loopback that rejects every request. Returns its address.
fn rejecting_model() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            read_request(&mut stream);
            let body =
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#;
            let _written = write!(
                stream,
                "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    format!("http://{address}")
}

/// All of one request. A server that closes with some of it unread resets the connection, and the
/// client may lose the answer.
fn read_request(stream: &mut TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    for line in reader.by_ref().lines().map_while(Result::ok) {
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
    }
    let _body = std::io::copy(&mut reader.take(length), &mut std::io::sink());
}

/// With an agent whose model rejects every request; the key comes with each command.
fn with_rejected() -> (Place, String) {
    let (place, url) = (Place::new(), rejecting_model());
    place.ok(&["create", "coder", "--provider", "anthropic", "--model", "x"]);
    (place, url)
}

#[test]
fn exit_0_is_success_and_no_wait_exits_0() {
    let place = Place::with_coder();
    place.ok(&["send", "coder", "run `true`"]);
    place.ok(&["send", "coder", "--no-wait", "run `true`"]);
    place.ok(&["wait", "coder"]);
    // Accepted and durable is success, whenever the agent comes to it.
    place.ok(&["stop", "coder"]);
    let out = place.ok(&["send", "coder", "--no-wait", "run `true`"]);
    assert!(out.contains("coder is stopped"), "{out}");
}

#[test]
fn exit_1_is_a_turn_that_failed() {
    let (place, url) = with_rejected();
    let mut command = place.command(&["send", "coder", "hello"]);
    command.env("ANTHROPIC_API_KEY", "sk-test");
    command.env("ANTHROPIC_BASE_URL", url);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    place.refused(1, &["wait", "coder"]);
}

#[test]
fn exit_2_is_usage_an_empty_prompt_and_a_missing_file_too() {
    let place = Place::with_coder();
    for args in [
        &["nosuchverb"][..],
        &["send"],
        &["send", "coder", "x", "--timeout", "soon"],
    ] {
        assert_eq!(place.run(args).code, Some(2), "{args:?}");
    }
    fs::write(place.work().join("bad.md"), "---\nmodle: x\n---\n").unwrap();
    let usage: [&[&str]; 10] = [
        &["send", "coder", "  "],
        &["run", "--provider", "demo", ""],
        &["create", "other", "-f", "missing.md"],
        &["create", "other", "-f", "bad.md"],
        &["create", "other", "--provider", "demo", "--cwd", "missing"],
        &["create", "No Name!", "--provider", "demo"],
        &["apply", "other", "-f", "missing.md"],
        &["import", "missing.zst"],
        &["hooks", "check", "missing.json"],
        &["agent", "--resume", "missing.json", "hello"],
    ];
    for args in usage {
        place.refused(2, args);
    }
    assert_eq!(place.json(&["list"])["total"], 1);
}

#[test]
fn exit_3_is_refused_or_a_conflict() {
    let place = Place::with_coder();
    place.refused(3, &["create", "coder", "--provider", "demo"]);
    place.refused(3, &["reset", "coder", "--if-generation", "99"]);
    place.refused(3, &["continue", "coder"]);
}

#[test]
fn exit_4_is_unavailable() {
    let place = Place::new();
    place.refused(4, &["daemon", "status"]);
}

#[test]
fn exit_5_is_a_limit() {
    let place = Place::with_coder();
    place.ok(&["set", "coder", "limits.max_iterations=1"]);
    place.refused(5, &["send", "coder", "run `true`"]);
    place.refused(5, &["wait", "coder"]);
}

#[test]
fn exit_6_is_waiting_for_an_approval() {
    let place = super::approve::asking();
    place.refused(6, &["wait", "coder"]);
}

#[test]
fn exit_6_is_waiting_for_a_key() {
    let place = Place::new();
    let run = ["run", "--provider", "anthropic", "--model", "x", "hello"];
    let text = place.refused(6, &run);
    assert!(text.contains("ANTHROPIC_API_KEY"), "{text}");
}

#[test]
fn exit_7_is_not_found() {
    let place = Place::with_coder();
    place.refused(7, &["show", "nobody"]);
    let id = "01a1de8c-1d87-731f-acc4-996921d41571";
    place.refused(7, &["wait", "coder", id]);
    place.refused(7, &["show", "coder", "--conversation", "7"]);
    place.refused(7, &["tasks", "stop", id]);
    place.ok(&["rm", "coder"]);
    place.refused(7, &["send", "coder", "hello"]);
}

#[test]
fn exit_124_is_the_callers_own_timeout() {
    let place = Place::with_coder();
    let send = ["send", "coder", "--timeout", "200ms", "run `sleep 100`"];
    place.refused(124, &send);
    place.refused(124, &["wait", "coder", "--timeout", "200ms"]);
    place.ok(&["interrupt", "coder"]);
}

#[test]
fn exit_130_is_interrupted() {
    let place = Place::with_coder();
    let child = place.start(&["send", "coder", "run `sleep 100`"]);
    place.until_tool("coder");
    signal(child.id(), Signal::INT);
    assert_eq!(ended(child).code, Some(130));
    place.ok(&["interrupt", "coder"]);
    place.refused(130, &["wait", "coder"]);
}

/// The prompt of a stopped agent was queued, and called an error.
#[test]
fn a_prompt_for_a_stopped_agent_is_queued_says_so_and_exits_6() {
    let place = Place::with_coder();
    place.ok(&["stop", "coder"]);
    let text = place.refused(6, &["send", "coder", "run `echo x >> effects`"]);
    assert!(text.starts_with("waiting: coder is stopped"), "{text}");
    assert!(text.contains("queued"), "{text}");
    assert!(text.contains("agentd start coder"), "{text}");
    place.refused(6, &["wait", "coder"]);
    let agent = place.json(&["show", "coder"]);
    assert_eq!(agent["queued"], 1);
    place.ok(&["start", "coder"]);
    place.ok(&["wait", "coder"]);
    assert!(place.work().join("effects").exists());
}

/// A hook that ends with 2 blocks; `agentd` with a wrong argument in a hook must not.
#[test]
fn inside_a_hook_usage_errors_exit_64_and_block_nothing() {
    let place = Place::with_coder();
    let program = env!("CARGO_BIN_EXE_agentd");
    let script = format!(
        "'{program}' nosuchverb; '{program}' send coder ''; echo $? > code; \
                          '{program}' nosuchverb"
    );
    let hooks = json!({"hooks": {"PreToolUse": [
        {"matcher": "*", "hooks": [{"type": "command", "command": script}]},
    ]}});
    fs::write(place.home().join("hooks.json"), hooks.to_string()).unwrap();
    place.ok(&["send", "coder", "run `echo x >> effects`"]);
    assert!(place.work().join("effects").exists());
    let code = fs::read_to_string(place.work().join("code")).unwrap();
    assert_eq!(code, "64\n");
}

/// A runtime that cannot use its spec ends the same way each time: the daemon gives up at once.
#[test]
fn a_runtime_that_ends_with_usage_is_not_started_again() {
    let place = Place::new();
    let gone = place.work().join("gone");
    fs::create_dir(&gone).unwrap();
    place.ok(&["create", "coder", "--provider", "demo", "--cwd", "gone"]);
    fs::remove_dir(&gone).unwrap();
    let text = place.refused(6, &["send", "coder", "hello"]);
    assert!(
        text.contains("coder has failed: the prompt is queued"),
        "{text}"
    );
    let text = place.refused(1, &["wait", "coder"]);
    assert!(text.contains("agentd start coder"), "{text}");
    let events = place.lines(&["logs", "coder"]);
    let failed = events.iter().find(|event| event["kind"] == "agent_failed");
    assert_eq!(failed.unwrap()["body"]["cause"], "cannot_run", "{failed:?}");
}
