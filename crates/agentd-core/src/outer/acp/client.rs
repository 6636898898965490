//! What an agent asks of its client: text files and terminals. agentd serves them in the agent's sandbox.

use super::files::FileWork;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// How much output of a terminal is kept, at most and if the agent gives no limit.
const TERMINAL_BYTES: usize = 1024 * 1024;
/// The longest path, and the longest command with its arguments and variables, in bytes.
const LONGEST_PATH: usize = 4096;
const LONGEST_COMMAND: usize = 1024 * 1024;
/// What each text of a command counts in addition to its length: it takes memory even if it is empty.
const TEXT_BYTES: usize = 32;
/// The longest id of a terminal. Those that agentd gives are shorter.
pub const LONGEST_TERMINAL_ID: usize = 64;

/// Codes of errors, as the protocol has them.
const INVALID_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;
const NOT_FOUND: i64 = -32002;

/// A request, and the session that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub session: String,
    pub request: ClientRequest,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientRequest {
    File(FileWork),
    CreateTerminal(NewTerminal),
    Terminal { id: String, verb: TerminalVerb },
}

/// What is to be done with a terminal that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalVerb {
    Output,
    WaitForExit,
    Kill,
    Release,
}

/// A command that is to run in a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTerminal {
    pub command: TerminalCommand,
    /// In addition to those of the agent's program.
    pub env: BTreeMap<String, String>,
    /// An absolute path; `None` means the agent's working directory.
    pub cwd: Option<String>,
    /// How much of its output is kept.
    pub output_bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalCommand {
    /// Without arguments it is a line for the shell: some agents send a whole line, and the name of a program is one too.
    Line(String),
    Program {
        program: String,
        args: Vec<String>,
    },
}

/// How the command of a terminal ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TerminalExit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

/// What a terminal shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalOutput {
    pub text: String,
    /// The beginning is missing.
    pub is_truncated: bool,
    /// `None` while the command runs.
    pub exit: Option<TerminalExit>,
}

/// Why a request is answered with an error. The text is for the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    code: i64,
    message: String,
}

impl Refusal {
    /// The request is wrong.
    pub fn wrong(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message.into())
    }

    /// There is no such file.
    pub fn missing(message: impl Into<String>) -> Self {
        Self::new(NOT_FOUND, message.into())
    }

    /// The request cannot be carried out.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(INTERNAL, message.into())
    }

    const fn new(code: i64, message: String) -> Self {
        Self { code, message }
    }

    /// The error of the answer.
    pub fn error(&self) -> Value {
        json!({"code": self.code, "message": self.message})
    }
}

/// The request. `None` if agentd does not serve the method.
pub fn client_request(method: &str, params: Value) -> Option<Result<Asked, Refusal>> {
    let read: fn(&mut Params) -> Result<ClientRequest, Refusal> = match method {
        "fs/read_text_file" => read_text,
        "fs/write_text_file" => write_text,
        "terminal/create" => create,
        "terminal/output" => |params| terminal(params, TerminalVerb::Output),
        "terminal/wait_for_exit" => |params| terminal(params, TerminalVerb::WaitForExit),
        "terminal/kill" => |params| terminal(params, TerminalVerb::Kill),
        "terminal/release" => |params| terminal(params, TerminalVerb::Release),
        _ => return None,
    };
    let mut params = Params(match params {
        Value::Object(fields) => fields,
        _ => Map::new(),
    });
    let session = params.text("sessionId");
    Some(session.and_then(|session| {
        let request = read(&mut params)?;
        Ok(Asked { session, request })
    }))
}

fn read_text(params: &mut Params) -> Result<ClientRequest, Refusal> {
    Ok(ClientRequest::File(FileWork::Read {
        path: params.path("path")?,
        line: params.number("line")?,
        limit: params.number("limit")?,
    }))
}

fn write_text(params: &mut Params) -> Result<ClientRequest, Refusal> {
    Ok(ClientRequest::File(FileWork::Write {
        path: params.path("path")?,
        content: params.text("content")?,
    }))
}

