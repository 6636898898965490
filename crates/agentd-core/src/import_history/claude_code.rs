//! claude-code: one file of JSON lines per session, in `~/.claude/projects/`.

use super::claude_branch::Branch;
use super::content::{call, image, thinking};
use super::record::{is_true, items, string_or_json, text, time};
use super::{Assembler, Format, Left, SessionInfo};
use crate::message::{Block, CallOutcome};
use serde_json::Value;

#[derive(Default)]
pub(super) struct ClaudeCode {
    branch: Branch,
    /// The reply that was counted last.
    counted: Option<String>,
    /// The id of a subagent whose file this is, and what its records say.
    subagent: Option<String>,
    of_subagent: SessionInfo,
    /// A command of the user that may be followed by the prompt it stands for.
    command: Option<String>,
}

/// What a record of the type `user` is.
enum UserRecord<'a> {
    Summary(String),
    Meta,
    /// A command of the interface, as the user typed it.
    Command(String),
    /// Output of a command of the interface.
    Local,
    Interrupt,
    Message(&'a Value),
}

impl Format for ClaudeCode {
    fn scan(&mut self, number: u64, record: &Value, info: &mut SessionInfo) {
        self.branch.add(number, record);
        match text(record, "type") {
            Some("summary") => {
                if let (None, Some(title)) = (&info.title, text(record, "summary")) {
                    info.titled(title);
                }
            }
            Some("custom-title") => info.titled(text(record, "customTitle").unwrap_or_default()),
            Some("ai-title") => info.titled(text(record, "aiTitle").unwrap_or_default()),
            Some("user" | "assistant") if is_true(record, "isSidechain") => {
                let mut of_subagent = std::mem::take(&mut self.of_subagent);
                self.scan_message(record, &mut of_subagent);
                self.of_subagent = of_subagent;
            }
            Some("user" | "assistant") => self.scan_message(record, info),
            _ => {}
        }
    }

    fn plan(&mut self, info: &mut SessionInfo) {
        if self.branch.is_sidechain() {
            let (title, provider) = (info.title.take(), info.provider.take());
            *info = SessionInfo {
                title,
                provider,
                is_subagent: true,
                ..std::mem::take(&mut self.of_subagent)
            };
            if let Some(agent) = &self.subagent {
                let session = info.id.clone().unwrap_or_default();
                info.id = Some(format!("{session}/{agent}"));
            }
        }
        self.branch.choose();
    }

    fn convert(&mut self, number: u64, record: &Value, out: &mut Assembler) {
        let kind = text(record, "type").unwrap_or_default();
        let is_message = matches!(kind, "user" | "assistant");
        if is_message && text(record, "uuid").is_some() && !self.branch.has(number) {
            let left = match self.branch.is_of_subagent(record) {
                true => Left::Subagent,
                false => Left::OtherBranch,
            };
            return out.skip(left, number);
        }
        out.at(text(record, "timestamp").and_then(time));
        match kind {
            "user" => self.user(number, record, out),
            "assistant" => assistant(number, record, out),
            "attachment" => attachment(number, record, out),
            "" => out.skip(Left::Unknown, number),
            _ => out.skip(Left::Bookkeeping, number),
        }
    }
}

impl ClaudeCode {
    fn scan_message(&mut self, record: &Value, info: &mut SessionInfo) {
        info.seen_at(text(record, "timestamp").and_then(time));
        if let Some(id) = text(record, "sessionId") {
            info.id = Some(id.to_owned());
        }
        if let Some(cwd) = text(record, "cwd").filter(|_| info.cwd.is_none()) {
            info.cwd = Some(cwd.to_owned());
        }
        if let Some(agent) = text(record, "agentId") {
            self.subagent = Some(agent.to_owned());
        }
        let message = record.get("message").unwrap_or(&Value::Null);
        if text(record, "type") == Some("user") {
            if let UserRecord::Message(content) = user_record(record)
                && let Some(words) = words(content)
            {
                info.prompted(&words);
            }
            return;
        }
        if is_error(record) {
            return;
        }
        if let Some(model) = text(message, "model") {
            info.model = Some(model.to_owned());
        }
        let id = text(message, "id").map(str::to_owned);
        if id.is_none() || id != self.counted {
            info.replies += 1;
        }
        self.counted = id;
    }

    fn user(&mut self, number: u64, record: &Value, out: &mut Assembler) {
        let command = self.command.take();
        match user_record(record) {
            UserRecord::Summary(summary) => out.summary(&summary),
            UserRecord::Interrupt => out.interrupted(),
            UserRecord::Local => out.skip(Left::LocalCommand, number),
            UserRecord::Command(command) => {
                self.command = Some(command);
                out.skip(Left::LocalCommand, number);
            }
            UserRecord::Meta => {
                let content = record.get("message").and_then(|it| it.get("content"));
                // A custom command: what it stands for follows it.
                match (command, content.and_then(words)) {
                    (Some(command), Some(words)) => {
                        out.prompt(number, vec![Block::text(format!("{command}\n\n{words}"))]);
                    }
                    _ => out.skip(Left::ProgramContext, number),
                }
            }
            UserRecord::Message(Value::String(text)) => {
                out.prompt(number, vec![Block::text(text.as_str())]);
            }
            UserRecord::Message(content) => message(number, content, out),
        }
    }
}

