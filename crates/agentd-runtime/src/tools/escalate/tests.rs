//! Which calls may ask for more than their sandbox gives.

use crate::driver::Tools as _;
use crate::tools::tests::{Fixture, call};
use agentd_core::spec::{Decision, Rule};
use agentd_core::turn::{Consent, Prepared};
use agentd_process::task::Confined;
use agentd_sandbox::Policy;
use serde_json::json;

fn confined() -> Fixture {
    let mut fixture = Fixture::new();
    let policy = Policy {
        writable: vec![fixture.options.cwd.clone()],
        ..Policy::default()
    };
    fixture.options.confined = Some(Confined {
        policy,
        is_read_only: false,
        hosts: Vec::new(),
    });
    fixture
}

/// The user approved it when calls did not say yet what they need. A hook's approval is always of a new call.
#[tokio::test]
async fn a_call_without_needs_runs_only_if_the_user_approved_it_before() {
    let fixture = confined();
    let call = call("shell", json!({"command": "true", "escalate": "because"}));
    for consent in [Consent::NotAsked, Consent::OfHook, Consent::Given] {
        let seen = Default::default();
        let prepared = fixture.toolbox().prepare(&call, consent, &seen).await;
        match (consent, prepared) {
            (Consent::Given, Prepared::Run(..)) => {}
            (Consent::NotAsked | Consent::OfHook, Prepared::Refuse { blocks, .. }) => {
                let mut words = Vec::new();
                blocks.iter().for_each(|block| block.words(&mut words));
                assert!(words.concat().contains("write:PATH"), "{words:?}");
            }
            (consent, prepared) => panic!("{consent:?}: {prepared:?}"),
        }
    }
}

#[tokio::test]
async fn a_hook_may_approve_a_call_that_says_what_it_needs() {
    let fixture = confined();
    let needs = json!({"command": "true", "escalate": "because", "needs": ["git-config"]});
    let call = call("shell", needs);
    let prepare = async |consent| {
        let seen = Default::default();
        fixture.toolbox().prepare(&call, consent, &seen).await
    };
    assert!(matches!(prepare(Consent::NotAsked).await, Prepared::Ask(_)));
    assert!(matches!(prepare(Consent::OfHook).await, Prepared::Run(..)));
}

/// Regression: the directory was shown as the model wrote it, and a tool could replace it by a link before the call ran.
#[tokio::test]
async fn a_call_with_needs_runs_in_the_working_directory() {
    let fixture = confined();
    std::fs::create_dir(fixture.options.cwd.join("build")).unwrap();
    let prepare = async |cwd: &str, consent| {
        let input =
            json!({"command": "true", "cwd": cwd, "escalate": "x", "needs": ["git-config"]});
        let seen = Default::default();
        let call = call("shell", input);
        fixture.toolbox().prepare(&call, consent, &seen).await
    };
    for consent in [Consent::NotAsked, Consent::OfHook, Consent::Given] {
        let elsewhere = prepare("build", consent).await;
        assert!(
            matches!(elsewhere, Prepared::Refuse { .. }),
            "{elsewhere:?}"
        );
    }
    let here = fixture.options.cwd.display().to_string();
    for here in [".", "build/..", &here] {
        let here = prepare(here, Consent::NotAsked).await;
        assert!(matches!(here, Prepared::Ask(_)), "{here:?}");
    }
}

/// Regression: a rule for a command also covered the same command in the background, which keeps what it gets.
#[tokio::test]
async fn a_rule_covers_no_call_in_the_background() {
    let mut fixture = confined();
    fixture.options.rules.push(Rule {
        tool: "shell".to_owned(),
        pattern: Some("true".to_owned()),
        decision: Decision::Allow,
        needs: vec!["git-config".to_owned()],
    });
    let prepare = async |in_background: bool| {
        let call = call(
            "shell",
            json!({
                "command": "true",
                "run_in_background": in_background,
                "escalate": "x",
                "needs": ["git-config"],
            }),
        );
        let seen = Default::default();
        fixture
            .toolbox()
            .prepare(&call, Consent::NotAsked, &seen)
            .await
    };
    assert!(matches!(prepare(false).await, Prepared::Run(..)));
    assert!(matches!(prepare(true).await, Prepared::Ask(_)));
}
