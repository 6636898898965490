//! The caller's environment in tools: which variables and services they get, and that no value is stored.

use crate::sandbox::run;
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Answer, Send};
use agentd_core::environment::COMPLETE;
use agentd_core::secrets::MARK;
use agentd_core::spec::{AgentSpec, Network, Pass, Sandbox};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;

const TOKEN: &str = "canary-token-5e1c";
const PROXY_PASSWORD: &str = "canary-proxy-77";
const DATABASE: &str = "postgres://app:canary-db-1234@db.example/app";

/// The variables of a developer's shell.
fn shell(daemon: &TestDaemon) {
    let proxy = format!("http://me:{PROXY_PASSWORD}@127.0.0.1:9");
    for (name, value) in [
        ("LANG", "de_DE.UTF-8"),
        ("LC_TIME", "C"),
        ("https_proxy", proxy.as_str()),
        ("EDITOR", "vim"),
        ("CARGO_HOME", "/data/cargo"),
        ("JAVA_HOME", "/usr"),
        ("GOROOT", "/data/go"),
        ("DEPLOY_TOKEN", TOKEN),
        ("DATABASE_URL", DATABASE),
        ("OTHER_TOKEN", "canary-other-1"),
        ("LD_LIBRARY_PATH", "/nowhere"),
        ("BASH_ENV", "/nowhere/env"),
        ("NODE_OPTIONS", "--require=/nowhere"),
        ("SSH_AUTH_SOCK", "/nowhere/agent"),
    ] {
        daemon.caller_env(name, value);
    }
}

fn cli(daemon: &TestDaemon, args: &[&str]) -> String {
    let out = daemon.cli(args);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let said = [out.stdout, out.stderr].concat();
    String::from_utf8(said).unwrap()
}

/// What a command of the agent finds in its environment.
fn seen(daemon: &TestDaemon) -> BTreeMap<String, String> {
    let command = "do: call shell {\"command\":\"env > env\"} ;; say done";
    cli(daemon, &["send", "coder", command]);
    let text = fs::read_to_string(daemon.work().join("env")).unwrap();
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

const FILE: &str = "---\nprovider: anthropic\nmodel: some-model\npass_env: [DEPLOY_TOKEN, DATABASE_URL, UNSET]\n---\n";

fn agent_file(daemon: &TestDaemon, text: &str) -> String {
    let file = daemon.root().join("coder.md");
    fs::write(&file, text).unwrap();
    file.display().to_string()
}

#[test]
fn tools_get_the_variables_of_the_list_and_those_that_the_user_chose() {
    let daemon = TestDaemon::new();
    shell(&daemon);
    let file = agent_file(&daemon, FILE);
    let told = cli(&daemon, &["create", "coder", "-f", &file]);
    assert!(
        told.contains("pass_env DEPLOY_TOKEN: tools can read it"),
        "{told}"
    );
    assert!(!told.contains(TOKEN), "{told}");
    let env = seen(&daemon);
    for (name, value) in [
        ("LANG", "de_DE.UTF-8"),
        ("LC_TIME", "C"),
        ("EDITOR", "vim"),
        ("CARGO_HOME", "/data/cargo"),
        ("DEPLOY_TOKEN", TOKEN),
        ("DATABASE_URL", DATABASE),
    ] {
        assert_eq!(env.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(env["https_proxy"].contains(PROXY_PASSWORD));
    for name in [
        "OTHER_TOKEN",
        "ANTHROPIC_API_KEY",
        "LD_LIBRARY_PATH",
        "BASH_ENV",
        "NODE_OPTIONS",
        "SSH_AUTH_SOCK",
    ] {
        assert!(!env.contains_key(name), "{name}");
    }
    assert_eq!(daemon.show("coder").missing_env, ["UNSET"]);
    assert!(cli(&daemon, &["show", "coder"]).contains("UNSET"));
    // A new choice applies at once, with the value of the caller that makes it.
    cli(&daemon, &["set", "coder", "pass_env=[\"OTHER_TOKEN\"]"]);
    let env = seen(&daemon);
    assert_eq!(env["OTHER_TOKEN"], "canary-other-1");
    assert!(!env.contains_key("DEPLOY_TOKEN"));
}

#[test]
fn a_variable_that_names_a_directory_which_the_sandbox_hides_is_left_out() {
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return;
    }
    let daemon = TestDaemon::new();
    shell(&daemon);
    daemon.caller_env(
        "VIRTUAL_ENV",
        &daemon.work().join("venv").display().to_string(),
    );
    let text = FILE.replace(
        "pass_env: [",
        "sandbox: workspace-write\npass_env: [GOROOT, ",
    );
    let file = agent_file(&daemon, &text);
    cli(&daemon, &["create", "coder", "-f", &file]);
    let env = seen(&daemon);
    assert!(!env.contains_key("CARGO_HOME"), "it cannot be written");
    assert_eq!(env["JAVA_HOME"], "/usr");
    assert!(env["VIRTUAL_ENV"].ends_with("/venv"));
    assert_eq!(env["GOROOT"], "/data/go", "the settings name it");
}

fn values_in(dir: &Path, looked_at: &mut usize) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            values_in(&path, looked_at);
        } else if kind.is_file() {
            *looked_at += 1;
            let bytes = fs::read(&path).unwrap_or_default();
            for value in [TOKEN, PROXY_PASSWORD, "canary-db-1234", "de_DE.UTF-8"] {
                let found = bytes.windows(value.len()).any(|it| it == value.as_bytes());
                assert!(!found, "{value} in {}", path.display());
            }
        }
    }
}

