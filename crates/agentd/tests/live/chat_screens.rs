//! Whole screens of `agentd chat` in a real terminal, as golden files: at three widths, with and without colours. Times
//! are replaced, and a test waits until the screen is the expected one.

#[path = "../fixture/golden.rs"]
mod golden;

use super::chat::{ALT_ENTER, SIZE, SLOW, chat, go, press, send};
use super::test_live::{POLL, SPINNER, TestLive, until};
use agentd_testkit::harness::{Picture, Poll, Size, Terminal};
use regex::Regex;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

const ESCAPE: &str = "\x1b";
const NARROW: Size = Size::new(24, 60);
const WIDE: Size = Size::new(40, 200);

/// A screen that is written to its golden file has not changed for this long.
const STEADY: Poll = Poll::new(Duration::from_secs(1), Duration::from_secs(60));

/// What is shown, without what differs from run to run.
pub fn shown(terminal: &Terminal) -> Picture {
    // The duration of a call is only shown if it is long, on a row of its own.
    terminal.picture().with(without_times).without_rows("0 s")
}

/// What differs from run to run, and what is shown instead. The screen is compared often: the patterns are compiled once.
static CHANGING: LazyLock<[(Regex, &str); 3]> = LazyLock::new(|| {
    [
        (r"\b\d+(\.\d+)? (ms|s|min)\b", "0 s"),
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>"),
        (r"/\S*/ad\w{6}/work", "<work>"),
    ]
    .map(|(pattern, instead)| (Regex::new(pattern).unwrap(), instead))
});

/// What differs from run to run is replaced.
fn without_times(text: &str) -> String {
    let mut text = text.replace(SPINNER, "⠋");
    for (pattern, instead) in CHANGING.iter() {
        text = pattern.replace_all(&text, *instead).into_owned();
    }
    text
}

/// Waits until the screen is that of the golden file.
#[track_caller]
fn check(terminal: &Terminal, name: &str) {
    let name = format!("chat/terminal/{name}.txt");
    check_file(&name, || shown(terminal).text());
}

/// Waits until what is shown is in the golden file.
#[track_caller]
pub fn check_file(name: &str, shown: impl Fn() -> String) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let expected = std::fs::read_to_string(file.join(name)).unwrap_or_default();
    if std::env::var_os("AGENTD_WRITE_GOLDEN").is_some() {
        let mut last = String::new();
        let is_steady = STEADY.until("a screen that stays", || {
            let before = std::mem::replace(&mut last, shown());
            (before == last).then_some(())
        });
        is_steady.unwrap();
    } else {
        let is_expected = || (shown() == expected).then_some(());
        // The comparison below says how it differs.
        let _differs = POLL.until("the golden screen", is_expected);
    }
    golden::check(name, &shown());
}

/// The same screen at the other widths.
fn check_widths(terminal: &Terminal, name: &str) {
    for (size, width) in [(NARROW, 60), (WIDE, 200), (SIZE, 100)] {
        terminal.resize(size).unwrap();
        check(terminal, &format!("{name}-{width}"));
    }
}

fn plain() -> TestLive {
    TestLive::with_coder().env("NO_COLOR", "1")
}

fn coloured() -> TestLive {
    TestLive::with_coder().env("TERM", "xterm-256color")
}

fn answered(live: &TestLive) -> Terminal {
    let mut terminal = chat(live);
    send(
        &mut terminal,
        r#"do: call shell {"command": "seq 3"} ;; say The test **passes** now: `max` returned the *smaller* value, and a long sentence is wrapped between its words."#,
    );
    until(&terminal, "tokens in,");
    terminal
}

#[test]
fn an_answer() {
    check_widths(&answered(&plain()), "answer");
}

#[test]
fn an_answer_in_colours() {
    check_widths(&answered(&coloured()), "answer-colours");
}

fn queued(live: &TestLive) -> Terminal {
    let mut terminal = chat(live);
    send(&mut terminal, SLOW);
    until(&terminal, "echo went · ");
    press(&mut terminal, &format!("then run the tests{ALT_ENTER}"));
    until(&terminal, "1. then run the tests");
    press(&mut terminal, &format!("and format the code{ALT_ENTER}"));
    until(&terminal, "2. and format the code");
    terminal
}

#[test]
fn a_running_turn_with_a_queue() {
    check_widths(&queued(&plain()), "queue");
}

#[test]
fn a_running_turn_with_a_queue_in_colours() {
    check_widths(&queued(&coloured()), "queue-colours");
}

fn asking(live: &TestLive) -> Terminal {
    live.ok(&["set", "coder", "approval=always"]);
    let mut terminal = chat(live);
    until(&terminal, "approval: always");
    send(
        &mut terminal,
        r#"do: call shell {"command": "rm -r target"} ;; say removed"#,
    );
    until(&terminal, "y yes");
    terminal
}

#[test]
fn a_call_that_waits_for_approval() {
    check_widths(&asking(&plain()), "approval");
}

#[test]
fn a_call_that_waits_for_approval_in_colours() {
    check_widths(&asking(&coloured()), "approval-colours");
}

/// Presses a key until the screen shows that it was taken: an approval is not answered before it could be read.
fn press_until(terminal: &mut Terminal, key: &str, is_taken: impl Fn(&str) -> bool) {
    let taken = POLL.until(key, || {
        let is_so = is_taken(&terminal.screen());
        if !is_so {
            press(terminal, key);
        }
        is_so.then_some(())
    });
    taken.unwrap();
}

