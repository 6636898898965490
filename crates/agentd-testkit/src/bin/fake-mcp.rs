//! A small MCP server over stdio, written from the protocol's documentation and not from the client's code.
//!
//! `agentd-fake-mcp [--probe answer|refuse|exit|ignore|both] [--slow-ms N] [--grandchild] [--dead] [--stall]`: how it reacts to the
//! probe of the newer revision (default: it answers, and has no handshake; `both`: it has one too), how long it takes to begin,
//! whether it leaves a process of its own session, whether it ends at once, and whether it reads nothing after its list. A tool
//! that waits does so until there is a file `mcp-continue` in the working directory.

use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::{self, BufRead as _, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// The id of the server's own request.
const QUESTION: &str = "question";
/// The id of a request that the server gives up.
const GIVEN_UP: &str = "given-up";
/// A variable with the name of one more tool.
const NAMED: &str = "FAKE_TOOL";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Probe {
    Answer,
    Both,
    Refuse,
    Exit,
    Ignore,
}

struct Server {
    probe: Probe,
    has_extra: bool,
    /// The request that listens to changes.
    listener: Option<Value>,
    /// The call that waits for the user's answer to a question.
    asking: Option<Value>,
    /// It reads nothing after its list.
    stalls: bool,
}

fn main() -> ExitCode {
    let mut server = Server {
        probe: Probe::Answer,
        has_extra: false,
        listener: None,
        asking: None,
        stalls: false,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--probe" => {
                server.probe = match args.next().as_deref() {
                    Some("refuse") => Probe::Refuse,
                    Some("exit") => Probe::Exit,
                    Some("ignore") => Probe::Ignore,
                    Some("both") => Probe::Both,
                    _ => Probe::Answer,
                };
            }
            "--slow-ms" => {
                let slow = args.next().and_then(|it| it.parse().ok()).unwrap_or(0);
                // tidy: a server that is slow to begin
                std::thread::sleep(Duration::from_millis(slow));
            }
            "--grandchild" => leave_grandchild(),
            "--stall" => server.stalls = true,
            "--dead" => {
                let _gone = writeln!(io::stderr(), "the database is not there");
                return ExitCode::from(3);
            }
            _ => return ExitCode::from(2),
        }
    }
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        if let Some(code) = server.message(&message) {
            return code;
        }
    }
    ExitCode::SUCCESS
}

/// A process that a signal to the group does not reach.
fn leave_grandchild() {
    let mut command = Command::new("setsid");
    let command = command.args(["sleep", "100000"]);
    let command = command.stdin(Stdio::null()).stdout(Stdio::null());
    drop(command.stderr(Stdio::null()).spawn());
}

fn write(message: &Value) {
    let mut out = io::stdout().lock();
    let _gone = writeln!(out, "{message}");
    let _gone = out.flush();
}

fn answer(id: &Value, result: Value) {
    write(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn refuse(id: &Value, code: i64, text: &str) {
    let error = json!({"code": code, "message": text});
    write(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
}

fn notify(method: &str, params: &Value) {
    write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
}

fn said(text: impl Into<String>) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text.into()}]})
}

/// Appends to a file in the working directory, so that a test can count what was done.
fn record(line: &str) {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open("mcp-effects");
    if let Ok(mut file) = file {
        let _full = writeln!(file, "{line}");
    }
}

fn may_continue() -> bool {
    // tidy: polls for the test
    std::thread::sleep(Duration::from_millis(20));
    Path::new("mcp-continue").exists()
}

/// Asks the client's user.
fn elicit(id: &str, params: &Value) {
    write(&json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params}));
}

/// A form with one field.
fn question() -> Value {
    let properties = json!({"name": {"type": "string", "description": "A name."}});
    let schema = json!({"type": "object", "properties": properties, "required": ["name"]});
    json!({"mode": "form", "message": "Who are you?", "requestedSchema": schema})
}

