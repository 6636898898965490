//! After SIGTERM the agent finishes the current step, saves, and exits with 0; after a second SIGTERM it exits at once.
//! SIGHUP is ignored.

use super::judge::{judge, messages, outcomes, results, text_of};
use super::process::{Agent, Ended, until};
use super::test_agent::{FORMATS, TestAgent};
use agentd_core::event::MessageStatus;
use agentd_core::message::CallOutcome;
use agentd_testkit::model::Format;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

const WAITS: &str = "do: call shell {\"command\": \"echo begin >> effects; until [ -e release ]; \
                     do sleep 0.02; done; echo end >> effects; echo its own words\"} ;; say done";

/// Long enough that SIGTERM arrives in the middle of it.
const SPEECH: &str = "a few words that have an end, which is a good while away, so that there is time \
                      to say something before it comes, and it is heard in time";

/// It exits with 0, and what it saved can be read.
fn saved(harness: &TestAgent, agent: Agent) -> Ended {
    let ended = agent.ended();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    let file = fs::read(harness.session_file()).unwrap();
    let file: Value = serde_json::from_slice(&file).unwrap();
    let head = file["session"]["head"]["seq"].as_u64().unwrap();
    assert_eq!(head, harness.events().len() as u64);
    ended
}

fn continue_turn(harness: &TestAgent) -> Ended {
    let resumed = harness.run().resume().continue_turn().ended();
    assert_eq!(resumed.code, Some(0), "{resumed:#?}");
    assert_eq!(resumed.statuses(), ["completed"], "{resumed:#?}");
    resumed
}

fn release(harness: &TestAgent) {
    fs::write(harness.work().join("release"), "").unwrap();
}

#[test]
fn in_mid_stream_the_reply_is_finished_and_the_turn_goes_on_later() {
    for format in FORMATS {
        let harness = TestAgent::new(format);
        let call = r#"call shell {"command": "echo a >> effects"}"#;
        let agent = harness
            .run()
            .prompt(&format!("do: slowly 40 {SPEECH} | {call} ;; say done"))
            .start();
        agent.event("delta");
        agent.signal(Signal::TERM);
        let first = saved(&harness, agent);
        assert_eq!(first.statuses(), [""; 0]);
        assert_eq!(harness.model.requests().len(), 1);
        let second = continue_turn(&harness);
        let events = judge(&harness, &[&first, &second]);
        let reply = messages(&events).next().unwrap();
        assert_eq!(reply.status, MessageStatus::Complete);
        assert_eq!(text_of(&reply.blocks), SPEECH);
        assert_eq!(outcomes(&events).len(), 1);
    }
}

#[test]
fn in_mid_tool_its_result_is_waited_for_and_the_turn_goes_on_later() {
    for format in FORMATS {
        let harness = TestAgent::new(format);
        let mut agent = harness.run().prompt(WAITS).start();
        until("the tool", || (harness.effects().len() == 1).then_some(()));
        agent.signal(Signal::TERM);
        assert!(agent.is_running());
        release(&harness);
        let first = saved(&harness, agent);
        assert_eq!(harness.model.requests().len(), 1);
        let second = continue_turn(&harness);
        let events = judge(&harness, &[&first, &second]);
        assert_eq!(outcomes(&events), [CallOutcome::Ok]);
        assert_eq!(harness.effects(), ["begin", "end"]);
    }
}

#[test]
fn an_idle_agent_exits_with_0() {
    let harness = TestAgent::new(Format::Anthropic);
    let mut agent = harness.run().open().start();
    agent.send("do: say one");
    assert_eq!(agent.turn_result(0)["status"], "completed");
    agent.signal(Signal::TERM);
    let first = saved(&harness, agent);
    let second = harness.run().resume().prompt("do: say two").ended();
    assert_eq!(second.statuses(), ["completed"], "{second:#?}");
    judge(&harness, &[&first, &second]);
}

#[test]
fn in_back_off_it_does_not_wait_for_the_next_try() {
    let harness = TestAgent::new(Format::OpenaiChat);
    let agent = harness.run().prompt("do: fail 503 60 | say done").start();
    agent.event("request_ended");
    agent.signal(Signal::TERM);
    let first = saved(&harness, agent);
    let second = continue_turn(&harness);
    judge(&harness, &[&first, &second]);
}

#[test]
fn a_second_one_exits_at_once_and_the_tool_is_adopted_later() {
    for format in FORMATS {
        let harness = TestAgent::new(format);
        let mut agent = harness.run().prompt(WAITS).start();
        until("the tool", || (harness.effects().len() == 1).then_some(()));
        agent.signal(Signal::TERM);
        agent.until_taken(Signal::TERM);
        assert!(agent.is_running());
        // Two that come before one is looked at are one: told again until it has heard.
        until("its end", || {
            agent.signal(Signal::TERM);
            (!agent.is_running()).then_some(())
        });
        let first = agent.ended();
        assert_eq!(first.code, Some(143), "{first:#?}");
        assert_eq!(harness.effects(), ["begin"]);
        assert_eq!(harness.shims().len(), 1);
        let agent = harness.run().resume().continue_turn().start();
        agent.event("incarnation_began");
        release(&harness);
        let second = agent.ended();
        assert_eq!(second.statuses(), ["completed"], "{second:#?}");
        let events = judge(&harness, &[&first, &second]);
        assert_eq!(outcomes(&events), [CallOutcome::Ok]);
        let result = results(&events).next().unwrap();
        assert!(text_of(&result.blocks).contains("its own words"));
        assert_eq!(harness.effects(), ["begin", "end"]);
    }
}

#[test]
fn a_hangup_is_ignored() {
    let harness = TestAgent::new(Format::Gemini);
    let mut agent = harness.run().open().start();
    agent.send("do: slowly 30 a few words to the end");
    agent.event("delta");
    agent.signal(Signal::HUP);
    let result = agent.turn_result(0);
    assert_eq!(result["status"], "completed");
    assert_eq!(result["text"], "a few words to the end");
    agent.signal(Signal::HUP);
    agent.send("do: say and on");
    assert_eq!(agent.turn_result(1)["text"], "and on");
    agent.close();
    let ended = agent.ended();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    judge(&harness, &[&ended]);
}
