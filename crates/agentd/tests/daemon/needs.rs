//! Calls that need more than their sandbox gives: what the user is asked, and that a yes gives exactly that.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Approval, Approve};
use agentd_core::event::Body;
use agentd_core::spec::{AgentSpec, Decision, Network, Rule, Sandbox};
use agentd_core::state::Phase;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// An agent in the sandbox, with a home of its own user. None if this machine does not support it.
fn sandboxed(change: impl FnOnce(&mut AgentSpec)) -> Option<(TestDaemon, PathBuf)> {
    sandboxed_with(|_, _| {}, change)
}

/// The same; `prepare` gets the user's home before the agent exists.
fn sandboxed_with(
    prepare: impl FnOnce(&TestDaemon, &Path),
    change: impl FnOnce(&mut AgentSpec),
) -> Option<(TestDaemon, PathBuf)> {
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return None;
    }
    let daemon = TestDaemon::new();
    let user = daemon.root().join("user");
    fs::create_dir_all(user.join("dir")).unwrap();
    fs::create_dir_all(user.join(".ssh")).unwrap();
    fs::write(user.join(".bashrc"), "# mine\n").unwrap();
    fs::write(user.join(".ssh/id"), "the key\n").unwrap();
    let user = fs::canonicalize(user).unwrap();
    daemon.caller_env("HOME", user.to_str().unwrap());
    prepare(&daemon, &user);
    let mut spec = daemon.spec();
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    change(&mut spec);
    daemon.create_with("coder", spec);
    Some((daemon, user))
}

fn shell(command: &str, needs: &[&str]) -> String {
    let call = json!({"command": command, "escalate": "for the test", "needs": needs});
    format!("shell {call}")
}

fn asked(daemon: &TestDaemon, call: &str) -> Approval {
    daemon.send("coder", &format!("do: call {call} ;; say done"));
    until("the question", || {
        daemon.show("coder").approvals.into_iter().next()
    })
}

/// The result of a call that is approved.
fn approved(daemon: &TestDaemon, call: &str) -> String {
    asked(daemon, call);
    approve(daemon)
}

fn approve(daemon: &TestDaemon) -> String {
    let out = daemon.cli(&["approve", "coder"]);
    assert!(out.status.success(), "{out:?}");
    until("the end of the turn", || {
        (daemon.show("coder").phase == Phase::Idle).then_some(())
    });
    result(daemon)
}

/// The result of a call that must not be asked about.
fn unasked(daemon: &TestDaemon, call: &str) -> String {
    let before = questions(daemon);
    daemon.completed("coder", &format!("do: call {call} ;; say done"));
    assert_eq!(questions(daemon), before, "{call}");
    result(daemon)
}

fn questions(daemon: &TestDaemon) -> usize {
    let events = daemon.events("coder");
    let is_question = |body: &Body| matches!(body, Body::ApprovalRequested(_));
    events.iter().filter(|it| is_question(&it.body)).count()
}

