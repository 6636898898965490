//! Stored secrets: agents use them, and no tool, hook or log contains them.

use crate::hooks_fixture::{command, file, user};
use crate::test_daemon::{AGENTD, KEY, TestDaemon, until};
use agentd_client::api::{Create, Send, Status};
use agentd_core::event::Kind;
use agentd_core::secrets::MARK;
use agentd_core::spec::{AgentSpec, Sandbox};
use agentd_core::state::Phase;
use agentd_testkit::harness::Program;
use agentd_testkit::model::Format;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Output, Stdio};

const NAME: &str = "ANTHROPIC_API_KEY";

/// A daemon that knows the address of the model and has no key.
fn daemon() -> TestDaemon {
    let daemon = TestDaemon::empty();
    let address = daemon.model.base_url(Format::Anthropic);
    daemon.daemon_env("ANTHROPIC_BASE_URL", &address);
    daemon.start_daemon();
    daemon
}

/// The variables of a shell without a key.
fn without_key(daemon: &TestDaemon) -> BTreeMap<String, String> {
    let mut env = daemon.caller();
    env.remove(NAME);
    env
}

/// Runs the program from a shell without a key, with this input.
fn cli(daemon: &TestDaemon, args: &[&str], input: &str) -> Output {
    let mut command = daemon.command();
    command.args(args).stdin(Stdio::piped());
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

fn set(daemon: &TestDaemon) {
    let out = cli(daemon, &["secret", "set", NAME], &format!("{KEY}\n"));
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(said.contains("used by anthropic"), "{said}");
}

fn create(
    daemon: &TestDaemon,
    name: &str,
    prompt: Option<&str>,
) -> Option<agentd_core::id::PromptId> {
    create_with(daemon, name, prompt, daemon.spec())
}

fn create_with(
    daemon: &TestDaemon,
    name: &str,
    prompt: Option<&str>,
    spec: AgentSpec,
) -> Option<agentd_core::id::PromptId> {
    let create = Create {
        name: Some(name.to_owned()),
        spec,
        prompt: prompt.map(str::to_owned),
        env: without_key(daemon),
        ..Create::default()
    };
    daemon
        .block(daemon.client().create(&create))
        .unwrap()
        .prompt
}

/// Sends a prompt without a key, and returns its answer.
fn ask(daemon: &TestDaemon, name: &str, text: &str) -> agentd_client::api::Answer {
    let send = Send {
        text: text.to_owned(),
        env: without_key(daemon),
        ..Send::default()
    };
    let sent = daemon.block(daemon.client().send(name, &send)).unwrap();
    daemon.answer(name, sent.prompt)
}

/// Checks that the key is in one file of the home only.
fn nowhere_else(home: &Path) {
    fn look(dir: &Path, looked_at: &mut usize) {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() {
                look(&path, looked_at);
            } else if kind.is_file() && entry.file_name() != "secrets.json" {
                *looked_at += 1;
                let bytes = fs::read(&path).unwrap_or_default();
                let found = bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes());
                assert!(!found, "{}", path.display());
            }
        }
    }
    let mut looked_at = 0;
    look(home, &mut looked_at);
    assert!(looked_at > 5);
}

/// After a reboot: only what is on disk is left, and no client has supplied a variable.
#[test]
fn after_a_reboot_a_turn_goes_on_with_a_stored_key() {
    let daemon = daemon();
    set(&daemon);
    let text = "do: call shell {\"command\":\"echo x >> effects\"} ;; slowly 20 a b c d e f g h";
    let prompt = create(&daemon, "coder", Some(text)).unwrap();
    until("an effect", || (!daemon.effects().is_empty()).then_some(()));
    let pid = until("a process", || daemon.pid("coder"));
    daemon.kill_daemon();
    crate::test_daemon::kill(pid, rustix::process::Signal::KILL);
    daemon.start_daemon();
    assert_eq!(daemon.answer("coder", prompt).text, "a b c d e f g h");
    assert_eq!(daemon.effects().len(), 1);
    daemon.verify();
    nowhere_else(&daemon.home());
}