fn is_error(record: &Value) -> bool {
    let message = record.get("message").unwrap_or(&Value::Null);
    is_true(record, "isApiErrorMessage") || text(message, "model") == Some("<synthetic>")
}

fn user_record(record: &Value) -> UserRecord<'_> {
    let message = record.get("message").unwrap_or(&Value::Null);
    let content = message.get("content").unwrap_or(&Value::Null);
    if is_true(record, "isCompactSummary") {
        return UserRecord::Summary(words(content).unwrap_or_default());
    }
    if is_true(record, "isMeta") {
        return UserRecord::Meta;
    }
    let words = words(content).unwrap_or_default();
    let begins = |tag: &str| words.trim_start().starts_with(tag);
    if begins("[Request interrupted by user") {
        return UserRecord::Interrupt;
    }
    if begins("<command-name>") || begins("<command-message>") {
        let name = tagged(&words, "command-name").unwrap_or_default();
        let arguments = tagged(&words, "command-args").unwrap_or_default();
        return UserRecord::Command(format!("{name} {arguments}").trim().to_owned());
    }
    if begins("<local-command-") || begins("<bash-") {
        return UserRecord::Local;
    }
    UserRecord::Message(content)
}

/// The text between a tag and its end.
fn tagged<'a>(words: &'a str, tag: &str) -> Option<&'a str> {
    let (_, rest) = words.split_once(&format!("<{tag}>"))?;
    let (inner, _) = rest.split_once(&format!("</{tag}>"))?;
    Some(inner.trim())
}

/// The text of a message, if it has any.
fn words(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let texts = parts.iter().filter(|it| text(it, "type") == Some("text"));
            let texts: Vec<&str> = texts.filter_map(|it| text(it, "text")).collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        _ => None,
    }
}

/// Text and images of the user, and results of calls.
fn message(number: u64, content: &Value, out: &mut Assembler) {
    let mut prompt = Vec::new();
    let parts = content.as_array().map_or(&[][..], Vec::as_slice);
    for part in parts {
        match text(part, "type") {
            Some("tool_result") => result(number, part, out),
            _ => prompt.extend(block(number, part, out)),
        }
    }
    out.prompt(number, prompt);
}

fn block(number: u64, part: &Value, out: &mut Assembler) -> Option<Block> {
    match text(part, "type") {
        Some("text") => text(part, "text").map(Block::text),
        Some("image") => {
            let source = part.get("source").unwrap_or(&Value::Null);
            let image = image(text(source, "media_type"), text(source, "data"));
            if image.is_none() {
                out.skip(Left::Image, number);
            }
            image
        }
        Some("document") => {
            out.skip(Left::File, number);
            None
        }
        _ => {
            out.skip(Left::Unknown, number);
            None
        }
    }
}

fn result(number: u64, part: &Value, out: &mut Assembler) {
    let Some(call) = text(part, "tool_use_id") else {
        return out.skip(Left::ResultWithoutCall, number);
    };
    let outcome = match is_true(part, "is_error") {
        true => CallOutcome::Error,
        false => CallOutcome::Ok,
    };
    let blocks = match part.get("content") {
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| block(number, part, out))
            .collect(),
        Some(other) => vec![Block::text(string_or_json(other))],
        None => Vec::new(),
    };
    out.result(number, call, outcome, blocks);
}

fn assistant(number: u64, record: &Value, out: &mut Assembler) {
    if is_error(record) {
        return out.skip(Left::Error, number);
    }
    let message = record.get("message").unwrap_or(&Value::Null);
    let id = text(message, "id");
    if let Some(words) = text(message, "content") {
        out.reply(number, id, Block::text(words));
    }
    for part in items(message, "content") {
        let empty = Value::Null;
        match text(part, "type") {
            Some("text") => {
                let words = text(part, "text").unwrap_or_default();
                out.reply(number, id, Block::text(words));
            }
            Some("thinking") => match text(part, "thinking").unwrap_or_default() {
                "" => out.skip(Left::SealedThinking, number),
                words => out.reply(number, id, thinking(words)),
            },
            Some("redacted_thinking") => out.skip(Left::SealedThinking, number),
            Some("tool_use") => {
                let (call_id, name) = (text(part, "id"), text(part, "name"));
                let input = part.get("input").unwrap_or(&empty);
                let block = call(call_id.unwrap_or_default(), name.unwrap_or_default(), input);
                out.reply(number, id, block);
            }
            Some(other) if other.starts_with("server_tool") || other.ends_with("_result") => {
                out.skip(Left::ProviderTool, number);
            }
            _ => out.skip(Left::Unknown, number),
        }
    }
}

/// What the program attached to the conversation. A prompt that was sent while the model worked is one of them.
fn attachment(number: u64, record: &Value, out: &mut Assembler) {
    let attachment = record.get("attachment").unwrap_or(&Value::Null);
    match (text(attachment, "type"), attachment.get("prompt")) {
        (Some("queued_command"), Some(Value::String(prompt))) => {
            out.prompt(number, vec![Block::text(prompt.as_str())]);
        }
        (Some("queued_command"), Some(content @ Value::Array(_))) => message(number, content, out),
        _ => out.skip(Left::ProgramContext, number),
    }
}
