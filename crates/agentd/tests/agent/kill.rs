//! SIGKILL in every phase of a turn, then `--resume`: nothing is lost, nothing runs twice, and the
//! provider accepts every request.

use super::judge::{self, count, judge, messages, outcomes, results, text_of};
use super::process::{DEADLINE, Ended, until};
use super::test_agent::{TestAgent, speech};
use agentd_core::event::{Event, MessageStatus};
use agentd_core::message::CallOutcome;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;

/// Kills in each phase.
const ROUNDS: usize = 20;

static KILLS: Mutex<BTreeMap<&str, usize>> = Mutex::new(BTreeMap::new());

/// Runs a phase many times, and prints how often each phase was killed so far.
fn phase(name: &'static str, round: impl Fn(usize)) {
    let long = std::env::var_os("AGENTD_TEST_LONG").is_some();
    let rounds = if long { ROUNDS * 10 } else { ROUNDS };
    for n in 0..rounds {
        round(n);
        *KILLS.lock().unwrap().entry(name).or_default() += 1;
    }
    let kills = KILLS.lock().unwrap();
    println!("kills so far:");
    for (phase, kills) in kills.iter() {
        println!("{kills:5} {phase}");
    }
    assert!(kills[name] >= ROUNDS);
}

/// The turn continues by itself; in every other round with another prompt after it.
fn continue_turn(harness: &TestAgent, round: usize) -> Ended {
    let run = harness.run().resume();
    let (run, turns) = match round % 2 {
        0 => (run.continue_turn(), 1),
        _ => (run.prompt("do: say the next one is answered"), 2),
    };
    let ended = run.ended();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert_eq!(ended.statuses(), vec!["completed"; turns], "{ended:#?}");
    if round % 2 == 1 {
        let last = ended.of_kind("turn_result")[1];
        assert_eq!(last["text"], "the next one is answered");
    }
    ended
}

fn result_text(events: &[Event], n: usize) -> String {
    text_of(&results(events).nth(n).unwrap().blocks)
}

