//! The fake model without agentd's client: plain answers, scenarios, records, and the program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test panics where it cannot go on"
)]

use agentd_testkit::model::{FakeModel, Format, Options, Scenario};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const FORMATS: [Format; 4] = [
    Format::Anthropic,
    Format::OpenaiChat,
    Format::OpenaiResponses,
    Format::Gemini,
];

/// The smallest request with this prompt, without streaming.
fn plain(format: Format, prompt: &str) -> (&'static str, Value) {
    let messages = json!([{"role": "user", "content": prompt}]);
    match format {
        Format::Anthropic => (
            "/v1/messages",
            json!({"model": "m", "max_tokens": 100, "messages": messages}),
        ),
        Format::OpenaiChat => (
            "/v1/chat/completions",
            json!({"model": "m", "stream": false, "messages": messages}),
        ),
        Format::OpenaiResponses => (
            "/v1/responses",
            json!({"model": "m", "stream": false, "store": false, "input": messages}),
        ),
        Format::Gemini => (
            "/v1beta/models/m:generateContent",
            json!({"contents": [{"role": "user", "parts": [{"text": prompt}]}]}),
        ),
    }
}

/// The response, as far as it arrived.
fn post(to: SocketAddr, path: &str, body: &Value) -> String {
    let mut stream = TcpStream::connect(to).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.0\r\nhost: model\r\ncontent-type: application/json\r\n\
         authorization: Bearer k\r\nx-api-key: k\r\nx-goog-api-key: k\r\n\
         anthropic-version: 2023-06-01\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut response = Vec::new();
    let mut buffer = [0; 4096];
    // A connection that is told to break ends in an error here: what came before it counts.
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        response.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8(response).unwrap()
}

fn ask(to: SocketAddr, format: Format, prompt: &str) -> (u16, String) {
    let (path, body) = plain(format, prompt);
    let response = post(to, path, &body);
    let status = response.split(' ').nth(1).unwrap().parse().unwrap();
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    (status, body.to_owned())
}

