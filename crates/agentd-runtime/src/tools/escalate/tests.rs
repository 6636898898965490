use crate::driver::Tools as _;
use crate::tools::tests::{Fixture, call};
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
