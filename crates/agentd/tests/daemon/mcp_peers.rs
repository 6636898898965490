//! Real MCP servers, from npm and PyPI. Skipped where the registries cannot be reached.

use crate::sandbox::tool;
use crate::test_daemon::{AGENTD, TestDaemon, kill, until};
use agentd_client::api::{EventQuery, Item, McpGet, McpRead, Status};
use agentd_core::event::{Body, Kind, McpLifeCycle};
use agentd_core::mcp::CallProgress;
use agentd_core::message::Block;
use agentd_core::spec::McpServer;
use agentd_process::Signal;
use agentd_testkit::harness::clean_command;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixture/mcp_peer.py");

/// Where the servers are installed, once for all runs: `target/peers`.
struct Peers(PathBuf);

impl Peers {
    /// None if the registries, or the programs to install with, are not there.
    fn installed() -> Option<Self> {
        let peers = Self(Path::new(AGENTD).ancestors().nth(2)?.join("peers/mcp"));
        let has_all = || {
            let programs = [
                "npm/node_modules/.bin/mcp-server-everything",
                "venv/bin/mcp-server-git",
            ];
            programs.iter().all(|it| peers.0.join(it).exists())
        };
        std::fs::create_dir_all(&peers.0).ok()?;
        // One test installs, the others wait for it.
        let lock = std::fs::File::create(peers.0.join("lock")).ok()?;
        lock.lock().ok()?;
        if has_all() {
            return Some(peers);
        }
        let (npm, venv) = (peers.0.join("npm"), peers.0.join("venv"));
        let mut node = Command::new("npm");
        node.args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"])
            .arg(&npm);
        node.args([
            "@modelcontextprotocol/server-everything",
            "@modelcontextprotocol/server-filesystem",
        ]);
        let mut make = Command::new("python3");
        make.args(["-m", "venv"]).arg(&venv);
        let mut python = Command::new(venv.join("bin/pip"));
        python.args([
            "install",
            "--quiet",
            "mcp==2.3.0",
            "mcp-server-time",
            "mcp-server-git",
        ]);
        for mut command in [node, make, python] {
            let done = command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            if !done.status().is_ok_and(|status| status.success()) {
                println!("skipped: {command:?} did not work");
                return None;
            }
        }
        has_all().then_some(peers)
    }

    fn npm(&self, name: &str, args: &[&str]) -> McpServer {
        server(&self.0.join("npm/node_modules/.bin").join(name), args)
    }

    fn python(&self, name: &str, args: &[&str]) -> McpServer {
        server(&self.0.join("venv/bin").join(name), args)
    }
}

fn server(program: &Path, args: &[&str]) -> McpServer {
    McpServer {
        command: Some(program.display().to_string()),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        ..McpServer::default()
    }
}

/// How each server was addressed when it was listed last. One that understands both life cycles, and is too slow for the
/// probe, is addressed like an older one at first.
fn listed(daemon: &TestDaemon) -> BTreeMap<String, McpLifeCycle> {
    let events = daemon.events("coder").into_iter();
    let listed = events.filter_map(|event| match event.body {
        Body::McpListed(it) => it.life_cycle.map(|life_cycle| (it.server, life_cycle)),
        _ => None,
    });
    listed.collect()
}

/// Prompts until the servers are listed: on a slow machine they may miss the first turn.
fn until_listed(daemon: &TestDaemon, expected: &[&str]) {
    until("all lists", || {
        daemon.completed("coder", "do: say hi");
        let listed = listed(daemon);
        let has_all = expected.iter().all(|name| listed.contains_key(*name));
        has_all.then_some(())
    });
}

/// Asserts which revision each server speaks. The command gives a server that is slow to begin a second, longer probe.
fn assert_revisions(daemon: &TestDaemon, expected: &[(&str, &str)]) {
    let checked = daemon.cli(&["mcp", "check", "coder", "--json"]);
    let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
    let servers = checked["servers"].as_array().unwrap();
    for (name, life_cycle) in expected {
        let found = servers.iter().find(|it| it["server"] == **name);
        let found = found.map(|it| &it["life_cycle"]);
        assert_eq!(found, Some(&json!(life_cycle)), "{name} in {checked}");
    }
}

fn until_none_left(daemon: &TestDaemon) {
    until("the end of all servers", || {
        let mut all = daemon.processes();
        all.retain(|(_, line)| line.contains("mcp"));
        all.is_empty().then_some(())
    });
}