#[test]
fn turns_that_wait_for_the_key_go_on_when_it_is_stored() {
    let daemon = daemon();
    let names = ["one", "two", "three"];
    let prompts = names.map(|name| create(&daemon, name, Some("do: say hello")).unwrap());
    for name in names {
        daemon.until_kind(name, Kind::TurnPaused);
        assert_eq!(daemon.show(name).phase, Phase::Waiting);
    }
    set(&daemon);
    for (name, prompt) in names.into_iter().zip(prompts) {
        assert_eq!(daemon.answer(name, prompt).text, "hello");
    }
    // A key of the caller's comes first, and is back when that is gone; a removed one is gone at once.
    let removed = cli(&daemon, &["secret", "rm", NAME], "");
    assert_eq!(removed.status.code(), Some(0), "{removed:?}");
    let send = Send {
        text: "do: say again".to_owned(),
        env: without_key(&daemon),
        ..Send::default()
    };
    daemon.block(daemon.client().send("one", &send)).unwrap();
    until("waiting", || {
        (daemon.show("one").phase == Phase::Waiting).then_some(())
    });
    let again = cli(&daemon, &["secret", "rm", NAME], "");
    assert_eq!(again.status.code(), Some(7), "{again:?}");
}

/// A runtime that outlives its daemon returns the variables of callers to the next daemon, without stored secrets.
#[test]
fn a_secret_that_a_runtime_has_is_not_taken_for_a_callers() {
    let daemon = daemon();
    set(&daemon);
    create(&daemon, "coder", None);
    assert_eq!(ask(&daemon, "coder", "do: say one").text, "one");
    daemon.kill_daemon();
    daemon.start_daemon();
    until("the runtime", || daemon.pid("coder"));
    assert_eq!(ask(&daemon, "coder", "do: say two").text, "two");
    cli(&daemon, &["secret", "rm", NAME], "");
    let send = Send {
        text: "do: say three".to_owned(),
        ..Send::default()
    };
    daemon.block(daemon.client().send("coder", &send)).unwrap();
    until("waiting", || {
        (daemon.show("coder").phase == Phase::Waiting).then_some(())
    });
}

#[test]
fn secrets_are_listed_without_their_values() {
    let daemon = daemon();
    set(&daemon);
    let odd = cli(
        &daemon,
        &["secret", "set", "ODD_ONE", "--json"],
        "odd-value-1",
    );
    let odd: Value = serde_json::from_slice(&odd.stdout).unwrap();
    assert_eq!(odd["providers"], json!([]));
    let list = cli(&daemon, &["secret", "list", "--json"], "");
    let listed: Value = serde_json::from_slice(&list.stdout).unwrap();
    let names: Vec<&str> = listed["secrets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|secret| secret["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, [NAME, "ODD_ONE"]);
    assert_eq!(listed["secrets"][0]["providers"], json!(["anthropic"]));
    create(&daemon, "coder", None);
    ask(&daemon, "coder", "do: say hello");
    for args in [
        &["secret", "list"][..],
        &["secret", "list", "--json"],
        &["config"],
        &["config", "--json"],
        &["show", "coder", "--json"],
        &["export", "coder"],
        &["logs", "coder", "--json"],
    ] {
        let out = cli(&daemon, args, "");
        let said = format!("{out:?}");
        assert!(!said.contains(KEY) && !said.contains("odd-value"), "{said}");
    }
    let config = cli(&daemon, &["config"], "");
    let config = String::from_utf8_lossy(&config.stdout).into_owned();
    assert!(
        config.contains(&format!("agentd secret: {NAME}")),
        "{config}"
    );
    assert!(!daemon.log().contains(KEY));
    for (args, input, code) in [
        (&["secret", "set", "PATH"][..], "x", 2),
        (&["secret", "set", "A-B"], "x", 2),
        (&["secret", "set", "EMPTY_KEY"], "\n", 2),
        (&["secret", "set", "TWO_KEY"], "a\nb", 2),
    ] {
        let out = cli(&daemon, args, input);
        assert_eq!(out.status.code(), Some(code), "{out:?}");
    }
    // Not by the command line, which others can see.
    let out = cli(&daemon, &["secret", "set", NAME, "value"], "");
    assert_eq!(out.status.code(), Some(2), "{out:?}");
}

#[test]
fn a_file_that_others_can_read_is_refused_and_agents_work_without_it() {
    let daemon = daemon();
    set(&daemon);
    let path = daemon.home().join("secrets.json");
    let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    mode(0o644);
    daemon.kill_daemon();
    daemon.start_daemon();
    let out = cli(&daemon, &["secret", "list"], "");
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(3), "{said}");
    assert!(said.contains("open to other users"), "{said}");
    assert!(daemon.log().contains("stored secrets not loaded"));
    let prompt = create(&daemon, "coder", Some("do: say hello")).unwrap();
    daemon.until_kind("coder", Kind::TurnPaused);
    mode(0o600);
    set(&daemon);
    assert_eq!(daemon.answer("coder", prompt).text, "hello");
}

