//! The rules of a project: they apply once the user has trusted them, and never allow a call.

use crate::test_daemon::TestDaemon;
use agentd_client::api::Trust;
use agentd_core::event::Body;
use std::fs;

fn write(daemon: &TestDaemon, rules: &str) {
    fs::create_dir_all(daemon.work().join(".agentd")).unwrap();
    let text = format!("[agents]\npermissions = [{rules}]\n");
    fs::write(daemon.work().join(".agentd/config.toml"), text).unwrap();
}

fn trust(daemon: &TestDaemon) -> Result<(), String> {
    let trust = Trust {
        dir: daemon.work().display().to_string(),
        hash: None,
        trusted: true,
    };
    let client = daemon.client();
    let done = daemon.block(client.set_trust(&trust));
    done.map(drop).map_err(|error| format!("{error:?}"))
}

/// Whether a command runs, in a new process of the agent.
fn runs(daemon: &TestDaemon) -> bool {
    let restarted = daemon.cli(&["restart", "coder"]);
    assert!(restarted.status.success(), "{restarted:?}");
    let before = daemon.effects().len();
    daemon.completed(
        "coder",
        r#"do: call shell {"command":"echo x >> effects"} ;; say done"#,
    );
    daemon.effects().len() > before
}

#[test]
fn rules_of_a_project_count_once_they_are_trusted() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    assert!(runs(&daemon));
    write(
        &daemon,
        r#"{ tool = "shell", pattern = "echo *", decision = "deny" }"#,
    );
    assert!(runs(&daemon), "it is not trusted");
    trust(&daemon).unwrap();
    assert!(!runs(&daemon));
    let refused = daemon.events("coder").into_iter().rev().find_map(|event| {
        let Body::ResultAdded(result) = event.body else {
            return None;
        };
        let mut words = Vec::new();
        result
            .blocks
            .iter()
            .for_each(|block| block.words(&mut words));
        Some(words.join(" "))
    });
    assert!(refused.unwrap().contains("echo *"));
    // Another content is another file.
    write(
        &daemon,
        r#"{ tool = "shell", pattern = "echo*", decision = "deny" }"#,
    );
    assert!(runs(&daemon));
}

#[test]
fn a_project_that_allows_something_cannot_be_trusted() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    write(&daemon, r#"{ tool = "shell", decision = "allow" }"#);
    let error = trust(&daemon).unwrap_err();
    assert!(error.contains("only the user may allow"), "{error}");
    write(&daemon, r#"{ tool = "shell", decision = "perhaps" }"#);
    assert!(trust(&daemon).is_err());
    fs::write(
        daemon.work().join(".agentd/config.toml"),
        "[agents]\nsandbox = \"full-access\"\n",
    )
    .unwrap();
    assert!(trust(&daemon).is_err());
}
