//! MCP servers: their tools are called like other tools, and a server that is missing, slow, dead or hostile costs its tools
//! and never the turn. No process of theirs is left.

use crate::sandbox::tool;
use crate::test_daemon::{AGENTD, TestDaemon, kill, until};
use agentd_client::api::{Reset, Status};
use agentd_core::event::{Body, Kind, McpLifeCycle, McpListed};
use agentd_core::message::{Block, CallOutcome};
use agentd_core::spec::{AgentSpec, ApprovalMode, Decision, McpServer, Rule, Sandbox};
use agentd_process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

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

fn with(daemon: &TestDaemon, server: McpServer) -> AgentSpec {
    let mut spec = daemon.spec();
    spec.mcp.insert("fake".to_owned(), server);
    spec
}

fn started(args: &[&str]) -> TestDaemon {
    let daemon = TestDaemon::new();
    daemon.create_with("coder", with(&daemon, server(args)));
    daemon
}

fn call(daemon: &TestDaemon, name: &str, text: &str) -> String {
    tool(
        daemon,
        &format!("mcp__fake__{name}"),
        &json!({ "text": text }),
    )
}

fn outcome(daemon: &TestDaemon) -> CallOutcome {
    let events = daemon.events("coder");
    let ended = events.iter().rev().find_map(|event| match &event.body {
        Body::ToolEnded(ended) => Some(ended.outcome),
        _ => None,
    });
    ended.unwrap()
}

fn lists(daemon: &TestDaemon) -> Vec<McpListed> {
    let events = daemon.events("coder").into_iter();
    let lists = events.filter_map(|event| match event.body {
        Body::McpListed(listed) => Some(listed),
        _ => None,
    });
    lists.collect()
}

