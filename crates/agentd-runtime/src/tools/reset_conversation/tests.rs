//! The call only records the request for a reset, and only if the agent may make one.

use crate::tools::tests::Fixture;
use agentd_core::event::Body;
use agentd_core::message::CallOutcome;
use serde_json::json;

fn names(fixture: &Fixture) -> Vec<String> {
    let tools = fixture.toolbox().declarations().into_iter();
    tools.map(|tool| tool.name).collect()
}

#[tokio::test]
async fn a_fresh_conversation_is_only_put_on_record_and_only_by_those_who_may() {
    let mut fixture = Fixture::new();
    assert!(!names(&fixture).contains(&"reset_conversation".to_owned()));
    fixture.options.may_reset = true;
    // A list of tools does not take it away: leave for it is given elsewhere.
    fixture.options.tools = Some(vec!["shell".into()]);
    assert_eq!(names(&fixture), ["shell", "reset_conversation"]);
    let reason = json!({"reason": "the key is sk-0123456789"});
    let finished = fixture.finish("reset_conversation", reason).await;
    assert_eq!(finished.outcome, CallOutcome::Ok);
    let [Body::ResetScheduled(_), Body::Note(note)] = &finished.also[..] else {
        panic!("{:?}", finished.also);
    };
    assert!(!note.text.contains("sk-0123456789"), "{}", note.text);
    let silent = fixture.finish("reset_conversation", json!({})).await;
    assert_eq!(silent.also.len(), 1);
}
