//! SIGINT in every phase: the turn ends as interrupted at once, with all that it started, and the next
//! prompt is answered.

use super::judge::{judge, last_said, messages, outcomes, text_of};
use super::process::{Agent, until};
use super::test_agent::{FORMATS, TestAgent, speech};
use agentd_core::event::{Event, MessageStatus};
use agentd_core::message::CallOutcome;
use agentd_testkit::model::Format;
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// The promise is one second; the rest allows for a busy machine.
const SOON: Duration = Duration::from_secs(3);
const NEXT: &str = "do: say this is the next one";

fn open(harness: &TestAgent) -> Agent {
    let file = harness.agent_file("");
    harness.run().arg("--file").arg(file).open().start()
}

/// Interrupts the turn that runs; then the next prompt is answered, and the run ends.
fn interrupt(phase: &str, harness: &TestAgent, agent: Agent) -> Vec<Event> {
    interrupt_nth(phase, harness, agent, 0)
}

fn interrupt_nth(phase: &str, harness: &TestAgent, mut agent: Agent, turn: usize) -> Vec<Event> {
    let begin = Instant::now();
    agent.signal(Signal::INT);
    let result = agent.turn_result(turn);
    let took = begin.elapsed();
    println!("{phase}: {} ms", took.as_millis());
    assert!(took < SOON, "{phase}: {took:?}");
    assert_eq!(result["status"], "interrupted");
    // Nothing that the turn started is left.
    assert_eq!(harness.tool_processes(), [0; 0], "{phase}");
    assert!(agent.is_running());
    let ended = answer_next(harness, agent, turn + 1);
    judge(harness, &[&ended])
}

/// goose#11996: the model resumed the cancelled task instead of answering the next prompt.
fn answer_next(harness: &TestAgent, mut agent: Agent, turn: usize) -> super::process::Ended {
    agent.send(NEXT);
    let result = agent.turn_result(turn);
    assert_eq!(result["status"], "completed");
    assert_eq!(result["text"], "this is the next one");
    let last = last_said(&harness.model.requests().pop().unwrap());
    assert!(last.to_string().contains(NEXT), "{last:#}");
    agent.close();
    let ended = agent.ended();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    ended
}

#[test]
fn in_mid_stream_the_words_so_far_are_kept() {
    for format in FORMATS {
        let harness = TestAgent::new(format);
        let mut agent = open(&harness);
        agent.send(&format!("do: slowly 30 {} ;; say I go on", speech()));
        agent.event("delta");
        let events = interrupt("in mid-stream", &harness, agent);
        let cut = messages(&events).next().unwrap();
        assert_eq!(cut.status, MessageStatus::Interrupted);
        let words = text_of(&cut.blocks);
        assert!(!words.is_empty() && speech().starts_with(&words));
    }
}

#[test]
fn a_model_that_hangs_is_let_go_of() {
    for format in FORMATS {
        let harness = TestAgent::new(format);
        let mut agent = open(&harness);
        agent.send("do: hang");
        assert!(harness.model.wait_for_requests(1, super::process::DEADLINE));
        interrupt("while the model hangs", &harness, agent);
    }
}