fn effects(daemon: &TestDaemon) -> Vec<String> {
    let text = fs::read_to_string(daemon.work().join("mcp-effects")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The processes of servers, and what they left.
fn servers(daemon: &TestDaemon) -> Vec<(u32, String)> {
    let mut all = daemon.processes();
    all.retain(|(_, line)| line.contains("agentd-fake-mcp") || line.contains("sleep 100000"));
    all
}

fn until_no_server(daemon: &TestDaemon) {
    until("the end of all servers", || {
        servers(daemon).is_empty().then_some(())
    });
}

fn sent_tools(daemon: &TestDaemon) -> Vec<String> {
    let requests = daemon.requests();
    let tools = requests.last().unwrap().body["tools"].clone();
    let tools = tools.as_array().cloned().unwrap_or_default();
    tools
        .iter()
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_tool_is_called_and_its_result_is_limited() {
    let daemon = started(&[]);
    assert_eq!(call(&daemon, "echo", "hello"), "hello");
    assert_eq!(outcome(&daemon), CallOutcome::Ok);
    let listed = lists(&daemon);
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].life_cycle, Some(McpLifeCycle::Stateless));
    assert!(sent_tools(&daemon).contains(&"mcp__fake__read_environment".to_owned()));
    let said = call(&daemon, "large", "");
    assert!(
        said.len() < 100_000 && said.contains("omitted"),
        "{}",
        said.len()
    );
    let said = call(&daemon, "no_such_tool", "");
    assert!(said.contains("Unknown tool"), "{said}");
    assert_eq!(call(&daemon, "garbage", ""), "survived the garbage");
    assert_eq!(call(&daemon, "flood", ""), "survived the flood");
    assert_eq!(lists(&daemon).len(), 1);
    daemon.verify();
}

#[test]
fn an_image_reaches_the_model() {
    let daemon = started(&[]);
    daemon.completed("coder", "do: call mcp__fake__image {} ;; say done");
    let events = daemon.events("coder");
    let blocks = events.iter().find_map(|event| match &event.body {
        Body::ResultAdded(result) => Some(result.blocks.clone()),
        _ => None,
    });
    let is_image = |block: &Block| matches!(block, Block::Image { media_type, .. } if media_type == "image/png");
    assert!(blocks.unwrap().iter().any(is_image));
    let request = daemon.requests().last().unwrap().body.to_string();
    assert!(
        request.contains("\"media_type\":\"image/png\""),
        "{request}"
    );
}

/// Servers of earlier revisions react to the probe in three ways. Which life cycle worked is remembered.
#[test]
fn an_older_server_is_started_again_with_a_handshake() {
    for probe in ["refuse", "exit", "ignore"] {
        let daemon = started(&["--probe", probe]);
        // A server that ignores the probe may be too late for the first turn.
        until("a list", || {
            daemon.completed("coder", "do: say hi");
            let listed = lists(&daemon);
            listed
                .last()
                .is_some_and(|it| it.problem.is_none())
                .then_some(())
        });
        assert_eq!(call(&daemon, "echo", probe), probe);
        let last = lists(&daemon).pop().unwrap();
        assert_eq!(last.life_cycle, Some(McpLifeCycle::Handshake), "{probe}");
        daemon.kill_runtime("coder");
        assert_eq!(call(&daemon, "echo", "again"), "again");
    }
}

#[test]
fn a_known_list_needs_no_server() {
    let daemon = started(&[]);
    daemon.completed("coder", "do: say hi");
    assert!(sent_tools(&daemon).contains(&"mcp__fake__echo".to_owned()));
    let before = sent_tools(&daemon);
    daemon.kill_runtime("coder");
    until_no_server(&daemon);
    daemon.completed("coder", "do: say hi");
    assert_eq!(sent_tools(&daemon), before);
    assert_eq!(servers(&daemon), []);
    assert_eq!(lists(&daemon).len(), 1);
    // It starts when it is needed.
    assert_eq!(call(&daemon, "echo", "now"), "now");
    assert!(!servers(&daemon).is_empty());
}

#[test]
fn a_changed_list_counts_from_the_next_turn_on() {
    for args in [&[][..], &["--probe", "refuse"]] {
        let daemon = started(args);
        assert_eq!(call(&daemon, "change", ""), "changed");
        let extra = "mcp__fake__extra".to_owned();
        assert!(!sent_tools(&daemon).contains(&extra));
        daemon.completed("coder", "do: say hi");
        assert!(sent_tools(&daemon).contains(&extra), "{args:?}");
        assert_eq!(call(&daemon, "extra", ""), "extra");
        assert_eq!(lists(&daemon).len(), 2);
    }
}

#[test]
fn a_dead_server_costs_its_tools_and_one_notice() {
    let daemon = started(&["--dead"]);
    for _ in 0..2 {
        daemon.completed("coder", "do: say hi");
    }
    let listed = lists(&daemon);
    assert_eq!(listed.len(), 1, "{listed:?}");
    let problem = listed[0].problem.clone().unwrap();
    assert!(problem.contains("`fake` cannot be used"), "{problem}");
    assert!(problem.contains("the database is not there"), "{problem}");
    let request = daemon.requests().last().unwrap().body.to_string();
    assert!(request.contains("the database is not there"), "{request}");
    assert!(!request.contains("mcp__fake__echo"));
    daemon.verify();
}

#[test]
fn a_slow_server_is_there_in_a_later_turn() {
    let daemon = started(&["--slow-ms", "5500"]);
    daemon.completed("coder", "do: say hi");
    let problem = lists(&daemon)[0].problem.clone().unwrap();
    assert!(problem.contains("was not ready within 5 s"), "{problem}");
    until("its tools", || {
        daemon.completed("coder", "do: say hi");
        sent_tools(&daemon)
            .contains(&"mcp__fake__echo".to_owned())
            .then_some(())
    });
}

#[test]
fn a_server_that_dies_in_a_call_leaves_it_unknown_and_comes_back() {
    let daemon = started(&["--grandchild"]);
    let said = call(&daemon, "die", "");
    assert!(said.contains("The server ended during the call"), "{said}");
    // Its exit code and its stderr.
    assert!(said.contains("(exit code 7): out of paper"), "{said}");
    assert_eq!(outcome(&daemon), CallOutcome::Unknown);
    assert_eq!(call(&daemon, "echo", "back"), "back");
    // The process that the first server left is gone with it.
    until("one grandchild", || {
        let all = servers(&daemon);
        let left = all.iter().filter(|(_, line)| line.contains("sleep 100000"));
        (left.count() == 1).then_some(())
    });
    daemon
        .block(daemon.client().stop("coder", &Default::default()))
        .unwrap();
    until_no_server(&daemon);
    assert_eq!(effects(&daemon), ["dying"]);
    daemon.verify();
}

#[test]
fn the_whole_tree_ends_with_a_killed_runtime_and_with_a_reset() {
    let daemon = started(&["--grandchild"]);
    assert_eq!(call(&daemon, "echo", "a"), "a");
    let before: Vec<u32> = servers(&daemon).iter().map(|(pid, _)| *pid).collect();
    assert!(before.len() >= 2, "{before:?}");
    daemon.kill_runtime("coder");
    until_no_server(&daemon);
    assert_eq!(call(&daemon, "echo", "b"), "b");
    let old: Vec<u32> = servers(&daemon).iter().map(|(pid, _)| *pid).collect();
    daemon
        .block(daemon.client().reset("coder", &Reset::default()))
        .unwrap();
    until("the end of the old server", || {
        let all = servers(&daemon);
        (!all.iter().any(|(pid, _)| old.contains(pid))).then_some(())
    });
    assert_eq!(call(&daemon, "echo", "c"), "c");
    daemon.verify();
}

/// The runtime dies while the server has the call: it is not made again.
#[test]
fn a_call_that_was_cut_off_is_unknown_or_not_done() {
    for read_only in [false, true] {
        let daemon = TestDaemon::new();
        let mut fake = server(&[]);
        if read_only {
            fake.read_only = vec!["hang".to_owned()];
        }
        daemon.create_with("coder", with(&daemon, fake));
        let sent = daemon.send("coder", "do: call mcp__fake__hang {} ;; say done");
        until("the call", || {
            (effects(&daemon) == ["hanging"]).then_some(())
        });
        assert_eq!(daemon.count("coder", Kind::ToolStarted), 1);
        daemon.kill_runtime("coder");
        assert_eq!(
            daemon.answer("coder", sent.prompt).status,
            Status::Completed
        );
        let expected = match read_only {
            true => CallOutcome::NotStarted,
            false => CallOutcome::Unknown,
        };
        assert_eq!(outcome(&daemon), expected);
        assert_eq!(effects(&daemon), ["hanging"]);
        until_no_server(&daemon);
        daemon.verify();
    }
}

#[test]
fn an_interrupt_cancels_a_call_and_a_time_limit_ends_it() {
    let daemon = TestDaemon::new();
    let mut fake = server(&[]);
    fake.timeout_ms = Some(1500);
    daemon.create_with("coder", with(&daemon, fake));
    let said = call(&daemon, "hang", "");
    assert!(said.contains("did not answer within 1 s"), "{said}");
    assert_eq!(outcome(&daemon), CallOutcome::Unknown);
    // Progress is a sign of life: the call takes longer than the limit.
    assert_eq!(call(&daemon, "progress", ""), "made progress");
    let sent = daemon.send("coder", "do: call mcp__fake__hang {} ;; say done");
    until("the call", || (effects(&daemon).len() == 2).then_some(()));
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Interrupted);
    assert_eq!(outcome(&daemon), CallOutcome::Interrupted);
    assert_eq!(call(&daemon, "echo", "still here"), "still here");
}

