//! A project's hooks run once the user has trusted their present content. Also: hooks that are services.

use crate::hooks_fixture::*;
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{HookState, HooksQuery, Status, TestHooks, Trust};
use agentd_client::{Error, Kind as ProblemKind};
use agentd_core::event::{HookOutcome, Kind};
use agentd_core::hook::{Decision, HookEvent, Layer};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

fn trust(daemon: &TestDaemon, trusted: bool) {
    let ask = Trust {
        dir: daemon.work().display().to_string(),
        hash: None,
        trusted,
    };
    daemon.block(daemon.client().set_trust(&ask)).unwrap();
}

#[test]
fn a_projects_hooks_run_once_they_are_trusted_as_they_are() {
    let daemon = TestDaemon::new();
    project(&daemon, &file(&[("UserPromptSubmit", keep_and("true"))]));
    daemon.create("coder");
    daemon.completed("coder", "do: say one");
    assert_eq!(heard(&daemon).len(), 0);
    let file_of = daemon.work().join(".agentd/hooks.json");
    let shown = daemon.show("coder").untrusted_hooks;
    assert_eq!(shown.as_deref(), file_of.to_str());
    assert!(
        daemon.log().contains("hooks file ignored"),
        "{}",
        daemon.log()
    );
    trust(&daemon, true);
    daemon.completed("coder", "do: say two");
    assert_eq!(heard(&daemon).len(), 1);
    assert_eq!(daemon.show("coder").untrusted_hooks, None);
    // Another content is another file.
    project(
        &daemon,
        &file(&[("UserPromptSubmit", keep_and("echo changed"))]),
    );
    daemon.completed("coder", "do: say three");
    assert_eq!(heard(&daemon).len(), 1);
    trust(&daemon, true);
    daemon.kill_daemon();
    daemon.start_daemon();
    daemon.completed("coder", "do: say four");
    assert_eq!(heard(&daemon).len(), 2);
    trust(&daemon, false);
    daemon.completed("coder", "do: say five");
    assert_eq!(heard(&daemon).len(), 2);
}

#[test]
fn trust_is_for_what_was_seen() {
    let daemon = TestDaemon::new();
    project(&daemon, &file(&[]));
    let ask = Trust {
        dir: daemon.work().display().to_string(),
        hash: Some("of another content".to_owned()),
        trusted: true,
    };
    let problem = daemon.block(daemon.client().set_trust(&ask)).unwrap_err();
    let Error::Problem(problem) = problem else {
        panic!("{problem}")
    };
    assert_eq!(problem.kind, ProblemKind::Conflict);
}

#[test]
fn layers_are_listed_and_the_same_handler_runs_once() {
    let daemon = TestDaemon::new();
    let same = keep_and("true");
    user(&daemon, &file(&[("Stop", same.clone())]));
    project(
        &daemon,
        &file(&[("Stop", same.clone()), ("PreToolUse", command("true"))]),
    );
    trust(&daemon, true);
    let mut spec = daemon.spec();
    spec.hooks = json!({"Stop": [{"hooks": [same]}]});
    daemon.create_with("coder", spec);
    daemon.completed("coder", "do: say one");
    assert_eq!(heard(&daemon).len(), 1);
    let query = HooksQuery {
        agent: Some("coder".to_owned()),
        cwd: None,
    };
    let list = daemon.block(daemon.client().hooks(&query)).unwrap();
    let lines: Vec<_> = list
        .hooks
        .iter()
        .map(|it| (it.event, it.layer, it.state))
        .collect();
    assert_eq!(
        lines,
        [
            (HookEvent::Stop, Layer::User, HookState::Active),
            (HookEvent::Stop, Layer::Spec, HookState::Repeated),
            (HookEvent::Stop, Layer::Project, HookState::Repeated),
            (HookEvent::PreToolUse, Layer::Project, HookState::Active),
        ]
    );
    assert_eq!(list.hooks[0].runtimes.len(), 3);
    assert_eq!(list.hooks[3].runtimes.len(), 1);
}

/// A service that answers one request with this.
fn service(status: &str, body: String) -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let status = status.to_owned();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut text = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            let read = stream.read(&mut chunk).unwrap();
            text.extend_from_slice(&chunk[..read]);
            let said = String::from_utf8_lossy(&text).into_owned();
            let length = said.to_lowercase();
            let length = length.split("content-length: ").nth(1);
            let length = length.and_then(|rest| rest.lines().next()?.trim().parse::<usize>().ok());
            let begin = said.find("\r\n\r\n").map(|at| at + 4);
            if let (Some(length), Some(begin)) = (length, begin)
                && text.len() >= begin + length
            {
                break;
            }
        }
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
        String::from_utf8_lossy(&text).into_owned()
    });
    (format!("http://{address}/hook"), served)
}

#[test]
fn a_service_hears_the_same_and_says_the_same() {
    let daemon = TestDaemon::new();
    let deny = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
        "permissionDecisionReason": "says the service"}});
    let (url, served) = service("200 OK", deny.to_string());
    let handler = json!({"type": "http", "url": url, "headers": {"x-who": "agentd"}});
    user(&daemon, &file(&[("PreToolUse", handler)]));
    daemon.create("coder");
    let call = json!({"command": "echo ran >> effects"});
    daemon.completed("coder", &format!("do: call shell {call} ;; say done"));
    let request = served.join().unwrap();
    assert!(
        request.contains("x-who: agentd") && request.contains("PreToolUse"),
        "{request}"
    );
    assert_eq!(daemon.effects().len(), 0);
    assert!(
        last_request(&daemon)
            .to_string()
            .contains("says the service")
    );
    // One that is not there is a warning.
    daemon.completed("coder", &format!("do: call shell {call} ;; say done"));
    assert_eq!(daemon.effects(), ["ran"]);
}

