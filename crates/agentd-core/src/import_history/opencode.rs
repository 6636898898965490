//! opencode: sessions, messages and their parts in SQLite, in `~/.local/share/opencode/`; a file for each of them before
//! that. A record is a session, or a message with its parts.

use super::content::{call, image_of_url, thinking};
use super::record::{is_true, items, string_or_json, text};
use super::{Assembler, Format, Left, SessionInfo};
use crate::message::{Block, CallOutcome};
use crate::time::Timestamp;
use serde_json::Value;

#[derive(Default)]
pub(super) struct Opencode {
    /// The first message that the user reverted. Ids are in order.
    reverted: Option<String>,
    steps: u64,
}

fn created(record: &Value) -> Option<Timestamp> {
    let created = record.pointer("/time/created")?.as_i64()?;
    Some(Timestamp::from_millis(created))
}

impl Format for Opencode {
    fn scan(&mut self, _number: u64, record: &Value, info: &mut SessionInfo) {
        let Some(role) = text(record, "role") else {
            info.id = text(record, "id").map(str::to_owned);
            info.cwd = text(record, "directory").map(str::to_owned);
            info.titled(text(record, "title").unwrap_or_default());
            info.is_subagent = text(record, "parentID").is_some();
            info.seen_at(created(record));
            let revert = record.pointer("/revert/messageID");
            self.reverted = revert.and_then(Value::as_str).map(str::to_owned);
            return;
        };
        info.seen_at(created(record));
        if role == "user" {
            let parts = items(record, "parts").iter();
            let mut texts = parts.filter(|part| is_prompt(part));
            if let Some(first) = texts.next() {
                info.prompted(text(first, "text").unwrap_or_default());
            }
            return;
        }
        info.replies += 1;
        let own = |key| text(record, key).map(str::to_owned);
        info.provider = own("providerID").or(info.provider.take());
        info.model = own("modelID").or(info.model.take());
        if let Some(cwd) = record.pointer("/path/cwd").and_then(Value::as_str) {
            info.cwd.get_or_insert_with(|| cwd.to_owned());
        }
    }

    fn convert(&mut self, number: u64, record: &Value, out: &mut Assembler) {
        let Some(role) = text(record, "role") else {
            return out.skip(Left::Bookkeeping, number);
        };
        let id = text(record, "id").unwrap_or_default();
        if self.reverted.as_deref().is_some_and(|first| id >= first) {
            return out.skip(Left::Reverted, number);
        }
        out.at(created(record));
        match role {
            "user" => user(number, record, out),
            _ if is_true(record, "summary") => {
                let parts = items(record, "parts").iter();
                let texts = parts.filter(|part| text(part, "type") == Some("text"));
                let texts: Vec<&str> = texts.filter_map(|part| text(part, "text")).collect();
                out.summary(&texts.join("\n"));
            }
            _ => self.assistant(number, record, out),
        }
    }
}

/// Text of the user, and not of the program.
fn is_prompt(part: &Value) -> bool {
    text(part, "type") == Some("text") && !is_true(part, "synthetic") && !is_true(part, "ignored")
}

fn user(number: u64, record: &Value, out: &mut Assembler) {
    let mut prompt = Vec::new();
    for part in items(record, "parts") {
        match text(part, "type").unwrap_or_default() {
            "text" if is_prompt(part) => prompt.extend(text(part, "text").map(Block::text)),
            "text" => out.skip(Left::ProgramContext, number),
            "file" => prompt.extend(file(number, part, out)),
            "agent" | "compaction" | "subtask" | "snapshot" => out.skip(Left::Bookkeeping, number),
            _ => out.skip(Left::Unknown, number),
        }
    }
    out.prompt(number, prompt);
}

fn file(number: u64, part: &Value, out: &mut Assembler) -> Option<Block> {
    let image = text(part, "url").and_then(image_of_url);
    if image.is_none() {
        let mime = text(part, "mime").unwrap_or_default();
        let left = if mime.starts_with("image/") {
            Left::Image
        } else {
            Left::File
        };
        out.skip(left, number);
    }
    image
}

impl Opencode {
    fn assistant(&mut self, number: u64, record: &Value, out: &mut Assembler) {
        self.steps += 1;
        for part in items(record, "parts") {
            let id = format!("step {}", self.steps);
            match text(part, "type").unwrap_or_default() {
                // Each step is a request of its own.
                "step-start" => self.steps += 1,
                "text" => {
                    let words = text(part, "text").unwrap_or_default();
                    out.reply(number, Some(&id), Block::text(words));
                }
                "reasoning" => {
                    let words = text(part, "text").unwrap_or_default();
                    out.reply(number, Some(&id), thinking(words));
                }
                "tool" => tool(number, &id, part, out),
                "step-finish" | "snapshot" | "patch" | "retry" | "compaction" | "agent" => {
                    out.skip(Left::Bookkeeping, number);
                }
                "file" => out.skip(Left::File, number),
                _ => out.skip(Left::Unknown, number),
            }
        }
        let error = record.pointer("/error/name").and_then(Value::as_str);
        if error == Some("MessageAbortedError") {
            out.interrupted();
        }
    }
}

fn tool(number: u64, reply: &str, part: &Value, out: &mut Assembler) {
    let id = text(part, "callID").unwrap_or_default();
    let state = part.get("state").unwrap_or(&Value::Null);
    let name = text(part, "tool").unwrap_or_default();
    let input = state.get("input").unwrap_or(&Value::Null);
    out.reply(number, Some(reply), call(id, name, input));
    let outcome = match text(state, "status") {
        Some("completed") => CallOutcome::Ok,
        Some("error") => CallOutcome::Error,
        // It was running when the program ended.
        _ => return,
    };
    let key = if outcome.is_ok() { "output" } else { "error" };
    let output = string_or_json(state.get(key).unwrap_or(&Value::Null));
    let mut blocks = vec![Block::text(output)];
    for attached in items(state, "attachments") {
        blocks.extend(file(number, attached, out));
    }
    out.result(number, id, outcome, blocks);
}