/// A server that reads nothing more: neither the call nor the news that it was cancelled can be written to it.
#[test]
fn a_server_that_does_not_read_ends_its_call_and_not_the_turn() {
    let daemon = TestDaemon::new();
    let mut fake = server(&["--stall"]);
    fake.timeout_ms = Some(1000);
    daemon.create_with("coder", with(&daemon, fake));
    daemon.completed("coder", "do: say hi");
    // More than a pipe holds.
    let long = "x".repeat(80_000);
    let said = call(&daemon, "echo", &long);
    assert!(said.contains("did not answer within 1 s"), "{said}");
    assert_eq!(outcome(&daemon), CallOutcome::Unknown);
    daemon
        .block(daemon.client().stop("coder", &Default::default()))
        .unwrap();
    until_no_server(&daemon);
}

/// An error of a server is data from outside, and has a limit.
#[test]
fn a_long_error_is_cut() {
    let daemon = started(&[]);
    let said = call(&daemon, "refuse_at_length", "");
    assert!(said.contains("answered with an error"), "{said}");
    assert!(said.len() < 5000, "{}", said.len());
}

#[test]
fn rules_and_approvals_apply() {
    let daemon = TestDaemon::new();
    let mut fake = server(&[]);
    fake.read_only = vec!["echo".to_owned()];
    let mut spec = with(&daemon, fake);
    spec.approval = Some(ApprovalMode::Always);
    spec.permissions = vec![Rule {
        tool: "mcp__fake__d*".to_owned(),
        pattern: None,
        decision: Decision::Deny,
        needs: Vec::new(),
    }];
    daemon.create_with("coder", spec);
    assert_eq!(call(&daemon, "echo", "reads"), "reads");
    let said = call(&daemon, "die", "");
    assert!(said.contains("permission rules do not allow"), "{said}");
    let sent = daemon.send(
        "coder",
        "do: call mcp__fake__append {\"text\": \"x\"} ;; say done",
    );
    let asked = until("an approval", || {
        daemon.show("coder").approvals.first().cloned()
    });
    assert_eq!(effects(&daemon), [""; 0]);
    daemon
        .block(
            daemon
                .client()
                .approve("coder", asked.id, &Default::default()),
        )
        .unwrap();
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Completed
    );
    assert_eq!(effects(&daemon), ["x"]);
}