#[test]
fn a_try_runs_what_would_run_and_writes_nothing() {
    let daemon = TestDaemon::new();
    user(
        &daemon,
        &file(&[("PreToolUse", keep_and("echo 'not this' >&2; exit 2"))]),
    );
    daemon.create("coder");
    let head = daemon.show("coder").head;
    let fields = json!({"tool_name": "shell", "tool_input": {"command": "make"}});
    let ask = TestHooks {
        event: HookEvent::PreToolUse,
        agent: Some("coder".to_owned()),
        cwd: None,
        fields: fields.as_object().unwrap().clone(),
    };
    let tested = daemon.block(daemon.client().test_hooks(&ask)).unwrap();
    assert_eq!(tested.verdict.decision, Decision::Deny);
    assert_eq!(tested.verdict.reason.as_deref(), Some("not this"));
    assert_eq!(
        (tested.runs[0].outcome, tested.runs[0].exit),
        (HookOutcome::Ran, Some(2))
    );
    assert_eq!(heard(&daemon)[0]["tool_input"]["command"], "make");
    assert_eq!(daemon.show("coder").head, head);
    until("nothing left", || {
        let left = std::fs::read_dir(daemon.home().join("hooks"))
            .unwrap()
            .count();
        (left == 0).then_some(())
    });
}

/// A hooks file that cannot be read may contain a hook that would block the call.
#[test]
fn with_a_file_that_cannot_be_read_calls_are_asked_about() {
    let daemon = TestDaemon::new();
    std::fs::write(
        daemon.home().join("hooks.json"),
        "{\"hooks\": {\"PreToolUse\": [ {",
    )
    .unwrap();
    daemon.create("coder");
    let call = json!({"command": "touch done"});
    let sent = daemon.send("coder", &format!("do: call shell {call} ;; say done"));
    daemon.until_kind("coder", Kind::ApprovalRequested);
    let broken = daemon.show("coder").broken_hooks.unwrap();
    assert!(
        broken.contains("hooks.json") && broken.contains("invalid JSON"),
        "{broken}"
    );
    assert!(
        daemon.log().contains("hooks file ignored"),
        "{}",
        daemon.log()
    );
    let ask = TestHooks {
        event: HookEvent::PreToolUse,
        agent: Some("coder".to_owned()),
        cwd: None,
        fields: serde_json::Map::new(),
    };
    let refused = daemon.block(daemon.client().test_hooks(&ask)).unwrap_err();
    assert!(refused.to_string().contains("cannot be used"), "{refused}");
    assert!(!daemon.work().join("done").exists());
    assert!(daemon.cli(&["approve", "coder"]).status.success());
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Completed
    );
    // Mended, it is as if nothing had been.
    std::fs::write(daemon.home().join("hooks.json"), "{\"hooks\": {}}").unwrap();
    daemon.completed("coder", &format!("do: call shell {call} ;; say done"));
    assert_eq!(daemon.show("coder").broken_hooks, None);
}

#[test]
fn trust_in_a_file_that_is_gone_can_be_taken_back() {
    let daemon = TestDaemon::new();
    let hooks = file(&[("UserPromptSubmit", keep_and("true"))]);
    project(&daemon, &hooks);
    daemon.create("coder");
    trust(&daemon, true);
    std::fs::remove_file(daemon.work().join(".agentd/hooks.json")).unwrap();
    trust(&daemon, false);
    project(&daemon, &hooks);
    daemon.completed("coder", "do: say one");
    assert_eq!(heard(&daemon).len(), 0);
}

/// Regression: a hooks file that was a pipe blocked the daemon, and one that was a device filled its memory.
#[test]
fn a_pipe_a_device_or_a_link_in_place_of_a_hooks_file_is_passed_over() {
    let daemon = TestDaemon::new();
    let dir = daemon.work().join(".agentd");
    std::fs::create_dir_all(&dir).unwrap();
    let hooks = dir.join("hooks.json");
    let elsewhere = daemon.root().join("elsewhere.json");
    std::fs::write(
        &elsewhere,
        file(&[("UserPromptSubmit", keep_and("true"))]).to_string(),
    )
    .unwrap();
    daemon.create("coder");
    let link = |to: &std::path::Path| std::os::unix::fs::symlink(to, &hooks).unwrap();
    let puts: [&dyn Fn(); 4] = [
        &|| {
            let made = std::process::Command::new("mkfifo").arg(&hooks).status();
            assert!(made.unwrap().success());
        },
        &|| link(std::path::Path::new("/dev/zero")),
        &|| link(&elsewhere),
        &|| std::fs::write(&hooks, " ".repeat(2 << 20)).unwrap(),
    ];
    for put in puts {
        let _none_yet = std::fs::remove_file(&hooks);
        put();
        daemon.completed("coder", "do: say on");
        let shown = daemon.show("coder").untrusted_hooks;
        assert_eq!(shown.as_deref(), hooks.to_str());
    }
    assert_eq!(heard(&daemon).len(), 0);
}
