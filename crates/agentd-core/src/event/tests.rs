//! The lines of a journal: what is read, what is refused, what purge may delete.

use super::*;
use crate::fixture::{Journal, call, context, prompt_id};
use crate::message::{Block, Wire};
use serde_json::json;

fn line(kind: &str, v: u32, body: Value) -> Value {
    let journal = Journal::new();
    let mut line = serde_json::to_value(&journal.events[0]).unwrap();
    line["kind"] = json!(kind);
    line["v"] = json!(v);
    line["body"] = body;
    line
}

fn read(line: Value) -> Result<Event, String> {
    serde_json::from_value(line).map_err(|error| error.to_string())
}

#[test]
fn a_line_has_one_shape_and_is_read_back_as_it_was() {
    let mut journal = Journal::new();
    journal.start_turn(1);
    journal.prompt(1, "hi");
    journal.push(context(Wire::Gemini));
    journal.reply(vec![Block::text("so"), call("a")]);
    journal.result("a", "done");
    for event in &journal.events {
        let line = serde_json::to_value(event).unwrap();
        assert_eq!(line["seq"], json!(event.seq.0));
        assert_eq!(line["kind"], json!(event.kind().name()));
        assert_eq!(read(line).as_ref(), Ok(event));
    }
}

/// An event of an unknown kind or a newer version is an error; it is never skipped.
#[test]
fn an_unknown_kind_is_an_error_that_says_what_to_do() {
    let error = read(line("levitated", 1, json!({}))).unwrap_err();
    assert!(error.contains("unknown event kind `levitated`"), "{error}");
    assert!(error.contains("upgrade"), "{error}");
}

#[test]
fn a_newer_version_is_an_error_that_says_which() {
    let error = read(line("prompt", 99, json!({}))).unwrap_err();
    assert!(error.contains("version 99"), "{error}");
    assert!(error.contains("up to 2"), "{error}");
}

#[test]
fn a_body_that_is_not_what_its_kind_holds_is_damaged() {
    let error = read(line("prompt", 1, json!({"prompt": 7}))).unwrap_err();
    assert!(error.contains("`prompt` event is damaged"), "{error}");
}

#[test]
fn content_without_a_body_was_purged_and_structure_without_one_is_an_error() {
    let mut gone = line("message", 1, json!(null));
    gone.as_object_mut().unwrap().remove("body");
    let event = read(gone).unwrap();
    assert_eq!(event.body, Body::Gone(Kind::MessageAdded));
    let again = serde_json::to_value(&event).unwrap();
    assert_eq!(again.get("body"), None);
    let mut missing = line("turn_started", 1, json!(null));
    missing.as_object_mut().unwrap().remove("body");
    let error = read(missing).unwrap_err();
    assert!(error.contains("never purged"), "{error}");
}

#[test]
fn every_kind_has_a_name_of_its_own_that_finds_it() {
    for kind in Kind::ALL {
        assert_eq!(Kind::parse(kind.name()), Some(*kind));
        assert!(kind.version() >= 1);
    }
    let names: std::collections::BTreeSet<_> = Kind::ALL.iter().map(|k| k.name()).collect();
    assert_eq!(names.len(), Kind::ALL.len());
}

/// Structural kinds hold no free text; a purge deletes only content. See docs/design/001-structural-and-content.md.
#[test]
fn what_was_said_is_content_and_nothing_else_is() {
    let content: Vec<&str> = Kind::ALL
        .iter()
        .filter(|kind| kind.is_content())
        .map(|kind| kind.name())
        .collect();
    let expected = [
        "prompt",
        "schedule_prompt",
        "message",
        "result",
        "notice",
        "instructions_changed",
        "mcp_listed",
        "question_asked",
        "question_answered",
        "command_line",
        "command_output",
        "instruction",
        "summary",
        "context",
        "note",
        "hook_output",
        "call_revised",
        "plan_set",
        "file_kept",
        "files_scanned",
        "files_plan",
        "files_restored",
    ];
    assert_eq!(content, expected);
}

