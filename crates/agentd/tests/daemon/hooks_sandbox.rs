//! Hooks that are not the user's own run in the agent's sandbox.

use crate::hooks_stage::*;
use crate::house::{House, until};
use agentd_core::spec::{AgentSpec, Sandbox};
use serde_json::{Value, json};
use std::fs;

fn house(change: impl FnOnce(&House, &mut AgentSpec)) -> Option<House> {
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return None;
    }
    let house = House::new();
    let mut spec = house.spec();
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    change(&house, &mut spec);
    house.create_with("coder", spec);
    Some(house)
}

/// Notes what it can see and write, beside the work tree.
fn probe(house: &House, event: &str, who: &str) -> Value {
    let script = format!(
        "head -c 6 {home}/journal.db > {who}.journal; echo x > {root}/{who}.outside; \
         cat >/dev/null; echo ran >> {who}.ran",
        home = house.home().display(),
        root = house.root().display(),
    );
    json!({"hooks": {event: [{"hooks": [command(&script)]}]}})
}

#[test]
fn an_agent_files_hooks_see_no_state_and_write_no_more_than_tools() {
    let Some(house) = house(|house, spec| {
        spec.hooks = probe(house, "PreToolUse", "spec")["hooks"].clone();
    }) else {
        return;
    };
    house.completed("coder", r#"do: call shell {"command":"true"} ;; say done"#);
    assert!(house.work().join("spec.ran").exists());
    assert!(!house.root().join("spec.outside").exists());
    let journal = fs::read_to_string(house.work().join("spec.journal")).unwrap();
    assert_eq!(journal, "");
}

#[test]
fn the_users_own_hooks_run_as_the_user() {
    let Some(house) = house(|house, _| user(house, &probe(house, "PreToolUse", "user"))) else {
        return;
    };
    house.completed("coder", r#"do: call shell {"command":"true"} ;; say done"#);
    assert!(house.root().join("user.outside").exists());
    let journal = fs::read_to_string(house.work().join("user.journal")).unwrap();
    assert_eq!(journal, "SQLite");
}

/// It reads the transcript and leaves variables for tools, as outside.
#[test]
fn a_session_start_hook_works_in_the_sandbox() {
    let Some(house) = house(|_, spec| {
        let script = "echo 'export GREETING=hello' >> \"$AGENTD_ENV_FILE\"; \
                      python3 -c 'import json,sys; open(json.load(sys.stdin)[\"transcript_path\"]).read()' \
                      && echo read >> effects";
        spec.hooks = json!({"SessionStart": [{"hooks": [command(script)]}]});
    }) else {
        return;
    };
    house.completed(
        "coder",
        r#"do: call shell {"command":"echo $GREETING >> effects"} ;; say done"#,
    );
    until("the hook and the tool", || {
        (house.effects() == ["read", "hello"]).then_some(())
    });
}