fn greeting(given: &Value) -> String {
    match given["action"].as_str() {
        Some("accept") => format!(
            "hello {}",
            given["content"]["name"].as_str().unwrap_or("nothing")
        ),
        action => format!("not answered: {}", action.unwrap_or("nothing")),
    }
}

impl Server {
    /// Returns how the server ends, if it does.
    fn message(&mut self, message: &Value) -> Option<ExitCode> {
        let id = message.get("id")?;
        if *id == json!(QUESTION) && message.get("method").is_none() {
            let call = self.asking.take()?;
            answer(&call, said(greeting(&message["result"])));
            return None;
        }
        let params = &message["params"];
        let capabilities = json!({"tools": {"listChanged": true}, "resources": {}, "prompts": {}});
        match message["method"].as_str()? {
            "server/discover" => match self.probe {
                Probe::Answer | Probe::Both => answer(
                    id,
                    json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
                           "ttlMs": 0, "cacheScope": "private"}),
                ),
                Probe::Refuse => refuse(id, -32601, "Method not found"),
                Probe::Exit => return Some(ExitCode::from(9)),
                Probe::Ignore => {}
            },
            "initialize" if self.probe == Probe::Answer => refuse(id, -32601, "Method not found"),
            "initialize" => answer(
                id,
                json!({"protocolVersion": params["protocolVersion"], "capabilities": capabilities,
                       "serverInfo": {"name": "fake", "version": "1"}}),
            ),
            "tools/list" => {
                answer(id, self.list());
                if self.stalls {
                    loop {
                        std::thread::park();
                    }
                }
            }
            "tools/call" => return self.call(id, params),
            "subscriptions/listen" => {
                self.listener = Some(id.clone());
                let meta = json!({ SUBSCRIPTION: id });
                let params = json!({"_meta": meta, "notifications": {"toolsListChanged": true}});
                notify("notifications/subscriptions/acknowledged", &params);
            }
            "resources/read" => {
                let contents = json!([{"uri": params["uri"], "mimeType": "text/plain", "text": "the words of the guide"}]);
                let result = json!({"resultType": "complete", "contents": contents, "ttlMs": 0, "cacheScope": "private"});
                answer(id, result);
            }
            "prompts/get" => {
                let who = params["arguments"]["who"].as_str().unwrap_or("nothing");
                let content = json!({"type": "text", "text": format!("do: say hello {who}")});
                let messages = json!([{"role": "user", "content": content}]);
                answer(id, json!({"resultType": "complete", "messages": messages}));
            }
            "ping" => answer(id, json!({})),
            method => refuse(id, -32601, &format!("no method {method}")),
        }
        None
    }

    fn list(&self) -> Value {
        let tool = |name: &str, description: &str| {
            let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
                                "properties": {"text": {"type": "string"}}});
            json!({"name": name, "description": description, "inputSchema": schema,
                   "annotations": {"readOnlyHint": true}})
        };
        let mut tools = vec![
            tool("echo", "Returns its text."),
            tool("append", "Writes a line to a file."),
            tool("hang", "Never answers."),
            tool("die", "Ends the server."),
            tool("flood", "Writes much that is not an answer, then answers."),
            tool("garbage", "Writes what is not JSON, then answers."),
            tool("image", "Returns an image."),
            tool("progress", "Reports progress, then answers."),
            tool("large", "Returns a long text."),
            tool("read.environment", "Returns a variable."),
            tool("change", "Adds a tool."),
            tool("refuse_at_length", "Fails with a long error."),
            tool("ask", "Asks the user: requires input."),
            tool("elicit", "Asks the user during the call."),
            tool(
                "elicit_later",
                "Waits, and then asks the user during the call.",
            ),
            tool(
                "change_mind",
                "Asks the user, waits, and asks something else.",
            ),
            tool("steps", "Reports progress while it waits."),
        ];
        if let Ok(name) = std::env::var(NAMED) {
            tools.push(tool(&name, "Has a name that is given."));
        }
        if self.has_extra {
            tools.push(tool("extra", "Was added later."));
        }
        json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"})
    }

    fn call(&mut self, id: &Value, params: &Value) -> Option<ExitCode> {
        let text = params["arguments"]["text"].as_str().unwrap_or_default();
        match params["name"].as_str().unwrap_or_default() {
            "echo" => answer(id, said(text)),
            "append" => {
                record(text);
                answer(id, said("appended"));
            }
            "hang" => record("hanging"),
            "die" => {
                record("dying");
                let _gone = writeln!(io::stderr(), "out of paper");
                return Some(ExitCode::from(7));
            }
            "flood" => {
                let mut out = io::stdout().lock();
                let chunk = vec![b'x'; 1 << 20];
                for _ in 0..20 {
                    let _gone = out.write_all(&chunk);
                }
                let _gone = out.write_all(b"\n");
                drop(out);
                answer(id, said("survived the flood"));
            }
            "garbage" => {
                let mut out = io::stdout().lock();
                let _gone = out.write_all(b"not json\n{\"jsonrpc\": 1}\n[]\n\xff\xfe\n");
                drop(out);
                answer(id, said("survived the garbage"));
            }
            "image" => answer(
                id,
                json!({"resultType": "complete", "content": [{"type": "text", "text": "a pixel"},
                       {"type": "image", "data": PNG, "mimeType": "image/png"}]}),
            ),
            "progress" => {
                let token = &params["_meta"]["progressToken"];
                for n in 1..=5 {
                    // tidy: a call that takes longer than its time limit, and shows that it lives
                    std::thread::sleep(Duration::from_millis(400));
                    let params = json!({"progressToken": token, "progress": n, "total": 5});
                    notify("notifications/progress", &params);
                }
                answer(id, said("made progress"));
            }
            "large" => answer(id, said("line\n".repeat(100_000))),
            "read.environment" => answer(id, said(std::env::var(text).unwrap_or_default())),
            "change" => {
                self.has_extra = true;
                let method = "notifications/tools/list_changed";
                match &self.listener {
                    Some(listener) => notify(method, &json!({"_meta": {SUBSCRIPTION: listener}})),
                    None => notify(method, &json!({})),
                }
                answer(id, said("changed"));
            }
            "ask" => match params["inputResponses"].get("who") {
                None => {
                    record("asked");
                    let request = json!({"method": "elicitation/create", "params": question()});
                    let result = json!({"resultType": "input_required", "inputRequests": {"who": request}, "requestState": "s1"});
                    answer(id, result);
                }
                Some(_) if params["requestState"] != "s1" => refuse(id, -32602, "no such state"),
                Some(given) => {
                    record("answered");
                    answer(id, said(greeting(given)));
                }
            },
            "elicit" => {
                record("asked");
                self.asking = Some(id.clone());
                elicit(QUESTION, &question());
            }
            "elicit_later" => {
                record("waiting");
                while !may_continue() {}
                self.asking = Some(id.clone());
                elicit(QUESTION, &question());
            }
            "change_mind" => {
                record("asked");
                let mut first = question();
                first["message"] = json!("Who were you?");
                elicit(GIVEN_UP, &first);
                while !may_continue() {}
                notify("notifications/cancelled", &json!({"requestId": GIVEN_UP}));
                self.asking = Some(id.clone());
                elicit(QUESTION, &question());
            }
            "steps" => {
                let token = &params["_meta"]["progressToken"];
                let report = json!({"progressToken": token, "progress": 3, "total": 5, "message": "the third step"});
                while !may_continue() {
                    notify("notifications/progress", &report);
                }
                answer(id, said("went all steps"));
            }
            "refuse_at_length" => refuse(id, -32603, &"why not? ".repeat(100_000)),
            "extra" => answer(id, said("extra")),
            other => refuse(id, -32602, &format!("no tool {other}")),
        }
        None
    }
}
