//! Which caller may use which route: the user all of them, processes that an agent started almost none.

use crate::test_daemon::{AGENTD, TestDaemon, until};
use agentd_core::link::{Down, Hello, Refusal, Secret, Up, VERSION};
use agentd_core::state::Phase;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

/// Runs a command as a tool of `coder`, and returns the exit codes that the command wrote to the file `codes`.
fn codes(daemon: &TestDaemon, command: &str) -> Vec<String> {
    let file = daemon.work().join("codes");
    let _none_before = fs::remove_file(&file);
    let call = serde_json::json!({ "command": command });
    daemon.completed("coder", &format!("do: call shell {call} ;; say done"));
    let codes = fs::read_to_string(&file).unwrap_or_default();
    codes.lines().map(str::to_owned).collect()
}

fn each(args: &[&str]) -> String {
    let each = args
        .iter()
        .map(|args| format!("'{AGENTD}' {args} >> said 2>&1; echo $? >> codes"));
    each.collect::<Vec<_>>().join("; ")
}

#[test]
fn a_tool_sees_its_own_agent_and_nothing_else() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.create("other");
    let sent = daemon.completed("other", "do: say the canary sings");
    let looks = each(&[
        "show coder --json",
        "conversations coder --json",
        "show other",
        "logs other",
        "export other stolen",
        "list",
        "tasks",
        &format!("wait other {}", sent.prompt),
        "show nobody",
        "search canary",
        "search canary --agent coder",
        "usage",
    ]);
    let codes = codes(&daemon, &looks);
    assert_eq!(
        codes,
        ["0", "0", "3", "3", "3", "3", "3", "3", "3", "3", "3", "3"]
    );
    let said = fs::read_to_string(daemon.work().join("said")).unwrap();
    assert!(!said.contains("canary"), "{said}");
    assert!(!daemon.work().join("stolen").exists());
}

/// A beginning of an id would tell a tool which other ids exist; a name that looks like one is a name.
#[test]
fn a_tool_names_its_agent_in_full() {
    let daemon = TestDaemon::new();
    let id = daemon.create("cafe").id.to_string();
    let looks = each(&[
        "show cafe --json",
        &format!("show {id} --json"),
        &format!("show {} --json", &id[..8]),
        &format!("show {} --json", &id[..35]),
    ]);
    let call = serde_json::json!({ "command": looks });
    daemon.completed("cafe", &format!("do: call shell {call} ;; say done"));
    let codes = fs::read_to_string(daemon.work().join("codes")).unwrap();
    assert_eq!(codes.lines().collect::<Vec<_>>(), ["0", "0", "3", "3"]);
}

#[test]
fn a_tool_changes_nothing() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.create("other");
    let exported = daemon.work().join("other.agentd");
    let exported = exported.display().to_string();
    let out = daemon.cli(&["export", "other", &exported]);
    assert!(out.status.success(), "{out:?}");
    let changes = [
        "create mine --provider demo",
        "run --provider demo hello",
        &format!("import {exported} --as mine"),
        "send other hello --no-wait",
        "send coder hello --no-wait",
        "exec coder -- touch ran",
        "exec other -- touch ran",
        "stop other",
        "stop coder",
        "start other",
        "interrupt other",
        "queue rm other 01234567",
        "queue edit coder 01234567 mine",
        "queue move coder 01234567 --last",
        "restart other",
        "continue other",
        "checkpoint other x",
        "reset other",
        "files restore other --to init",
        "files restore coder --to init",
        "files undo coder",
        "files list other",
        "diff coder",
        "set other model=x",
        "set coder approval=never",
        "rename other mine",
        "rm other",
        "purge other --yes",
        "fork other mine",
        "trust",
        "daemon stop",
    ];
    let codes = codes(&daemon, &each(&changes));
    for (change, code) in changes.iter().zip(&codes) {
        assert_eq!(code, "3", "{change}");
    }
    assert_eq!(codes.len(), changes.len());
    let list = daemon.cli(&["list", "--json"]);
    let list: serde_json::Value = serde_json::from_slice(&list.stdout).unwrap();
    let names: Vec<_> = list["agents"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 2, "{list:#}");
    assert_eq!(daemon.show("other").phase, Phase::Idle);
    assert!(!daemon.work().join("ran").exists());
}

