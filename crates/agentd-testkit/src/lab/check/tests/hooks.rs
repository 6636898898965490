//! What hooks say that they did, against what is on record of them.

use super::folder::{AGENT, Folder};
use super::good::FIRST;
use super::{breaks, good, is_fine};
use serde_json::json;

/// A good run with a hook around a call, and one that had words for the first conversation.
fn with_hooks(folder: &mut Folder) {
    let at = folder.find("message", "on it");
    let started = |hook: &str, event: &str| json!({"hook": hook, "fire": "f", "event": event, "way": "command"});
    let ended = |hook: &str| json!({"hook": hook, "outcome": "ran", "exit": 0, "decision": "none"});
    let mut call = started("h-2", "PreToolUse");
    call["call"] = json!("call_1_1_0");
    folder.insert(at, "hook_started", call);
    folder.insert(at + 1, "hook_ended", ended("h-2"));
    let heard = |hook: &str, event: &str, transcript: usize| {
        json!({"event": event, "agent": AGENT, "session": FIRST, "hook": hook, "pid": 300 + transcript,
               "start": 1, "transcript": transcript})
    };
    let mut of_call = heard("h-2", "PreToolUse", at + 1);
    of_call["call"] = json!("call_1_1_0");
    folder.heard.push(of_call);
    // Before anything else.
    let began = folder.find("conversation_began", "create");
    folder.insert(began, "hook_started", started("h-1", "SessionStart"));
    folder.insert(began + 1, "hook_ended", ended("h-1"));
    let notice = json!({"cause": "hook", "text": "words for c-1"});
    folder.insert(began + 2, "notice", notice);
    folder.heard[0]["transcript"] = json!(at + 4);
    let mut of_start = heard("h-1", "SessionStart", began + 1);
    (of_start["says"], of_start["source"]) = (json!("words for c-1"), json!("startup"));
    folder.heard.push(of_start);
    let notice = json!({"type": "text", "text": "<notice>\nwords for c-1\n</notice>"});
    let message = json!({"role": "user", "content": [notice]});
    // Until it was compacted.
    let compact = folder
        .model
        .iter()
        .position(|it| it.to_string().contains("Summarise."));
    let first = 0..=compact.unwrap();
    for request in &mut folder.model[first] {
        let messages = request["body"]["messages"].as_array_mut().unwrap();
        messages.insert(0, message.clone());
    }
    folder.run["expects"]["hooks_with_traces"] = json!(["PreToolUse", "SessionStart"]);
}

#[track_caller]
fn hook_breaks(words: &str, change: impl FnOnce(&mut Folder)) {
    breaks("P13", words, |folder| {
        with_hooks(folder);
        change(folder);
    });
}

#[track_caller]
fn hook_is_fine(change: impl FnOnce(&mut Folder)) {
    is_fine(|folder| {
        with_hooks(folder);
        change(folder);
    });
}

fn set(folder: &mut Folder, kind: &str, hook: &str, key: &str, value: serde_json::Value) {
    folder.event(kind, &format!(r#""hook":"{hook}""#))["body"][key] = value;
}

#[test]
fn a_good_run_with_hooks() {
    hook_is_fine(|_| {});
}

#[test]
fn one_that_ran_twice() {
    hook_breaks("hook h-2 ran 2 times", |folder| {
        let mut again = folder.heard[0].clone();
        again["pid"] = json!(999);
        folder.heard.push(again);
    });
    // Under another name, for the same call.
    hook_breaks("PreToolUse of call_1_1_0 ran 2 times", |folder| {
        let mut again = folder.heard[0].clone();
        (again["pid"], again["hook"]) = (json!(999), json!(null));
        folder.heard.push(again);
    });
}

#[test]
fn one_that_is_not_on_record() {
    hook_breaks("ran, and is not on record", |folder| {
        folder.heard[0]["hook"] = json!("h-9");
    });
    hook_breaks("is not on record", |folder| {
        folder.remove("hook_ended", r#""hook":"h-2""#);
    });
    hook_breaks("ended 2 times", |folder| {
        let at = folder.find("hook_ended", r#""hook":"h-2""#);
        folder.again(at);
    });
}

#[test]
fn one_of_which_another_thing_is_said() {
    hook_breaks("said not to have", |folder| {
        set(folder, "hook_ended", "h-2", "outcome", json!("not_run"));
    });
    hook_breaks("is said to have run, and has not", |folder| {
        folder.heard.remove(0);
    });
    // One that a signal ended may not have come to write it down.
    hook_is_fine(|folder| {
        folder.heard.remove(0);
        set(folder, "hook_ended", "h-2", "exit", json!(null));
    });
}

#[test]
fn unknown_needs_an_excuse() {
    let unknown = |folder: &mut Folder| {
        set(folder, "hook_ended", "h-2", "outcome", json!("unknown"));
    };
    hook_breaks("nothing excuses that", unknown);
    let fault = |task: &str| json!({"role": "shim", "what": "KILL", "task": task.to_owned()});
    hook_breaks("nothing excuses that", |folder| {
        unknown(folder);
        folder.faults.push(fault("h-1"));
    });
    hook_is_fine(|folder| {
        unknown(folder);
        folder.faults.push(fault("h-2"));
    });
    hook_is_fine(|folder| {
        unknown(folder);
        set(folder, "hook_started", "h-2", "way", json!("http"));
    });
}

#[test]
fn a_no_that_is_not_obeyed() {
    hook_breaks("a hook had refused it", |folder| {
        set(folder, "hook_ended", "h-2", "decision", json!("deny"));
    });
    hook_breaks("a hook had refused it", |folder| {
        set(folder, "hook_ended", "h-2", "exit", json!(2));
        folder.heard[0]["denies"] = json!(true);
    });
}

#[test]
fn words_that_do_not_open_the_conversation() {
    hook_breaks("is in its conversation 0 times", |folder| {
        folder.remove("notice", "words for c-1");
    });
    hook_breaks("is in its conversation 2 times", |folder| {
        let at = folder.find("notice", "words for c-1");
        folder.again(at);
    });
    hook_breaks("does not open its conversation", |folder| {
        let at = folder.find("notice", "words for c-1");
        let notice = folder.events[at].clone();
        folder.remove("notice", "words for c-1");
        let at = folder.find("prompts_taken", "p-1");
        folder.insert(at, "notice", notice["body"].clone());
    });
    hook_breaks("holds `words for c-1` 2 times", |folder| {
        let messages = folder.model[0]["body"]["messages"].as_array_mut().unwrap();
        messages[0]["content"][0]["text"] = json!("<notice>\nwords for c-1\n</notice>");
        let again = json!({"role": "user", "content": "once more: words for c-1"});
        messages.push(again);
    });
}

#[test]
fn a_transcript_that_is_not_complete() {
    hook_breaks("the transcript that hook h-2", |folder| {
        let before = folder.heard[0]["transcript"].as_u64().unwrap();
        folder.heard[0]["transcript"] = json!(before - 1);
    });
    let folder = good();
    assert!(folder.heard.is_empty());
}
