//! `--output`, `--quiet`, and output that is not a terminal.

use super::test_live::{TestLive, WIDE, last_screen};
use serde_json::Value;

const PROMPT: &str =
    r#"do: think hm | say I look. | call shell {"command": "echo hello"} ;; say **all** done"#;

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

#[test]
fn a_pipe_gets_the_answer_alone() {
    let live = TestLive::with_coder();
    assert_eq!(live.ok(&["send", "coder", PROMPT]), "**all** done\n");
    let output = live.piped(&[
        "run",
        "--provider",
        "anthropic",
        "--model",
        "some-model",
        PROMPT,
    ]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "**all** done\n");
    let aside = String::from_utf8(output.stderr).unwrap();
    assert!(aside.contains("· $ echo hello"), "{aside}");
    let args = [
        "run",
        "--quiet",
        "--provider",
        "anthropic",
        "--model",
        "some-model",
        PROMPT,
    ];
    let output = live.piped(&args);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "**all** done\n");
    assert_eq!(output.stderr, b"");
}

#[test]
fn quiet_is_the_answer_alone_on_a_terminal_too() {
    let live = TestLive::with_coder();
    let mut terminal = live.terminal(WIDE, &["send", "coder", "--quiet", PROMPT]);
    assert_eq!(last_screen(&mut terminal), "**all** done");
}

#[test]
fn a_stream_of_json_has_every_event_and_ends_with_the_result() {
    let live = TestLive::with_coder();
    let streamed = lines(&live.ok(&["send", "coder", "--output", "stream-json", PROMPT]));
    let (result, events) = streamed.split_last().unwrap();
    assert_eq!(result["status"], "completed", "{result}");
    assert_eq!(result["text"], "**all** done", "{result}");
    let (deltas, events): (Vec<&Value>, Vec<&Value>) =
        events.iter().partition(|line| line["kind"] == "delta");
    // The events after the prompt, each as `logs --json` prints it.
    let log = lines(&live.ok(&["logs", "coder", "--json"]));
    let first = events[0]["seq"].as_u64().unwrap();
    let last = events.last().unwrap();
    assert_eq!(last["kind"], "turn_ended", "{last}");
    let until = last["seq"].as_u64().unwrap();
    let expected = log.iter().filter(|event| {
        let seq = event["seq"].as_u64().unwrap();
        (first..=until).contains(&seq)
    });
    assert_eq!(events, expected.collect::<Vec<_>>());
    // Deltas are for display: the last part of a reply may arrive without one.
    let joined = |field: &str| -> String {
        let texts = deltas.iter().filter_map(|delta| delta[field].as_str());
        texts.collect()
    };
    assert!(
        "I look.**all** done".starts_with(&joined("text")),
        "{deltas:?}"
    );
    assert!("hm".starts_with(&joined("thinking")), "{deltas:?}");
    assert!(
        deltas.iter().all(|delta| delta["request"].is_string()),
        "{deltas:?}"
    );
}

#[test]
fn a_reply_that_streams_is_in_the_stream_of_json() {
    let live = TestLive::with_coder();
    let prompt = "do: slowly 50 one word after the other until all of them are said";
    let streamed = lines(&live.ok(&["send", "coder", "--output", "stream-json", prompt]));
    let deltas = streamed.iter().filter(|line| line["kind"] == "delta");
    let text: String = deltas.filter_map(|delta| delta["text"].as_str()).collect();
    assert!(text.starts_with("one word"), "{streamed:#?}");
}

#[test]
fn every_verb_that_waits_has_the_formats() {
    let live = TestLive::with_coder();
    let json = lines(&live.ok(&["send", "coder", "--output", "json", "do: say one"]));
    assert_eq!(json.len(), 1, "{json:?}");
    let waited = lines(&live.ok(&["wait", "coder", "--output", "stream-json"]));
    assert_eq!(waited.last().unwrap()["phase"], "idle", "{waited:?}");
    let output = live.piped(&["send", "coder", "--output", "json", "--json", "do: say one"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    // A usage error is an object, too.
    let error = lines(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(error[0]["kind"], "usage", "{error:?}");
    live.ok(&["set", "coder", "limits.max_iterations=1"]);
    let args = ["send", "coder", "--output", "stream-json", PROMPT];
    let output = live.piped(&args);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    live.ok(&["set", "coder", "limits.max_iterations=9"]);
    let continued = lines(&live.ok(&["continue", "coder", "--output", "stream-json"]));
    assert!(
        continued.iter().any(|line| line["kind"] == "turn_ended"),
        "{continued:?}"
    );
    assert_eq!(continued.last().unwrap()["phase"], "idle", "{continued:?}");
}
