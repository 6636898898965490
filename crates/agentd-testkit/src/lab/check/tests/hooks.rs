//! What hooks say that they did, against what is on record of them.

use super::good::FIRST;
use super::run_dir::{AGENT, RunDir};
use super::{breaks, good, is_fine};
use serde_json::json;

/// A good run with a hook around a call, and one that had words for the first conversation.
fn with_hooks(run_dir: &mut RunDir) {
    let at = run_dir.find("message", "on it");
    let started = |hook: &str, event: &str| json!({"hook": hook, "fire": "f", "event": event, "way": "command"});
    let ended = |hook: &str| json!({"hook": hook, "outcome": "ran", "exit": 0, "decision": "none"});
    let mut call = started("h-2", "PreToolUse");
    call["call"] = json!("call_1_1_0");
    run_dir.insert(at, "hook_started", call);
    run_dir.insert(at + 1, "hook_ended", ended("h-2"));
    let heard = |hook: &str, event: &str, transcript: usize| {
        json!({"event": event, "agent": AGENT, "session": FIRST, "hook": hook, "pid": 300 + transcript,
               "start": 1, "transcript": transcript})
    };
    let mut of_call = heard("h-2", "PreToolUse", at + 1);
    of_call["call"] = json!("call_1_1_0");
    run_dir.heard.push(of_call);
    // Before anything else.
    let began = run_dir.find("conversation_began", "create");
    run_dir.insert(began, "hook_started", started("h-1", "SessionStart"));
    run_dir.insert(began + 1, "hook_ended", ended("h-1"));
    let notice = json!({"cause": "hook", "text": "words for c-1"});
    run_dir.insert(began + 2, "notice", notice);
    run_dir.heard[0]["transcript"] = json!(at + 4);
    let mut of_start = heard("h-1", "SessionStart", began + 1);
    (of_start["says"], of_start["source"]) = (json!("words for c-1"), json!("startup"));
    run_dir.heard.push(of_start);
    let notice = json!({"type": "text", "text": "<notice>\nwords for c-1\n</notice>"});
    let message = json!({"role": "user", "content": [notice]});
    // Until it was compacted.
    let compact = run_dir
        .model
        .iter()
        .position(|it| it.to_string().contains("Summarise."));
    let first = 0..=compact.unwrap();
    for request in &mut run_dir.model[first] {
        let messages = request["body"]["messages"].as_array_mut().unwrap();
        messages.insert(0, message.clone());
    }
    run_dir.run["expects"]["hooks_with_traces"] = json!(["PreToolUse", "SessionStart"]);
}

#[track_caller]
fn hook_breaks(words: &str, change: impl FnOnce(&mut RunDir)) {
    breaks("P13", words, |run_dir| {
        with_hooks(run_dir);
        change(run_dir);
    });
}

#[track_caller]
fn hook_is_fine(change: impl FnOnce(&mut RunDir)) {
    is_fine(|run_dir| {
        with_hooks(run_dir);
        change(run_dir);
    });
}

fn set(run_dir: &mut RunDir, kind: &str, hook: &str, key: &str, value: serde_json::Value) {
    run_dir.event(kind, &format!(r#""hook":"{hook}""#))["body"][key] = value;
}

#[test]
fn a_good_run_with_hooks() {
    hook_is_fine(|_| {});
}

#[test]
fn one_that_ran_twice() {
    hook_breaks("hook h-2 ran 2 times", |run_dir| {
        let mut again = run_dir.heard[0].clone();
        again["pid"] = json!(999);
        run_dir.heard.push(again);
    });
    // Under another name, for the same call.
    hook_breaks("PreToolUse of call_1_1_0 ran 2 times", |run_dir| {
        let mut again = run_dir.heard[0].clone();
        (again["pid"], again["hook"]) = (json!(999), json!(null));
        run_dir.heard.push(again);
    });
}

#[test]
fn one_that_is_not_on_record() {
    hook_breaks("ran, but is not on record", |run_dir| {
        run_dir.heard[0]["hook"] = json!("h-9");
    });
    hook_breaks("is not on record", |run_dir| {
        run_dir.remove("hook_ended", r#""hook":"h-2""#);
    });
    hook_breaks("ended 2 times", |run_dir| {
        let at = run_dir.find("hook_ended", r#""hook":"h-2""#);
        run_dir.again(at);
    });
}

#[test]
fn one_of_which_another_thing_is_said() {
    hook_breaks("recorded as not run", |run_dir| {
        set(run_dir, "hook_ended", "h-2", "outcome", json!("not_run"));
    });
    hook_breaks("is recorded as run, but has not run", |run_dir| {
        run_dir.heard.remove(0);
    });
    // One that a signal ended may not have come to write it down.
    hook_is_fine(|run_dir| {
        run_dir.heard.remove(0);
        set(run_dir, "hook_ended", "h-2", "exit", json!(null));
    });
}

#[test]
fn unknown_needs_an_excuse() {
    let unknown = |run_dir: &mut RunDir| {
        set(run_dir, "hook_ended", "h-2", "outcome", json!("unknown"));
    };
    hook_breaks("unknown without a valid reason", unknown);
    let fault = |task: &str| json!({"role": "shim", "what": "KILL", "task": task.to_owned()});
    hook_breaks("unknown without a valid reason", |run_dir| {
        unknown(run_dir);
        run_dir.faults.push(fault("h-1"));
    });
    hook_is_fine(|run_dir| {
        unknown(run_dir);
        run_dir.faults.push(fault("h-2"));
    });
    hook_is_fine(|run_dir| {
        unknown(run_dir);
        set(run_dir, "hook_started", "h-2", "way", json!("http"));
    });
}

#[test]
fn a_no_that_is_not_obeyed() {
    hook_breaks("a hook had denied it", |run_dir| {
        set(run_dir, "hook_ended", "h-2", "decision", json!("deny"));
    });
    hook_breaks("a hook had denied it", |run_dir| {
        set(run_dir, "hook_ended", "h-2", "exit", json!(2));
        run_dir.heard[0]["denies"] = json!(true);
    });
}

#[test]
fn words_that_do_not_open_the_conversation() {
    hook_breaks("is in its conversation 0 times", |run_dir| {
        run_dir.remove("notice", "words for c-1");
    });
    hook_breaks("is in its conversation 2 times", |run_dir| {
        let at = run_dir.find("notice", "words for c-1");
        run_dir.again(at);
    });
    hook_breaks("does not open its conversation", |run_dir| {
        let at = run_dir.find("notice", "words for c-1");
        let notice = run_dir.events[at].clone();
        run_dir.remove("notice", "words for c-1");
        let at = run_dir.find("prompts_taken", "p-1");
        run_dir.insert(at, "notice", notice["body"].clone());
    });
    hook_breaks("contains `words for c-1` 2 times", |run_dir| {
        let messages = run_dir.model[0]["body"]["messages"].as_array_mut().unwrap();
        messages[0]["content"][0]["text"] = json!("<notice>\nwords for c-1\n</notice>");
        let again = json!({"role": "user", "content": "once more: words for c-1"});
        messages.push(again);
    });
}

#[test]
fn a_transcript_that_is_not_complete() {
    hook_breaks("the transcript that hook h-2", |run_dir| {
        let before = run_dir.heard[0]["transcript"].as_u64().unwrap();
        run_dir.heard[0]["transcript"] = json!(before - 1);
    });
    let run_dir = good();
    assert!(run_dir.heard.is_empty());
}