#[test]
fn values_are_redacted_in_output_and_written_to_no_file() {
    let daemon = TestDaemon::new();
    shell(&daemon);
    let file = agent_file(&daemon, FILE);
    cli(&daemon, &["create", "coder", "-f", &file]);
    let command = "echo token $DEPLOY_TOKEN; echo db $DATABASE_URL; echo proxy $https_proxy";
    let said = run(&daemon, command);
    assert!(said.contains(&format!("token {MARK}")), "{said}");
    assert!(
        said.contains(&format!("postgres://{MARK}@db.example")),
        "{said}"
    );
    assert!(said.contains(&format!("http://{MARK}@127.0.0.1")), "{said}");
    let background =
        "do: call shell {\"command\":\"echo $DEPLOY_TOKEN\",\"background\":true} ;; say done";
    daemon.completed("coder", background);
    until("the end of the task", || {
        daemon.show("coder").tasks.is_empty().then_some(())
    });
    for (_, arguments) in daemon.processes() {
        assert!(!arguments.contains("canary"), "{arguments}");
    }
    let mut looked_at = 0;
    values_in(&daemon.home(), &mut looked_at);
    assert!(looked_at > 5);
    assert!(!daemon.log().contains("canary"));
    for args in [
        &["show", "coder", "--json"][..],
        &["show", "coder", "--spec"],
        &["export", "coder"],
        &["logs", "coder", "--json"],
    ] {
        let said = format!("{:?}", daemon.cli(args));
        assert!(!said.contains("canary"), "{said}");
    }
}

/// Sends a prompt from a shell that does not have the database's variable.
fn ask_without(daemon: &TestDaemon, text: &str) -> Answer {
    let mut env = daemon.caller();
    env.remove("DATABASE_URL");
    let send = Send {
        text: text.to_owned(),
        env,
        ..Send::default()
    };
    let sent = daemon.block(daemon.client().send("coder", &send)).unwrap();
    daemon.answer("coder", sent.prompt)
}

fn last_request(daemon: &TestDaemon) -> String {
    daemon.requests().last().unwrap().body.to_string()
}

#[test]
fn after_a_restart_without_a_caller_the_missing_names_are_shown_and_the_model_is_told() {
    let daemon = TestDaemon::new();
    daemon.caller_env("DATABASE_URL", DATABASE);
    let spec = AgentSpec {
        pass_env: vec!["DATABASE_URL".to_owned()],
        ..daemon.spec()
    };
    daemon.create_with("coder", spec);
    assert_eq!(daemon.completed("coder", "do: say one").text, "one");
    assert!(!last_request(&daemon).contains("`DATABASE_URL`"));
    assert_eq!(daemon.show("coder").missing_env, [""; 0]);
    daemon.kill_runtime("coder");
    daemon.kill_daemon();
    daemon.start_daemon();
    assert_eq!(daemon.show("coder").missing_env, ["DATABASE_URL"]);
    for text in ["two", "three"] {
        assert_eq!(ask_without(&daemon, &format!("do: say {text}")).text, text);
        let told = last_request(&daemon).matches("`DATABASE_URL`").count();
        assert_eq!(told, 1, "{text}");
    }
    // A caller that has it again.
    assert_eq!(daemon.completed("coder", "do: say four").text, "four");
    assert!(last_request(&daemon).contains(COMPLETE));
    assert_eq!(daemon.show("coder").missing_env, [""; 0]);
    let said = run(&daemon, "echo ${DATABASE_URL##*/}");
    assert!(said.starts_with("app\n"), "{said}");
    daemon.verify();
}

