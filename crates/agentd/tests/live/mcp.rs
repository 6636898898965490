//! Calls of an MCP server in the live view: their progress, and their questions.

use crate::test_live::{POLL, TestLive, WIDE, last_screen, until};
use agentd_testkit::harness::Terminal;
use std::fs;
use std::path::Path;

/// Starts `run` with an agent that has the fake server.
fn run(live: &TestLive, args: &[&str], prompt: &str) -> Terminal {
    let program = Path::new(env!("CARGO_BIN_EXE_agentd")).with_file_name("agentd-fake-mcp");
    let file = live.root().join("coder.md");
    let entry = format!("command: {}\n    args: {args:?}", program.display());
    let text = format!("---\nmcp:\n  fake:\n    {entry}\n---\nYou are an agent.\n");
    fs::write(&file, text).unwrap();
    live.run(WIDE, &["-f", file.to_str().unwrap()], prompt)
}

/// Lets a call go on that waits.
fn continues(live: &TestLive) {
    fs::write(live.work().join("mcp-continue"), "").unwrap();
}

#[test]
fn the_progress_of_a_call_is_in_the_status_line() {
    let live = TestLive::new();
    let prompt = "do: call mcp__fake__steps {} ;; say all done";
    let mut terminal = run(&live, &[], prompt);
    until(&terminal, "(3/5, the third step)");
    continues(&live);
    let screen = last_screen(&mut terminal);
    assert!(screen.contains("all done"), "{screen}");
    assert!(!screen.contains("the third step"), "{screen}");
}

/// What was typed before the question was shown is no answer to it.
#[test]
fn lines_that_were_typed_ahead_do_not_answer_a_question() {
    let live = TestLive::new();
    let prompt = "do: call mcp__fake__elicit_later {} ;; say all done";
    let mut terminal = run(&live, &["--probe", "refuse"], prompt);
    let effects = live.work().join("mcp-effects");
    let is_waiting = || {
        let text = fs::read_to_string(&effects).unwrap_or_default();
        (text == "waiting\n").then_some(())
    };
    POLL.until("the call", is_waiting).unwrap();
    for line in ["y", "Bob"] {
        terminal.line(line).unwrap();
    }
    continues(&live);
    until(&terminal, "Answer it?");
    terminal.line("y").unwrap();
    until(&terminal, "name (string)");
    terminal.line("Ann").unwrap();
    // The lines that were typed ahead stand in the status line, and stay.
    let status = terminal.ended(POLL).unwrap();
    let screen = terminal.screen();
    assert!(status.success(), "{status}:\n{screen}");
    assert!(screen.contains("all done"), "{screen}");
    let requests = live.model().requests();
    let last = requests.last().unwrap().body.to_string();
    assert!(last.contains("hello Ann"), "{last}");
    assert!(!last.contains("Bob"), "{last}");
}
