//! Real MCP servers, from npm and PyPI. Skipped where the registries cannot be reached.

use crate::sandbox::tool;
use crate::test_daemon::{AGENTD, TestDaemon, until};
use agentd_core::event::{Body, McpLifeCycle};
use agentd_core::message::Block;
use agentd_core::spec::McpServer;
use agentd_testkit::harness::clean_command;
use serde_json::json;
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

/// Prompts until the servers are listed: on a slow machine they may miss the first turn.
fn until_listed(daemon: &TestDaemon, expected: &[(&str, McpLifeCycle)]) {
    until("all lists", || {
        daemon.completed("coder", "do: say hi");
        let listed: Vec<_> = daemon
            .events("coder")
            .into_iter()
            .filter_map(|event| match event.body {
                Body::McpListed(it) => it.life_cycle.map(|life_cycle| (it.server, life_cycle)),
                _ => None,
            })
            .collect();
        let has = |(name, life_cycle): &(&str, McpLifeCycle)| {
            listed
                .iter()
                .any(|(it, how)| it == name && how == life_cycle)
        };
        expected.iter().all(has).then_some(())
    });
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
    use McpLifeCycle::{Handshake, Stateless};
    let expected = [
        ("everything", Handshake),
        ("files", Handshake),
        ("time", Stateless),
        ("git", Stateless),
    ];
    until_listed(&daemon, &expected);
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
    let has_image = daemon
        .events("coder")
        .iter()
        .any(|event| match &event.body {
            Body::ResultAdded(result) => result
                .blocks
                .iter()
                .any(|it| matches!(it, Block::Image { .. })),
            _ => false,
        });
    assert!(has_image);
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
    let expected = [
        ("peer", McpLifeCycle::Stateless),
        ("web", McpLifeCycle::Stateless),
    ];
    until_listed(&daemon, &expected);
    for name in ["peer", "web"] {
        let said = tool(
            &daemon,
            &format!("mcp__{name}__add"),
            &json!({"a": 2, "b": 3}),
        );
        assert_eq!(said, "5", "{name}");
    }
    tool(&daemon, "mcp__peer__grow", &json!({}));
    until("the new tool", || {
        daemon.completed("coder", "do: say hi");
        let request = daemon.requests().last()?.body.to_string();
        request.contains("mcp__peer__grown").then_some(())
    });
    assert_eq!(tool(&daemon, "mcp__peer__grown", &json!({})), "grown");
    // A service that is gone costs its call, and the turn goes on.
    service.kill().unwrap();
    service.wait().unwrap();
    let said = tool(&daemon, "mcp__web__add", &json!({"a": 2, "b": 3}));
    assert!(!said.contains('5'), "{said}");
    daemon.verify();
}