#[test]
fn reference_servers_work_and_leave_nothing() {
    let Some(peers) = Peers::installed() else {
        println!("skipped: no reference servers");
        return;
    };
    let daemon = TestDaemon::new();
    std::fs::write(daemon.work().join("note.txt"), "from a file").unwrap();
    let git = clean_command("git")
        .args(["init", "-q"])
        .current_dir(daemon.work())
        .status();
    assert!(git.unwrap().success());
    let work = daemon.work().display().to_string();
    let mut spec = daemon.spec();
    spec.mcp = [
        ("everything", peers.npm("mcp-server-everything", &[])),
        ("files", peers.npm("mcp-server-filesystem", &[&work])),
        (
            "time",
            peers.python("mcp-server-time", &["--local-timezone", "UTC"]),
        ),
        ("git", peers.python("mcp-server-git", &[])),
    ]
    .map(|(name, server)| (name.to_owned(), server))
    .into();
    daemon.create_with("coder", spec);
    until_listed(&daemon, &["everything", "files", "time", "git"]);
    let revisions = [
        ("everything", "handshake"),
        ("files", "handshake"),
        ("time", "stateless"),
        ("git", "stateless"),
    ];
    assert_revisions(&daemon, &revisions);
    let listed = listed(&daemon);
    for older in ["everything", "files"] {
        assert_eq!(listed[older], McpLifeCycle::Handshake, "{older}");
    }
    let said = tool(
        &daemon,
        "mcp__everything__echo",
        &json!({"message": "hello"}),
    );
    assert!(said.contains("hello"), "{said}");
    let path = daemon.work().join("note.txt").display().to_string();
    let said = tool(
        &daemon,
        "mcp__files__read_text_file",
        &json!({ "path": path }),
    );
    assert!(said.contains("from a file"), "{said}");
    let said = tool(
        &daemon,
        "mcp__time__get_current_time",
        &json!({"timezone": "UTC"}),
    );
    assert!(said.contains("UTC"), "{said}");
    let said = tool(
        &daemon,
        "mcp__git__git_status",
        &json!({ "repo_path": work }),
    );
    assert!(said.contains("note.txt"), "{said}");
    daemon.completed(
        "coder",
        "do: call mcp__everything__get-tiny-image {} ;; say done",
    );
    assert!(has_image(&daemon));
    daemon.kill_runtime("coder");
    until_none_left(&daemon);
    daemon.verify();
}

#[test]
fn a_server_of_the_newer_revision_changes_its_list_and_speaks_http() {
    let Some(peers) = Peers::installed() else {
        println!("skipped: no reference servers");
        return;
    };
    let daemon = TestDaemon::new();
    let python = peers.0.join("venv/bin/python");
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let mut service = clean_command(&python)
        .args([PEER, &port.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the service", || {
        TcpStream::connect(("127.0.0.1", port)).ok()
    });
    let mut spec = daemon.spec();
    spec.mcp.insert("peer".to_owned(), server(&python, &[PEER]));
    let service_entry = McpServer {
        url: Some(format!("http://127.0.0.1:{port}/mcp")),
        ..McpServer::default()
    };
    spec.mcp.insert("web".to_owned(), service_entry);
    daemon.create_with("coder", spec);
    until_listed(&daemon, &["peer", "web"]);
    assert_revisions(&daemon, &[("peer", "stateless"), ("web", "stateless")]);
    until_stateless(&daemon);
    for name in ["peer", "web"] {
        let said = tool(
            &daemon,
            &format!("mcp__{name}__add"),
            &json!({"a": 2, "b": 3}),
        );
        assert_eq!(said, "5", "{name}");
    }
    for name in ["peer", "web"] {
        let said = tool(&daemon, &format!("mcp__{name}__work"), &json!({}));
        assert_eq!(said, "worked", "{name}");
        let read = McpRead {
            uri: "peer://note".to_owned(),
            ..McpRead::default()
        };
        let read = daemon
            .block(daemon.client().mcp_read("coder", name, &read))
            .unwrap();
        assert_eq!(
            read.pieces[0].text.as_deref(),
            Some("the words of the note"),
            "{name}"
        );
        let get = McpGet {
            prompt: "greet".to_owned(),
            arguments: Map::from_iter([("who".to_owned(), json!("you"))]),
            ..McpGet::default()
        };
        let got = daemon
            .block(daemon.client().mcp_prompt("coder", name, &get))
            .unwrap();
        assert_eq!(got.text, "hello you", "{name}");
    }
    daemon.completed("coder", "do: call mcp__peer__pixel {} ;; say done");
    assert!(has_image(&daemon));
    grows(&daemon);
    // A service that is gone costs its call, and the turn goes on.
    service.kill().unwrap();
    service.wait().unwrap();
    let said = tool(&daemon, "mcp__web__add", &json!({"a": 2, "b": 3}));
    assert_ne!(said, "5");
    daemon.verify();
}

/// If the server was too slow for the probe, the next start of it gives it longer.
fn until_stateless(daemon: &TestDaemon) {
    until("the newer revision", || {
        if listed(daemon)["peer"] == McpLifeCycle::Stateless {
            return Some(());
        }
        let mut all = daemon.processes();
        all.retain(|(_, line)| line.trim_end().ends_with("mcp_peer.py"));
        for (pid, _) in all {
            kill(pid, Signal::KILL);
        }
        tool(daemon, "mcp__peer__add", &json!({"a": 1, "b": 1}));
        daemon.completed("coder", "do: say hi");
        None
    });
}