/// A shell call that appends a line to a file.
fn effect(line: &str) -> String {
    format!(r#"call shell {{"command": "echo {line} >> effects; echo said {line}"}}"#)
}

// In the model's reply.

#[test]
fn what_had_streamed_is_kept_and_the_turn_goes_on() {
    // claude-code#24025, codex#12382
    phase("in mid-stream", |round| {
        let harness = TestAgent::round(round);
        let words = speech();
        let prompt = format!("do: slowly 30 {words} ;; say done");
        let agent = harness.run().prompt(&prompt).start();
        agent.nth_line("delta", round % 3, |line| line["kind"] == "delta");
        let killed = agent.kill();
        let resumed = continue_turn(&harness, round);
        let events = judge(&harness, &[&killed, &resumed]);
        let cut = messages(&events).next().unwrap();
        assert_eq!(cut.status, MessageStatus::Interrupted);
        assert!(words.starts_with(&text_of(&cut.blocks)));
        assert!(!text_of(&cut.blocks).is_empty());
    });
}

#[test]
fn a_reply_that_was_whole_and_not_yet_kept_is_cut_off_where_it_was_seen() {
    phase("before the reply is kept", |round| {
        let harness = TestAgent::round(round);
        let prompt = "do: slowly 20 a b c d e f ;; say done";
        let run = harness.run().prompt(prompt).hold("before-message");
        let killed = run.kill_at_hold();
        let resumed = continue_turn(&harness, round);
        let events = judge(&harness, &[&killed, &resumed]);
        let statuses: Vec<_> = messages(&events).map(|message| message.status).collect();
        if !killed.of_kind("delta").is_empty() {
            assert_eq!(statuses[0], MessageStatus::Interrupted);
        }
        assert!(
            statuses[1..]
                .iter()
                .all(|it| *it == MessageStatus::Complete)
        );
    });
}

// Between a call and its start.

#[test]
fn a_call_that_had_not_started_says_so_and_does_not_run() {
    phase("between request and start of a tool", |round| {
        let harness = TestAgent::round(round);
        let place = ["after-message", "before-tool_started"][round / 2 % 2];
        let prompt = format!("do: {} ;; say done", effect("a"));
        let killed = harness.run().prompt(&prompt).hold(place).kill_at_hold();
        let resumed = continue_turn(&harness, round);
        let events = judge(&harness, &[&killed, &resumed]);
        assert_eq!(outcomes(&events), [CallOutcome::NotStarted]);
        assert_eq!(harness.effects(), [""; 0]);
    });
}

#[test]
fn a_start_on_record_that_nobody_carried_out_is_not_started() {
    phase("after the start is on record", |round| {
        let harness = TestAgent::round(round);
        let prompt = format!("do: {} ;; say done", effect("a"));
        let run = harness.run().prompt(&prompt).hold("after-tool_started");
        let killed = run.kill_at_hold();
        let resumed = continue_turn(&harness, round);
        let events = judge(&harness, &[&killed, &resumed]);
        assert_eq!(outcomes(&events), [CallOutcome::NotStarted]);
        assert_eq!(harness.effects(), [""; 0]);
    });
}

// Around the claim.

#[test]
fn before_the_claim_either_the_shim_or_the_recovery_wins_and_never_both() {
    phase("before the claim", |round| {
        let harness = TestAgent::round(round);
        let prompt = format!("do: {} ;; say done", effect("a"));
        let run = harness.run().prompt(&prompt).hold_shims("after-order");
        let agent = run.start();
        let task = harness.held_task();
        let killed = agent.kill();
        let go = || harness.release();
        match round / 2 % 3 {
            // The recovery is first: the shim finds the claim taken.
            0 => {}
            // The shim is first, and its task runs while there is no agent process.
            1 => {
                go();
                until("the task's end", || {
                    task.join("exit").exists().then_some(())
                });
            }
            _ => harness.kill_shims(),
        }
        let resumed = continue_turn(&harness, round);
        go();
        until("the shims' end", || {
            harness.shims().is_empty().then_some(())
        });
        let events = judge(&harness, &[&killed, &resumed]);
        match round / 2 % 3 {
            1 => {
                assert_eq!(outcomes(&events), [CallOutcome::Ok]);
                assert_eq!(harness.effects(), ["a"]);
            }
            _ => {
                assert_eq!(outcomes(&events), [CallOutcome::NotStarted]);
                assert_eq!(harness.effects(), [""; 0]);
            }
        }
    });
}

#[test]
fn after_the_claim_the_task_is_the_shims_and_its_result_is_waited_for() {
    phase("after the claim", |round| {
        let harness = TestAgent::round(round);
        let prompt = format!("do: {} ;; say done", effect("a"));
        let run = harness.run().prompt(&prompt).hold_shims("after-claim.shim");
        let agent = run.start();
        harness.held_task();
        let killed = agent.kill();
        if round / 2 % 2 == 0 {
            // The outcome of a task whose shim was killed is unknown.
            harness.kill_shims();
            let resumed = continue_turn(&harness, round);
            let events = judge(&harness, &[&killed, &resumed]);
            assert_eq!(outcomes(&events), [CallOutcome::Unknown]);
            assert_eq!(harness.effects(), [""; 0]);
            return;
        }
        let mut agent = harness.run().resume().continue_turn().start();
        agent.event("incarnation_began");
        assert!(agent.is_running());
        harness.release();
        let resumed = agent.ended();
        assert_eq!(resumed.statuses(), ["completed"], "{resumed:#?}");
        let events = judge(&harness, &[&killed, &resumed]);
        assert_eq!(outcomes(&events), [CallOutcome::Ok]);
        assert_eq!(harness.effects(), ["a"]);
    });
}

// While a tool runs, and after it.

#[test]
fn a_tool_that_still_runs_is_waited_for_and_its_own_result_is_used() {
    // langgraph#7213: run again while it was still running
    phase("in mid-tool", |round| {
        let harness = TestAgent::round(round);
        let command = "echo begin >> effects; until [ -e release ]; do sleep 0.02; done; \
                       echo end >> effects; echo its own words";
        let prompt = format!(r#"do: call shell {{"command": "{command}"}} ;; say done"#);
        let agent = harness.run().prompt(&prompt).start();
        until("the tool", || {
            (harness.effects() == ["begin"]).then_some(())
        });
        let killed = agent.kill();
        let release = || fs::write(harness.work().join("release"), "").unwrap();
        let resumed = if round / 2 % 2 == 0 {
            // It ends while there is no agent process.
            release();
            until("its end", || harness.shims().is_empty().then_some(()));
            continue_turn(&harness, round)
        } else {
            let agent = harness.run().resume().continue_turn().start();
            agent.event("incarnation_began");
            let lines = agent.lines();
            assert!(!lines.iter().any(|line| line["kind"] == "result"));
            release();
            agent.ended()
        };
        assert_eq!(resumed.code, Some(0), "{resumed:#?}");
        let events = judge(&harness, &[&killed, &resumed]);
        assert_eq!(outcomes(&events), [CallOutcome::Ok]);
        assert!(result_text(&events, 0).contains("its own words"));
        assert_eq!(harness.effects(), ["begin", "end"]);
    });
}

#[test]
fn a_result_that_nobody_wrote_down_is_found() {
    // goose#11808
    phase("after the tool", |round| {
        let harness = TestAgent::round(round);
        let place = ["before-result", "before-tool_ended"][round / 2 % 2];
        let prompt = format!("do: {} ;; say done", effect("a"));
        let killed = harness.run().prompt(&prompt).hold(place).kill_at_hold();
        assert_eq!(harness.effects(), ["a"]);
        let resumed = continue_turn(&harness, round);
        let events = judge(&harness, &[&killed, &resumed]);
        assert_eq!(outcomes(&events), [CallOutcome::Ok]);
        assert!(result_text(&events, 0).contains("said a"));
        assert_eq!(harness.effects(), ["a"]);
    });
}

#[test]
fn a_kill_in_the_third_of_three_tools_keeps_one_and_two() {
    // goose#7827, #7785, #11909
    phase("in the third of three tools", |round| {
        let harness = TestAgent::round(round);
        let third = r#"call shell {"command": "echo c >> effects; sleep 60"}"#;
        let calls = [effect("a"), effect("b"), third.to_owned()].join(" | ");
        let prompt = format!("do: {calls} ;; say done");
        let agent = harness.run().prompt(&prompt).start();
        until("the third", || (harness.effects().len() == 3).then_some(()));
        let killed = agent.kill();
        harness.kill_shims();
        let resumed = continue_turn(&harness, round);
        let events = judge(&harness, &[&killed, &resumed]);
        let unknown = CallOutcome::Unknown;
        assert_eq!(
            outcomes(&events),
            [CallOutcome::Ok, CallOutcome::Ok, unknown]
        );
        assert!(result_text(&events, 0).contains("said a"));
        assert!(result_text(&events, 1).contains("said b"));
    });
}

#[test]
fn the_result_of_one_of_two_calls_beside_each_other_is_kept() {
    phase("between two parallel results", |round| {
        let harness = TestAgent::round(round);
        fs::write(harness.work().join("one"), "the first file").unwrap();
        fs::write(harness.work().join("two"), "the second file").unwrap();
        let prompt = r#"do: call read_file {"file_path": "one"} | call search_files {"pattern": "second"} ;; say done"#;
        let killed = harness
            .run()
            .prompt(prompt)
            .hold("after-result")
            .kill_at_hold();
        let before = harness.events();
        assert_eq!(results(&before).count(), 1);
        let kept = results(&before).next().unwrap().clone();
        let resumed = continue_turn(&harness, round);
        let events = judge(&harness, &[&killed, &resumed]);
        assert_eq!(results(&events).next(), Some(&kept));
        assert_eq!(
            outcomes(&events),
            [CallOutcome::Ok, CallOutcome::NotStarted]
        );
    });
}

// In what is written besides the journal.

#[test]
fn a_session_file_that_was_half_written_is_not_there() {
    phase("in mid-checkpoint", |round| {
        let harness = TestAgent::round(round);
        if round % 4 == 0 {
            // The first one there is to be.
            let run = harness
                .run()
                .prompt("do: say one")
                .hold("in-write.checkpoint");
            let killed = run.kill_at_hold();
            assert!(!harness.session_file().exists());
            let resumed = harness.run().resume_dir().prompt("do: say two").ended();
            assert_eq!(resumed.statuses(), ["completed"], "{resumed:#?}");
            judge(&harness, &[&killed, &resumed]);
            return;
        }
        let first = harness.run().prompt("do: say one").ended();
        let file = fs::read(harness.session_file()).unwrap();
        let run = harness.run().resume().prompt("do: say two");
        let killed = run.hold("in-write.checkpoint").kill_at_hold();
        assert_eq!(fs::read(harness.session_file()).unwrap(), file);
        let resumed = harness.run().resume().prompt("do: say three").ended();
        assert_eq!(resumed.code, Some(0), "{resumed:#?}");
        let events = judge(&harness, &[&first, &killed, &resumed]);
        assert_eq!(count(&events, "turn_ended"), 3);
        let last = harness.model.requests().pop().unwrap();
        let text = last.body.to_string();
        assert!(text.contains("say one") && text.contains("say two"));
    });
}

#[test]
fn a_file_is_all_old_or_all_new() {
    phase("in mid-file-write", |round| {
        let harness = TestAgent::round(round);
        let target = harness.work().join("notes.txt");
        let is_new = round / 2 % 2 == 0;
        let write = r#"call write_file {"file_path": "notes.txt", "content": "new words"}"#;
        let mut prompt = format!("do: {write} ;; say done");
        let mut expected = vec![CallOutcome::NotStarted];
        if !is_new {
            fs::write(&target, "old words").unwrap();
            let read = r#"call read_file {"file_path": "notes.txt"}"#;
            prompt = format!("do: {read} ;; {write} ;; say done");
            expected.insert(0, CallOutcome::Ok);
        }
        let killed = harness
            .run()
            .prompt(&prompt)
            .hold("before-rename.file")
            .kill_at_hold();
        let resumed = continue_turn(&harness, round);
        let events = judge(&harness, &[&killed, &resumed]);
        assert_eq!(outcomes(&events), expected);
        let names = fs::read_dir(harness.work()).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        match is_new {
            true => assert_eq!(names, [""; 0]),
            false => {
                assert_eq!(names, ["notes.txt"]);
                assert_eq!(fs::read_to_string(&target).unwrap(), "old words");
            }
        }
    });
}

#[test]
fn a_file_that_was_written_is_known_to_be() {
    phase("after the file is written", |round| {
        let harness = TestAgent::round(round);
        let prompt =
            r#"do: call write_file {"file_path": "notes.txt", "content": "new words"} ;; say done"#;
        let killed = harness
            .run()
            .prompt(prompt)
            .hold("before-result")
            .kill_at_hold();
        let resumed = continue_turn(&harness, round);
        let events = judge(&harness, &[&killed, &resumed]);
        assert_eq!(outcomes(&events), [CallOutcome::Ok]);
        let text = fs::read_to_string(harness.work().join("notes.txt")).unwrap();
        assert_eq!(text, "new words");
    });
}

// In compaction.

#[test]
fn a_summary_that_was_cut_off_is_made_anew_and_the_prompt_is_answered() {
    phase("in mid-compaction", |round| {
        let (harness, first) = TestAgent::long_conversation(round);
        let run = harness.run().resume().prompt("do: say it is short again");
        let killed = match round / 4 % 4 {
            0 => {
                let agent = run.start();
                agent.event("delta");
                agent.kill()
            }
            1 => run.hold("after-request_sent").kill_at_hold(),
            2 => run.hold("before-summary").kill_at_hold(),
            _ => run.hold("after-summary").kill_at_hold(),
        };
        let resumed = harness.run().resume().continue_turn().ended();
        assert_eq!(resumed.statuses(), ["completed"], "{resumed:#?}");
        assert_eq!(
            resumed.of_kind("turn_result")[0]["text"],
            "it is short again"
        );
        let events = judge(&harness, &[&first, &killed, &resumed]);
        assert_eq!(count(&events, "summary"), 1);
        let last = judge::last_said(&harness.model.requests().pop().unwrap());
        assert!(last.to_string().contains("it is short again"), "{last:#}");
        assert!(!last.to_string().contains("many words many words"));
    });
}

// In the recovery itself, and again and again.

#[test]
fn a_recovery_that_was_killed_is_done_once() {
    phase("in the recovery", |round| {
        let harness = TestAgent::round(round);
        let prompt = format!("do: {} ;; say done", effect("a"));
        let run = harness.run().prompt(&prompt).hold("before-result");
        let first = run.kill_at_hold();
        let place = ["before-incarnation_began", "after-incarnation_began"][round / 2 % 2];
        let run = harness.run().resume().continue_turn().hold(place);
        let second = run.kill_at_hold();
        let resumed = continue_turn(&harness, round);
        let events = judge(&harness, &[&first, &second, &resumed]);
        assert_eq!(outcomes(&events), [CallOutcome::Ok]);
        assert_eq!(harness.effects(), ["a"]);
    });
}

#[test]
fn a_turn_that_is_killed_again_and_again_is_given_up_and_the_next_prompt_is_answered() {
    for round in 0..4 {
        let harness = TestAgent::round(round);
        let mut runs = Vec::new();
        for n in 0..3 {
            let run = match n {
                0 => harness
                    .run()
                    .prompt("do: hang ;; hang ;; hang ;; say never"),
                _ => harness.run().resume().continue_turn(),
            };
            let agent = run.start();
            assert!(harness.model.wait_for_requests(n + 1, DEADLINE));
            runs.push(agent.kill());
        }
        let run = harness.run().resume().prompt("do: say the next one");
        let resumed = run.ended();
        assert_eq!(resumed.code, Some(0), "{resumed:#?}");
        assert_eq!(resumed.statuses(), ["lost", "completed"], "{resumed:#?}");
        runs.push(resumed);
        judge(&harness, &runs.iter().collect::<Vec<_>>());
        assert_eq!(harness.model.requests().len(), 4);
    }
}

#[test]
fn prompts_that_wait_are_answered_once_each_and_in_order() {
    // goose#9037, #9042
    for round in 0..4 {
        let harness = TestAgent::round(round);
        let mut agent = harness.run().open().start();
        agent.send("do: hang ;; say one");
        assert!(harness.model.wait_for_requests(1, DEADLINE));
        agent.send("do: say two");
        agent.send(r#"{"v":1,"turn_id":"third","input":"do: say three"}"#);
        agent.nth_line("prompt", 2, |line| line["kind"] == "prompt");
        let killed = agent.kill();
        let mut agent = harness.run().resume().open().start();
        agent.send(r#"{"v":1,"turn_id":"third","input":"do: say three"}"#);
        agent.line("remark", |line| line["remark"] == "repeated");
        agent.close();
        // The first still hangs, as its reply holds no word to go on behind.
        assert!(harness.model.wait_for_requests(2, DEADLINE));
        agent.signal(Signal::INT);
        let resumed = agent.ended();
        let statuses = ["interrupted", "completed", "completed"];
        assert_eq!(resumed.statuses(), statuses, "{resumed:#?}");
        let texts = resumed.of_kind("turn_result");
        let texts: Vec<_> = texts.iter().map(|line| &line["text"]).collect();
        assert_eq!(texts[1..], ["two", "three"]);
        judge(&harness, &[&killed, &resumed]);
    }
}
