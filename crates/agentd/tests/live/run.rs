//! `agentd run` on a terminal.

use super::test_live::{POLL, TestLive, WIDE, last_screen, no_rubbish, until};
use agentd_testkit::harness::Size;
use rustix::process::Signal;

/// The escape character.
const ESC: u8 = 0x1b;

#[test]
fn a_reply_is_shown_as_it_streams_and_once_at_the_end() {
    let live = TestLive::new();
    let text = "## Title\n\nSome **bold** words and `code`.\n\n- one\n- two";
    let prompt = format!("do: slowly 100 {text} that are the last ones of the text");
    let mut terminal = live.run(WIDE, &[], &prompt);
    // The block that still grows, and the status line below it.
    let screen = until(&terminal, "Some bold words");
    assert!(!screen.contains("last ones"), "{screen}");
    until(&terminal, "writing · ");
    let screen = last_screen(&mut terminal);
    let lines: Vec<&str> = screen.lines().collect();
    let expected = [
        "Title",
        "",
        "Some bold words and code.",
        "",
        "• one",
        "• two that are the last ones of the text",
        "",
    ];
    assert_eq!(lines[..7], expected, "{screen}");
    assert_eq!(lines.len(), 8, "{screen}");
    for part in [" s · ", " tokens in, ", " out, cost unknown · context "] {
        assert!(lines[7].contains(part), "{part}: {screen}");
    }
}

#[test]
fn a_tool_call_has_its_title_its_output_and_its_change() {
    let live = TestLive::new();
    std::fs::write(live.work().join("lib.rs"), "fn one() {}\nfn two() {}\n").unwrap();
    let calls = [
        r#"call shell {"command": "seq 100; sleep 1; false"}"#,
        r#"call read_file {"file_path": "lib.rs"}"#,
        r#"call edit_file {"file_path": "lib.rs", "old_string": "fn two() {}", "new_string": "fn three() {}\nfn four() {}"}"#,
    ];
    let prompt = format!("do: think hm | {} ;; say done", calls.join(" ;; "));
    let mut terminal = live.run(WIDE, &[], &prompt);
    until(&terminal, "$ seq 100; sleep 1; false · ");
    let screen = last_screen(&mut terminal);
    let expected = "\
$ seq 100; sleep 1; false
  1
  2
  3
  4
  … 93 lines
  98
  99
  100
  exit code 1
  failed after 1.";
    assert!(screen.contains(expected), "{screen}");
    let expected = "edit lib.rs +2 −1\n  -fn two() {}\n  +fn three() {}\n  +fn four() {}\n\ndone\n";
    assert!(screen.contains(expected), "{screen}");
    assert!(screen.starts_with("thinking…"), "{screen}");
}

#[test]
fn in_full_nothing_is_left_out() {
    let live = TestLive::new();
    let prompt = r#"do: think first this | call shell {"command": "seq 30"} ;; say done"#;
    let mut terminal = live.run(WIDE, &["--full"], prompt);
    let screen = last_screen(&mut terminal);
    let all: String = (1..=30).map(|n| format!("\n  {n}")).collect();
    assert!(screen.contains(&format!("$ seq 30{all}\n")), "{screen}");
    assert!(screen.contains("first this"), "{screen}");
}

#[test]
fn a_retry_has_its_status_and_a_countdown() {
    let live = TestLive::new();
    let mut terminal = live.run(WIDE, &[], "do: fail 529 3 | say at last");
    until(&terminal, "HTTP 529: overloaded, retry in 3 s");
    until(&terminal, "retry in 2 s");
    until(&terminal, "retry in 1 s");
    let screen = last_screen(&mut terminal);
    let told = "(anthropic answered HTTP 529 for the model some-model: it was told to fail)";
    let expected = format!("HTTP 529: overloaded\n{told}\n\nat last\n");
    assert!(screen.starts_with(&expected), "{screen}");
    assert!(!screen.contains("retry"), "{screen}");
    let statuses: Vec<u16> = live.model().requests().iter().map(|it| it.status).collect();
    assert_eq!(statuses, [529, 200]);
}

#[test]
fn it_is_never_silent_while_the_model_is() {
    let live = TestLive::new();
    let mut terminal = live.run(WIDE, &[], "do: hang");
    until(&terminal, "waiting for the model · 1 s");
    until(&terminal, "waiting for the model · 2 s");
    until(&terminal, "waiting for the model · 3 s");
    terminal.signal(Signal::INT).unwrap();
    let status = terminal.ended(POLL).unwrap();
    let screen = terminal.screen();
    assert_eq!(status.code(), Some(130), "{screen}");
    assert!(
        screen.contains("error: the turn was interrupted"),
        "{screen}"
    );
    assert!(screen.contains("agentd run --continue"), "{screen}");
    no_rubbish(&screen);
}