fn grows(daemon: &TestDaemon) {
    tool(daemon, "mcp__peer__grow", &json!({}));
    until("the new tool", || {
        daemon.completed("coder", "do: say hi");
        let request = daemon.requests().last()?.body.to_string();
        request.contains("mcp__peer__grown").then_some(())
    });
    assert_eq!(tool(daemon, "mcp__peer__grown", &json!({})), "grown");
}

/// Progress, cancellation, a question, resources and prompts, and the death of a server during a call.
#[test]
fn a_reference_server_asks_and_is_cut_off() {
    let Some(peers) = Peers::installed() else {
        println!("skipped: no reference servers");
        return;
    };
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    let everything = McpServer {
        timeout_ms: Some(10_000),
        ..peers.npm("mcp-server-everything", &[])
    };
    spec.mcp.insert("everything".to_owned(), everything);
    daemon.create_with("coder", spec);
    until_listed(&daemon, &["everything"]);
    // It adds this tool when it knows what its client can do: a change of its list.
    until("the tool that asks", || {
        daemon.completed("coder", "do: say hi");
        let request = daemon.requests().last()?.body.to_string();
        let name = "mcp__everything__trigger-elicitation-request";
        request.contains(name).then_some(())
    });
    let long = "mcp__everything__trigger-long-running-operation";
    let shown = progress(
        &daemon,
        &format!("do: call {long} {{\"duration\": 1, \"steps\": 4}} ;; say done"),
    );
    assert!(shown.iter().any(|it| it.total == Some(4.0)), "{shown:?}");
    let read = McpRead {
        uri: "demo://resource/dynamic/text/1".to_owned(),
        ..McpRead::default()
    };
    let client = daemon.client();
    let read = daemon
        .block(client.mcp_read("coder", "everything", &read))
        .unwrap();
    assert!(read.pieces[0].text.is_some(), "{read:?}");
    let get = McpGet {
        prompt: "args-prompt".to_owned(),
        arguments: Map::from_iter([("city".to_owned(), json!("Oslo"))]),
        ..McpGet::default()
    };
    let got = daemon
        .block(client.mcp_prompt("coder", "everything", &get))
        .unwrap();
    assert!(got.text.contains("Oslo"), "{got:?}");
    let ask = "do: call mcp__everything__trigger-elicitation-request {} ;; say done";
    let sent = daemon.send("coder", ask);
    until("a question", || {
        let waiting = daemon.show("coder").approvals;
        waiting.into_iter().find(|it| it.question.is_some())
    });
    let answered = daemon.cli(&["answer", "coder", "name=Ann"]);
    assert!(answered.status.success(), "{answered:?}");
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Completed
    );
    assert!(
        daemon
            .requests()
            .last()
            .unwrap()
            .body
            .to_string()
            .contains("Ann")
    );
    let forever = format!("do: call {long} {{\"duration\": 6000, \"steps\": 1000}} ;; say done");
    let calls = daemon.count("coder", Kind::ToolStarted);
    let sent = daemon.send("coder", &forever);
    until("the call", || {
        (daemon.count("coder", Kind::ToolStarted) > calls).then_some(())
    });
    daemon.block(client.interrupt("coder")).unwrap();
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Interrupted
    );
    let echo = |text: &str| {
        tool(
            &daemon,
            "mcp__everything__echo",
            &json!({ "message": text }),
        )
    };
    assert!(echo("still here").contains("still here"));
    let calls = daemon.count("coder", Kind::ToolStarted);
    let sent = daemon.send("coder", &forever);
    until("the call", || {
        (daemon.count("coder", Kind::ToolStarted) > calls).then_some(())
    });
    let mut all = daemon.processes();
    all.retain(|(_, line)| line.contains("node") && line.contains("everything"));
    assert!(!all.is_empty());
    for (pid, _) in all {
        kill(pid, Signal::KILL);
    }
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Completed
    );
    let request = daemon.requests().last().unwrap().body.to_string();
    assert!(request.contains("check before you repeat it"), "{request}");
    assert!(echo("back").contains("back"));
    daemon.kill_runtime("coder");
    until_none_left(&daemon);
    daemon.verify();
}

/// The progress that a client sees during a turn.
fn progress(daemon: &TestDaemon, prompt: &str) -> Vec<CallProgress> {
    let after = daemon.events("coder").last().unwrap().seq.0;
    let sent = daemon.send("coder", prompt);
    let shown = daemon.block(async {
        let query = EventQuery {
            after,
            ..EventQuery::default()
        };
        let mut items = daemon.client().follow("coder", &query).await.unwrap();
        let mut shown = Vec::new();
        loop {
            match items.next().await.unwrap().unwrap() {
                Item::Progress(progress) => shown.push(progress),
                Item::Event(event) if event.kind() == Kind::TurnEnded => return shown,
                _ => {}
            }
        }
    });
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Completed
    );
    shown
}

fn has_image(daemon: &TestDaemon) -> bool {
    let events = daemon.events("coder");
    events.iter().any(|event| match &event.body {
        Body::ResultAdded(result) => result
            .blocks
            .iter()
            .any(|it| matches!(it, Block::Image { .. })),
        _ => false,
    })
}
