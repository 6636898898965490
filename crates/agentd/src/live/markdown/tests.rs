//! Markdown as it is shown.

use super::*;
use crate::terminal;

fn shown(text: &str, width: usize) -> String {
    let lines = lines(text, width, None);
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    terminal::uncoloured(&lines.join("\n"))
}

#[test]
fn blocks_are_separated_by_one_blank_line() {
    let text = "# Title\nSome *text* with `code`.\n\n- one\n- two\n  - inner\n\n1. first\n2. second\n\n> said\n\n---\nend";
    let expected = "\
Title

Some text with code.

• one
• two
  • inner

1. first
2. second

│ said

──────────────────────────────

end";
    assert_eq!(shown(text, 30), expected);
}

#[test]
fn a_line_break_stays_and_long_rows_wrap_under_their_mark() {
    assert_eq!(shown("1\n2\n3", 30), "1\n2\n3");
    let text = "- a list item that is too long\n\n  and more\n- b";
    let expected = "• a list item\n  that is too\n  long\n\n  and more\n• b";
    assert_eq!(shown(text, 15), expected);
}

#[test]
fn code_is_indented_and_not_wrapped() {
    let text = "before\n```rust\nlet x = 1; // a long line\n\n    y\n```\nafter";
    let expected = "before\n\n  let x = 1; // a long line\n\n      y\n\nafter";
    assert_eq!(shown(text, 12), expected);
}

#[test]
fn a_link_has_its_address() {
    let shown = |text| shown(text, 80);
    assert_eq!(shown("see [docs](https://a.b)."), "see docs (https://a.b).");
    assert_eq!(shown("<https://a.b>"), "https://a.b");
    assert_eq!(shown("![a picture](x.png)"), "a picture (x.png)");
}

#[test]
fn deep_nesting_leaves_room_for_text() {
    let text = format!("{}said", "> ".repeat(5000));
    assert_eq!(shown(&text, 12), "│ │ said");
    assert_eq!(shown("- a\n  - b\n    - c", 12), "• a\n  • b\n    c");
    for width in 0..12 {
        shown(
            "1. a *b*\n\n> - c\n\n| d | e |\n|---|---|\n| 漢 | f |\n\n---\n",
            width,
        );
    }
}

#[test]
fn a_character_reference_is_no_control_character() {
    let text = "a&#27;[2Jb&#x9b;c&#xFDD1;d [e](x&#27;]0;f) `&#27;`";
    let lines: String = lines(text, 80, None)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(!lines.chars().any(char::is_control), "{lines:?}");
    assert!(
        !terminal::seen(&lines, true).contains("\u{1b}[31m"),
        "{lines:?}"
    );
}

#[test]
fn a_table_is_aligned() {
    let text = "| name | n |\n| --- | --- |\n| a | 10 |\n| longer | 2 |";
    let expected = "name    n\n──────  ──\na       10\nlonger  2";
    assert_eq!(shown(text, 40), expected);
    assert_eq!(shown(text, 8), "name │ n\na │ 10\nlonger │\n2");
}

#[test]
fn a_list_may_continue_an_earlier_one() {
    let lines = lines("1. next\n1. last", 20, Some(4));
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["4. next", "5. last"]);
}