/// Connects to the socket and says whether that worked.
fn connects(daemon: &TestDaemon, path: &Path) -> bool {
    let script = format!(
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('{}'); print('connec' + 'ted')",
        path.display()
    );
    fs::write(daemon.work().join("connect.py"), script).unwrap();
    run(daemon, "echo sock=$SSH_AUTH_SOCK; python3 connect.py").contains("connected")
}

#[test]
fn the_socket_of_the_ssh_agent_is_reached_only_if_the_user_passes_it() {
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return;
    }
    let daemon = TestDaemon::new();
    let socket = daemon.root().join("ssh-agent.sock");
    daemon.caller_env("SSH_AUTH_SOCK", &socket.display().to_string());
    let spec = |pass: Vec<Pass>, network| AgentSpec {
        sandbox: Some(Sandbox::WorkspaceWrite),
        network: Some(network),
        pass,
        ..daemon.spec()
    };
    daemon.create_with("coder", spec(vec![Pass::SshAgent], Network::Off));
    // Without a socket there is a warning, and tools run.
    let missing = daemon.show("coder").missing_services;
    assert!(
        missing
            .iter()
            .any(|it| it.contains("ssh-agent: there is no socket")),
        "{missing:?}"
    );
    assert!(!connects(&daemon, &socket));
    assert!(last_request(&daemon).contains("access to `ssh-agent`"));
    let _listener = UnixListener::bind(&socket).unwrap();
    assert_eq!(daemon.show("coder").missing_services, [""; 0]);
    // The same process finds it: the agent of the user may start later than the agent of agentd.
    assert!(connects(&daemon, &socket));
    let set = |spec: AgentSpec| {
        daemon
            .block(daemon.client().set_spec("coder", &spec))
            .unwrap();
    };
    set(spec(vec![Pass::Kube], Network::On));
    assert!(
        !connects(&daemon, &socket),
        "another service does not open it"
    );
    set(spec(vec![Pass::SshAgent], Network::On));
    assert!(connects(&daemon, &socket));
    // A hook or a tool cannot add it: only the user's own client changes settings.
    set(spec(Vec::new(), Network::On));
    assert!(!connects(&daemon, &socket));
}

#[test]
fn mistakes_are_reported_with_their_line_and_a_service_with_what_it_gives_away() {
    let daemon = TestDaemon::new();
    for (line, why) in [
        ("pass: [ssh]", "ssh-agent"),
        ("pass_env: [LD_PRELOAD]", "load code"),
        ("pass_env: [AGENTD_HOME]", "its own"),
    ] {
        let file = agent_file(&daemon, &format!("---\nmodel: x\n{line}\n---\n"));
        let out = daemon.cli(&["create", "coder", "-f", &file]);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains("line 3") && said.contains(why), "{said}");
    }
    let config = daemon.home().join("config.toml");
    fs::write(
        &config,
        "[agents]\npass = [\"docker\"]\npass_env = [\n  \"A\",\n  \"A-B\",\n]\n",
    )
    .unwrap();
    let out = daemon.cli(&["config"]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        said.contains("line 5") && said.contains("pass_env[1]"),
        "{said}"
    );
    fs::write(
        &config,
        "[agents]\npass = [\"docker\"]\npass_env = [\"A\"]\n",
    )
    .unwrap();
    assert!(cli(&daemon, &["config"]).contains("agents.pass_env"));
    let file = agent_file(&daemon, FILE);
    let told = cli(&daemon, &["create", "coder", "-f", &file]);
    assert!(
        told.contains("pass docker: tools can start containers"),
        "{told}"
    );
    let spec = daemon.block(daemon.client().spec("coder")).unwrap();
    assert_eq!(spec.pass, [Pass::Docker]);
    assert!(spec.pass_env.iter().any(|name| name == "A"));
}