fn create(params: &mut Params) -> Result<ClientRequest, Refusal> {
    let command = params.text("command")?;
    let args = params.texts("args")?;
    let env = params.variables()?;
    let texts = args.iter().chain([&command]);
    let all = texts.chain(env.iter().flat_map(|(name, value)| [name, value]));
    if all.clone().any(|text| text.contains('\0')) || command.trim().is_empty() {
        let why = "`command` is empty, or a text of the command contains a NUL byte";
        return Err(Refusal::wrong(why));
    }
    if all.map(|text| text.len() + TEXT_BYTES).sum::<usize>() > LONGEST_COMMAND {
        let why = format!(
            "the command is longer than {LONGEST_COMMAND} bytes; each text counts {TEXT_BYTES} in addition"
        );
        return Err(Refusal::wrong(why));
    }
    let given = params.number("outputByteLimit")?;
    let given = given.map(|bytes| usize::try_from(bytes).unwrap_or(TERMINAL_BYTES));
    Ok(ClientRequest::CreateTerminal(NewTerminal {
        command: match args.is_empty() {
            true => TerminalCommand::Line(command),
            false => TerminalCommand::Program {
                program: command,
                args,
            },
        },
        env,
        cwd: match params.is_given("cwd") {
            true => Some(params.path("cwd")?),
            false => None,
        },
        output_bytes: given.unwrap_or(TERMINAL_BYTES).min(TERMINAL_BYTES),
    }))
}

fn terminal(params: &mut Params, verb: TerminalVerb) -> Result<ClientRequest, Refusal> {
    let id = params.text("terminalId")?;
    if id.len() > LONGEST_TERMINAL_ID {
        return Err(wrong("terminalId", "the id of a terminal"));
    }
    Ok(ClientRequest::Terminal { id, verb })
}

/// The parameters of a request.
struct Params(Map<String, Value>);

impl Params {
    fn is_given(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !value.is_null())
    }

    fn text(&mut self, name: &str) -> Result<String, Refusal> {
        match self.0.remove(name) {
            Some(Value::String(text)) => Ok(text),
            _ => Err(wrong(name, "a text")),
        }
    }

    /// Without `..`: after a symlink, it would not mean the same for a read and a write.
    fn path(&mut self, name: &str) -> Result<String, Refusal> {
        let path = self.text(name)?;
        let is_direct = path.starts_with('/') && path.split('/').all(|part| part != "..");
        match is_direct && path.len() <= LONGEST_PATH && !path.contains('\0') {
            true => Ok(path),
            false => Err(wrong(name, "an absolute path without `..`")),
        }
    }

    fn number(&mut self, name: &str) -> Result<Option<u64>, Refusal> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) => Ok(Some(number)),
                None => Err(wrong(name, "a whole number")),
            },
        }
    }

    fn texts(&mut self, name: &str) -> Result<Vec<String>, Refusal> {
        let values = match self.0.remove(name) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(values)) => values,
            Some(_) => return Err(wrong(name, "a list of texts")),
        };
        let texts = values.into_iter().map(|value| match value {
            Value::String(text) => Ok(text),
            _ => Err(wrong(name, "a list of texts")),
        });
        texts.collect()
    }

    fn variables(&mut self) -> Result<BTreeMap<String, String>, Refusal> {
        let expected = "a list of variables, each with a `name` and a `value`";
        let values = match self.0.remove("env") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(values)) => values,
            Some(_) => return Err(wrong("env", expected)),
        };
        let variables = values.into_iter().map(|variable| {
            let text = |name: &str| variable[name].as_str().map(str::to_owned);
            match (text("name"), text("value")) {
                (Some(name), Some(value)) if !name.is_empty() && !name.contains('=') => {
                    Ok((name, value))
                }
                _ => Err(wrong("env", expected)),
            }
        });
        variables.collect()
    }
}

fn wrong(name: &str, expected: &str) -> Refusal {
    Refusal::wrong(format!("`{name}` is missing, or is not {expected}"))
}

/// The answer to `fs/read_text_file`.
pub fn text_answer(content: String) -> Value {
    let content = ("content".to_owned(), Value::String(content));
    Value::Object(Map::from_iter([content]))
}

/// The answer to a request that has no result.
pub fn done() -> Value {
    json!({})
}

/// The answer to `terminal/create`.
pub fn terminal_created(id: &str) -> Value {
    json!({"terminalId": id})
}

impl TerminalOutput {
    /// The answer to `terminal/output`.
    pub fn answer(self) -> Value {
        let exit = self.exit.as_ref().map(TerminalExit::answer);
        Value::Object(Map::from_iter([
            ("output".to_owned(), Value::String(self.text)),
            ("truncated".to_owned(), Value::Bool(self.is_truncated)),
            ("exitStatus".to_owned(), exit.unwrap_or_default()),
        ]))
    }
}

impl TerminalExit {
    /// The answer to `terminal/wait_for_exit`.
    pub fn answer(&self) -> Value {
        json!({"exitCode": self.code, "signal": self.signal.map(signal)})
    }
}

/// The name of a signal of Linux.
fn signal(number: i32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return format!("signal {number}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests;