fn result(daemon: &TestDaemon) -> String {
    let events = daemon.events("coder");
    let blocks = events.iter().rev().find_map(|event| match &event.body {
        Body::ResultAdded(result) => Some(result.blocks.clone()),
        _ => None,
    });
    let mut words = Vec::new();
    let blocks = blocks.unwrap();
    blocks.iter().for_each(|block| block.words(&mut words));
    words.join("\n")
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn a_call_that_does_not_say_what_it_needs_fails_before_the_user_is_asked() {
    let Some((daemon, user)) = sandboxed(|_| {}) else {
        return;
    };
    symlink(user.join(".ssh"), daemon.work().join("link")).unwrap();
    let state = format!("read:{}", daemon.home().display());
    let cases: Vec<(Value, &str)> = vec![
        (json!({"escalate": "because"}), "write:PATH"),
        (json!({"needs": ["everything"]}), "`escalate`"),
        (json!({"escalate": "a", "needs": []}), "empty"),
        (json!({"escalate": "a", "needs": ["~/dir"]}), "no entry"),
        (
            json!({"escalate": "a", "needs": ["write:/"]}),
            "`everything`",
        ),
        (
            json!({"escalate": "a", "needs": ["write:~/new/file"]}),
            "does not exist",
        ),
        (
            json!({"escalate": "a", "needs": ["write:link"]}),
            "through a link",
        ),
        (
            json!({"escalate": "a", "needs": ["service:docker"]}),
            "not available",
        ),
        (
            json!({"escalate": "a", "needs": ["write:.git/hooks"]}),
            "git directory",
        ),
        (
            json!({"escalate": "a", "needs": [state]}),
            "agentd's own state",
        ),
    ];
    for (mut call, why) in cases {
        call["command"] = json!("echo x >> effects");
        let said = unasked(&daemon, &format!("shell {call}"));
        assert!(said.contains(why), "{call}: {said}");
        assert!(daemon.effects().is_empty(), "{call}");
    }
    let write = json!({"file_path": user.join("other"), "content": "x", "escalate": "a", "needs": ["write:~/dir"]});
    let said = unasked(&daemon, &format!("write_file {write}"));
    assert!(said.contains("does not include write:"), "{said}");
}

#[test]
fn a_yes_opens_exactly_the_directory_that_the_question_named() {
    let Some((daemon, user)) = sandboxed(|_| {}) else {
        return;
    };
    let script = "echo x > ~/dir/file; echo evil >> ~/.bashrc; mkdir -p ~/other && echo evil > ~/other/file; \
                  cat ~/.ssh/id; echo evil > ~/.gitconfig; false";
    let question = asked(&daemon, &shell(script, &["write:~/dir"]));
    let needs = question.what.unwrap().needs;
    assert_eq!(
        needs[0].need,
        format!("write:{}", user.join("dir").display())
    );
    assert!(needs[0].words.contains("all that is in it"), "{needs:?}");
    assert_eq!(needs[0].danger, None);
    let shown = daemon.cli(&["show", "coder"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let line = format!(
        "  needs to write {} and all that is in it",
        user.join("dir").display()
    );
    assert!(shown.contains(&line), "{shown}");
    let said = approve(&daemon);
    assert_eq!(text(&user.join("dir/file")), "x\n", "{said}");
    assert_eq!(text(&user.join(".bashrc")), "# mine\n");
    assert!(!user.join("other").exists() && !user.join(".gitconfig").exists());
    assert!(!said.contains("the key"), "{said}");
    // What is missing is named, and the model is not told to try once more.
    assert!(said.contains("The approval did not include"), "{said}");
    assert!(!said.contains("call shell again"), "{said}");
    // For that call alone.
    let said = unasked(&daemon, r#"shell {"command":"echo y > ~/dir/file"}"#);
    assert_eq!(text(&user.join("dir/file")), "x\n", "{said}");
}

/// Today's permissions said that credentials stay closed, also where the user approved to write them.
#[test]
fn credentials_and_profiles_are_marked_and_opened_by_name() {
    let Some((daemon, user)) = sandboxed(|_| {}) else {
        return;
    };
    let call = shell(
        "echo new > ~/.ssh/config; echo more >> ~/.bashrc",
        &["write:~/.ssh", "write:~/.bashrc"],
    );
    let question = asked(&daemon, &call);
    let needs = question.what.unwrap().needs;
    assert_eq!(needs[0].danger.as_deref(), Some("credentials"));
    assert!(needs[1].danger.is_some());
    let out = daemon.cli(&["show", "coder"]);
    let shown = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(
        shown.contains("DANGEROUS (credentials): needs to write"),
        "{shown}"
    );
    let said = approve(&daemon);
    assert_eq!(text(&user.join(".ssh/config")), "new\n", "{said}");
    assert_eq!(text(&user.join(".bashrc")), "# mine\nmore\n");
    // The home does not include them.
    let said = approved(
        &daemon,
        &shell(
            "cat ~/.ssh/id; echo x >> ~/.bashrc; echo y > ~/note",
            &["write:~"],
        ),
    );
    assert!(!said.contains("the key"), "{said}");
    assert_eq!(text(&user.join(".bashrc")), "# mine\nmore\n");
    assert_eq!(text(&user.join("note")), "y\n", "{said}");
    // One file of a directory of credentials is not all of them.
    let needs = ["read:~/.ssh/config", "write:~"];
    let said = approved(&daemon, &shell("cat ~/.ssh/config ~/.ssh/id", &needs));
    assert!(said.contains("new") && !said.contains("the key"), "{said}");
}

#[test]
fn a_path_that_became_a_link_after_the_question_is_not_opened() {
    let Some((daemon, user)) = sandboxed(|_| {}) else {
        return;
    };
    let dir = daemon.work().join("out");
    fs::create_dir(&dir).unwrap();
    asked(
        &daemon,
        &shell(
            "echo x > out/authorized_keys; echo x >> effects",
            &["write:out"],
        ),
    );
    fs::remove_dir(&dir).unwrap();
    symlink(user.join(".ssh"), &dir).unwrap();
    // Through the API, as a client that does not look again.
    let approval = daemon.show("coder").approvals.remove(0);
    let approve = Approve {
        hash: approval.what.map(|call| call.hash),
        ..Approve::default()
    };
    daemon
        .block(daemon.client().approve("coder", approval.id, &approve))
        .unwrap();
    until("the end of the turn", || {
        (daemon.show("coder").phase == Phase::Idle).then_some(())
    });
    assert!(
        result(&daemon).contains("through a link"),
        "{}",
        result(&daemon)
    );
    assert!(!user.join(".ssh/authorized_keys").exists());
    assert!(daemon.effects().is_empty());
}

#[test]
fn git_config_works_with_git_config() {
    let Some((daemon, _)) = sandboxed(|_| {}) else {
        return;
    };
    daemon.completed(
        "coder",
        r#"do: call shell {"command":"git init -q ."} ;; say done"#,
    );
    let config = daemon.work().join(".git/config");
    let set = "git config user.name Someone";
    let said = unasked(&daemon, r#"shell {"command":"echo x >> .git/config"}"#);
    assert!(said.contains("git-config"), "{said}");
    let said = approved(&daemon, &shell(set, &["git-config"]));
    assert!(text(&config).contains("Someone"), "{said}");
    // Hooks stay protected, and the next call has the configuration as before.
    fs::create_dir_all(daemon.work().join(".git/hooks")).unwrap();
    approved(
        &daemon,
        &shell("echo x > .git/hooks/pre-commit", &["git-config"]),
    );
    assert!(!daemon.work().join(".git/hooks/pre-commit").exists());
    unasked(&daemon, r#"shell {"command":"echo evil >> .git/config"}"#);
    assert!(!text(&config).contains("evil"));
}

#[test]
fn a_service_is_there_for_the_approved_call_only() {
    let host_of = |user: &Path| format!("unix://{}", user.join("fake.sock").display());
    let prepare = |daemon: &TestDaemon, user: &Path| {
        daemon.caller_env("DOCKER_HOST", &host_of(user));
    };
    let Some((daemon, user)) = sandboxed_with(prepare, |_| {}) else {
        return;
    };
    let _listener = UnixListener::bind(user.join("fake.sock")).unwrap();
    let host = host_of(&user);
    let script = "test -S ~/fake.sock && echo \"at $DOCKER_HOST\"; \
                  echo 'Cannot connect to the Docker daemon' >&2; false";
    let said = unasked(&daemon, &format!("shell {}", json!({ "command": script })));
    assert!(!said.contains("at unix"), "{said}");
    assert!(
        said.contains("service:docker") && said.contains("pass: [docker]"),
        "{said}"
    );
    let said = approved(&daemon, &shell(script, &["service:docker"]));
    assert!(said.contains(&format!("at {host}")), "{said}");
}

#[test]
fn a_host_is_reached_through_the_gate_although_the_network_is_off() {
    let Some((daemon, _)) = sandboxed(|spec| spec.network = Some(Network::Off)) else {
        return;
    };
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((mut peer, _)) = server.accept() {
            let _gone = peer.write_all(b"hello from outside\n");
        }
    });
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' >&3 && \
         timeout 5 cat <&3 | head -c 200"
    );
    let said = approved(
        &daemon,
        &shell(&script, &[&format!("host:127.0.0.1:{port}")]),
    );
    assert!(said.contains("hello from outside"), "{said}");
    let said = approved(&daemon, &shell(&script, &["host:127.0.0.1:1"]));
    assert!(!said.contains("hello from outside"), "{said}");
}

#[test]
fn everything_is_outside_the_sandbox_and_agentds_state_stays_hidden() {
    let Some((daemon, user)) = sandboxed(|spec| spec.network = Some(Network::Off)) else {
        return;
    };
    let home = daemon.home();
    let script = format!(
        "echo more >> ~/.bashrc; cat ~/.ssh/id; head -c 6 {home}/journal.db; ls {home}; mv {home} {home}.gone; \
         ls /proc/1/root/{home}; cat /proc/*/environ | tr '\\0' '\\n' | grep -c SECRET; echo over",
        home = home.display()
    );
    let question = asked(&daemon, &shell(&script, &["everything"]));
    let needs = question.what.unwrap().needs;
    assert!(needs[0].danger.is_some() && needs[0].words.contains("outside the sandbox"));
    let always = daemon.cli(&["approve", "coder", "--always"]);
    assert_eq!(always.status.code(), Some(2), "{always:?}");
    let said = approve(&daemon);
    assert_eq!(text(&user.join(".bashrc")), "# mine\nmore\n", "{said}");
    assert!(said.contains("the key") && said.contains("over"), "{said}");
    assert!(
        !said.contains("SQLite") && !said.contains("journal.db\n"),
        "{said}"
    );
    assert!(home.join("journal.db").exists());
    daemon.verify();
}

#[test]
fn a_rule_with_needs_allows_what_it_names_and_nothing_else() {
    let Some((daemon, user)) = sandboxed(|spec| {
        spec.permissions = vec![Rule {
            tool: "shell".to_owned(),
            pattern: Some("touch *".to_owned()),
            decision: Decision::Allow,
            needs: vec!["write:~/dir".to_owned()],
        }];
    }) else {
        return;
    };
    let file = user.join("dir/a");
    let touch = format!("touch {}", file.display());
    unasked(&daemon, &shell(&touch, &["write:~/dir"]));
    assert!(file.exists());
    // More needs, or another command, are asked about.
    for (command, needs) in [
        (touch.as_str(), &["write:~/dir", "write:~/.ssh"][..]),
        (touch.as_str(), &["write:~"]),
        ("rm x", &["write:~/dir"]),
    ] {
        asked(&daemon, &shell(command, needs));
        daemon.cli(&["deny", "coder"]);
        until("the end of the turn", || {
            (daemon.show("coder").phase == Phase::Idle).then_some(())
        });
    }
    // The answer "always" makes such a rule.
    let other = format!("rm {}", file.display());
    asked(&daemon, &shell(&other, &["write:~/dir"]));
    let out = daemon.cli(&["approve", "coder", "--always"]);
    assert!(out.status.success(), "{out:?}");
    until("the end of the turn", || {
        (daemon.show("coder").phase == Phase::Idle).then_some(())
    });
    assert!(!file.exists());
    fs::write(&file, "").unwrap();
    unasked(&daemon, &shell(&other, &["write:~/dir"]));
    assert!(!file.exists());
}

#[test]
fn a_file_tool_writes_the_named_file() {
    let Some((daemon, user)) = sandboxed(|_| {}) else {
        return;
    };
    let file = user.join("new/report.txt");
    let call = json!({"file_path": file, "content": "one\n", "escalate": "a report", "needs": ["write:~/new/report.txt"]});
    let question = asked(&daemon, &format!("write_file {call}"));
    let needs = question.what.unwrap().needs;
    assert_eq!(needs[0].words, format!("create {}", file.display()));
    approve(&daemon);
    assert_eq!(text(&file), "one\n");
    // A link in the work tree that leads to another file when the call runs.
    let link = daemon.work().join("link");
    symlink(&file, &link).unwrap();
    let call = json!({"file_path": "link", "content": "two\n", "escalate": "a report", "needs": ["write:~/new/report.txt"]});
    asked(&daemon, &format!("write_file {call}"));
    fs::remove_file(&link).unwrap();
    symlink(user.join(".bashrc"), &link).unwrap();
    let said = approve(&daemon);
    assert!(said.contains("does not include"), "{said}");
    assert_eq!(text(&user.join(".bashrc")), "# mine\n");
}