/// The daemon does not trust a process because of what its arguments claim.
#[test]
fn forged_arguments_and_records_gain_nothing() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.create("other");
    let forged = daemon
        .home()
        .join("hooks/00000000-0000-0000-0000-000000000001");
    let forged = forged.display();
    let id = daemon.show("other").id;
    // It has the directory, the owner and the record of a hook of `other`, with its own pid in it.
    let command = format!(
        "mkdir -p {forged}; printf {id} > {forged}/owner; \
         bash -c 'set -- $(cut -d\" \" -f1,22 /proc/$$/stat); \
         printf \"{{\\\"shim\\\":{{\\\"pid\\\":$1,\\\"start_ticks\\\":$2}},\\\"leader\\\":null,\\\"boot\\\":\\\"\\\",\\\"cgroup\\\":null}}\" > {forged}/running; \
         {AGENTD} reset coder >> said 2>&1; echo $? >> codes; \
         {AGENTD} show other >> said 2>&1; echo $? >> codes' --agentd-shim {forged}; true"
    );
    assert_eq!(codes(&daemon, &command), ["3", "3"]);
    // A process that claims to be a shim without a record is not trusted, although the user started it.
    let mut bash = daemon.program().command_of("bash");
    bash.args(["-c", &format!("{AGENTD} reset other; exit $?")]);
    bash.args(["--agentd-shim", "/nowhere"]);
    let out = bash.output().unwrap();
    assert_eq!(out.status.code(), Some(3), "{out:?}");
    assert_eq!(daemon.show("other").generation, 1);
}

/// A process whose shim was killed connects to the daemon, which does not treat it as the user.
#[test]
fn killing_its_shim_makes_no_tool_a_user() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.create("other");
    let orphan = format!(
        "until [ $(cut -d\" \" -f4 /proc/self/stat) -ne $1 ] && [ $(cut -d\" \" -f4 /proc/$$/stat) -ne $1 ]; \
         do sleep 0.02; done; {AGENTD} reset other; echo $? > {}/orphan",
        daemon.work().display()
    );
    fs::write(daemon.work().join("orphan.sh"), orphan).unwrap();
    let command = "setsid sh orphan.sh $PPID & sleep 0.1; kill -9 $PPID; sleep 5";
    let call = serde_json::json!({ "command": command });
    daemon.send("coder", &format!("do: call shell {call} ;; say done"));
    // It is ended with what else the shim left, or it asks first and is refused.
    until("the end of the call", || {
        (daemon.show("coder").phase == Phase::Idle).then_some(())
    });
    if let Ok(code) = fs::read_to_string(daemon.work().join("orphan")) {
        assert_ne!(code.trim(), "0");
    }
    assert_eq!(daemon.show("other").generation, 1);
}

/// A tool that uses the link's protocol and knows the agent's id gets neither the agent nor its keys.
#[test]
fn the_link_needs_the_secret_of_the_process_that_was_started() {
    let daemon = TestDaemon::new();
    let id = daemon.create("coder").id;
    daemon.completed("coder", "do: say hello");
    for secret in ["", "0000", &"0".repeat(64)] {
        let hello = Up::Hello(Hello {
            v: VERSION,
            agent: id,
            runtime: agentd_core::id::RuntimeId::from_bytes([7; 16]),
            secret: Secret::new(secret.to_owned()),
            seen: None,
            env: Default::default(),
            stored: Default::default(),
            lent: None,
            build: None,
        });
        let mut link = UnixStream::connect(daemon.home().join("run/link.sock")).unwrap();
        let mut frame = serde_json::to_vec(&hello).unwrap();
        frame.push(0);
        link.write_all(&frame).unwrap();
        let mut said = Vec::new();
        BufReader::new(link).read_until(0, &mut said).unwrap();
        said.pop();
        let why = Refusal::Unproven;
        assert_eq!(Down::read(&said).unwrap(), Down::Refused { why });
    }
    // What is on disk is no secret, and what is shown is none either.
    let shown = daemon.cli(&["show", "coder", "--json"]);
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["process"].get("runtime"), None);
    daemon.completed("coder", "do: say again");
}