#[test]
fn the_words_of_an_event_are_those_a_person_could_search_for() {
    let prompt = prompt_id(1);
    let blocks = vec![Block::text("find me"), call("a")];
    let body: Body = Prompt { prompt, blocks }.into();
    assert_eq!(body.words(), ["find me", "shell", "do a"]);
    assert_eq!(Body::Gone(Kind::Prompt).words(), [""; 0]);
}

/// Version 1 of a prompt had no attachments.
#[test]
fn a_prompt_of_version_1_is_read() {
    let old = r#"{"prompt":"00000000-0000-0000-0000-000000000001","blocks":[{"type":"text","text":"hi"}]}"#;
    let body = Body::from_json("prompt", 1, old).unwrap();
    assert_eq!(body.words(), ["hi"]);
    assert_eq!(Kind::Prompt.version(), 2);
    assert_eq!(Body::from_json("prompt", 2, old).unwrap(), body);
}

#[test]
fn a_scan_of_each_version_is_read() {
    let turn = "00000000-0000-0000-0000-000000000001";
    let file = |more: &str| {
        format!(
            r#"{{"turn":"{turn}","found":{{"type":"known","files":[{{"path":"/a","change":"modified","after":"x"{more}}}]}}}}"#
        )
    };
    for (version, more) in [
        (1, ""),
        (2, r#","link":true"#),
        (3, r#","mode_before":420"#),
        (4, r#","unsure":true"#),
        (5, r#","git_before":"clean""#),
    ] {
        let json = file(more);
        let body = Body::from_json("files_scanned", version, &json).unwrap();
        assert_eq!(body.to_json().unwrap(), Some(json));
    }
    let op = "00000000-0000-0000-0000-000000000001";
    let plan = |target: &str| {
        format!(
            r#"{{"op":"{op}","files":[{{"path":"/a","target":{target},"expected":{{"type":"absent"}}}}]}}"#
        )
    };
    let oid = "1".repeat(40);
    let git = format!(r#"{{"type":"git","oid":"{oid}","mode":33188,"hash":"x"}}"#);
    let mode = r#"{"type":"mode","mode":420,"hash":"x"}"#.to_owned();
    for (version, target) in [(1, git), (2, mode)] {
        let json = plan(&target);
        let body = Body::from_json("files_plan", version, &json).unwrap();
        assert_eq!(body.to_json().unwrap(), Some(json));
    }
    let list = r#"[{"path":"/b","why":"not_in_git"},{"why":"background"}]"#;
    for list in ["[]", list] {
        let json = format!(r#"{{"op":"{op}","files":[],"not_restored":{list}}}"#);
        let body = Body::from_json("files_plan", 3, &json).unwrap();
        assert_eq!(body.to_json().unwrap(), Some(json));
    }
    assert_eq!(Kind::FilesPlan.version(), 3);
}

#[test]
fn a_list_of_what_a_restore_leaves_is_recorded_unless_it_is_too_large() {
    let left = |path: String| NotRestored::new(Some(path), None, CannotRestore::NotInGit);
    let some = vec![left("/a".to_owned()); 10_000];
    assert_eq!(NotRestored::recorded(some.clone()), Some(some));
    assert_eq!(NotRestored::recorded(Vec::new()), Some(Vec::new()));
    // Each byte may become an escape.
    let long = "\u{1}".repeat(4096);
    assert_eq!(NotRestored::recorded(vec![left(long); 1000]), None);
}

#[test]
fn a_start_of_a_call_of_each_version_is_read() {
    for (version, more) in [
        (1, ""),
        (2, ""),
        (3, r#","may_change_files":true"#),
        (4, r#","change":{"after":"a","is_private":true}"#),
    ] {
        let json = format!(r#"{{"call":"a","tool":"mcp__a__b"{more}}}"#);
        let body = Body::from_json("tool_started", version, &json).unwrap();
        assert_eq!(body.to_json().unwrap(), Some(json));
    }
    assert_eq!(Kind::ToolStarted.version(), 4);
}

#[test]
fn the_begin_of_a_restore_of_each_version_is_read() {
    let id = "00000000-0000-0000-0000-000000000001";
    for (version, to_in) in [(1, String::new()), (2, format!(r#""to_in":"{id}","#))] {
        let json = format!(r#"{{"op":"{id}","to":3,{to_in}"files":1}}"#);
        let body = Body::from_json("files_restore_began", version, &json).unwrap();
        assert_eq!(body.to_json().unwrap(), Some(json));
    }
    assert_eq!(Kind::FilesRestoreBegan.version(), 2);
}

#[test]
fn an_end_of_a_turn_and_of_a_request_of_each_version_is_read() {
    for (version, more) in [
        (1, r#""failure":"rejected""#),
        (2, r#""failure":"rejected","withdrawn":true"#),
        (3, r#""failure":"program_failed""#),
    ] {
        let json = format!(r#"{{"status":"failed",{more}}}"#);
        let body = Body::from_json("turn_ended", version, &json).unwrap();
        assert_eq!(body.to_json().unwrap(), Some(json));
    }
    for (version, class) in [(1, "rejected"), (2, "unreachable"), (3, "program_failed")] {
        let json = format!(
            r#"{{"request":{{"incarnation":1,"n":1}},"outcome":{{"type":"failed","class":"{class}"}},"usage":{{"input_tokens":1,"output_tokens":1,"cache_read_tokens":0,"cache_write_tokens":0}}}}"#
        );
        let body = Body::from_json("request_ended", version, &json).unwrap();
        assert_eq!(body.to_json().unwrap(), Some(json));
    }
    assert_eq!(Kind::TurnEnded.version(), 3);
    assert_eq!(Kind::RequestEnded.version(), 3);
}

#[test]
fn a_notice_of_each_version_is_read() {
    for (version, cause) in [(1, "restarted"), (2, "plan"), (3, "imported")] {
        let json = json!({"cause": cause, "text": "x"}).to_string();
        let body = Body::from_json("notice", version, &json).unwrap();
        assert_eq!(body.to_json().unwrap(), Some(json));
    }
}

#[test]
fn an_operation_of_each_version_is_read() {
    let op = "0192d3a0-0000-7000-8000-000000000001";
    let schedule = json!({"type": "schedule", "schedule": op});
    for (version, verb, receipt) in [
        (1, "start", json!({"type": "none"})),
        (2, "run_command", json!({"type": "command", "command": op})),
        (3, "add_schedule", schedule),
    ] {
        let json = json!({"op": op, "verb": verb, "digest": "d", "receipt": receipt});
        let body = Body::from_json("operation", version, &json.to_string()).unwrap();
        assert_eq!(body.kind(), Kind::Operation);
    }
    assert_eq!(Kind::Operation.version(), 3);
}

#[test]
fn a_reset_of_each_version_is_read() {
    let op = "0192d3a0-0000-7000-8000-000000000001";
    for (version, source) in [(1, "tool"), (2, "schedule")] {
        let json = json!({"op": op, "to": {"type": "fresh"}, "grace_ms": 1, "source": source});
        let body = Body::from_json("reset_began", version, &json.to_string()).unwrap();
        let written = body.to_json().unwrap().unwrap();
        let written: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert_eq!(written, json);
    }
    for (version, why) in [(1, "hook"), (2, "home_restored")] {
        let json = json!({"op": op, "why": why}).to_string();
        let body = Body::from_json("reset_withdrawn", version, &json).unwrap();
        assert_eq!(body.to_json().unwrap(), Some(json));
    }
    assert_eq!(Kind::ResetBegan.version(), 2);
    assert_eq!(Kind::ResetWithdrawn.version(), 2);
}
