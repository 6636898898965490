//! MCP servers while they work: their progress, how they are addressed, and what is left of them.

use crate::sandbox::tool;
use crate::test_daemon::{AGENTD, TestDaemon, kill, until};
use agentd_client::api::{EventQuery, Item, McpCall, Status};
use agentd_core::event::{Body, McpLifeCycle, McpListed};
use agentd_core::mcp::CallProgress;
use agentd_core::spec::McpServer;
use agentd_process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn program() -> PathBuf {
    Path::new(AGENTD).with_file_name("agentd-fake-mcp")
}

fn server(args: &[&str]) -> McpServer {
    McpServer {
        command: Some(program().display().to_string()),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        ..McpServer::default()
    }
}

fn started_with(server: McpServer) -> TestDaemon {
    let daemon = TestDaemon::new();
    create(&daemon, server);
    daemon
}

fn create(daemon: &TestDaemon, server: McpServer) {
    let mut spec = daemon.spec();
    spec.mcp.insert("fake".to_owned(), server);
    daemon.create_with("coder", spec);
}

/// Lets a call go on that waits.
fn continues(daemon: &TestDaemon) {
    fs::write(daemon.work().join("mcp-continue"), "").unwrap();
}

fn effects(daemon: &TestDaemon) -> Vec<String> {
    let text = fs::read_to_string(daemon.work().join("mcp-effects")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn servers(daemon: &TestDaemon) -> Vec<(u32, String)> {
    let mut all = daemon.processes();
    all.retain(|(_, line)| line.contains("agentd-fake-mcp"));
    all
}

fn lists(daemon: &TestDaemon) -> Vec<McpListed> {
    let events = daemon.events("coder").into_iter();
    let lists = events.filter_map(|event| match event.body {
        Body::McpListed(listed) => Some(listed),
        _ => None,
    });
    lists.collect()
}

/// How the server was addressed when it was listed last.
fn life_cycle(daemon: &TestDaemon) -> Option<McpLifeCycle> {
    lists(daemon).last().and_then(|it| it.life_cycle)
}

const STEPS: &str = "do: call mcp__fake__steps {} ;; say done";

/// A client that watches sees it after the start of the call. No event has it.
#[test]
fn progress_is_shown_live_and_not_kept() {
    for args in [&[][..], &["--probe", "refuse"]] {
        let daemon = started_with(server(args));
        let sent = daemon.send("coder", STEPS);
        let (call, shown) = daemon.block(async {
            let query = EventQuery::default();
            let mut items = daemon.client().follow("coder", &query).await.unwrap();
            let mut call = None;
            loop {
                match items.next().await.unwrap().unwrap() {
                    Item::Event(event) => {
                        if let Body::ToolStarted(started) = &event.body {
                            call = Some(started.call.clone());
                        }
                    }
                    Item::Progress(progress) => return (call, progress),
                    Item::Delta(_) | Item::CaughtUp => {}
                }
            }
        });
        let expected = CallProgress {
            call: call.unwrap(),
            progress: 3.0,
            total: Some(5.0),
            message: Some("the third step".to_owned()),
        };
        assert_eq!(shown, expected, "{args:?}");
        continues(&daemon);
        let answer = daemon.answer("coder", sent.prompt);
        assert_eq!(answer.status, Status::Completed);
        let journal = format!("{:?}", daemon.events("coder"));
        assert!(journal.contains("went all steps"));
        assert!(!journal.contains("the third step"));
        daemon.verify();
    }
}

#[test]
fn progress_is_a_line_of_the_json_stream() {
    let daemon = started_with(server(&[]));
    let mut command = daemon.command();
    command.args(["send", "coder", STEPS, "--output", "stream-json"]);
    let command = command.envs(daemon.caller()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let lines = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let mut progress = Vec::new();
    for line in lines {
        if line["kind"] == "progress" {
            continues(&daemon);
            progress.push(line);
        }
    }
    assert!(child.wait().unwrap().success());
    let first = progress.first().unwrap();
    assert_eq!(
        (&first["progress"], &first["total"]),
        (&json!(3.0), &json!(5.0))
    );
    assert_eq!(first["message"], "the third step");
    assert!(first["call"].is_string());
}

/// The server begins after the probe has been given up, so it is addressed like an older one. That proves nothing: the next
/// time it is given longer to answer, and to a user who asks it is started again at once.
#[test]
fn a_server_that_is_too_slow_for_the_probe_is_probed_again() {
    let daemon = started_with(server(&["--probe", "both", "--slow-ms", "2500"]));
    until("a list", || {
        daemon.completed("coder", "do: say hi");
        life_cycle(&daemon)
    });
    assert_eq!(life_cycle(&daemon), Some(McpLifeCycle::Handshake));
    for (pid, line) in servers(&daemon) {
        if line.starts_with(&program().display().to_string()) {
            kill(pid, Signal::KILL);
        }
    }
    until("the end of the server", || {
        servers(&daemon).is_empty().then_some(())
    });
    let said = tool(&daemon, "mcp__fake__echo", &json!({"text": "back"}));
    assert_eq!(said, "back");
    until("the newer life cycle", || {
        daemon.completed("coder", "do: say hi");
        (life_cycle(&daemon) == Some(McpLifeCycle::Stateless)).then_some(())
    });
    let checked = daemon.cli(&["mcp", "check", "coder", "--json"]);
    let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(
        checked["servers"][0]["life_cycle"], "stateless",
        "{checked}"
    );
    daemon.verify();
}

#[test]
fn a_tool_that_is_named_after_a_secret_is_left_out() {
    let daemon = TestDaemon::new();
    daemon.caller_env("FAKE_TOKEN", "s3cr3t-value-1234");
    let mut fake = server(&[]);
    for name in ["TOKEN", "FAKE_TOOL"] {
        let value = "${FAKE_TOKEN}".to_owned();
        fake.env.insert(name.to_owned(), value);
    }
    create(&daemon, fake);
    daemon.completed("coder", "do: say hi");
    let listed = lists(&daemon).pop().unwrap();
    assert!(listed.tools.iter().any(|it| it.name == "echo"));
    let journal = format!("{:?}", daemon.events("coder"));
    assert!(!journal.contains("s3cr3t-value-1234"), "{listed:?}");
}

/// The process that asks a server for a user, and its directory, do not outlive the daemon.
#[test]
fn a_call_of_the_user_ends_with_the_daemon() {
    let daemon = started_with(server(&[]));
    let call = McpCall {
        tool: "hang".to_owned(),
        arguments: Default::default(),
        env: daemon.caller(),
    };
    let client = daemon.client();
    let calling = daemon.spawn(async move { client.mcp_call("coder", "fake", &call).await });
    until("the call", || {
        (effects(&daemon) == ["hanging"]).then_some(())
    });
    let asks = daemon
        .home()
        .join("agents")
        .join(daemon.show("coder").id.to_string())
        .join("mcp-ask");
    assert_eq!(fs::read_dir(&asks).unwrap().count(), 1);
    daemon.kill_daemon();
    assert!(daemon.block(calling).unwrap().is_err());
    until("the end of the server", || {
        servers(&daemon).is_empty().then_some(())
    });
    daemon.start_daemon();
    until("an empty directory", || {
        let left = fs::read_dir(&asks).map_or(0, Iterator::count);
        (left == 0).then_some(())
    });
}

/// The user's mark counts, the project's does not, and a key of a provider is not for a project's file.
#[test]
fn a_projects_file_marks_nothing_and_gets_no_key() {
    let daemon = TestDaemon::new();
    fs::create_dir(daemon.work().join(".git")).unwrap();
    let path = daemon.work().join(".mcp.json");
    let program = program().display().to_string();
    let write = |entry: Value| {
        let file = json!({"mcpServers": {"fake": entry}});
        fs::write(&path, file.to_string()).unwrap();
    };
    let trust = || daemon.cli(&["trust", &daemon.work().display().to_string()]);
    write(json!({"command": program, "read_only": ["append"]}));
    let trusted = trust();
    let said = String::from_utf8_lossy(&trusted.stderr).into_owned();
    assert!(
        trusted.status.success() && said.contains("skipped") && said.contains("set it there"),
        "{said}"
    );
    write(json!({"command": program, "env": {"KEY": "${ANTHROPIC_API_KEY}"}}));
    let trusted = trust();
    assert!(trusted.status.success(), "{trusted:?}");
    daemon.create_with("coder", daemon.spec());
    daemon.completed("coder", "do: say hi");
    let problem = lists(&daemon)[0].problem.clone().unwrap();
    assert!(
        problem.contains("add ANTHROPIC_API_KEY to `pass_env`"),
        "{problem}"
    );
    assert_eq!(servers(&daemon), []);
}

/// Commands can write the file in which hooks leave variables. It is not the user who names the key there.
#[test]
fn a_command_cannot_name_a_key_for_a_projects_file() {
    let daemon = TestDaemon::new();
    fs::create_dir(daemon.work().join(".git")).unwrap();
    let entry = json!({"command": program(), "env": {"KEY": "${ANTHROPIC_API_KEY}"}});
    let file = json!({"mcpServers": {"fake": entry}});
    fs::write(daemon.work().join(".mcp.json"), file.to_string()).unwrap();
    let trusted = daemon.cli(&["trust", &daemon.work().display().to_string()]);
    assert!(trusted.status.success(), "{trusted:?}");
    let agent = daemon.create_with("coder", daemon.spec());
    let tmp = daemon.home().join("agents").join(agent.id.to_string());
    let tmp = tmp.join("tmp").display().to_string();
    let line = format!(
        "mkdir -p {tmp}; echo \"X='\\${{ANTHROPIC_API_KEY}}'\" > {tmp}/agentd-env-$AGENTD_CONVERSATION"
    );
    tool(&daemon, "shell", &json!({"command": line}));
    let restarted = daemon.cli(&["restart", "coder"]);
    assert!(restarted.status.success(), "{restarted:?}");
    let said = tool(&daemon, "shell", &json!({"command": "printf %s \"$X\""}));
    assert!(said.contains("${ANTHROPIC_API_KEY}"), "{said}");
    let lists = lists(&daemon);
    let problem = lists.last().unwrap().problem.clone().unwrap();
    assert!(problem.contains("`pass_env`"), "{problem}");
    assert_eq!(servers(&daemon), []);
    daemon.verify();
}