fn answer(to: SocketAddr, format: Format, prompt: &str) -> Value {
    let (status, body) = ask(to, format, prompt);
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// The text of a plain answer.
fn words(format: Format, answer: &Value) -> String {
    let place = match format {
        Format::Anthropic => "/content/0/text",
        Format::OpenaiChat => "/choices/0/message/content",
        Format::OpenaiResponses => "/output/0/content/0/text",
        Format::Gemini => "/candidates/0/content/parts/0/text",
    };
    let text = answer.pointer(place).and_then(Value::as_str);
    text.unwrap_or_else(|| panic!("{answer:#}")).to_owned()
}

#[test]
fn every_format_answers_without_streaming() {
    let model = FakeModel::start().unwrap();
    for format in FORMATS {
        let to = model.address();
        let body = answer(to, format, r#"do: say so | call shell {"command": "ls"}"#);
        assert_eq!(words(format, &body), "so");
        let (name, arguments) = match format {
            Format::Anthropic => (&body["content"][1]["name"], "input"),
            Format::OpenaiChat => (
                &body["choices"][0]["message"]["tool_calls"][0]["function"]["name"],
                "arguments",
            ),
            Format::OpenaiResponses => (&body["output"][1]["name"], "arguments"),
            Format::Gemini => (
                &body["candidates"][0]["content"]["parts"][1]["functionCall"]["name"],
                "args",
            ),
        };
        assert_eq!(name, "shell");
        assert!(body.to_string().contains(arguments));
        assert_eq!(
            words(format, &answer(to, format, "hello")),
            "You said: hello"
        );
    }
    assert!(model.refused().is_empty());
}

#[test]
fn faults_break_a_plain_answer_too() {
    let model = FakeModel::start().unwrap();
    for format in FORMATS {
        let prompt = format!("do: fail 429 7 | drop 1 | malformed | say {format:?} at last");
        let ask = || ask(model.address(), format, &prompt);
        assert_eq!(ask().0, 429);
        for _ in ["drop", "malformed"] {
            let (status, body) = ask();
            assert_eq!(status, 200);
            assert!(serde_json::from_str::<Value>(&body).is_err(), "{body}");
        }
        let whole: Value = serde_json::from_str(&ask().1).unwrap();
        assert_eq!(words(format, &whole), format!("{format:?} at last"));
    }
}

#[test]
fn a_request_that_breaks_a_rule_is_refused_and_named() {
    let model = FakeModel::start().unwrap();
    for format in FORMATS {
        let (path, mut body) = plain(format, "hello");
        body["surprise"] = json!(true);
        let response = post(model.address(), path, &body);
        assert!(response.starts_with("HTTP/1.0 400"), "{response}");
        assert!(response.contains("surprise"), "{response}");
    }
    assert_eq!(model.refused().len(), 4);
}

#[test]
fn a_scenario_answers_by_the_words_of_the_prompt() {
    let scenario = r#"[
        {"when": "weather", "replies": ["say rain"]},
        {"when": "any", "replies": ["fail 529 | say who knows"]}
    ]"#;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("scenario.json");
    std::fs::write(&path, scenario).unwrap();
    let model = FakeModel::with_scenario(&path).unwrap();
    for format in FORMATS {
        let to = model.address();
        let weather = answer(to, format, "How is the weather?");
        assert_eq!(words(format, &weather), "rain");
        let prompt = format!("{format:?}?");
        assert_eq!(ask(to, format, &prompt).0, 529, "any");
        assert_eq!(words(format, &answer(to, format, &prompt)), "who knows");
        let script = answer(to, format, "do: say scripts stay");
        assert_eq!(words(format, &script), "scripts stay");
    }
}

#[test]
fn a_scenario_goes_on_with_the_results() {
    let replies = r#"[{"when": "go", "replies": ["call shell {}", "say over"]}]"#;
    let scenario = Scenario::parse(replies).unwrap();
    let model = FakeModel::start_with(Options {
        scenario,
        ..Options::default()
    });
    let model = model.unwrap();
    let tools = json!([{"name": "shell", "input_schema": {"type": "object"}}]);
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    let ask = |messages: &[Value]| {
        let body = json!({"model": "m", "max_tokens": 100, "tools": tools, "messages": messages});
        let response = post(model.address(), "/v1/messages", &body);
        let (_, body) = response.split_once("\r\n\r\n").unwrap();
        serde_json::from_str::<Value>(body).unwrap()
    };
    let call = ask(&messages);
    messages.push(json!({"role": "assistant", "content": call["content"]}));
    let id = &call["content"][0]["id"];
    let result = json!({"type": "tool_result", "tool_use_id": id, "content": "done"});
    // What is said in between does not end the chain.
    let hurry = json!({"type": "text", "text": "and hurry"});
    messages.push(json!({"role": "user", "content": [result, hurry]}));
    assert_eq!(ask(&messages)["content"][0]["text"], "over");
}

/// The program, ended with the test.
struct Program {
    child: Child,
}

impl Program {
    fn start(args: &[(&str, &Path)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentd-fake-model"));
        for (name, path) in args {
            command.arg(name).arg(path);
        }
        let child = command.stdin(Stdio::piped()).spawn().unwrap();
        Self { child }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "{what} does not come");
        // tidy: polls
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_program_tells_its_port_records_requests_and_ends_with_its_input() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("s.json"), r#"[{"when": "any", "replies": ["say hi"]}]"#).unwrap();
    let (port_file, record) = (at("port"), at("record"));
    let mut program = Program::start(&[
        ("--port-file", &port_file),
        ("--scenario", &at("s.json")),
        ("--record", &record),
    ]);
    let port = wait_for("the port", || std::fs::read_to_string(&port_file).ok());
    let to: SocketAddr = format!("127.0.0.1:{}", port.trim()).parse().unwrap();
    for format in FORMATS {
        assert_eq!(words(format, &answer(to, format, "hello")), "hi");
    }
    post(to, "/v1/messages", &json!({"model": "m"}));
    let lines = std::fs::read_to_string(&record).unwrap();
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 5);
    for (line, format) in lines.iter().zip(FORMATS) {
        assert_eq!(line["format"], format.name());
        assert_eq!(line["verdict"], "accepted");
        assert_eq!(
            (&line["prompt"], &line["status"]),
            (&json!("hello"), &json!(200))
        );
        assert!(line["body"].is_object());
    }
    assert_eq!(lines[4]["n"], 5);
    assert!(lines[4]["verdict"].is_array());
    drop(program.child.stdin.take());
    let status = wait_for("its end", || program.child.try_wait().unwrap());
    assert!(status.success());
}

#[test]
fn the_program_says_what_is_wrong_with_its_arguments() {
    let refused = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentd-fake-model"));
        let output = command.args(args).stdin(Stdio::null()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&[]).contains("--port-file"));
    assert!(refused(&["--port"]).contains("no value"));
    assert!(refused(&["--port", "1"]).contains("unknown"));
}
