//! `agentd send`, `wait` and `continue` on a terminal.

use super::test_live::{POLL, TestLive, WIDE, last_screen, no_rubbish, until};
use rustix::process::Signal;
use serde_json::Value;

const SLOW: &str = r#"do: call shell {"command": "until [ -e go ]; do sleep 0.05; done; echo went"} ;; say **all** done"#;

fn go(live: &TestLive) {
    std::fs::write(live.work().join("go"), "").unwrap();
}

#[test]
fn the_turn_is_shown_live() {
    let live = TestLive::with_coder();
    let mut terminal = live.terminal(WIDE, &["send", "coder", SLOW]);
    until(&terminal, "done; echo went · 1 s");
    go(&live);
    let screen = last_screen(&mut terminal);
    assert!(screen.starts_with("$ until [ -e go ]"), "{screen}");
    assert!(screen.contains("\n  went\n"), "{screen}");
    assert_eq!(screen.matches("all done").count(), 1, "{screen}");
    assert!(screen.contains(" tokens in, "), "{screen}");
}

#[test]
fn ctrl_c_stops_waiting_and_the_turn_continues() {
    let live = TestLive::with_coder();
    let mut terminal = live.terminal(WIDE, &["send", "coder", SLOW]);
    until(&terminal, "echo went · ");
    terminal.signal(Signal::INT).unwrap();
    let status = terminal.ended(POLL).unwrap();
    let screen = terminal.screen();
    assert_eq!(status.code(), Some(130), "{screen}");
    assert!(screen.contains("the turn continues"), "{screen}");
    no_rubbish(&screen);
    go(&live);
    live.ok(&["wait", "coder"]);
    let agent: Value = serde_json::from_str(&live.ok(&["show", "coder", "--json"])).unwrap();
    assert_eq!(agent["last_turn"]["status"], "completed", "{agent}");
}

#[test]
fn a_queued_prompt_says_what_it_waits_for() {
    let live = TestLive::with_coder();
    live.ok(&["send", "coder", "--no-wait", SLOW]);
    let mut first = live.terminal(WIDE, &["wait", "coder"]);
    // The call had started before, and its title is in the status line.
    until(&first, "$ until [ -e go ]");
    let mut second = live.terminal(WIDE, &["send", "coder", "do: say second"]);
    until(&second, "queued behind: $ until [ -e go ]");
    go(&live);
    let screen = last_screen(&mut second);
    assert!(screen.starts_with("second\n"), "{screen}");
    assert!(!screen.contains("went"), "{screen}");
    // `wait` shows both turns.
    let screen = last_screen(&mut first);
    assert!(
        screen.contains("went") && screen.contains("all done"),
        "{screen}"
    );
    assert!(screen.contains("> do: say second"), "{screen}");
}

#[test]
fn the_approval_of_an_earlier_turn_is_asked_for_in_place() {
    let live = TestLive::with_coder();
    live.ok(&["set", "coder", "approval=always"]);
    let first = r#"do: call shell {"command": "touch made"} ;; say first"#;
    let waiting = live.piped(&["send", "coder", first]);
    assert_eq!(waiting.status.code(), Some(6), "{waiting:?}");
    let mut terminal = live.terminal(WIDE, &["send", "coder", "do: say second"]);
    let screen = until(&terminal, "Run it?");
    assert!(screen.contains("queued behind a turn"), "{screen}");
    assert!(screen.contains("touch made"), "{screen}");
    terminal.line("y").unwrap();
    let screen = last_screen(&mut terminal);
    assert!(screen.contains("second"), "{screen}");
    assert!(live.work().join("made").exists());
}

#[test]
fn the_answer_of_a_turn_that_has_ended_is_shown_as_markdown() {
    let live = TestLive::with_coder();
    let sent = live.ok(&[
        "send",
        "coder",
        "--no-wait",
        "--json",
        "do: say **all** done",
    ]);
    let sent: Value = serde_json::from_str(&sent).unwrap();
    let prompt = sent["prompt"].as_str().unwrap();
    live.ok(&["wait", "coder"]);
    let mut terminal = live.terminal(WIDE, &["wait", "coder", prompt]);
    assert_eq!(last_screen(&mut terminal), "all done");
}

#[test]
fn a_turn_that_is_continued_is_shown() {
    let live = TestLive::with_coder();
    live.ok(&["set", "coder", "limits.max_iterations=1"]);
    let prompt = r#"do: call shell {"command": "echo one"} ;; say **two**"#;
    let mut limited = live.terminal(WIDE, &["send", "coder", prompt]);
    assert_eq!(limited.ended(POLL).unwrap().code(), Some(5));
    let screen = limited.screen();
    assert!(screen.contains("the turn reached a limit"), "{screen}");
    assert!(screen.contains("model requests of one turn: 1"), "{screen}");
    live.ok(&["set", "coder", "limits.max_iterations=9"]);
    let mut terminal = live.terminal(WIDE, &["continue", "coder"]);
    let screen = last_screen(&mut terminal);
    assert!(
        screen.contains("\ntwo\n") || screen.starts_with("two\n"),
        "{screen}"
    );
}

#[test]
fn a_daemon_that_is_killed_costs_no_line() {
    let live = TestLive::with_coder();
    let mut terminal = live.terminal(WIDE, &["send", "coder", SLOW]);
    until(&terminal, "echo went · ");
    kill_daemon(&live);
    go(&live);
    let screen = last_screen(&mut terminal);
    for once in ["$ until", "went\n", "all done"] {
        assert!(screen.contains(once), "{once}: {screen}");
    }
    assert_eq!(screen.matches("all done").count(), 1, "{screen}");
    assert_eq!(screen.matches("$ until").count(), 1, "{screen}");
}

/// The rest of a reply comes with its message, below the part that had streamed.
#[test]
fn a_daemon_that_is_killed_in_mid_reply_doubles_no_text() {
    let live = TestLive::with_coder();
    let words = "First one.\n\nThen another one, which is longer.\n\nAnd the very last one of them";
    let prompt = format!("do: slowly 60 {words}");
    let mut terminal = live.terminal(WIDE, &["send", "coder", &prompt]);
    until(&terminal, "Then another");
    kill_daemon(&live);
    let screen = last_screen(&mut terminal);
    for once in [
        "First one.",
        "which is longer.",
        "the very last one of them",
    ] {
        assert_eq!(screen.matches(once).count(), 1, "{once}: {screen}");
    }
}

fn kill_daemon(live: &TestLive) {
    let daemon: Value = serde_json::from_str(&live.ok(&["daemon", "status", "--json"])).unwrap();
    let pid = i32::try_from(daemon["pid"].as_i64().unwrap()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
}