#[test]
fn another_size_in_mid_stream_leaves_nothing_behind() {
    let live = TestLive::new();
    let words: Vec<String> = (1..=60).map(|n| format!("word{n}")).collect();
    let text = format!("Begin.\n\n{}", words.join(" "));
    let mut terminal = live.run(Size::new(40, 60), &[], &format!("do: slowly 50 {text}"));
    until(&terminal, "word3 ");
    terminal.resize(Size::new(40, 30)).unwrap();
    until(&terminal, "word20");
    terminal.resize(Size::new(40, 80)).unwrap();
    let screen = last_screen(&mut terminal);
    assert!(screen.starts_with("Begin.\n\nword1 word2"), "{screen}");
    let shown: Vec<&str> = screen
        .split_whitespace()
        .filter(|it| it.starts_with("word"))
        .collect();
    assert_eq!(shown, words, "{screen}");
}

#[test]
fn a_paragraph_that_is_taller_than_the_terminal_is_shown_whole() {
    let live = TestLive::new();
    let words: Vec<String> = (1..=40).map(|n| format!("word{n}")).collect();
    let text = format!("do: slowly 10 {}", words.join(" "));
    let mut terminal = live.run(Size::new(8, 20), &[], &text);
    assert!(terminal.ended(POLL).unwrap().success());
    let bytes = terminal.bytes();
    let written = String::from_utf8(bytes).unwrap();
    // After the rows at the bottom were erased for the last time but one, the whole paragraph is written.
    let last = written
        .rsplit("\u{1b}[J")
        .find(|part| part.contains("word1 "));
    let shown = last.unwrap().split_whitespace();
    let shown: Vec<&str> = shown.filter(|it| it.starts_with("word")).collect();
    assert_eq!(shown, words);
    no_rubbish(&terminal.screen());
}

#[test]
fn without_colours_there_are_none() {
    let live = TestLive::new().env("NO_COLOR", "1");
    let prompt = "do: say **bold** `code`";
    let mut terminal = live.run(WIDE, &[], prompt);
    let screen = last_screen(&mut terminal);
    assert!(screen.starts_with("bold code\n"), "{screen}");
    let written = String::from_utf8(terminal.bytes()).unwrap();
    assert!(!has_colour(&written), "{written:?}");
    let coloured = TestLive::new();
    let mut terminal = coloured.run(WIDE, &[], prompt);
    last_screen(&mut terminal);
    assert!(has_colour(&String::from_utf8(terminal.bytes()).unwrap()));
}

/// Whether a text contains a sequence that sets a colour.
fn has_colour(text: &str) -> bool {
    let mut sequences = text.split("\u{1b}[").skip(1);
    sequences.any(|rest| {
        let end = rest.find(|c: char| c.is_ascii_alphabetic());
        end.and_then(|end| rest.get(end..=end)) == Some("m")
    })
}

#[test]
fn a_dumb_terminal_gets_lines_only() {
    let live = TestLive::new().env("TERM", "dumb");
    let prompt =
        r#"do: call shell {"command": "sleep 1; echo made"} ;; fail 429 | say **all** done"#;
    let mut terminal = live.run(WIDE, &[], prompt);
    let screen = last_screen(&mut terminal);
    let expected = "$ sleep 1; echo made\n  made\n  1.";
    assert!(screen.starts_with(expected), "{screen}");
    let told = "(anthropic answered HTTP 429 for the model some-model: it was told to fail)";
    let expected = format!("HTTP 429: rate limited\n{told}\n\nall done\n\n");
    assert!(screen.contains(&expected), "{screen}");
    assert!(!terminal.bytes().contains(&ESC), "{screen}");
}

/// Text of a model and of a tool cannot move the cursor, set the title or clear the screen.
#[test]
fn control_sequences_do_not_reach_the_terminal() {
    let live = TestLive::new();
    let prompt = "do: call shell {\"command\": \"printf 'a\\\\033]0;owned\\\\007b\\\\033[2Jc'\"} ;; \
                  call write_file {\"file_path\": \"n\\u001b]0;owned\\u0007.txt\", \"content\": \"c\\u001b[2Jd\"} ;; \
                  say x\u{1b}[2J\u{1b}]0;owned\u{7}y &#27;[2J&#27;]0;owned&#7; [a](b&#27;[2Jc)";
    let mut terminal = live.run(WIDE, &[], prompt);
    let screen = last_screen(&mut terminal);
    assert!(screen.contains("\n  abc\n"), "{screen}");
    let written = String::from_utf8(terminal.bytes()).unwrap();
    assert!(
        !written.contains("\u{1b}]") && !written.contains("\u{1b}[2J"),
        "{written:?}"
    );
}