#[test]
fn a_call_that_was_denied_with_a_reason() {
    let live = plain();
    let mut terminal = asking(&live);
    press_until(&mut terminal, "n", |screen| screen.contains("reason>"));
    press(&mut terminal, "\x15");
    send(&mut terminal, "keep the cache");
    until(&terminal, "tokens in,");
    check(&terminal, "denied");
}

#[test]
fn a_whole_call_on_its_own_page() {
    let live = plain();
    let mut terminal = asking(&live);
    press_until(&mut terminal, "v", |screen| screen.contains("Esc closes"));
    check(&terminal, "whole-call");
}

#[test]
fn a_steered_turn() {
    let live = plain();
    let mut terminal = chat(&live);
    send(&mut terminal, SLOW);
    until(&terminal, "echo went · ");
    send(&mut terminal, "do: say I also ran the linter");
    until(&terminal, "(steer)");
    check(&terminal, "steer");
    go(&live);
    until(&terminal, "tokens in,");
    check(&terminal, "steered");
}

/// Interrupts the turn, and checks the screen afterwards.
fn interrupted(terminal: &mut Terminal, name: &str) {
    press(terminal, ESCAPE);
    until(terminal, "Enter sends");
    check(terminal, name);
}

#[test]
fn a_turn_that_was_interrupted_while_the_model_was_silent() {
    let live = plain();
    let mut terminal = chat(&live);
    send(&mut terminal, "do: hang ;; say never");
    until(&terminal, "waiting for the model");
    interrupted(&mut terminal, "interrupted-waiting");
}

#[test]
fn a_turn_that_was_interrupted_while_the_reply_streamed() {
    let live = plain();
    let mut terminal = chat(&live);
    // The beginning of the message, the beginning of its text, and two of its three deltas.
    send(
        &mut terminal,
        "do: hang 4 | say The first words of an answer that is not finished ;; say never",
    );
    until(&terminal, "The first words");
    until(&terminal, "writing · ");
    interrupted(&mut terminal, "interrupted-streaming");
}

#[test]
fn a_turn_that_was_interrupted_while_it_waited_for_a_retry() {
    let live = plain();
    let mut terminal = chat(&live);
    send(&mut terminal, "do: fail 529 1000 ;; say never");
    until(&terminal, "HTTP 529: overloaded, retry in ");
    check(&terminal, "retry");
    interrupted(&mut terminal, "interrupted-retry");
}

#[test]
fn a_command_of_the_user() {
    let live = plain();
    let mut terminal = chat(&live);
    press(&mut terminal, "!seq 3");
    until(&terminal, "$ !seq 3");
    check(&terminal, "command-typed");
    press(&mut terminal, "\r");
    until(&terminal, "  3");
    check(&terminal, "command");
    // Escape ends a command, as it interrupts a turn.
    send(&mut terminal, "!touch begun; sleep 1000");
    until(&terminal, "Esc ends the command");
    let begun = live.work().join("begun");
    let is_begun = POLL.until("the command", || begun.exists().then_some(()));
    is_begun.unwrap();
    press(&mut terminal, ESCAPE);
    until(&terminal, "interrupted: ");
    until(&terminal, "Enter sends");
    send(&mut terminal, "do: say I see what you ran");
    until(&terminal, "tokens in,");
    let requests = live.model().requests();
    let body = requests.last().unwrap().body.to_string();
    assert!(body.contains(r"$ seq 3\n1\n2\n3"), "{body}");
    assert!(body.contains("(interrupted: "), "{body}");
}

#[test]
fn a_turn_that_was_interrupted_while_a_tool_ran() {
    let live = plain();
    let mut terminal = chat(&live);
    // One process: a shell that outlives its program by a moment says that it was terminated.
    let sleep = r#"do: call shell {"command": "exec sleep 1000"} ;; say never"#;
    send(&mut terminal, sleep);
    until(&terminal, "exec sleep 1000 · ");
    interrupted(&mut terminal, "interrupted-tool");
}

#[test]
fn a_turn_that_was_interrupted_while_it_asked() {
    let live = plain();
    let mut terminal = asking(&live);
    // The question has the keys: the first Escape gives them back to the prompt line.
    press_until(&mut terminal, ESCAPE, |screen| {
        screen.contains("Ctrl-O answers it")
    });
    interrupted(&mut terminal, "interrupted-asking");
}

#[test]
fn the_list_of_commands_and_the_help() {
    let live = plain();
    let mut terminal = chat(&live);
    press(&mut terminal, "/re");
    until(&terminal, "/reset");
    check(&terminal, "commands");
    press(&mut terminal, "\x15/help\r");
    until(&terminal, "Esc closes");
    check(&terminal, "help");
}

#[test]
fn a_choice_of_turns() {
    let live = plain();
    let mut terminal = chat(&live);
    send(&mut terminal, "do: say one");
    until(&terminal, "tokens in,");
    send(&mut terminal, "do: say two");
    terminal
        .until(POLL, "two turns", |screen| {
            screen.matches("tokens in,").count() == 2
        })
        .unwrap();
    send(&mut terminal, "/rewind");
    until(&terminal, "Enter chooses");
    check(&terminal, "turns");
}

#[test]
fn a_reset_and_its_undo() {
    let live = plain();
    let mut terminal = answered(&live);
    send(&mut terminal, "/reset");
    until(&terminal, "conversation 2");
    check(&terminal, "reset");
    send(&mut terminal, "/undo");
    until(&terminal, "conversation 1");
    check(&terminal, "undone");
}