#[test]
fn neither_tools_nor_hooks_list_or_set_secrets() {
    let daemon = daemon();
    set(&daemon);
    let script = format!(
        "for verb in 'list' 'set {NAME}' 'rm {NAME}'; do echo other-value | {AGENTD} secret $verb >> said 2>&1; \
         echo $? >> $1; done"
    );
    fs::write(daemon.work().join("ask.sh"), script).unwrap();
    let hook = command("cd \"$AGENTD_PROJECT_DIR\" && sh ask.sh of-hook; exit 0");
    user(&daemon, &file(&[("UserPromptSubmit", hook)]));
    create(&daemon, "coder", None);
    let call = json!({ "command": "sh ask.sh of-tool" });
    ask(
        &daemon,
        "coder",
        &format!("do: call shell {call} ;; say done"),
    );
    for codes in ["of-hook", "of-tool"] {
        let codes = fs::read_to_string(daemon.work().join(codes)).unwrap();
        let said = fs::read_to_string(daemon.work().join("said")).unwrap();
        assert_eq!(codes.lines().collect::<Vec<_>>(), ["3", "3", "3"], "{said}");
    }
    assert_eq!(ask(&daemon, "coder", "do: say still").text, "still");
}

#[test]
fn a_sandbox_does_not_have_the_file() {
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return;
    }
    let daemon = daemon();
    set(&daemon);
    let mut spec = daemon.spec();
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    create_with(&daemon, "coder", None, spec);
    let path = daemon.home().join("secrets.json").display().to_string();
    let look = format!("ls -la {path} > seen 2>&1; cat {path} >> seen 2>&1; env >> seen");
    let shell = json!({ "command": look });
    let read = json!({ "path": path });
    let prompt = format!("do: call shell {shell} | call read_file {read} ;; say done");
    assert_eq!(ask(&daemon, "coder", &prompt).status, Status::Completed);
    let seen = fs::read_to_string(daemon.work().join("seen")).unwrap();
    assert!(seen.contains("No such file"), "{seen}");
    assert!(!seen.contains(KEY), "{seen}");
    let events = format!("{:?}", daemon.events("coder"));
    assert!(
        !events.contains("\"v\\\":1") && !events.contains(KEY),
        "{events}"
    );
}

/// A key that a provider repeats in an error response, or in the middle of a stream, is not stored.
#[test]
fn a_provider_that_repeats_the_key_does_not_show_it() {
    for status in [400, 401, 200] {
        let daemon = daemon();
        set(&daemon);
        create(&daemon, "coder", None);
        let answer = ask(&daemon, "coder", &format!("do: echo {status}"));
        assert_eq!(answer.status, Status::Failed);
        let error = answer.error.unwrap();
        assert!(error.contains(MARK) && !error.contains(KEY), "{error}");
        let logs = cli(&daemon, &["logs", "coder"], "");
        assert!(!format!("{logs:?}").contains(KEY));
        daemon.kill_daemon();
        nowhere_else(&daemon.home());
    }
}

/// A hook prints the key, plainly and with JSON escapes. The key is in a file that config.toml names, which only the
/// agent's process has read.
#[test]
fn a_key_of_a_file_is_redacted_in_what_hooks_say() {
    let daemon = daemon();
    let key = daemon.root().join("key");
    fs::write(&key, format!("{KEY}\n")).unwrap();
    let config = format!("[providers.anthropic]\nkey_file = \"{}\"\n", key.display());
    fs::write(daemon.home().join("config.toml"), config).unwrap();
    create(&daemon, "coder", None);
    assert_eq!(ask(&daemon, "coder", "do: say hello").text, "hello");
    let hidden = format!("\\u0073{}", &KEY[1..]);
    for said in [KEY, &hidden] {
        let output = format!(
            "{{\"systemMessage\":\"m {said}\",\"hookSpecificOutput\":{{\"hookEventName\":\"UserPromptSubmit\",\"additionalContext\":\"c {said}\"}}}}"
        );
        fs::write(daemon.root().join("says"), output).unwrap();
        let hook = command(&format!(
            "cat {}; echo {KEY} >&2",
            daemon.root().join("says").display()
        ));
        user(&daemon, &file(&[("UserPromptSubmit", hook)]));
        ask(&daemon, "coder", "do: say heard");
    }
    let requests = format!("{:?}", daemon.requests());
    assert!(requests.contains(&format!("c {MARK}")), "{requests}");
    assert!(!requests.contains(KEY), "{requests}");
    daemon.kill_daemon();
    fs::remove_file(daemon.home().join("hooks.json")).unwrap();
    nowhere_else(&daemon.home());
}

