//! It is only put on record, and only by those who may.

use crate::tools::tests::Stage;
use agentd_core::event::Body;
use agentd_core::message::CallOutcome;
use serde_json::json;

fn names(stage: &Stage) -> Vec<String> {
    let tools = stage.toolbox().declarations().into_iter();
    tools.map(|tool| tool.name).collect()
}

#[tokio::test]
async fn a_fresh_conversation_is_only_put_on_record_and_only_by_those_who_may() {
    let mut stage = Stage::new();
    assert!(!names(&stage).contains(&"reset_conversation".to_owned()));
    stage.options.may_reset = true;
    // A list of tools does not take it away: leave for it is given elsewhere.
    stage.options.tools = Some(vec!["shell".into()]);
    assert_eq!(names(&stage), ["shell", "reset_conversation"]);
    let reason = json!({"reason": "the key is sk-0123456789"});
    let finished = stage.finish("reset_conversation", reason).await;
    assert_eq!(finished.outcome, CallOutcome::Ok);
    let [Body::ResetScheduled(_), Body::Note(note)] = &finished.also[..] else {
        panic!("{:?}", finished.also);
    };
    assert!(!note.text.contains("sk-0123456789"), "{}", note.text);
    let silent = stage.finish("reset_conversation", json!({})).await;
    assert_eq!(silent.also.len(), 1);
}
