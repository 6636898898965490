//! Output is cut between characters, and the text says how much is missing.

use super::{Rest, cut, file_name, number, of_file, part_of_file, tail_of_file};
use agentd_core::id::CallId;
use std::fs;
use std::path::Path;

const KEPT: &str = "/kept";

fn cut_at(text: &str, limit: usize) -> String {
    cut(text, limit, &Rest::In(Path::new(KEPT)))
}

#[test]
fn a_text_within_the_limit_stays_as_it_is() {
    assert_eq!(cut_at("abc", 3), "abc");
    assert_eq!(cut_at("", 0), "");
}

#[test]
fn head_and_tail_are_shown_and_the_rest_is_counted() {
    let text = format!("{}{}{}", "a".repeat(5), "x".repeat(123_456), "b".repeat(5));
    assert_eq!(
        cut_at(&text, 10),
        "aaaaa\n… 123,456 bytes omitted; the full output is in /kept; `tail -c +6 FILE | head -c 10000` in \
         shell shows them …\nbbbbb"
    );
}

#[test]
fn whole_lines_are_shown_with_the_call_that_shows_the_rest() {
    let lines: Vec<String> = (1..=1000).map(|n| format!("line {n:04}")).collect();
    let text = lines.join("\n");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("output");
    fs::write(&path, &text).unwrap();
    let expected = |way: &str| {
        format!(
            "line 0001\nline 0002\n… 996 lines (9,960 bytes) omitted; {way} …\nline 0999\nline 1000"
        )
    };
    let kept = expected("the full output is in /kept; read_file with offset 3 shows them");
    assert_eq!(cut_at(&text, 50), kept);
    let rest = Rest::In(Path::new(KEPT));
    assert_eq!(of_file(&path, 50, &rest).unwrap(), kept);
    let of_task = expected("task_output with offset 20 shows them");
    assert_eq!(of_file(&path, 50, &Rest::OfTask).unwrap(), of_task);
    let error = std::io::Error::other("the disk is full");
    let lost = expected("they could not be kept: the disk is full");
    assert_eq!(cut(&text, 50, &Rest::Lost(&error)), lost);
}

#[test]
fn a_character_is_never_cut_in_two() {
    let text = "aé€🙂".repeat(50);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("output");
    fs::write(&path, &text).unwrap();
    for limit in 0..60 {
        for shown in [
            cut_at(&text, limit),
            of_file(&path, limit, &Rest::OfTask).unwrap(),
        ] {
            assert!(!shown.contains('\u{fffd}'), "{limit}: {shown}");
            let [head, note, tail] = shown.split('\n').collect::<Vec<_>>()[..] else {
                panic!("{shown}")
            };
            assert!(text.starts_with(head) && text.ends_with(tail));
            let left_out = text.len() - head.len() - tail.len();
            assert!(note.contains(&number(left_out as u64)), "{note}");
            assert!(head.len() + tail.len() <= limit);
        }
        assert!(text.ends_with(&tail_of_file(&path, limit as u64).unwrap()));
    }
}

#[test]
fn parts_of_a_file_follow_each_other() {
    let text = "aé€🙂".repeat(50);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("output");
    fs::write(&path, &text).unwrap();
    for limit in 4..20 {
        let (mut all, mut offset) = (String::new(), 0);
        while (offset as usize) < text.len() {
            let (part, next) = part_of_file(&path, offset, limit).unwrap();
            assert!(next > offset);
            all.push_str(&part);
            offset = next;
        }
        assert_eq!(all, text, "{limit}");
    }
}

#[test]
fn what_is_no_text_is_shown_as_far_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("output");
    fs::write(&path, [b'a', 0xff, 0x80, 0x80, 0x80, 0x80, 0x80, b'b']).unwrap();
    let shown = of_file(&path, 100, &Rest::OfTask).unwrap();
    assert!(shown.starts_with('a') && shown.ends_with('b'));
    of_file(&path, 4, &Rest::OfTask).unwrap();
}

#[test]
fn a_call_id_never_leads_elsewhere() {
    assert_eq!(file_name(&CallId::new("call_0-A")), "call_0-A");
    for id in ["", "..", "../a", "a/b", "a.b", &"a".repeat(200)] {
        let name = file_name(&CallId::new(id));
        assert_eq!(name.len(), 64, "{id}");
    }
}
