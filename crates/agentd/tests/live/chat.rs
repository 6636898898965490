//! `agentd chat` in a real terminal.

use super::test_live::{POLL, TestLive, until};
use agentd_failpoint::plan::{Action, Plan, Role, Rule};
use agentd_failpoint::{Passed, VARIABLE};
use agentd_testkit::harness::{Size, Terminal};
use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;

pub const SIZE: Size = Size::new(30, 100);
pub const ENTER: &str = "\r";
pub const ALT_ENTER: &str = "\x1b\r";
const CTRL_D: &str = "\x04";
pub const SLOW: &str = r#"do: call shell {"command": "until [ -e go ]; do sleep 0.05; done; echo went"} ;; say **all** done"#;

pub fn go(live: &TestLive) {
    std::fs::write(live.work().join("go"), "").unwrap();
}

/// Opens the chat, and waits until it takes keys.
pub fn chat(live: &TestLive) -> Terminal {
    let terminal = live.terminal(SIZE, &["chat", "coder"]);
    until(&terminal, "Enter sends");
    terminal
}

pub fn press(terminal: &mut Terminal, keys: &str) {
    terminal.keys(keys).unwrap();
}

pub fn send(terminal: &mut Terminal, text: &str) {
    press(terminal, &format!("{text}{ENTER}"));
}

/// Leaves with Ctrl-D, and checks that the terminal is as it was.
fn leave(terminal: &mut Terminal) {
    press(terminal, CTRL_D);
    let status = terminal.ended(POLL).unwrap();
    let screen = terminal.screen();
    assert!(status.success(), "{status}:\n{screen}");
    assert_eq!(screen, "coder continues: agentd chat coder");
    let bytes = String::from_utf8_lossy(&terminal.bytes()).into_owned();
    let ends = ["\x1b[?1049l", "\x1b[?2004l"];
    assert!(ends.iter().all(|end| bytes.contains(end)));
}

fn agent(live: &TestLive) -> Value {
    serde_json::from_str(&live.ok(&["show", "coder", "--json"])).unwrap()
}

#[test]
fn a_prompt_is_typed_and_answered_and_ctrl_d_leaves() {
    let live = TestLive::with_coder();
    let mut terminal = chat(&live);
    send(&mut terminal, "do: say the **answer** is 42");
    let screen = until(&terminal, "tokens in,");
    assert!(screen.contains("> do: say"), "{screen}");
    assert_eq!(screen.matches("the answer is 42").count(), 1, "{screen}");
    assert!(screen.contains("some-model"), "{screen}");
    leave(&mut terminal);
    // The history is there again.
    let mut terminal = chat(&live);
    until(&terminal, "the answer is 42");
    leave(&mut terminal);
}

#[test]
fn while_a_turn_runs_enter_steers_alt_enter_queues_and_escape_interrupts() {
    let live = TestLive::with_coder();
    let mut terminal = chat(&live);
    send(&mut terminal, SLOW);
    until(&terminal, "Enter steers");
    press(&mut terminal, &format!("later{ALT_ENTER}"));
    until(&terminal, "1. later");
    send(&mut terminal, "now");
    until(&terminal, "(steer) now");
    press(&mut terminal, "\x1b");
    until(&terminal, "Enter sends");
    leave(&mut terminal);
}

#[test]
fn the_turn_continues_without_the_chat() {
    let live = TestLive::with_coder();
    let mut terminal = chat(&live);
    send(&mut terminal, SLOW);
    until(&terminal, "echo went · ");
    leave(&mut terminal);
    go(&live);
    live.ok(&["wait", "coder"]);
    assert_eq!(agent(&live)["last_turn"]["status"], "completed");
}

#[test]
fn a_call_is_approved_or_denied_with_a_reason() {
    let live = TestLive::with_coder();
    live.ok(&["set", "coder", "approval=always"]);
    let mut terminal = chat(&live);
    until(&terminal, "approval: always");
    send(
        &mut terminal,
        r#"do: call shell {"command": "echo one"} ;; say first"#,
    );
    let screen = until(&terminal, "y yes");
    assert!(screen.contains("echo one"), "{screen}");
    // The keys of an eager user are no answer: the call is answered when the user could have read it.
    let is_answered = POLL.until("the answer", || {
        press(&mut terminal, "y");
        (!terminal.screen().contains("y yes")).then_some(())
    });
    is_answered.unwrap();
    until(&terminal, "first");
    press(&mut terminal, "\x15");
    send(
        &mut terminal,
        r#"do: call shell {"command": "echo two"} ;; say second"#,
    );
    until(&terminal, "y yes");
    let is_asked = POLL.until("the reason", || {
        let screen = terminal.screen();
        if !screen.contains("reason>") {
            press(&mut terminal, "n");
        }
        screen.contains("reason>").then_some(())
    });
    is_asked.unwrap();
    press(&mut terminal, "\x15");
    send(&mut terminal, "not today");
    until(&terminal, "denied");
    // The result of the call has the reason.
    until(&terminal, "not today");
    until(&terminal, "second");
}