/// A shell call that reports when it has started.
fn with_tool(command: &str) -> (TestAgent, Vec<Event>) {
    let harness = TestAgent::new(Format::Anthropic);
    let mut agent = open(&harness);
    let script = format!(r#"do: call shell {{"command": "{command}"}} ;; say I go on"#);
    agent.send(&script);
    until("the tool", || {
        harness.work().join("up").exists().then_some(())
    });
    until("its processes", || {
        (!harness.tool_processes().is_empty()).then_some(())
    });
    let events = interrupt(command, &harness, agent);
    assert_eq!(outcomes(&events), [CallOutcome::Interrupted]);
    (harness, events)
}

#[test]
fn a_tool_that_runs_is_ended() {
    with_tool("echo up > up; sleep 600");
}

#[test]
fn a_tool_that_ignores_being_asked_is_ended() {
    with_tool("trap '' TERM INT HUP; echo up > up; while true; do sleep 1; done");
}

#[test]
fn what_a_tool_put_into_a_session_of_its_own_is_ended() {
    with_tool(
        "setsid sh -c 'trap true TERM; while true; do sleep 1; done' & (setsid sleep 600 & ) ; \
         (nohup sleep 600 > nohup 2>&1 &) ; echo up > up; sleep 600",
    );
}

#[test]
fn what_the_tool_had_written_is_told() {
    let (_world, events) = with_tool("echo the words so far; echo up > up; sleep 600");
    let result = super::judge::results(&events).next().unwrap();
    assert!(text_of(&result.blocks).contains("the words so far"));
}

#[test]
fn after_an_interrupt_nothing_new_starts() {
    // goose#9938
    let harness = TestAgent::new(Format::OpenaiChat);
    let mut agent = open(&harness);
    let second = r#"call shell {"command": "echo second >> effects"}"#;
    agent.send(&format!(
        r#"do: call shell {{"command": "echo up > up; sleep 600"}} | {second} ;; say I go on"#
    ));
    until("the tool", || {
        harness.work().join("up").exists().then_some(())
    });
    let events = interrupt("before a second tool", &harness, agent);
    assert_eq!(outcomes(&events), [CallOutcome::Interrupted; 2]);
    assert_eq!(harness.effects(), [""; 0]);
}

#[test]
fn a_wait_after_a_refusal_is_cut_short() {
    let harness = TestAgent::new(Format::Anthropic);
    let mut agent = open(&harness);
    agent.send("do: fail 429 60 x9 ;; say I go on");
    agent.event("request_ended");
    interrupt("during back-off", &harness, agent);
}

#[test]
fn a_single_prompt_that_waits_after_a_refusal_ends_with_130() {
    let harness = TestAgent::new(Format::Gemini);
    let agent = harness.run().prompt("do: fail 429 60 x9").start();
    agent.event("request_ended");
    let begin = Instant::now();
    agent.signal(Signal::INT);
    let ended = agent.ended();
    println!("a single prompt: {} ms", begin.elapsed().as_millis());
    assert_eq!(ended.code, Some(130), "{ended:#?}");
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    judge(&harness, &[&ended]);
}

#[test]
fn between_two_prompts_it_changes_nothing() {
    let harness = TestAgent::new(Format::OpenaiResponses);
    let mut agent = open(&harness);
    agent.send("do: say one");
    assert_eq!(agent.turn_result(0)["status"], "completed");
    agent.signal(Signal::INT);
    agent.until_taken(Signal::INT);
    // It has been heard once what comes after it is answered.
    agent.send(r#"{"v": 9}"#);
    agent.event("error");
    let ended = answer_next(&harness, agent, 1);
    let events = judge(&harness, &[&ended]);
    assert_eq!(super::judge::count(&events, "turn_ended"), 2);
    assert_eq!(super::judge::count(&events, "notice"), 0);
}

#[test]
fn during_compaction_the_turn_ends_and_the_next_one_compacts() {
    for round in 0..4 {
        let (harness, first) = TestAgent::long_conversation(round);
        let mut agent = harness.run().resume().open().start();
        agent.send("do: say never said");
        agent.event("delta");
        let events = interrupt("during compaction", &harness, agent);
        assert!(!events.is_empty() && first.code == Some(0));
        let texts: String = messages(&events).map(|it| text_of(&it.blocks)).collect();
        assert!(!texts.contains("never said"));
    }
}

#[test]
fn a_prompt_that_waits_behind_the_turn_is_not_lost() {
    // goose#9037, claude-code#65360
    let harness = TestAgent::new(Format::Anthropic);
    let mut agent = open(&harness);
    agent.send("do: hang");
    assert!(harness.model.wait_for_requests(1, super::process::DEADLINE));
    agent.send("do: say I waited");
    agent.nth_line("prompt", 1, |line| line["kind"] == "prompt_queued");
    agent.signal(Signal::INT);
    assert_eq!(agent.turn_result(0)["status"], "interrupted");
    let second = agent.turn_result(1);
    assert_eq!(second["text"], "I waited");
    let ended = answer_next(&harness, agent, 2);
    judge(&harness, &[&ended]);
}

#[test]
fn a_kill_right_after_an_interrupt_does_not_bring_the_task_back() {
    // goose#11996
    let harness = TestAgent::new(Format::Anthropic);
    let mut agent = open(&harness);
    agent.send(&format!("do: slowly 30 {} ;; say I go on", speech()));
    agent.event("delta");
    agent.signal(Signal::INT);
    agent.event("turn_ended");
    let killed = agent.kill();
    let resumed = harness.run().resume().prompt(NEXT).ended();
    assert_eq!(resumed.statuses(), ["completed"], "{resumed:#?}");
    assert_eq!(
        resumed.of_kind("turn_result")[0]["text"],
        "this is the next one"
    );
    judge(&harness, &[&killed, &resumed]);
    assert_eq!(harness.model.requests().len(), 2);
}

#[test]
fn a_tool_of_a_process_before_this_one_is_ended_too() {
    let harness = TestAgent::new(Format::Anthropic);
    let mut agent = open(&harness);
    agent.send(r#"do: call shell {"command": "echo up > up; sleep 600"} ;; say I go on"#);
    until("the tool", || {
        harness.work().join("up").exists().then_some(())
    });
    let killed = agent.kill();
    assert_ne!(harness.tool_processes(), [0; 0]);
    let agent = harness.run().resume().open().start();
    agent.event("incarnation_began");
    let events = interrupt("an adopted tool", &harness, agent);
    assert_eq!(outcomes(&events), [CallOutcome::Interrupted]);
    judge(&harness, &[&killed]);
}
