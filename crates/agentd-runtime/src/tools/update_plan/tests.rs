//! Plans that are set, and plans that are refused.

use crate::tools::tests::Fixture;
use agentd_core::event::{Body, StepState};
use agentd_core::message::Block;
use agentd_core::spec::{ApprovalMode, Decision};
use agentd_core::turn::{Consent, Prepared};
use agentd_core::window::SeenFiles;
use serde_json::{Value, json};

fn steps(states: &[&str]) -> Value {
    let step = |state: &&str| json!({"step": format!("do {state}"), "state": state});
    json!({"steps": states.iter().map(step).collect::<Vec<_>>()})
}

#[tokio::test]
async fn a_plan_is_recorded_without_secrets() {
    let fixture = Fixture::new();
    let arguments = json!({
        "steps": [
            {"step": "look at sk-0123456789", "state": "done"},
            {"step": " write ", "state": "in_progress"},
            {"step": "test", "state": "pending"},
        ],
        "explanation": "the key is sk-0123456789",
    });
    let started = fixture.started("update_plan", arguments.clone()).await;
    let finished = fixture.run("update_plan", arguments, started).await;
    let [Body::PlanSet(plan)] = &finished.also[..] else {
        panic!("{finished:?}")
    };
    assert_eq!(plan.steps[1].step, "write");
    assert_eq!(plan.steps[1].state, StepState::InProgress);
    let text = format!("{plan:?}");
    assert!(!text.contains("sk-0123456789"), "{text}");
    let [Block::Text { text }] = &finished.blocks[..] else {
        panic!("{finished:?}")
    };
    let expected = "The plan was updated: 1 of 3 steps are done. Continue with: write";
    assert_eq!(text, expected);
}

#[tokio::test]
async fn other_names_of_the_same_arguments_are_accepted() {
    let fixture = Fixture::new();
    let arguments = json!({"plan": [{"step": "a", "status": "completed"}]});
    let text = fixture.ok("update_plan", arguments).await;
    assert_eq!(text, "The plan was updated: all 1 steps are done.");
    let text = fixture.ok("update_plan", json!({"steps": []})).await;
    assert_eq!(text, "The plan was removed.");
}

#[tokio::test]
async fn what_is_wrong_with_a_plan_is_said() {
    let fixture = Fixture::new();
    for (arguments, said) in [
        (steps(&["pending"; 21]), "at most 20 steps"),
        (steps(&["in_progress", "in_progress"]), "both in_progress"),
        (
            json!({"steps": [{"step": " ", "state": "done"}]}),
            "is empty",
        ),
        (
            json!({"steps": [{"step": "x".repeat(201), "state": "done"}]}),
            "201 characters",
        ),
        (steps(&["later"]), "unknown variant `later`"),
        (json!({"steps": ["a"]}), "Invalid arguments"),
        (json!({}), "missing field `steps`"),
        (json!({"steps": [], "why": ""}), "unknown field `why`"),
    ] {
        let text = fixture.error("update_plan", arguments).await;
        assert!(text.contains(said), "{text}");
    }
}

#[tokio::test]
async fn it_never_asks() {
    let mut fixture = Fixture::new().rule("*", "*", Decision::Ask);
    fixture.options.approval = ApprovalMode::Always;
    let call = crate::tools::tests::call("update_plan", steps(&["done"]));
    let toolbox = fixture.toolbox();
    let seen = SeenFiles::default();
    let prepared = crate::driver::Tools::prepare(&toolbox, &call, Consent::NotAsked, &seen).await;
    assert!(matches!(prepared, Prepared::Run(..)), "{prepared:?}");
}
