//! An editor: starts `agentd acp`, and speaks JSON lines to it. Everything on stdout must be a frame of the protocol.

use crate::test_daemon::TestDaemon;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A time limit for tests that would otherwise hang, far longer than any step takes.
const DEADLINE: Duration = Duration::from_secs(60);

pub struct Editor {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// What was received and not looked at yet.
    waiting: VecDeque<Value>,
    next: u64,
}

impl Editor {
    /// Starts the program and initializes the connection.
    pub fn start(daemon: &TestDaemon, args: &[&str]) -> Self {
        Self::start_that_can(daemon, args, &json!({}))
    }

    /// The same for an editor with these capabilities.
    pub fn start_that_can(daemon: &TestDaemon, args: &[&str], capabilities: &Value) -> Self {
        let mut command = daemon.command();
        command
            .envs(daemon.caller())
            .arg("acp")
            .args(args)
            .current_dir(daemon.work())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let frame: Value = serde_json::from_str(&line)
                    .unwrap_or_else(|error| panic!("no frame: {line}: {error}"));
                assert_eq!(frame["jsonrpc"], "2.0", "{frame}");
                if sender.send(frame).is_err() {
                    return;
                }
            }
        });
        let mut editor = Self {
            stdin: child.stdin.take(),
            child,
            lines,
            waiting: VecDeque::new(),
            next: 0,
        };
        let version = editor.ask(
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": capabilities}),
        );
        assert_eq!(version["protocolVersion"], 1);
        assert_eq!(version["agentInfo"]["name"], "agentd");
        assert_eq!(version["agentCapabilities"]["loadSession"], true);
        editor
    }

    pub fn write(&mut self, frame: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{frame}").unwrap();
        stdin.flush().unwrap();
    }

    /// Sends a request, and returns its id.
    pub fn request(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub fn reply(&mut self, request: &Value, result: Value) {
        let id = request["id"].clone();
        self.write(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn receive(&self, what: &str) -> Value {
        self.lines
            .recv_timeout(DEADLINE)
            .unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    /// The first frame that the closure accepts. It and those before it are removed from what waits.
    pub fn until(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let frame = match self.waiting.pop_front() {
                Some(frame) => frame,
                None => self.receive(what),
            };
            if is_it(&frame) {
                return frame;
            }
        }
    }

    /// The response to a request, and the updates before it.
    pub fn response(&mut self, id: u64) -> (Value, Vec<Value>) {
        let mut before = Vec::new();
        let mut others = VecDeque::new();
        let response = loop {
            let frame = match self.waiting.pop_front() {
                Some(frame) => frame,
                None => self.receive("a response"),
            };
            if frame["id"] == id && frame.get("method").is_none() {
                break frame;
            }
            match frame["method"].as_str() {
                Some("session/update") => before.push(frame["params"]["update"].clone()),
                _ => others.push_back(frame),
            }
        };
        others.append(&mut self.waiting);
        self.waiting = others;
        (response, before)
    }

    /// The result of a request.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let (response, _) = self.response(id);
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }

    /// The error of a request.
    pub fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let (response, _) = self.response(id);
        assert!(response.get("error").is_some(), "{method}: {response}");
        response["error"].clone()
    }

    /// A new session in the directory of the test.
    pub fn new_session(&mut self, daemon: &TestDaemon) -> String {
        let params = json!({"cwd": daemon.work(), "mcpServers": []});
        let session = self.ask("session/new", params);
        session["sessionId"].as_str().unwrap().to_owned()
    }

    pub fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request(
            "session/prompt",
            json!({"sessionId": session, "prompt": prompt}),
        )
    }

    /// Sends a prompt, and returns its stop reason and the updates of its turn.
    pub fn answer(&mut self, session: &str, text: &str) -> (Value, Vec<Value>) {
        let id = self.prompt(session, text);
        let (response, updates) = self.response(id);
        assert!(response.get("error").is_none(), "{response}");
        (response["result"]["stopReason"].clone(), updates)
    }

    /// Loads a session, and returns its history.
    pub fn load(&mut self, daemon: &TestDaemon, session: &str) -> Vec<Value> {
        let params = json!({"sessionId": session, "cwd": daemon.work(), "mcpServers": []});
        let id = self.request("session/load", params);
        let (response, updates) = self.response(id);
        assert!(response.get("error").is_none(), "{response}");
        updates
    }

    /// Closes the connection, as an editor that is quit does, and waits for the end of the program.
    pub fn quit(mut self) {
        self.stdin = None;
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        self.stdin = None;
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// The text of all updates of a kind.
pub fn text_of(updates: &[Value], kind: &str) -> String {
    let of_kind = updates.iter().filter(|it| it["sessionUpdate"] == kind);
    of_kind
        .filter_map(|it| it["content"]["text"].as_str())
        .collect()
}

pub fn of_kind<'a>(updates: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let of_kind = updates.iter().filter(|it| it["sessionUpdate"] == kind);
    of_kind.collect()
}
