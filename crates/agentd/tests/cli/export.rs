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
    place.refused(4, &["export", "coder", "no/such/folder"]);
}

#[test]
fn to_standard_output_it_is_the_same() {
    let place = Place::with_coder();
    let output = place.command(&["export", "coder", "-"]).output().unwrap();
    let text = zstd::stream::decode_all(output.stdout.as_slice()).unwrap();
    assert!(String::from_utf8(text).unwrap().contains("agent_created"));
}