#[test]
fn the_screen_follows_its_size() {
    let live = TestLive::with_coder();
    let mut terminal = chat(&live);
    let words = "word ".repeat(30);
    send(&mut terminal, &format!("do: say {words}end"));
    until(&terminal, "tokens in,");
    terminal.resize(Size::new(24, 60)).unwrap();
    let screen = terminal.until(POLL, "narrow rows", |screen| {
        let is_narrow = screen.lines().all(|row| row.chars().count() <= 60);
        screen.contains("end") && screen.contains("Enter sends") && is_narrow
    });
    screen.unwrap();
    terminal.resize(Size::new(40, 200)).unwrap();
    until(&terminal, "Ctrl-D leaves");
    leave(&mut terminal);
}

/// The size changes and keys are pressed before the chat looks at either.
#[test]
fn keys_that_come_with_another_size_are_read_at_once() {
    let live = TestLive::with_coder();
    let mut terminal = chat(&live);
    for (columns, keys) in [(90, "one "), (100, "two "), (80, "three ")] {
        terminal.signal(Signal::STOP).unwrap();
        terminal.resize(Size::new(30, columns)).unwrap();
        press(&mut terminal, keys);
        terminal.signal(Signal::CONT).unwrap();
        until(&terminal, keys.trim_end());
    }
    send(&mut terminal, "");
    until(&terminal, "> one two three");
}

#[test]
fn a_file_that_the_prompt_names_is_in_the_request() {
    let live = TestLive::with_coder();
    std::fs::write(live.work().join("notes.txt"), "the words of the file").unwrap();
    std::fs::write(live.work().join("secret.txt"), "not for the model").unwrap();
    let mut terminal = chat(&live);
    // Of a text that was pasted, no word names a file.
    press(&mut terminal, "do: say thanks for @notes.txt ");
    send(&mut terminal, "\x1b[200~and the log @secret.txt\x1b[201~");
    until(&terminal, "tokens in,");
    let requests = live.model().requests();
    let request = requests.last().unwrap().body.to_string();
    assert!(request.contains("the words of the file"), "{request}");
    assert!(!request.contains("not for the model"), "{request}");
    leave(&mut terminal);
}

#[test]
fn a_megabyte_is_pasted_and_sent() {
    let live = TestLive::with_coder();
    let mut terminal = chat(&live);
    // A prompt may have 1 MiB.
    let line = format!("{}\r", "x".repeat(99));
    let text = line.repeat(10_000);
    press(&mut terminal, "do: say got it ;; say ");
    press(&mut terminal, &format!("\x1b[200~{text}\x1b[201~"));
    until(&terminal, "[pasted text 1: 10000 lines]");
    press(&mut terminal, ENTER);
    until(&terminal, "tokens in,");
    leave(&mut terminal);
}

