//! `agentd export`.

use super::place::Place;

#[test]
fn a_file_that_is_there_is_not_replaced() {
    let place = Place::with_coder();
    place.ok(&["export", "coder"]);
    let file = place.work().join("coder.jsonl.zst");
    let first = std::fs::metadata(&file).unwrap().len();
    let text = place.refused(3, &["export", "coder"]);
    assert!(text.contains("--force"), "{text}");
    place.ok(&["send", "coder", "run `true`"]);
    place.ok(&["export", "coder", "coder.jsonl.zst", "--force"]);
    assert!(std::fs::metadata(&file).unwrap().len() > first);
    place.refused(2, &["export", "coder", "no/such/folder"]);
}

#[test]
fn to_standard_output_it_is_the_same() {
    let place = Place::with_coder();
    let output = place.command(&["export", "coder", "-"]).output().unwrap();
    let text = zstd::stream::decode_all(output.stdout.as_slice()).unwrap();
    assert!(String::from_utf8(text).unwrap().contains("agent_created"));
}

#[test]
fn one_conversation_is_written_alone() {
    let place = Place::with_coder();
    place.ok(&["send", "coder", "run `echo plugh`"]);
    place.ok(&["reset", "coder"]);
    place.ok(&["send", "coder", "run `echo xyzzy`"]);
    place.ok(&["export", "coder", "--conversation", "2"]);
    let text = std::fs::read_to_string(place.work().join("coder-2.jsonl")).unwrap();
    assert!(text.contains("xyzzy") && !text.contains("plugh"), "{text}");
    for line in text.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(event["seq"].is_u64());
    }
    place.refused(7, &["export", "coder", "--conversation", "7"]);
}
