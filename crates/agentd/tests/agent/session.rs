//! What `--resume` continues from: the session file, the journal beside it, or neither.

use super::judge::{count, judge};
use super::process::Ended;
use super::test_agent::TestAgent;
use agentd_core::event::{Body, Event};
use agentd_testkit::model::{Format, Recorded};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::path::Path;

fn harness_with_a_turn() -> (TestAgent, Ended) {
    let harness = TestAgent::new(Format::Anthropic);
    let first = harness
        .run()
        .prompt("do: say the answer to the first")
        .ended();
    assert_eq!(first.statuses(), ["completed"], "{first:#?}");
    (harness, first)
}

/// The file with a changed session and a valid checksum.
fn resealed(file: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let file: Value = serde_json::from_slice(file).unwrap();
    let mut session = file["session"].clone();
    change(&mut session);
    let text = session.to_string();
    let hash = Sha256::digest(text.as_bytes());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let sealed = format!(r#"{{"format":"agentd-session","sha256":"{hash}","session":{text}}}"#);
    sealed.into_bytes()
}

#[test]
fn a_damaged_file_is_refused_by_name_of_the_last_good_state_and_nothing_changes() {
    // claude-code#53821, #24304, #56649
    let (harness, first) = harness_with_a_turn();
    let good = fs::read(harness.session_file()).unwrap();
    let head = harness.events().len();
    let mut flipped = good.clone();
    let middle = good.len() / 2;
    flipped[middle] ^= 1;
    let damaged: [(&str, Vec<u8>); 6] = [
        ("cut off", good[..middle].to_vec()),
        ("a bit is flipped", flipped),
        ("empty", Vec::new()),
        ("newer", resealed(&good, |session| session["v"] = json!(2))),
        (
            "not a session",
            resealed(&good, |session| *session = json!({"v": 1})),
        ),
        ("no text", vec![0xff; 100]),
    ];
    for (name, bytes) in damaged {
        fs::write(harness.session_file(), &bytes).unwrap();
        let refused = harness.run().resume().prompt("do: say two").ended();
        assert_eq!(refused.code, Some(3), "{name}: {refused:#?}");
        let expected = format!("valid up to event {head} (its last turn");
        assert!(
            refused.stderr.contains(&expected),
            "{name}: {}",
            refused.stderr
        );
        let expected = format!(
            "--resume {}",
            harness.state().canonicalize().unwrap().display()
        );
        assert!(
            refused.stderr.contains(&expected),
            "{name}: {}",
            refused.stderr
        );
        assert_eq!(fs::read(harness.session_file()).unwrap(), bytes, "{name}");
        assert_eq!(harness.events().len(), head, "{name}");
    }
    assert_eq!(harness.model.requests().len(), 1);
    let resumed = harness.run().resume_dir().prompt("do: say two").ended();
    assert_eq!(resumed.statuses(), ["completed"], "{resumed:#?}");
    let last = harness.model.requests().pop().unwrap().body.to_string();
    assert!(last.contains("the answer to the first"));
    judge(&harness, &[&first, &resumed]);
    // The file is whole again.
    let again = harness.run().resume().prompt("do: say three").ended();
    assert_eq!(again.statuses(), ["completed"], "{again:#?}");
}

fn is_conflict(harness: &TestAgent, file: &Path) {
    let before = harness.events();
    let refused = harness
        .run()
        .arg("--resume")
        .arg(file)
        .prompt("do: say x")
        .ended();
    assert_eq!(refused.code, Some(3), "{refused:#?}");
    assert!(
        refused.stderr.contains("does not belong"),
        "{}",
        refused.stderr
    );
    assert_eq!(harness.events(), before);
}

#[test]
fn a_file_of_another_agent_is_a_conflict() {
    let (ours, _) = harness_with_a_turn();
    let (theirs, _) = harness_with_a_turn();
    is_conflict(&ours, &theirs.session_file());
    assert_eq!(ours.model.requests().len(), 1);
}

#[test]
fn a_file_whose_head_is_not_in_the_journal_is_a_conflict() {
    let (harness, _) = harness_with_a_turn();
    let file = fs::read(harness.session_file()).unwrap();
    let ahead = harness.path().join("ahead.json");
    let change = |session: &mut Value| {
        let seq = session["head"]["seq"].as_u64().unwrap();
        session["head"]["seq"] = json!(seq + 10);
    };
    fs::write(&ahead, resealed(&file, change)).unwrap();
    is_conflict(&harness, &ahead);
    let other = harness.path().join("other.json");
    let change = |session: &mut Value| {
        let at = session["head"]["at"].as_u64().unwrap();
        session["head"]["at"] = json!(at + 1);
    };
    fs::write(&other, resealed(&file, change)).unwrap();
    is_conflict(&harness, &other);
}

#[test]
fn an_older_file_of_the_same_conversation_goes_on_from_the_journal() {
    let (harness, _) = harness_with_a_turn();
    let older = harness.path().join("older.json");
    fs::copy(harness.session_file(), &older).unwrap();
    let second = harness.run().resume().prompt("do: say the second").ended();
    assert_eq!(second.code, Some(0), "{second:#?}");
    let run = harness.run().arg("--resume").arg(&older);
    let third = run.prompt("do: say the third").ended();
    assert_eq!(third.code, Some(0), "{third:#?}");
    let last = harness.model.requests().pop().unwrap().body.to_string();
    assert!(last.contains("say the second"));
}

#[test]
fn a_file_without_a_journal_is_imported_and_the_model_knows_all_that_was_said() {
    for format in super::test_agent::FORMATS {
        let harness = TestAgent::new(format);
        let prompt =
            r#"do: call shell {"command": "echo a >> effects; echo found"} ;; say it is done"#;
        let first = harness.run().prompt(prompt).ended();
        assert_eq!(first.statuses(), ["completed"], "{first:#?}");
        let file = harness.path().join("taken-along.json");
        fs::rename(harness.session_file(), &file).unwrap();
        fs::remove_dir_all(harness.state()).unwrap();
        let run = harness.run().arg("--resume").arg(&file);
        let second = run.prompt("do: say I remember").ended();
        assert_eq!(second.statuses(), ["completed"], "{second:#?}");
        let last = harness.model.requests().pop().unwrap().body.to_string();
        assert!(
            last.contains("found") && last.contains("it is done"),
            "{last}"
        );
        assert_eq!(harness.effects(), ["a"]);
        judge(&harness, &[&second]);
        let third = harness.run().resume().prompt("do: say and on").ended();
        assert_eq!(third.statuses(), ["completed"], "{third:#?}");
    }
}

/// Regression: a run that resumed a session file in an empty directory said `resumed: false`, and no line said from what it
/// resumed.
#[test]
fn a_run_says_from_what_it_resumed() {
    let (harness, first) = harness_with_a_turn();
    assert_eq!(first.of_kind("session")[0]["resumed"], false);
    assert!(first.of_kind("init").is_empty(), "{first:#?}");
    let again = harness.run().resume().prompt("do: say two").ended();
    assert_eq!(again.of_kind("session")[0]["resumed"], true);
    let init = again.of_kind("init")[0];
    assert_eq!(init["resumed_from"], "journal", "{init}");
    let file = harness.path().join("taken-along.json");
    fs::rename(harness.session_file(), &file).unwrap();
    fs::remove_dir_all(harness.state()).unwrap();
    let run = harness.run().arg("--resume").arg(&file);
    let imported = run.prompt("do: say three").ended();
    assert_eq!(imported.of_kind("session")[0]["resumed"], true);
    let init = imported.of_kind("init")[0];
    assert_eq!(init["resumed_from"], "file", "{init}");
    assert_eq!(init["path"], file.to_str().unwrap(), "{init}");
    assert!(init["head"].as_u64().unwrap() > 0, "{init}");
}

fn began(events: &[Event]) -> Vec<(String, Option<String>)> {
    let began = events.iter().filter_map(|event| match &event.body {
        Body::ConversationBegan(began) => {
            let parent = began.parent.map(|parent| parent.to_string());
            Some((event.conversation.to_string(), parent))
        }
        _ => None,
    });
    began.collect()
}

#[test]
fn without_resume_a_new_conversation_begins_whose_parent_is_the_old() {
    // claude-code#80431: the old context came back
    let (harness, first) = harness_with_a_turn();
    let second = harness.run().prompt("do: say something else").ended();
    assert_eq!(second.statuses(), ["completed"], "{second:#?}");
    let events = judge(&harness, &[&first, &second]);
    let began = began(&events);
    assert_eq!(began.len(), 2);
    assert_eq!(
        (&began[0].1, &began[1].1),
        (&None, &Some(began[0].0.clone()))
    );
    let last = harness.model.requests().pop().unwrap().body["messages"].to_string();
    assert!(!last.contains("the first"), "{last}");
    // And it stays that way.
    let third = harness.run().resume().prompt("do: say three").ended();
    assert_eq!(third.code, Some(0), "{third:#?}");
    let last = harness.model.requests().pop().unwrap().body["messages"].to_string();
    assert!(last.contains("something else") && !last.contains("the first"));
}

#[test]
fn a_new_conversation_over_a_killed_turn_ends_it_and_its_tools() {
    let harness = TestAgent::new(Format::Anthropic);
    let prompt = r#"do: call shell {"command": "echo a >> effects; sleep 600"} ;; say never"#;
    let agent = harness.run().prompt(prompt).start();
    super::process::until("the tool", || (!harness.effects().is_empty()).then_some(()));
    let killed = agent.kill();
    let second = harness.run().prompt("do: say something else").ended();
    assert_eq!(second.statuses(), ["completed"], "{second:#?}");
    let events = judge(&harness, &[&killed, &second]);
    assert_eq!(count(&events, "turn_ended"), 2);
    assert_eq!(harness.shims(), [0; 0]);
    let last = harness.model.requests().pop().unwrap().body.to_string();
    assert!(!last.contains("effects"), "{last}");
}

/// goose#9938: cancelled work causes no further cost.
#[test]
fn a_turn_that_is_left_behind_asks_the_model_for_nothing_more() {
    let harness = TestAgent::new(Format::Anthropic);
    let killed = harness
        .run()
        .prompt("do: say the first")
        .hold("after-request_sent")
        .kill_at_hold();
    let before = harness.model.requests().len();
    let second = harness.run().prompt("do: say something else").ended();
    assert_eq!(second.statuses(), ["completed"], "{second:#?}");
    let events = judge(&harness, &[&killed, &second]);
    assert_eq!(harness.model.requests().len(), before + 1);
    // The one that was cut off, and the new one: nothing is charged for a third.
    assert_eq!(count(&events, "request_sent"), 2);
}

#[test]
fn two_processes_on_one_directory_are_one_too_many() {
    // claude-code#39151, adk-python#4751: two writers in one conversation
    let harness = TestAgent::new(Format::Anthropic);
    let mut agent = harness.run().open().start();
    agent.send("do: say one");
    agent.turn_result(0);
    for run in [
        harness.run(),
        harness.run().resume(),
        harness.run().resume_dir(),
    ] {
        let second = run.prompt("do: say two").ended();
        assert_eq!(second.code, Some(3), "{second:#?}");
        assert!(second.stderr.contains("in use"), "{}", second.stderr);
    }
    agent.close();
    let first = agent.ended();
    assert_eq!(first.code, Some(0), "{first:#?}");
    assert_eq!(harness.model.requests().len(), 1);
    judge(&harness, &[&first]);
}

/// The messages of a request, without the provider's cache markers.
fn said(request: &Recorded) -> Vec<Value> {
    let list = match request.format {
        Format::Anthropic | Format::OpenaiChat => &request.body["messages"],
        Format::OpenaiResponses => &request.body["input"],
        Format::Gemini => &request.body["contents"],
    };
    let mut list = list.as_array().unwrap().clone();
    for block in list
        .iter_mut()
        .filter_map(|message| message.get_mut("content")?.as_array_mut())
        .flatten()
    {
        if let Some(block) = block.as_object_mut() {
            block.remove("cache_control");
        }
    }
    list
}

#[test]
fn a_request_after_a_resume_begins_as_the_one_before_byte_for_byte() {
    // claude-code#42338, #93490: the provider's cache was lost with every resume
    for format in super::test_agent::FORMATS {
        let harness = TestAgent::new(format);
        let prompt =
            r#"do: think hm | say look | call shell {"command": "echo a >> effects"} ;; say one"#;
        let first = harness.run().prompt(prompt).ended();
        assert_eq!(first.statuses(), ["completed"], "{first:#?}");
        let second = harness.run().resume().prompt("do: say two").ended();
        let third = harness.run().resume_dir().prompt("do: say three").ended();
        judge(&harness, &[&first, &second, &third]);
        let requests = harness.model.requests();
        assert_eq!(requests.len(), 4);
        for pair in requests.windows(2) {
            let (before, after) = (said(&pair[0]), said(&pair[1]));
            assert_eq!(after[..before.len()], before[..]);
            for part in ["system", "tools", "instructions", "systemInstruction"] {
                assert_eq!(pair[0].body[part], pair[1].body[part]);
            }
        }
    }
}

#[test]
fn a_call_that_waits_for_leave_outlives_kills_and_runs_once() {
    // claude-code#24025, codex#29058: the approval that waited was lost
    for answer in ["--approve", "--deny"] {
        let harness = TestAgent::new(Format::Anthropic);
        let file = harness
            .agent_file("approval: on-request\npermissions:\n  - {tool: shell, decision: ask}");
        let prompt = r#"do: call shell {"command": "echo a >> effects"} ;; say done"#;
        let run = harness.run().arg("--file").arg(&file).prompt(prompt);
        let waits = run.ended();
        assert_eq!(waits.code, Some(6), "{waits:#?}");
        let asked = waits.of_kind("approval_requested")[0];
        let approval = asked["body"]["approval"].as_str().unwrap().to_owned();
        assert!(waits.stderr.contains(&approval), "{}", waits.stderr);
        // Killed while it waits.
        let agent = harness.run().resume().open().start();
        agent.event("incarnation_began");
        let killed = agent.kill();
        let answered = harness.run().resume().arg(answer).arg(&approval).ended();
        assert_eq!(answered.code, Some(0), "{answered:#?}");
        assert_eq!(answered.statuses(), ["completed"]);
        // A second answer, or an answer to an unknown approval, changes nothing.
        let head = harness.events().len();
        for approval in [&approval, "0190a000-0000-7000-8000-000000000001"] {
            let again = harness
                .run()
                .resume()
                .arg("--approve")
                .arg(approval)
                .ended();
            assert_eq!(again.code, Some(3), "{again:#?}");
            let mut agent = harness.run().resume().open().start();
            agent.send(&format!(
                r#"{{"v":1,"approval":"{approval}","decision":"allow"}}"#
            ));
            let told = agent.event("error");
            assert_eq!(told["error"]["kind"], "approval_unknown");
            agent.close();
            assert_eq!(agent.ended().code, Some(0));
        }
        let events = harness.events();
        let mut kinds = events[head..].iter().map(|event| event.kind().name());
        assert!(kinds.all(|kind| ["incarnation_began", "incarnation_ended"].contains(&kind)));
        judge(&harness, &[&waits, &killed, &answered]);
        let expected = usize::from(answer == "--approve");
        assert_eq!(harness.effects().len(), expected);
    }
}

#[test]
fn a_task_in_the_background_outlives_its_process_and_its_end_is_told_once() {
    let harness = TestAgent::new(Format::Anthropic);
    let command = "until [ -e release ]; do sleep 0.02; done; echo a >> effects";
    let prompt = format!(
        r#"do: call shell {{"command": "{command}", "run_in_background": true}} ;; say started"#
    );
    let first = harness.run().prompt(&prompt).ended();
    assert_eq!(first.statuses(), ["completed"], "{first:#?}");
    assert_eq!(harness.shims().len(), 1);
    let second = harness.run().resume().prompt("do: say it goes on").ended();
    assert_eq!(second.of_kind("task_ended").len(), 0, "{second:#?}");
    fs::write(harness.work().join("release"), "").unwrap();
    super::process::until("its end", || harness.shims().is_empty().then_some(()));
    let mut agent = harness.run().resume().open().start();
    agent.event("task_ended");
    agent.send("do: say I know");
    agent.turn_result(0);
    let last = harness.model.requests().pop().unwrap().body.to_string();
    assert_eq!(last.matches("<notice>").count(), 1, "{last}");
    agent.close();
    let third = agent.ended();
    let events = judge(&harness, &[&first, &second, &third]);
    assert_eq!(count(&events, "task_ended"), 1);
    assert_eq!(harness.effects(), ["a"]);
}