#[test]
fn a_daemon_that_is_killed_costs_no_line() {
    let live = TestLive::with_coder();
    let mut terminal = chat(&live);
    send(&mut terminal, SLOW);
    until(&terminal, "echo went · ");
    let daemon: Value = serde_json::from_str(&live.ok(&["daemon", "status", "--json"])).unwrap();
    let pid = i32::try_from(daemon["pid"].as_i64().unwrap()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    go(&live);
    let screen = until(&terminal, "tokens in,");
    assert_eq!(screen.matches("all done").count(), 1, "{screen}");
    assert_eq!(screen.matches("  went").count(), 1, "{screen}");
    leave(&mut terminal);
}

/// The daemon dies after the commit and before the answer: the chat sends the prompt again, with its key.
#[test]
fn a_prompt_whose_answer_is_lost_is_in_the_journal_once() {
    let live = TestLive::new();
    let rule = Rule {
        nth: Some(1),
        action: Action::Kill,
        ..Rule::hold("rule", Role::Daemon, "before-answer.prompts")
    };
    let plan = Plan {
        rules: vec![rule],
        ..Plan::default()
    };
    plan.write(&live.root()).unwrap();
    let lab = live.root().display().to_string();
    let live = live.env(VARIABLE, &lab).and_coder();
    let mut terminal = chat(&live);
    send(&mut terminal, "do: say once");
    let screen = until(&terminal, "tokens in,");
    let died = Passed::of_rule(&live.root(), "rule").unwrap();
    assert!(died.is_some(), "the daemon did not die:\n{screen}");
    assert_eq!(screen.matches("> do: say once").count(), 1, "{screen}");
    let log = live.ok(&["logs", "coder", "--json"]);
    assert_eq!(log.matches(r#""kind":"prompt_queued""#).count(), 1, "{log}");
    leave(&mut terminal);
}

#[test]
fn a_signal_restores_the_terminal() {
    let live = TestLive::with_coder();
    let mut terminal = chat(&live);
    terminal.signal(Signal::TERM).unwrap();
    assert!(terminal.ended(POLL).unwrap().success());
    assert_eq!(terminal.screen(), "coder continues: agentd chat coder");
}

#[test]
fn the_editor_has_the_terminal_meanwhile() {
    let live = TestLive::with_coder().env("EDITOR", "printf 'do: say edited' >");
    let mut terminal = chat(&live);
    press(&mut terminal, "draft\x07");
    until(&terminal, "> do: say edited");
    press(&mut terminal, ENTER);
    until(&terminal, "tokens in,");
    leave(&mut terminal);
}

#[test]
fn without_a_name_the_agent_of_the_directory_is_opened_or_created() {
    let live = TestLive::new();
    let mut terminal = live.terminal(SIZE, &[]);
    until(&terminal, "Name of a new one");
    terminal.line("helper").unwrap();
    until(&terminal, "helper · ");
    press(&mut terminal, CTRL_D);
    assert!(terminal.ended(POLL).unwrap().success());
    let mut terminal = live.terminal(SIZE, &["chat"]);
    until(&terminal, "helper · ");
    press(&mut terminal, CTRL_D);
    assert!(terminal.ended(POLL).unwrap().success());
}

#[test]
fn chat_needs_a_terminal() {
    let live = TestLive::with_coder();
    let output = live.piped(&["chat", "coder"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("needs a terminal"), "{error}");
}

/// `agentd daemon stop` is the way to an upgrade: what was typed meanwhile is not lost.
#[test]
fn a_prompt_that_was_typed_is_printed_when_the_daemon_stops() {
    let live = TestLive::with_coder();
    let mut terminal = chat(&live);
    press(&mut terminal, "half a thought");
    until(&terminal, "> half a thought");
    live.ok(&["daemon", "stop"]);
    let status = terminal.ended(POLL).unwrap();
    let screen = terminal.screen();
    assert!(!status.success(), "{screen}");
    assert!(
        screen.contains("your prompt was not sent:\nhalf a thought"),
        "{screen}"
    );
    let terminal = chat(&live);
    until(&terminal, "> half a thought");
}

/// The terminal is closed: what was typed is in the prompt line of the next chat, until it is sent.
#[test]
fn what_was_typed_is_in_the_prompt_line_again_until_it_is_sent() {
    let live = TestLive::with_coder();
    let mut terminal = chat(&live);
    press(&mut terminal, "do: say half a thought");
    until(&terminal, "> do: say half a thought");
    terminal.signal(Signal::HUP).unwrap();
    assert!(terminal.ended(POLL).unwrap().success());
    let screen = terminal.screen();
    assert!(screen.contains("what you typed is kept"), "{screen}");
    let id = agent(&live)["id"].as_str().unwrap().to_owned();
    let kept = live.home().join("agents").join(id).join("unsent.json");
    let mode = std::fs::metadata(&kept).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut terminal = chat(&live);
    until(&terminal, "> do: say half a thought");
    press(&mut terminal, ENTER);
    until(&terminal, "tokens in,");
    assert!(!kept.exists());
    leave(&mut terminal);
    // Ctrl-D leaves only with an empty prompt line.
    let mut terminal = chat(&live);
    leave(&mut terminal);
}

#[test]
fn a_file_that_the_model_does_not_accept_is_mentioned() {
    let live = TestLive::new();
    let config = "[models.some-model]\nimages = false\n";
    std::fs::write(live.home().join("config.toml"), config).unwrap();
    let live = live.and_coder();
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\x08\x02\0\0\0";
    std::fs::write(live.work().join("chart.png"), png).unwrap();
    let mut terminal = chat(&live);
    send(&mut terminal, "do: say no picture of @chart.png");
    let warning = "warning: some-model accepts no images: chart.png is not included";
    until(&terminal, warning);
    until(&terminal, "tokens in,");
    leave(&mut terminal);
}
