//! `agentd logs -f` on a terminal.

use super::test_live::{POLL, TestLive, WIDE, no_rubbish, until};
use rustix::process::Signal;

#[test]
fn the_log_is_followed_live() {
    let live = TestLive::with_coder();
    live.ok(&["send", "coder", "do: say **first** answer"]);
    let mut terminal = live.terminal(WIDE, &["logs", "coder", "-f"]);
    let screen = until(&terminal, "first answer");
    assert!(screen.contains("── conversation 1 (create)"), "{screen}");
    assert!(screen.contains("> do: say **first** answer"), "{screen}");
    let prompt = r#"do: call shell {"command": "sleep 1; echo made"} ;; slowly 100 second answer with some more words"#;
    live.ok(&["send", "coder", "--no-wait", prompt]);
    until(&terminal, "$ sleep 1; echo made · ");
    until(&terminal, "writing · ");
    live.ok(&["wait", "coder"]);
    // The summaries of both turns.
    terminal
        .until(POLL, "the end", |screen| {
            screen.matches(" tokens in, ").count() == 2
        })
        .unwrap();
    terminal.signal(Signal::INT).unwrap();
    assert_eq!(terminal.ended(POLL).unwrap().code(), Some(130));
    let screen = terminal.screen();
    no_rubbish(&screen);
    assert!(screen.contains("\n  made\n"), "{screen}");
    let answer = "\nsecond answer with some more words\n";
    assert_eq!(screen.matches(answer).count(), 1, "{screen}");
}
