//! The model's next reply, computed from the request alone.

use super::steps::{self, Step};
use agentd_core::event::{Purpose, Tool};
use agentd_core::id::CallId;
use agentd_core::message::{Block, CallOutcome, Message, Role, ToolResult};
use agentd_core::request::Request;
use serde_json::{Map, Value};

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Text(String),
    /// A line that is written after a longer pause.
    Counted(String),
    Call {
        id: CallId,
        name: &'static str,
        arguments: Map<String, Value>,
    },
}

/// Counts the lines of the largest file; directories and hidden files are ignored.
const LARGEST: &str = "f=$(ls -SLp 2>/dev/null | grep -v '/$' | head -n 1); \
     if [ -n \"$f\" ]; then wc -l -- \"$f\"; else echo 'there is no file here'; fi";

/// How many lines of a tool's output are quoted, and how much of each.
const QUOTED_LINES: usize = 10;
const QUOTED_CHARS: usize = 200;

pub fn answer(request: &Request) -> Vec<Piece> {
    if request.purpose == Purpose::Compact {
        return vec![Piece::Text(summary(request))];
    }
    let Some(talk) = Talk::of(&request.messages) else {
        let text = "I only have a summary. What should I do next?";
        return vec![Piece::Text(text.to_owned())];
    };
    let tools: &[Tool] = if request.may_call {
        &request.context.tools
    } else {
        &[]
    };
    let steps: Vec<Step> = talk
        .prompts
        .iter()
        .flat_map(|text| steps::parse(text))
        .collect();
    let mut results = talk.results.iter();
    let mut numbers = talk.numbers.iter().copied().peekable();
    // The results of the steps that used a tool. Only the final answer contains them.
    let mut reports = Vec::new();
    // The text since the newest result.
    let mut pieces = Vec::new();
    for step in &steps {
        let Some((name, arguments)) = step.call(tools) else {
            pieces.extend(step.without_tool(&mut numbers));
            continue;
        };
        if let Some(result) = results.next() {
            reports.push(Piece::Text(step.report(result)));
            pieces.clear();
            continue;
        }
        pieces.push(Piece::Text(step.intention()));
        let calls = request.messages.iter().flat_map(Message::calls).count();
        let id = CallId::new(format!("demo_{}", calls + 1));
        pieces.push(Piece::Call {
            id,
            name,
            arguments,
        });
        return pieces;
    }
    let mut pieces = [reports, pieces].concat();
    if steps.len() > 1 {
        pieces.push(Piece::Text(format!("All {} steps are done.", steps.len())));
    }
    if talk.has_said(&pieces) {
        return vec![Piece::Text(format!("Noted. {}", talk.notice))];
    }
    pieces
}

/// The newest prompt and the messages after it.
struct Talk<'a> {
    /// All prompts that arrived together.
    prompts: Vec<String>,
    /// The results of completed calls. A call that never started or was interrupted is made again.
    results: Vec<&'a ToolResult>,
    /// The model's own text since the newest result.
    said: String,
    /// The numbers in that text, one per line: how far it has counted.
    numbers: Vec<u64>,
    /// The newest notice from agentd.
    notice: String,
}

impl<'a> Talk<'a> {
    fn of(messages: &'a [Message]) -> Option<Self> {
        let (prompts, behind) = newest_prompts(messages)?;
        let mut talk = Self {
            prompts,
            results: Vec::new(),
            said: String::new(),
            numbers: Vec::new(),
            notice: String::new(),
        };
        for message in messages.iter().skip(behind) {
            for block in &message.blocks {
                match (message.role, block) {
                    (Role::User, Block::ToolResult(result)) if is_done(result) => {
                        talk.results.push(result);
                        talk.said.clear();
                    }
                    (Role::User, Block::Notice { text }) => talk.notice.clone_from(text),
                    (Role::Assistant, Block::Text { text }) => {
                        talk.said.push_str(text);
                        talk.said.push('\n');
                    }
                    _ => {}
                }
            }
        }
        let numbers = talk
            .said
            .lines()
            .filter_map(|line| line.trim().parse().ok());
        talk.numbers = numbers.collect();
        Some(talk)
    }