#[test]
fn a_secret_is_a_reference_and_never_in_the_journal() {
    let daemon = TestDaemon::new();
    daemon.caller_env("FAKE_TOKEN", "s3cr3t-value-1234");
    let mut fake = server(&[]);
    fake.env
        .insert("TOKEN".to_owned(), "${FAKE_TOKEN}".to_owned());
    daemon.create_with("coder", with(&daemon, fake));
    // The server has it; the model does not.
    let said = tool(
        &daemon,
        "mcp__fake__read_environment",
        &json!({"text": "TOKEN"}),
    );
    assert!(!said.is_empty() && !said.contains("s3cr3t"), "{said}");
    let journal = format!("{:?}", daemon.events("coder"));
    assert!(!journal.contains("s3cr3t-value-1234"));
    let mut broken = server(&[]);
    broken
        .env
        .insert("TOKEN".to_owned(), "${NOT_THERE}".to_owned());
    daemon.create_with("other", with(&daemon, broken));
    daemon.completed("other", "do: say hi");
    let event = daemon.until_kind("other", Kind::McpListed);
    let text = format!("{:?}", event.body);
    assert!(text.contains("agentd secret set NOT_THERE"), "{text}");
}

#[test]
fn a_server_runs_in_the_sandbox_of_the_tools() {
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return;
    }
    let daemon = TestDaemon::new();
    let copy = daemon.work().join("server");
    fs::copy(program(), &copy).unwrap();
    let fake = McpServer {
        command: Some("./server".to_owned()),
        args: vec!["--grandchild".to_owned()],
        ..McpServer::default()
    };
    let mut spec = with(&daemon, fake);
    spec.sandbox = Some(Sandbox::ReadOnly);
    daemon.create_with("coder", spec);
    assert_eq!(call(&daemon, "echo", "inside"), "inside");
    assert_eq!(call(&daemon, "append", "x"), "appended");
    assert_eq!(effects(&daemon), [""; 0], "a read-only sandbox");
    daemon.kill_runtime("coder");
    until("no server", || {
        let mut all = daemon.processes();
        all.retain(|(_, line)| line.contains("./server") || line.contains("sleep 100000"));
        all.is_empty().then_some(())
    });
}

#[test]
fn a_projects_servers_count_once_they_are_trusted() {
    let daemon = TestDaemon::new();
    fs::create_dir(daemon.work().join(".git")).unwrap();
    let file = json!({"mcpServers": {"fake": {"command": program(), "args": []}}});
    fs::write(daemon.work().join(".mcp.json"), file.to_string()).unwrap();
    daemon.create("coder");
    daemon.completed("coder", "do: say hi");
    assert!(lists(&daemon).is_empty());
    let work = daemon.work().display().to_string();
    let listed = daemon.cli(&["mcp", "list", "coder"]);
    let said = String::from_utf8(listed.stderr).unwrap();
    assert!(said.contains("not trusted"), "{said}");
    assert!(said.contains(&format!("agentd trust {work}")), "{said}");
    let trusted = daemon.cli(&["trust", &work]);
    assert!(trusted.status.success(), "{trusted:?}");
    daemon.kill_runtime("coder");
    assert_eq!(call(&daemon, "echo", "trusted"), "trusted");
    // Nothing of the file is in the settings.
    let spec = daemon.block(daemon.client().spec("coder")).unwrap();
    assert!(spec.mcp.is_empty());
}

/// Regression: the process that asks was started by the path of the program, whose file was replaced.
#[test]
fn the_user_asks_servers_of_a_daemon_whose_program_was_replaced() {
    let daemon = started(&[]);
    daemon.signal_daemon(Signal::TERM);
    daemon.run_replaced_program();
    let checked = daemon.cli(&["mcp", "check", "coder"]);
    assert!(checked.status.success(), "{checked:?}");
    let said = String::from_utf8(checked.stdout).unwrap();
    assert!(said.contains("fake: ok"), "{said}");
}

