//! An agent without a daemon keeps what its tools change, within the same limit.

use super::judge::judge;
use super::test_agent::TestAgent;
use agentd_core::event::{Body, Event, Kind};
use agentd_testkit::model::Format;
use serde_json::json;

#[test]
fn past_the_limit_the_oldest_contents_go_also_after_a_resume() {
    let harness = TestAgent::new(Format::Anthropic);
    let file = harness.agent_file("limits:\n  file_history_bytes: 100");
    let write = |n: usize| {
        let content = format!("{n:>39}\n");
        format!(
            "call write_file {}",
            json!({"file_path": "a.txt", "content": content})
        )
    };
    let writes: Vec<String> = (0..5).map(write).collect();
    let prompt = format!("do: {} ;; say done", writes.join(" ;; "));
    let first = harness
        .run()
        .arg("--file")
        .arg(&file)
        .prompt(&prompt)
        .ended();
    assert_eq!(first.statuses(), ["completed"], "{first:#?}");
    let left = |events: &[Event]| {
        let is_kept = |event: &&Event| matches!(event.body, Body::FileKept(_));
        events.iter().filter(is_kept).count()
    };
    let events = judge(&harness, &[&first]);
    assert_eq!(left(&events), 2);
    let prompt = format!("do: {} ;; say done", write(9));
    let second = harness.run().resume().prompt(&prompt).ended();
    assert_eq!(second.statuses(), ["completed"], "{second:#?}");
    let events = judge(&harness, &[&first, &second]);
    assert_eq!(left(&events), 2);
    let gone = |event: &&Event| matches!(event.body, Body::Gone(Kind::FileKept));
    assert_eq!(events.iter().filter(gone).count(), 4);
}
