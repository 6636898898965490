//! The exit codes: one test for each code of the table in docs/cli.md.

use super::test_cli::{TestCli, ended, signal};
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
fn with_rejected() -> (TestCli, String) {
    let (cli, url) = (TestCli::new(), rejecting_model());
    cli.ok(&["create", "coder", "--provider", "anthropic", "--model", "x"]);
    (cli, url)
}

#[test]
fn exit_0_is_success_and_no_wait_exits_0() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `true`"]);
    cli.ok(&["send", "coder", "--no-wait", "run `true`"]);
    cli.ok(&["wait", "coder"]);
    // Accepted and durable is success, whenever the agent comes to it.
    cli.ok(&["stop", "coder"]);
    let out = cli.ok(&["send", "coder", "--no-wait", "run `true`"]);
    assert!(out.contains("coder is stopped"), "{out}");
}

#[test]
fn exit_1_is_a_turn_that_failed() {
    let (cli, url) = with_rejected();
    let mut command = cli.command(&["send", "coder", "hello"]);
    command.env("ANTHROPIC_API_KEY", "sk-test");
    command.env("ANTHROPIC_BASE_URL", url);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    cli.refused(1, &["wait", "coder"]);
}

#[test]
fn a_rejected_request_names_status_provider_model_and_the_next_step() {
    let (cli, url) = with_rejected();
    let mut command = cli.command(&["send", "coder", "hello"]);
    command.env("ANTHROPIC_API_KEY", "sk-test");
    command.env("ANTHROPIC_BASE_URL", url);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let told = "anthropic answered HTTP 400 for the model x: no";
    assert!(text.contains(told), "{text}");
    assert!(text.contains("`agentd models`"), "{text}");
    let logs = cli.ok(&["logs", "coder"]);
    assert!(logs.contains(told), "{logs}");
    assert!(logs.contains("`agentd models`"), "{logs}");
}

#[test]
fn exit_2_is_usage_an_empty_prompt_and_a_missing_file_too() {
    let cli = TestCli::with_coder();
    for args in [
        &["nosuchverb"][..],
        &["send"],
        &["send", "coder", "x", "--timeout", "soon"],
    ] {
        assert_eq!(cli.run(args).code, Some(2), "{args:?}");
    }
    fs::write(cli.work().join("bad.md"), "---\nmodle: x\n---\n").unwrap();
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
        cli.refused(2, args);
    }
    assert_eq!(cli.json(&["list"])["total"], 1);
}

#[test]
fn exit_3_is_refused_or_a_conflict() {
    let cli = TestCli::with_coder();
    cli.refused(3, &["create", "coder", "--provider", "demo"]);
    cli.refused(3, &["reset", "coder", "--if-generation", "99"]);
    cli.refused(3, &["continue", "coder"]);
}

#[test]
fn exit_4_is_unavailable() {
    let cli = TestCli::new();
    cli.refused(4, &["daemon", "status"]);
}

#[test]
fn exit_5_is_a_limit() {
    let cli = TestCli::with_coder();
    cli.ok(&["set", "coder", "limits.max_iterations=1"]);
    cli.refused(5, &["send", "coder", "run `true`"]);
    cli.refused(5, &["wait", "coder"]);
}

#[test]
fn exit_6_is_waiting_for_an_approval() {
    let cli = super::approve::asking();
    cli.refused(6, &["wait", "coder"]);
}

#[test]
fn exit_6_is_waiting_for_a_key() {
    let cli = TestCli::new();
    let run = ["run", "--provider", "anthropic", "--model", "x", "hello"];
    let text = cli.refused(6, &run);
    assert!(text.contains("ANTHROPIC_API_KEY"), "{text}");
}

#[test]
fn exit_7_is_not_found() {
    let cli = TestCli::with_coder();
    cli.refused(7, &["show", "nobody"]);
    let id = "01a1de8c-1d87-731f-acc4-996921d41571";
    cli.refused(7, &["wait", "coder", id]);
    cli.refused(7, &["show", "coder", "--conversation", "7"]);
    cli.refused(7, &["tasks", "stop", id]);
    cli.ok(&["rm", "coder"]);
    cli.refused(7, &["send", "coder", "hello"]);
}

#[test]
fn exit_124_is_the_callers_own_timeout() {
    let cli = TestCli::with_coder();
    let send = ["send", "coder", "--timeout", "200ms", "run `sleep 100`"];
    cli.refused(124, &send);
    cli.refused(124, &["wait", "coder", "--timeout", "200ms"]);
    cli.ok(&["interrupt", "coder"]);
}

#[test]
fn exit_130_is_interrupted() {
    let cli = TestCli::with_coder();
    let child = cli.start(&["send", "coder", "run `sleep 100`"]);
    cli.until_tool("coder");
    signal(child.id(), Signal::INT);
    assert_eq!(ended(child).code, Some(130));
    cli.ok(&["interrupt", "coder"]);
    cli.refused(130, &["wait", "coder"]);
}

/// Regression: the prompt of a stopped agent was queued, and reported as an error.
#[test]
fn a_prompt_for_a_stopped_agent_is_queued_says_so_and_exits_6() {
    let cli = TestCli::with_coder();
    cli.ok(&["stop", "coder"]);
    let text = cli.refused(6, &["send", "coder", "run `echo x >> effects`"]);
    assert!(text.starts_with("waiting: coder is stopped"), "{text}");
    assert!(text.contains("queued"), "{text}");
    assert!(text.contains("agentd start coder"), "{text}");
    cli.refused(6, &["wait", "coder"]);
    let agent = cli.json(&["show", "coder"]);
    assert_eq!(agent["queued"], 1);
    cli.ok(&["start", "coder"]);
    cli.ok(&["wait", "coder"]);
    assert!(cli.work().join("effects").exists());
}

/// A hook that ends with 2 blocks; `agentd` with a wrong argument in a hook must not.
#[test]
fn inside_a_hook_usage_errors_exit_64_and_block_nothing() {
    let cli = TestCli::with_coder();
    let program = env!("CARGO_BIN_EXE_agentd");
    let script = format!(
        "'{program}' nosuchverb; '{program}' send coder ''; echo $? > code; \
                          '{program}' nosuchverb"
    );
    let hooks = json!({"hooks": {"PreToolUse": [
        {"matcher": "*", "hooks": [{"type": "command", "command": script}]},
    ]}});
    fs::write(cli.home().join("hooks.json"), hooks.to_string()).unwrap();
    cli.ok(&["send", "coder", "run `echo x >> effects`"]);
    assert!(cli.work().join("effects").exists());
    let code = fs::read_to_string(cli.work().join("code")).unwrap();
    assert_eq!(code, "64\n");
}

/// A runtime that cannot use its spec ends the same way each time: the daemon gives up at once.
#[test]
fn a_runtime_that_ends_with_usage_is_not_started_again() {
    let cli = TestCli::new();
    let gone = cli.work().join("gone");
    fs::create_dir(&gone).unwrap();
    cli.ok(&["create", "coder", "--provider", "demo", "--cwd", "gone"]);
    fs::remove_dir(&gone).unwrap();
    let text = cli.refused(6, &["send", "coder", "hello"]);
    assert!(
        text.contains("coder has failed: the prompt is queued"),
        "{text}"
    );
    let text = cli.refused(1, &["wait", "coder"]);
    assert!(text.contains("agentd start coder"), "{text}");
    let events = cli.lines(&["logs", "coder"]);
    let failed = events.iter().find(|event| event["kind"] == "agent_failed");
    assert_eq!(failed.unwrap()["body"]["cause"], "cannot_run", "{failed:?}");
}