/// An address in `env` of an agent file applies to its tools only: the key is sent to the address of the user's own
/// sources.
#[test]
fn an_address_in_an_agent_file_does_not_get_the_key() {
    let daemon = daemon();
    set(&daemon);
    let trap = agentd_testkit::model::FakeModel::start().unwrap();
    let mut spec = daemon.spec();
    spec.env.insert(
        "ANTHROPIC_BASE_URL".to_owned(),
        trap.base_url(Format::Anthropic),
    );
    create_with(&daemon, "coder", None, spec);
    // Nor what a hook leaves for the tools.
    let hook = command(&format!(
        "echo ANTHROPIC_BASE_URL={} >> \"$AGENTD_ENV_FILE\"",
        trap.base_url(Format::Anthropic)
    ));
    user(&daemon, &file(&[("SessionStart", hook)]));
    create(&daemon, "other", None);
    for name in ["coder", "other"] {
        assert_eq!(ask(&daemon, name, "do: say hello").text, "hello");
    }
    assert_eq!(daemon.requests().len(), 2);
    assert!(trap.requests().is_empty());
}

/// Another process of the same user can read neither the environment nor the memory of a waiting command.
#[test]
fn a_command_that_waits_is_closed_to_others() {
    const USER: u32 = 54_321;
    let root = tempfile::tempdir().unwrap();
    let is_root = rustix::process::geteuid().is_root();
    let program = root.path().join("agentd");
    fs::copy(AGENTD, &program).unwrap();
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["home", "work", "state"] {
        let dir = root.path().join(name);
        fs::create_dir(&dir).unwrap();
        if is_root {
            std::os::unix::fs::chown(&dir, Some(USER), Some(USER)).unwrap();
        }
    }
    let program = Program::new(program, root.path().join("state"), root.path().join("work"))
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", root.path().join("home"))
        .env(NAME, KEY);
    let as_user = |path: &Path, args: &[&str]| {
        let mut command = program.command_of(path);
        command.args(args);
        if is_root {
            command.uid(USER).gid(USER);
        }
        command
    };
    let run = |args: &[&str]| as_user(program.path(), args).output().unwrap();
    let created = run(&["create", "coder", "--provider", "demo"]);
    assert_eq!(created.status.code(), Some(0), "{created:?}");
    let send = ["send", "coder", "run `touch begun; sleep 600`"];
    let mut waits = as_user(program.path(), &send)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let begun = root.path().join("work/begun");
    until("the command", || begun.exists().then_some(()));
    let pid = waits.id();
    let script =
        format!("cat /proc/{pid}/environ; head -c 1 /proc/{pid}/mem; cat /proc/{pid}/maps");
    let looked = as_user(Path::new("/bin/sh"), &["-c", &script])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&looked.stderr);
    assert!(looked.stdout.is_empty(), "{looked:?}");
    assert_eq!(told.matches("ermission denied").count(), 3, "{told}");
    assert!(waits.try_wait().unwrap().is_none());
    run(&["interrupt", "coder"]);
    waits.wait().unwrap();
    let stopped = run(&["daemon", "stop"]);
    assert_eq!(stopped.status.code(), Some(0), "{stopped:?}");
}

/// A key of an agent's own program or of an MCP server belongs to no provider.
#[test]
fn a_secret_that_an_agents_settings_refer_to_is_used() {
    let daemon = TestDaemon::new();
    daemon.caller_env("KEY_OF_MINE", "value-of-this-shell");
    let mut spec = daemon.spec();
    spec.env
        .insert("MINE".to_owned(), "${KEY_OF_MINE}".to_owned());
    daemon.create_with("coder", spec);
    for (name, is_used) in [("KEY_OF_MINE", true), ("KEY_OF_NONE", false)] {
        let out = cli(&daemon, &["secret", "set", name], "some-value\n");
        assert!(out.status.success(), "{out:?}");
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        let warned = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(said.contains("coder"), is_used, "{said}");
        assert_eq!(warned.contains("warning"), !is_used, "{warned}");
    }
}
