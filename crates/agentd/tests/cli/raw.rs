//! Text of a model or a tool is printed without control sequences; `--raw` prints it unchanged.

use super::test_cli::TestCli;

/// Sets the title, clears the screen, writes in red, and reverses the direction of the text.
const EVIL: &str = r"run `printf 'a\033]0;owned\007b\033[2J\033[31mc\302\2332Jd\342\200\256e'`";

fn is_clean(text: &str) -> bool {
    let bidi = ['\u{202e}', '\u{2066}'];
    text.chars()
        .all(|c| (!c.is_control() || matches!(c, '\n' | '\t')) && !bidi.contains(&c))
}

#[test]
fn control_sequences_reach_no_terminal_but_with_raw() {
    let cli = TestCli::with_coder();
    for args in [
        &["send", "coder", EVIL][..],
        &["logs", "coder"],
        &["replay", "coder"],
        &["show", "coder"],
    ] {
        let shown = cli.ok(args);
        assert!(is_clean(&shown), "{args:?}: {shown:?}");
    }
    let raw = cli.ok(&["logs", "coder", "--raw"]);
    assert!(raw.contains("\u{1b}]0;owned\u{7}"), "{raw:?}");
}

/// Programs get every character, escaped, so that a terminal which shows the JSON interprets none of them.
#[test]
fn json_has_every_character_escaped() {
    let cli = TestCli::with_coder();
    let ran = cli.run(&["send", "coder", "--json", EVIL]);
    assert!(is_clean(&ran.out), "{:?}", ran.out);
    let shown = cli.run(&["replay", "coder", "--json"]);
    assert!(is_clean(&shown.out), "{:?}", shown.out);
    let lines = shown.out.lines();
    let events: Vec<serde_json::Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let text = serde_json::to_string(&events).unwrap();
    assert!(text.contains('\u{202e}'), "{text}");
}

/// An error that names an argument removes its control sequences too.
#[test]
fn errors_are_clean_too() {
    let cli = TestCli::with_coder();
    let ran = cli.run(&["show", "no\u{1b}]0;owned\u{7}\u{202e}body"]);
    assert!(is_clean(&ran.err), "{:?}", ran.err);
}