#[test]
fn the_user_asks_servers_directly() {
    let daemon = started(&["--grandchild"]);
    let text = |args: &[&str]| {
        let output = daemon.cli(args);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let listed = text(&["mcp", "list", "coder"]);
    assert!(
        listed.contains("fake") && listed.contains("agent"),
        "{listed}"
    );
    let checked = text(&["mcp", "check", "coder"]);
    assert!(checked.contains("fake: ok, 17 tools"), "{checked}");
    let tools = text(&["mcp", "tools", "coder", "fake"]);
    assert!(tools.contains("mcp__fake__read_environment"), "{tools}");
    let called = text(&[
        "mcp",
        "call",
        "coder",
        "fake",
        "append",
        "{\"text\": \"mine\"}",
    ]);
    assert_eq!(called.trim(), "appended");
    assert_eq!(effects(&daemon), ["mine"]);
    until_no_server(&daemon);
    let json: Value =
        serde_json::from_str(&text(&["mcp", "tools", "coder", "fake", "--json"])).unwrap();
    assert_eq!(json["life_cycle"], "stateless");
    let refused = daemon.cli(&["mcp", "tools", "coder", "other"]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("it has: fake"), "{said}");
    // Nothing of it is part of the conversation.
    assert_eq!(daemon.count("coder", Kind::McpListed), 0);
}

/// A server that is a script: it reads lines, and the script writes what it answers to each.
fn script(text: &str) -> McpServer {
    McpServer {
        command: Some("sh".to_owned()),
        args: vec!["-c".to_owned(), text.to_owned()],
        ..McpServer::default()
    }
}

/// Refuses to begin, and does not know the probe.
const EXPIRED: &str = r#"while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"method":"initialize"'*) error='{"code":-32000,"message":"token expired"}' ;;
    *) error='{"code":-32601,"message":"Method not found"}' ;;
  esac
  [ -n "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"error":%s}\n' "$id" "$error"
done"#;

#[test]
fn a_check_names_the_reason() {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    let missing = McpServer {
        command: Some("no-such-server-of-this-test".to_owned()),
        ..McpServer::default()
    };
    let nothing_there = McpServer {
        url: Some("http://127.0.0.1:9/mcp".to_owned()),
        ..McpServer::default()
    };
    spec.mcp.insert("missing".to_owned(), missing);
    spec.mcp.insert("dead".to_owned(), server(&["--dead"]));
    spec.mcp.insert("expired".to_owned(), script(EXPIRED));
    spec.mcp.insert(
        "flood".to_owned(),
        script("exec yes \"x$(printf '%01000d' 0)\""),
    );
    spec.mcp.insert("refused".to_owned(), nothing_there);
    daemon.create_with("coder", spec);
    let checked = daemon.cli(&["mcp", "check", "coder", "--json"]);
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
    for (server, why) in [
        ("missing", "command not found"),
        ("dead", "the database is not there"),
        ("expired", "token expired"),
        ("flood", "more than 1024 KiB without an answer"),
        ("refused", "Connection refused"),
    ] {
        let all = checked["servers"].as_array().unwrap();
        let found = all.iter().find(|it| it["server"] == server).unwrap();
        let problem = found["problem"].as_str().unwrap();
        assert!(problem.contains(why), "{server}: {problem}");
    }
    let said = daemon.cli(&["mcp", "check", "coder", "dead"]);
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("the database is not there"), "{said}");
}

#[test]
fn the_user_names_resources_and_prompts() {
    let daemon = started(&[]);
    let sent = daemon.cli(&[
        "send",
        "coder",
        "do: say read @fake:test://guide and @other:x",
    ]);
    assert!(sent.status.success(), "{sent:?}");
    let request = daemon.requests().last().unwrap().body.to_string();
    assert!(request.contains("the words of the guide"), "{request}");
    let sent = daemon.cli(&["send", "coder", "/fake:greet who=you"]);
    let said = String::from_utf8(sent.stdout).unwrap();
    assert!(said.contains("hello you"), "{said}");
}

#[test]
fn a_killed_server_is_started_again() {
    let daemon = started(&[]);
    assert_eq!(call(&daemon, "echo", "a"), "a");
    for (pid, line) in servers(&daemon) {
        if line.starts_with(&program().display().to_string()) {
            kill(pid, Signal::KILL);
        }
    }
    until_no_server(&daemon);
    assert_eq!(call(&daemon, "echo", "b"), "b");
}