/// Of a terminal without room, or without a size, nothing is erased that is not the program's own.
#[test]
fn a_very_small_terminal_gets_lines_only() {
    let live = TestLive::new();
    let prompt =
        r#"do: think hm | call shell {"command": "echo 漢字; sleep 1"} ;; say **all** 漢字 done"#;
    for size in [Size::new(1, 1), Size::new(40, 1), Size::new(2, 40)] {
        let mut terminal = live.run(size, &[], prompt);
        assert!(terminal.ended(POLL).unwrap().success());
        let written = String::from_utf8(terminal.bytes()).unwrap();
        assert!(!written.contains("\u{1b}[J"), "{size:?}: {written:?}");
        assert!(written.contains("漢字 done"), "{size:?}: {written:?}");
    }
    let mut terminal = live.run(Size::new(0, 0), &[], prompt);
    assert!(terminal.ended(POLL).unwrap().success());
}

#[test]
fn very_long_lines_are_cut() {
    let live = TestLive::new();
    let command = "printf 'x%.0s' $(seq 300000)";
    let prompt = format!(
        "do: call shell {{\"command\": \"{command}\"}} ;; say ```\n{}\n```",
        "y".repeat(100_000)
    );
    let mut terminal = live.run(WIDE, &[], &prompt);
    let screen = last_screen(&mut terminal);
    assert!(screen.ends_with("tokens"), "{screen}");
    let written = terminal.bytes();
    let count = |wanted: u8| written.iter().filter(|byte| **byte == wanted).count();
    assert!(count(b'x') < 2000, "{}", count(b'x'));
    assert!(count(b'y') >= 100_000);
}

#[test]
fn an_approval_is_asked_for_in_place() {
    let live = TestLive::new();
    let prompt = r#"do: call shell {"command": "touch made"} ;; call shell {"command": "touch denied"} ;; say all done"#;
    let mut terminal = live.run(WIDE, &["--approval", "always"], prompt);
    until(&terminal, "Run it?");
    terminal.line("perhaps").unwrap();
    terminal.line("y").unwrap();
    let second = |screen: &str| screen.contains("touch denied") && screen.ends_with("reason:");
    terminal.until(POLL, "the second question", second).unwrap();
    terminal.line("n not that").unwrap();
    let screen = last_screen(&mut terminal);
    assert!(screen.contains("all done"), "{screen}");
    assert!(live.work().join("made").exists());
    assert!(!live.work().join("denied").exists());
    let requests = live.model().requests();
    let last = requests.last().unwrap().body.to_string();
    assert!(last.contains("not that"), "{last}");
}

/// No rule can contain the `*` of a call: "always" is not offered, and does not end the command.
#[test]
fn a_call_that_no_rule_can_express_is_asked_about_again() {
    let live = TestLive::new();
    let prompt = r#"do: call shell {"command": "ls *; touch made"} ;; say all done"#;
    let mut terminal = live.run(WIDE, &["--approval", "always"], prompt);
    let screen = until(&terminal, "Run it?");
    assert!(!screen.contains("(a)lways"), "{screen}");
    terminal.line("a").unwrap();
    let again = |screen: &str| screen.matches("Run it?").count() == 2;
    terminal.until(POLL, "the question again", again).unwrap();
    terminal.line("y").unwrap();
    let screen = last_screen(&mut terminal);
    assert!(screen.contains("all done"), "{screen}");
    assert!(live.work().join("made").exists());
}

#[test]
fn an_approval_without_an_answer_ends_it_with_what_to_do() {
    let live = TestLive::new();
    let prompt = r#"do: call shell {"command": "touch made"} ;; say done"#;
    let mut terminal = live.run(WIDE, &["--approval", "always"], prompt);
    until(&terminal, "Run it?");
    terminal.keys("\x04").unwrap();
    let status = terminal.ended(POLL).unwrap();
    let screen = terminal.screen();
    assert_eq!(status.code(), Some(6), "{screen}");
    assert!(screen.contains("is waiting for you"), "{screen}");
    assert!(screen.contains("agentd approve"), "{screen}");
    no_rubbish(&screen);
}
