//! Limits are checked before the request that could exceed them, and a turn that reached a limit continues when the limit
//! was raised.

use super::judge::judge;
use super::process::Ended;
use super::test_agent::{FORMATS, TestAgent, speech};
use agentd_core::event::{Body, Event, RequestEnded};
use agentd_testkit::model::Format;
use serde_json::Value;
use std::fs;

const TWO_TOOLS: &str = "do: call shell {\"command\": \"echo a >> effects\"} ;; \
                         call shell {\"command\": \"echo b >> effects\"} ;; say done";
const PRICED: &str = "[models.\"some-model\"]\ninput_usd = 10\noutput_usd = 50\n";

/// It ended at the limit, before the second request.
fn limited(harness: &TestAgent, ended: &Ended, limit: &str) {
    assert_eq!(ended.code, Some(5), "{ended:#?}");
    assert_eq!(ended.statuses(), ["limited"]);
    assert_eq!(ended.of_kind("turn_result")[0]["error"], limit);
    assert_eq!(harness.model.requests().len(), 1);
    assert!(ended.stderr.contains("--continue-turn"), "{}", ended.stderr);
    let file = fs::read(harness.session_file()).unwrap();
    let file: Value = serde_json::from_slice(&file).unwrap();
    assert_eq!(file["session"]["last_turn"]["status"], "limited");
}

fn request_ends(events: &[Event]) -> Vec<RequestEnded> {
    let ends = events.iter().filter_map(|event| match &event.body {
        Body::RequestEnded(ended) => Some(ended.clone()),
        _ => None,
    });
    ends.collect()
}

#[test]
fn a_token_limit_ends_the_turn_before_it_is_passed_and_raised_it_goes_on() {
    for format in FORMATS {
        let harness = TestAgent::new(format);
        let run = harness.run().prompt(TWO_TOOLS);
        let first = run.arg("--max-turn-tokens").arg("3600").ended();
        limited(&harness, &first, "turn_tokens");
        let run = harness.run().resume().continue_turn();
        let second = run.arg("--max-turn-tokens").arg("100000").ended();
        assert_eq!(second.code, Some(0), "{second:#?}");
        assert_eq!(second.statuses(), ["completed"]);
        assert_eq!(harness.effects(), ["a", "b"]);
        let events = judge(&harness, &[&first, &second]);
        let resumes = events.iter().filter_map(|event| match &event.body {
            Body::TurnStarted(started) => Some(started.resumes.is_some()),
            _ => None,
        });
        assert_eq!(resumes.collect::<Vec<_>>(), [false, true]);
        for ended in request_ends(&events) {
            assert!(!ended.estimated && ended.usage.input_tokens > 0);
        }
    }
}

#[test]
fn a_limit_that_was_not_raised_ends_it_again_without_a_request() {
    let harness = TestAgent::new(Format::Anthropic);
    let run = harness.run().prompt(TWO_TOOLS);
    let first = run.arg("--max-turn-tokens").arg("1000").ended();
    assert_eq!(first.code, Some(5), "{first:#?}");
    let second = harness.run().resume().continue_turn().ended();
    assert_eq!(second.code, Some(5), "{second:#?}");
    assert_eq!(harness.model.requests().len(), 0);
    judge(&harness, &[&first, &second]);
}

#[test]
fn a_money_limit_ends_the_turn_before_it_is_passed_and_raised_it_goes_on() {
    let harness = TestAgent::new(Format::Anthropic);
    harness.config(PRICED);
    let run = harness.run().prompt(TWO_TOOLS);
    let first = run.arg("--max-usd").arg("0.036").ended();
    limited(&harness, &first, "turn_cost");
    let cost = first.of_kind("turn_result")[0]["usage"]["cost_usd"].as_f64();
    assert!(
        cost.is_some_and(|cost| cost > 0.0 && cost <= 0.036),
        "{cost:?}"
    );
    let run = harness.run().resume().continue_turn();
    let second = run.arg("--max-usd").arg("2.50").ended();
    assert_eq!(second.code, Some(0), "{second:#?}");
    assert_eq!(harness.effects(), ["a", "b"]);
    judge(&harness, &[&first, &second]);
}

#[test]
fn a_try_that_ended_without_usage_is_charged() {
    for format in FORMATS {
        let harness = TestAgent::new(format);
        let run = harness
            .run()
            .prompt("do: drop 3 | say a few words ;; say done");
        let first = run.arg("--max-turn-tokens").arg("3600").ended();
        limited(&harness, &first, "turn_tokens");
        let events = judge(&harness, &[&first]);
        let ends = request_ends(&events);
        assert!(ends[0].estimated);
        assert!(ends[0].usage.input_tokens > 500);
    }
}

#[test]
fn a_try_that_was_killed_is_charged() {
    let harness = TestAgent::new(Format::Anthropic);
    let words = format!("do: slowly 30 {}", speech());
    let agent = harness
        .run()
        .prompt(&words)
        .arg("--max-turn-tokens")
        .arg("4500")
        .start();
    agent.event("delta");
    let killed = agent.kill();
    let resumed = harness.run().resume().continue_turn().ended();
    limited(&harness, &resumed, "turn_tokens");
    let events = judge(&harness, &[&killed, &resumed]);
    assert!(request_ends(&events)[0].estimated);
}

#[test]
fn a_money_limit_on_a_model_of_unknown_price_is_refused_at_the_start() {
    let harness = TestAgent::new(Format::Anthropic);
    let run = harness.run().prompt("do: say one");
    let ended = run.arg("--max-usd").arg("1").ended();
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(ended.stderr.contains("price"), "{}", ended.stderr);
    assert_eq!(harness.model.requests().len(), 0);
}

#[test]
fn iterations_are_a_limit_too() {
    let harness = TestAgent::new(Format::Anthropic);
    let run = harness.run().prompt(TWO_TOOLS);
    let first = run.arg("--max-iterations").arg("1").ended();
    limited(&harness, &first, "iterations");
    let second = harness.run().resume().continue_turn();
    let second = second.arg("--max-iterations").arg("9").ended();
    assert_eq!(second.statuses(), ["completed"], "{second:#?}");
    judge(&harness, &[&first, &second]);
}

#[test]
fn a_limit_that_was_raised_after_a_kill_holds_from_the_first_request() {
    let harness = TestAgent::new(Format::Anthropic);
    let words = format!("do: slowly 30 {} ;; say done", speech());
    let run = harness.run().prompt(&words);
    let agent = run.arg("--max-turn-tokens").arg("4500").start();
    agent.event("delta");
    let killed = agent.kill();
    let run = harness.run().resume().continue_turn();
    let resumed = run.arg("--max-turn-tokens").arg("100000").ended();
    assert_eq!(resumed.code, Some(0), "{resumed:#?}");
    assert_eq!(resumed.statuses(), ["completed"]);
    judge(&harness, &[&killed, &resumed]);
}
