//! Hooks that are not the user's own run in the agent's sandbox.

use crate::hooks_fixture::*;
use crate::test_daemon::{TestDaemon, until};
use agentd_core::spec::{AgentSpec, Sandbox};
use serde_json::{Value, json};
use std::fs;

fn daemon(change: impl FnOnce(&TestDaemon, &mut AgentSpec)) -> Option<TestDaemon> {
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return None;
    }
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    change(&daemon, &mut spec);
    daemon.create_with("coder", spec);
    Some(daemon)
}

/// Records what it can see and write besides the work tree.
fn probe(daemon: &TestDaemon, event: &str, who: &str) -> Value {
    let script = format!(
        "head -c 6 {home}/journal.db > {who}.journal; echo x > {root}/{who}.outside; \
         cat >/dev/null; echo ran >> {who}.ran",
        home = daemon.home().display(),
        root = daemon.root().display(),
    );
    json!({"hooks": {event: [{"hooks": [command(&script)]}]}})
}

#[test]
fn an_agent_files_hooks_see_no_state_and_write_no_more_than_tools() {
    let Some(daemon) = daemon(|daemon, spec| {
        spec.hooks = probe(daemon, "PreToolUse", "spec")["hooks"].clone();
    }) else {
        return;
    };
    daemon.completed("coder", r#"do: call shell {"command":"true"} ;; say done"#);
    assert!(daemon.work().join("spec.ran").exists());
    assert!(!daemon.root().join("spec.outside").exists());
    let journal = fs::read_to_string(daemon.work().join("spec.journal")).unwrap();
    assert_eq!(journal, "");
}

#[test]
fn the_users_own_hooks_run_as_the_user() {
    let Some(daemon) = daemon(|daemon, _| user(daemon, &probe(daemon, "PreToolUse", "user")))
    else {
        return;
    };
    daemon.completed("coder", r#"do: call shell {"command":"true"} ;; say done"#);
    assert!(daemon.root().join("user.outside").exists());
    let journal = fs::read_to_string(daemon.work().join("user.journal")).unwrap();
    assert_eq!(journal, "SQLite");
}

/// Inside the sandbox, too, it can read the transcript and set variables for tools.
#[test]
fn a_session_start_hook_works_in_the_sandbox() {
    let Some(daemon) = daemon(|_, spec| {
        let script = "echo 'export GREETING=hello' >> \"$AGENTD_ENV_FILE\"; \
                      python3 -c 'import json,sys; open(json.load(sys.stdin)[\"transcript_path\"]).read()' \
                      && echo read >> effects";
        spec.hooks = json!({"SessionStart": [{"hooks": [command(script)]}]});
    }) else {
        return;
    };
    daemon.completed(
        "coder",
        r#"do: call shell {"command":"echo $GREETING >> effects"} ;; say done"#,
    );
    until("the hook and the tool", || {
        (daemon.effects() == ["read", "hello"]).then_some(())
    });
}
