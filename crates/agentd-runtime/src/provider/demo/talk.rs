//! What the model says next, told from the request alone.

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
    /// A line that takes its time.
    Counted(String),
    Call {
        id: CallId,
        name: &'static str,
        arguments: Map<String, Value>,
    },
}

/// Counts the lines of the largest file, directories and what is hidden left out.
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
        let text = "I have nothing but a summary to go on. What shall I do next?";
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
    // What came of the steps that used a tool; the answer has all of it, and only the answer.
    let mut reports = Vec::new();
    // What is to be said since the newest result.
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

/// The newest prompt and what has come since.
struct Talk<'a> {
    /// All that came in one go.
    prompts: Vec<String>,
    /// Of calls that came to something. One that never started, or was interrupted, is made again.
    results: Vec<&'a ToolResult>,
    /// What the model itself has said since the newest of these.
    said: String,
    /// The numbers among that, each on its line: how far it has counted.
    numbers: Vec<u64>,
    /// The newest thing that agentd told it.
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

    /// Whether all of this is what it has said last: then it is asked because of something else.
    fn has_said(&self, pieces: &[Piece]) -> bool {
        let is_said = |piece: &Piece| match piece {
            Piece::Text(text) => self.said.contains(text.trim()),
            _ => false,
        };
        pieces.iter().all(is_said) && !self.said.is_empty()
    }
}

/// The prompts that the model is to answer, and where what follows them begins. One that says to go
/// on stands for the one before it.
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
        if earlier && prompts.iter().all(|text| steps::is_go_on(text)) {
            before = first;
            continue;
        }
        return Some((prompts, last + 1));
    }
}

/// The user's own words in a message.
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
    /// The call that does it, where there is a tool for it.
    fn call(&self, tools: &[Tool]) -> Option<(&'static str, Map<String, Value>)> {
        const COMMAND: &[&str] = &["command", "cmd", "script"];
        // Names of arguments are the tool's; the first of ours is a guess where it says nothing.
        let given: &[(&[&str], &str)] = match self {
            Self::Run { command } => &[(COMMAND, command)],
            Self::Largest => &[(COMMAND, LARGEST)],
            Self::Write { path, text } => &[
                (&["path", "file_path", "file"], path),
                (&["content", "text", "contents"], text),
            ],
            Self::Read { path } => &[(&["path", "file_path", "file"], path)],
            Self::List | Self::Other { .. } => &[(&["path", "dir", "directory"], ".")],
            Self::Count { .. } => return None,
        };
        let tool = tools.iter().find(|tool| tool.name == self.tool())?;
        let properties = tool.parameters.get("properties");
        let known = |name: &&&str| properties.is_some_and(|all| all.get(**name).is_some());
        let arguments = given.iter().filter_map(|(names, value)| {
            let name = names.iter().find(known).or(names.first())?;
            Some(((*name).to_owned(), Value::String((*value).to_owned())))
        });
        Some((self.tool(), arguments.collect()))
    }

    const fn tool(&self) -> &'static str {
        match self {
            Self::Run { .. } | Self::Largest => "shell",
            Self::Write { .. } => "write_file",
            Self::Read { .. } => "read_file",
            Self::List | Self::Other { .. } => "list_files",
            Self::Count { .. } => "",
        }
    }

    fn intention(&self) -> String {
        match self {
            Self::Run { .. } => "I'll run it.".to_owned(),
            Self::Write { path, .. } => format!("I'll write {path}."),
            Self::Read { path } => format!("I'll read {path}."),
            Self::Largest => "I'll count the lines of the largest file.".to_owned(),
            _ => "Let me see what is here.".to_owned(),
        }
    }

    /// What is said where no tool is used. `numbers` have been said already.
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
                let text = format!(
                    "I have no tool `{}` here, so I leave that out.\n",
                    self.tool()
                );
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
            (CallOutcome::Denied, _) => format!("It was refused:\n{last}"),
            (CallOutcome::Unknown, _) => format!("Whether it was done is not known:\n{last}"),
            (CallOutcome::Ok, Self::Run { .. }) if output.trim().is_empty() => {
                "It is done, and printed nothing.\n".to_owned()
            }
            (CallOutcome::Ok, Self::Run { .. }) => format!("The output ends with:\n{last}"),
            (CallOutcome::Ok, Self::Write { path, .. }) => format!("I have written {path}.\n"),
            (CallOutcome::Ok, Self::Read { path }) => format!("{path} begins with:\n{first}"),
            (CallOutcome::Ok, Self::Largest) => {
                format!("The largest file here, and its lines before it:\n{last}")
            }
            (CallOutcome::Ok, Self::List) => {
                let rest = match lines.len().saturating_sub(QUOTED_LINES) {
                    0 => String::new(),
                    more => format!("> … and {more} more\n"),
                };
                format!("This is here:\n{first}{rest}")
            }
            (CallOutcome::Ok, Self::Other { words }) => {
                format!("This is here:\n{first}\n{}", closing(words))
            }
            _ => format!("It failed:\n{last}"),
        }
    }
}

fn closing(words: &str) -> String {
    format!(
        "You said: {words}\n\n\
         I am the demo model that is built in, and do not understand more than a few sentences. For \
         a real model, choose one: `--provider anthropic` with ANTHROPIC_API_KEY set, `openai` with \
         OPENAI_API_KEY, `gemini` with GEMINI_API_KEY, or `ollama` with no key at all.\n"
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

/// What stands for the conversation when it has grown too long.
fn summary(request: &Request) -> String {
    // The instruction to summarise is the last of them.
    let mut prompts: Vec<String> = request.messages.iter().filter_map(words).collect();
    prompts.pop();
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    let results = blocks.filter(|block| block.as_result().is_some()).count();
    let listed: Vec<&str> = prompts.iter().map(String::as_str).collect();
    format!(
        "The user has asked, in this order:\n{}{results} tool calls have been answered.",
        quote(&listed)
    )
}
