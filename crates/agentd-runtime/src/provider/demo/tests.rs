//! The demo model: its replies and calls, step by step, and where it continues.

use super::steps::{Step, is_continue, parse};
use super::*;
use agentd_core::draft::Reply;
use agentd_core::event::{Context, Purpose, Tool};
use agentd_core::id::{Incarnation, TryId};
use agentd_core::message::{Arguments, Block, CallOutcome, Message, ToolCall, ToolResult, Wire};
use serde_json::json;

fn tool(name: &str, properties: &[&str]) -> Tool {
    let properties: serde_json::Map<_, _> = properties
        .iter()
        .map(|name| ((*name).to_owned(), json!({"type": "string"})))
        .collect();
    Tool {
        name: name.to_owned(),
        description: "A tool.".to_owned(),
        parameters: json!({"type": "object", "properties": properties}),
    }
}

fn request(messages: Vec<Message>) -> Request {
    Request {
        purpose: Purpose::Answer,
        context: Context {
            provider: "demo".into(),
            wire: Wire::AnthropicMessages,
            model: "demo".into(),
            system: "Be brief.".into(),
            kept: None,
            tools: vec![
                tool("shell", &["command"]),
                tool("write_file", &["file_path", "content"]),
                tool("read_file", &["path"]),
                tool("list_files", &["path"]),
            ],
            server_tools: Vec::new(),
            max_output_tokens: 8000,
            temperature: None,
            thinking_tokens: None,
            effort: None,
            verbosity: None,
            fast: false,
            omits: Vec::new(),
        },
        may_call: true,
        messages,
        omissions: Vec::new(),
        repairs: Vec::new(),
    }
}

fn user(text: &str) -> Message {
    Message::user(vec![Block::text(text)])
}

fn notice(text: &str) -> Message {
    let text = text.to_owned();
    Message::user(vec![Block::Notice { text }])
}

/// Sends a request as the driver does, without pauses between the pieces of the reply.
fn ask(request: &Request) -> (Vec<Block>, End, Vec<Delta>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let demo = Demo {
        pause: Duration::ZERO,
    };
    let mut deltas = Vec::new();
    let end = runtime.block_on(demo.stream(request, |delta| deltas.push(delta)));
    let mut reply = Reply::default();
    deltas.iter().cloned().for_each(|delta| reply.apply(delta));
    let n = request.messages.len() as u64 + 1;
    let incarnation = Incarnation(1);
    (reply.finish(TryId { incarnation, n }, []), end, deltas)
}