    /// Whether its last reply already contains all of this: then the request has another reason, such as a notice.
    fn has_said(&self, pieces: &[Piece]) -> bool {
        let is_said = |piece: &Piece| match piece {
            Piece::Text(text) => self.said.contains(text.trim()),
            _ => false,
        };
        pieces.iter().all(is_said) && !self.said.is_empty()
    }
}

/// The prompts to answer, and the index of the first message after them. A prompt that only says to continue stands for
/// the one before it.
fn newest_prompts(messages: &[Message]) -> Option<(Vec<String>, usize)> {
    let mut before = messages.len();
    loop {
        let last = messages
            .get(..before)?
            .iter()
            .rposition(|m| words(m).is_some())?;
        let first = messages
            .get(..last)?
            .iter()
            .rposition(|message| message.role == Role::Assistant)
            .map_or(0, |at| at + 1);
        let run = messages.get(first..=last)?;
        let prompts: Vec<String> = run.iter().filter_map(words).collect();
        let earlier = messages.get(..first)?.iter().any(|m| words(m).is_some());
        if earlier && prompts.iter().all(|text| steps::is_continue(text)) {
            before = first;
            continue;
        }
        return Some((prompts, last + 1));
    }
}

/// The user's text in a message.
fn words(message: &Message) -> Option<String> {
    let texts = message.blocks.iter().filter_map(|block| match block {
        Block::Text { text } if message.role == Role::User => Some(text.trim()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    (!text.is_empty()).then_some(text)
}

const fn is_done(result: &ToolResult) -> bool {
    !matches!(
        result.outcome,
        CallOutcome::NotStarted | CallOutcome::Interrupted
    )
}

impl Step {
    /// The call that does the step, if the request offers a tool for it.
    fn call(&self, tools: &[Tool]) -> Option<(&'static str, Map<String, Value>)> {
        const COMMAND: &[&str] = &["command", "cmd", "script"];
        const KIND: &str = "kind";
        // The tool's schema decides the argument names; without a match the first one is used.
        let given: &[(&[&str], &str)] = match self {
            Self::Run { command } => &[(COMMAND, command)],
            Self::Largest => &[(COMMAND, LARGEST)],
            Self::Write { path, text } => &[
                (&["path", "file_path", "file"], path),
                (&["content", "text", "contents"], text),
            ],
            Self::Read { path } => &[(&["path", "file_path", "file"], path)],
            Self::Ask { kind, prompt } => &[(&["prompt"], prompt), (&[KIND], kind)],
            Self::List | Self::Other { .. } => &[(&["path", "dir", "directory"], ".")],
            Self::Count { .. } => return None,
        };
        let tool = tools.iter().find(|tool| tool.name == self.tool())?;
        let properties = tool.parameters.get("properties");
        let known = |name: &&&str| properties.is_some_and(|all| all.get(**name).is_some());
        let arguments = given.iter().filter_map(|(names, value)| {
            // An agent without kinds of subagents starts copies of itself.
            let named = names.iter().find(known);
            let name = named.or(names.first().filter(|name| **name != KIND))?;
            Some(((*name).to_owned(), Value::String((*value).to_owned())))
        });
        Some((self.tool(), arguments.collect()))
    }

    const fn tool(&self) -> &'static str {
        match self {
            Self::Run { .. } | Self::Largest => "shell",
            Self::Write { .. } => "write_file",
            Self::Read { .. } => "read_file",
            Self::Ask { .. } => "agent",
            Self::List | Self::Other { .. } => "list_files",
            Self::Count { .. } => "",
        }
    }

    fn intention(&self) -> String {
        match self {
            Self::Run { .. } => "I'll run it.".to_owned(),
            Self::Write { path, .. } => format!("I'll write {path}."),
            Self::Read { path } => format!("I'll read {path}."),
            Self::Ask { kind, .. } => format!("I'll ask {kind}."),
            Self::Largest => "I'll count the lines of the largest file.".to_owned(),
            _ => "I'll list the files.".to_owned(),
        }
    }

    /// The reply if no tool is used. `numbers` are already in the reply.
    fn without_tool(
        &self,
        numbers: &mut std::iter::Peekable<impl Iterator<Item = u64>>,
    ) -> Vec<Piece> {
        match self {
            Self::Count { to } => {
                let mut from = 1;
                while from <= *to && numbers.next_if_eq(&from).is_some() {
                    from += 1;
                }
                (from..=*to)
                    .map(|n| Piece::Counted(format!("{n}\n")))
                    .collect()
            }
            Self::Other { words } => vec![Piece::Text(closing(words))],
            _ => {
                let text = format!("I have no tool `{}`, so I skip this step.\n", self.tool());
                vec![Piece::Text(text)]
            }
        }
    }

    fn report(&self, result: &ToolResult) -> String {
        let output = output(result);
        let lines: Vec<&str> = output.lines().collect();
        let last = lines.get(lines.len().saturating_sub(QUOTED_LINES)..);
        let first = lines.get(..QUOTED_LINES.min(lines.len()));
        let (last, first) = (
            quote(last.unwrap_or_default()),
            quote(first.unwrap_or_default()),
        );
        match (result.outcome, self) {
            (CallOutcome::Denied, _) => format!("The call was refused:\n{last}"),
            (CallOutcome::Unknown, _) => format!("The outcome is unknown:\n{last}"),
            (CallOutcome::Ok, Self::Run { .. }) if output.trim().is_empty() => {
                "The command succeeded and printed nothing.\n".to_owned()
            }
            (CallOutcome::Ok, Self::Run { .. }) => format!("The output ends with:\n{last}"),
            (CallOutcome::Ok, Self::Write { path, .. }) => format!("I have written {path}.\n"),
            (CallOutcome::Ok, Self::Read { path }) => format!("{path} begins with:\n{first}"),
            (CallOutcome::Ok, Self::Ask { kind, .. }) => format!("{kind} answers:\n{first}"),
            (CallOutcome::Ok, Self::Largest) => {
                format!("The number of lines in the largest file:\n{last}")
            }
            (CallOutcome::Ok, Self::List) => {
                let rest = match lines.len().saturating_sub(QUOTED_LINES) {
                    0 => String::new(),
                    more => format!("> … and {more} more\n"),
                };
                format!("Files here:\n{first}{rest}")
            }
            (CallOutcome::Ok, Self::Other { words }) => {
                format!("Files here:\n{first}\n{}", closing(words))
            }
            _ => format!("The call failed:\n{last}"),
        }
    }
}

fn closing(words: &str) -> String {
    format!(
        "You said: {words}\n\n\
         I am the built-in demo model and understand only a few sentences. For a real model, use \
         `--provider anthropic` with ANTHROPIC_API_KEY set, `openai` with OPENAI_API_KEY, `gemini` with \
         GEMINI_API_KEY, or `ollama`, which needs no key.\n"
    )
}

fn output(result: &ToolResult) -> String {
    let texts = result.blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn quote(lines: &[&str]) -> String {
    let quoted = lines.iter().map(|line| {
        let shown: String = line.chars().take(QUOTED_CHARS).collect();
        format!("> {shown}\n")
    });
    quoted.collect()
}

/// The summary that replaces a conversation that has grown too long.
fn summary(request: &Request) -> String {
    // The last one is the instruction to summarise.
    let mut prompts: Vec<String> = request.messages.iter().filter_map(words).collect();
    prompts.pop();
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    let results = blocks.filter(|block| block.as_result().is_some()).count();
    let listed: Vec<&str> = prompts.iter().map(String::as_str).collect();
    format!(
        "The user's prompts, in order:\n{}{results} tool calls have results.",
        quote(&listed)
    )
}