fn text_of(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn call_in(blocks: &[Block]) -> Option<&ToolCall> {
    blocks.iter().find_map(Block::as_call)
}

fn result(call: &ToolCall, outcome: CallOutcome, text: &str) -> Message {
    Message::user(vec![Block::ToolResult(ToolResult {
        call: call.id.clone(),
        outcome,
        blocks: vec![Block::text(text)],
    })])
}

fn arguments(call: &ToolCall) -> String {
    match &call.arguments {
        Arguments::Object(map) => serde_json::Value::Object(map.clone()).to_string(),
        Arguments::Malformed(raw) => panic!("malformed: {raw}"),
    }
}

/// Answers every call with its own arguments until the model makes none; returns all calls, and the last text.
fn to_the_end(request: &mut Request) -> (Vec<(String, String)>, String) {
    let mut calls = Vec::new();
    loop {
        let (blocks, end, _) = ask(request);
        request.messages.push(Message::assistant(blocks.clone()));
        let Some(call) = call_in(&blocks) else {
            assert_eq!(end.stop, StopReason::EndTurn);
            return (calls, text_of(&blocks));
        };
        assert_eq!(end.stop, StopReason::ToolUse);
        calls.push((call.name.clone(), arguments(call)));
        let output = format!("output {}", calls.len());
        request
            .messages
            .push(result(call, CallOutcome::Ok, &output));
    }
}

#[test]
fn a_command_is_run_and_its_output_quoted() {
    let mut talk = request(vec![user("run `ls -l`")]);
    let (blocks, end, _) = ask(&talk);
    assert_eq!(text_of(&blocks), "I'll run it.");
    assert!(
        end.usage
            .is_some_and(|usage| usage.input_tokens > 0 && usage.output_tokens > 0)
    );
    let (calls, text) = to_the_end(&mut talk);
    assert_eq!(calls, [("shell".into(), r#"{"command":"ls -l"}"#.into())]);
    assert!(text.contains("> output 1"), "{text}");
}

#[test]
fn files_are_written_and_read_by_the_names_that_the_tools_have() {
    let mut talk = request(vec![user("write a.txt: one: two; then read a.txt")]);
    let (calls, text) = to_the_end(&mut talk);
    let written = r#"{"file_path":"a.txt","content":"one: two"}"#;
    assert_eq!(
        calls,
        [
            ("write_file".into(), written.into()),
            ("read_file".into(), r#"{"path":"a.txt"}"#.into()),
        ]
    );
    assert!(text.contains("I have written a.txt."), "{text}");
    assert!(text.contains("a.txt begins with:\n> output 2"), "{text}");
    assert!(text.contains("All 2 steps are done."), "{text}");
}

#[test]
fn a_subagent_is_asked_and_its_answer_quoted() {
    let mut talk = request(vec![user("ask reader: read a.txt; then list files")]);
    talk.context.tools.push(tool("agent", &["prompt", "kind"]));
    let (calls, text) = to_the_end(&mut talk);
    let asked = r#"{"prompt":"read a.txt","kind":"reader"}"#;
    assert_eq!(calls[0], ("agent".into(), asked.into()));
    assert!(text.contains("reader answers:\n> output 1"), "{text}");
    // Without kinds, the tool has no such argument.
    let mut plain = request(vec![user("ask it: count to 3")]);
    plain.context.tools.push(tool("agent", &["prompt"]));
    let (calls, _) = to_the_end(&mut plain);
    let asked = r#"{"prompt":"count to 3"}"#;
    assert_eq!(calls, [("agent".into(), asked.into())]);
    for words in ["ask", "ask me", "ask me: ", "ask me now: why"] {
        assert!(matches!(parse(words)[..], [Step::Other { .. }]), "{words}");
    }
}

#[test]
fn the_files_are_listed_and_the_lines_of_the_largest_counted() {
    let prompt = "List the files here and count the lines of the largest.";
    let mut talk = request(vec![user(prompt)]);
    let (calls, text) = to_the_end(&mut talk);
    let [(list, path), (shell, command)] = &calls[..] else {
        panic!("{calls:?}");
    };
    assert_eq!(
        (list.as_str(), path.as_str()),
        ("list_files", r#"{"path":"."}"#)
    );
    assert_eq!(shell, "shell");
    assert!(
        command.contains("ls -S") && command.contains("wc -l"),
        "{command}"
    );
    for word in [
        "Files here:\n> output 1",
        "in the largest file:\n> output 2",
    ] {
        assert!(text.contains(word), "{text}");
    }
    assert!(!text.contains("demo model"), "it has understood: {text}");
}

#[test]
fn a_long_list_says_how_much_more_there_is() {
    let mut talk = request(vec![user("list files")]);
    let (blocks, ..) = ask(&talk);
    let call = call_in(&blocks).unwrap().clone();
    talk.messages.push(Message::assistant(blocks));
    let names: Vec<String> = (1..=12).map(|n| format!("{n}.txt")).collect();
    talk.messages
        .push(result(&call, CallOutcome::Ok, &names.join("\n")));
    let (_, text) = to_the_end(&mut talk);
    assert!(text.ends_with("> 10.txt\n> … and 2 more\n"), "{text}");
}

#[test]
fn anything_else_lists_files_and_repeats_the_words() {
    let mut talk = request(vec![user("What is the meaning of this?")]);
    let (calls, text) = to_the_end(&mut talk);
    assert_eq!(calls, [("list_files".into(), r#"{"path":"."}"#.into())]);
    for word in [
        "> output 1",
        "What is the meaning of this?",
        "--provider anthropic",
    ] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn a_tool_that_is_not_offered_is_not_called() {
    let mut talk = request(vec![user("run `ls`; then hello")]);
    talk.context.tools.clear();
    let (calls, text) = to_the_end(&mut talk);
    assert_eq!(calls, []);
    assert!(
        text.contains("no tool `shell`") && text.contains("hello"),
        "{text}"
    );
    let mut listed_only = request(vec![user("run `ls`")]);
    listed_only.may_call = false;
    assert_eq!(to_the_end(&mut listed_only).0, []);
}

#[test]
fn a_step_that_never_started_or_was_interrupted_is_done_again() {
    for outcome in [CallOutcome::NotStarted, CallOutcome::Interrupted] {
        let mut talk = request(vec![user("run `one`; then run `two`")]);
        let (blocks, ..) = ask(&talk);
        let call = call_in(&blocks).unwrap().clone();
        talk.messages.push(Message::assistant(blocks));
        talk.messages.push(result(&call, outcome, "not run"));
        talk.messages.push(notice("agentd was restarted."));
        let (calls, _) = to_the_end(&mut talk);
        let commands: Vec<&str> = calls.iter().map(|(_, json)| json.as_str()).collect();
        assert_eq!(commands, [r#"{"command":"one"}"#, r#"{"command":"two"}"#]);
    }
}

#[test]
fn failed_and_refused_steps_are_told_and_not_repeated() {
    for (outcome, word) in [
        (CallOutcome::Error, "failed"),
        (CallOutcome::Denied, "refused"),
        (CallOutcome::Unknown, "unknown"),
    ] {
        let mut talk = request(vec![user("run `one`")]);
        let (blocks, ..) = ask(&talk);
        let call = call_in(&blocks).unwrap().clone();
        talk.messages.push(Message::assistant(blocks));
        talk.messages.push(result(&call, outcome, "so it is"));
        let (calls, text) = to_the_end(&mut talk);
        assert_eq!(calls, []);
        assert!(text.contains(word) && text.contains("> so it is"), "{text}");
    }
}

#[test]
fn counting_goes_on_where_it_was_cut_off() {
    let mut talk = request(vec![user("count to 5")]);
    let (_, _, deltas) = ask(&talk);
    assert_eq!(deltas.len(), 5, "a line at a time");
    talk.messages
        .push(Message::assistant(vec![Block::text("1\n2")]));
    talk.messages.push(notice("agentd was restarted."));
    assert_eq!(text_of(&ask(&talk).0), "3\n4\n5\n");
    talk.messages.push(user("Go on."));
    assert_eq!(text_of(&ask(&talk).0), "3\n4\n5\n");
    let mut mixed = request(vec![user("count to 2; then run `x`; then count to 2")]);
    let (calls, text) = to_the_end(&mut mixed);
    assert_eq!(calls.len(), 1);
    assert!(
        text.contains("> output 1") && text.contains("1\n2\n"),
        "{text}"
    );
}

#[test]
fn a_notice_after_the_answer_is_noted_and_nothing_is_done_twice() {
    let mut talk = request(vec![user("run `one`")]);
    to_the_end(&mut talk);
    talk.messages.push(notice("Task 7 has ended."));
    let (calls, text) = to_the_end(&mut talk);
    assert_eq!(calls, []);
    assert_eq!(text, "Noted. Task 7 has ended.");
}

#[test]
fn a_new_prompt_is_a_new_beginning_and_prompts_together_are_one() {
    let mut talk = request(vec![user("run `one`")]);
    to_the_end(&mut talk);
    talk.messages.push(user("run `two`"));
    talk.messages.push(user("run `three`"));
    let (calls, _) = to_the_end(&mut talk);
    assert_eq!(calls.len(), 2);
    assert!(calls[0].1.contains("two") && calls[1].1.contains("three"));
}

#[test]
fn the_limit_of_a_request_is_kept() {
    let mut talk = request(vec![user("count to 100")]);
    talk.context.max_output_tokens = 3;
    let (blocks, end, _) = ask(&talk);
    assert_eq!(end.stop, StopReason::MaxTokens);
    assert_eq!(text_of(&blocks).len(), 12);
    assert_eq!(end.usage.unwrap().output_tokens, 3);
}

#[test]
fn a_summary_is_made_without_tools() {
    let mut talk = request(vec![user("run `one`")]);
    to_the_end(&mut talk);
    talk.messages.push(user("Summarise."));
    talk.purpose = Purpose::Compact;
    let (calls, text) = to_the_end(&mut talk);
    assert_eq!(calls, []);
    assert!(
        text.contains("run `one`") && !text.contains("Summarise"),
        "{text}"
    );
}

#[test]
fn the_same_request_gives_the_same_reply() {
    let talk = request(vec![user("write ü.txt: häppy; then read ü.txt")]);
    let ((first, ..), (second, ..)) = (ask(&talk), ask(&talk));
    assert_eq!(first, second);
    let (_, _, deltas) = ask(&talk);
    let id = deltas.iter().find_map(|delta| match &delta.change {
        Change::Call { id, .. } => Some(id.clone()),
        _ => None,
    });
    assert_eq!(id, Some(CallId::new("demo_1".to_owned())));
}

#[test]
fn steps_are_split_outside_of_commands_only() {
    let run = |command: &str| Step::Run {
        command: command.to_owned(),
    };
    let shell = "if true; then echo hi; fi";
    assert_eq!(
        parse(&format!(
            "run `{shell}`; then Count to 3; then read the manual"
        )),
        [
            run(shell),
            Step::Count { to: 3 },
            Step::Other {
                words: "read the manual".into()
            },
        ]
    );
    assert_eq!(parse("run `a `b` c`"), [run("a `b` c")]);
    assert_eq!(parse("it's a `tick; then run `x`").len(), 1);
    assert_eq!(parse("a ` tick; then read b").len(), 2);
    assert!(matches!(parse("run the tests")[..], [Step::Other { .. }]));
    assert!(matches!(parse("write it down")[..], [Step::Other { .. }]));
    assert_eq!(
        parse("count to 2 and list the files"),
        [Step::Count { to: 2 }, Step::List]
    );
    assert_eq!(
        parse("write a: this and that"),
        [Step::Write {
            path: "a".into(),
            text: "this and that".into()
        }]
    );
    assert!(matches!(
        parse("list the files and think")[..],
        [Step::Other { .. }]
    ));
    assert!(is_continue(" Continue! ") && !is_continue("go on a trip"));
}

#[test]
fn pieces_are_small_and_add_up() {
    let long = "a".repeat(100);
    for text in [
        "",
        "ä",
        "one two three four five",
        "ä€ö ü",
        long.as_str(),
        " \n\n x ",
    ] {
        let all: Vec<&str> = pieces(text).collect();
        assert_eq!(all.concat(), text);
        assert!(all.iter().all(|piece| piece.len() <= 2 * PIECE + 4));
    }
}
