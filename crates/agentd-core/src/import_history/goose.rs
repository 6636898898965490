//! goose: sessions and messages in SQLite, in `~/.local/share/goose/sessions/`; one file of JSON lines per session before
//! that. A record is a session or a message, with the same fields in both.

use super::content::{call, image, of_mcp, thinking};
use super::record::{is_true, items, string_or_json, text, time};
use super::{Assembler, Format, Left, SessionInfo};
use crate::message::{Block, CallOutcome};
use crate::time::Timestamp;
use serde_json::Value;

#[derive(Default)]
pub(super) struct Goose {
    /// A message since the last summary is not shown to the model: the next one that only the model sees is a summary.
    hidden: bool,
}

fn created(record: &Value) -> Option<Timestamp> {
    let created = record.get("created").and_then(Value::as_i64)?;
    // Seconds; some versions wrote milliseconds.
    let is_millis = created > 100_000_000_000;
    let millis = if is_millis {
        created
    } else {
        created.saturating_mul(1000)
    };
    Some(Timestamp::from_millis(millis))
}

fn flag(record: &Value, name: &str) -> Option<bool> {
    record.get("metadata")?.get(name)?.as_bool()
}

impl Format for Goose {
    fn scan(&mut self, _number: u64, record: &Value, info: &mut SessionInfo) {
        let Some(role) = text(record, "role") else {
            return scan_session(record, info);
        };
        info.seen_at(created(record));
        let seen = flag(record, "userVisible") != Some(false);
        let parts = items(record, "content").iter();
        let mut texts = parts.filter_map(|part| text(part, "text"));
        match (role, texts.next()) {
            ("user", Some(words)) if seen => info.prompted(words),
            ("assistant", _) => {
                info.replies += 1;
                let inference = record.pointer("/metadata/inference");
                let model = inference.and_then(|it| text(it, "requestedModel"));
                if let (Some(inference), Some(model)) = (inference, model) {
                    info.model = Some(model.to_owned());
                    info.provider = text(inference, "provider").map(str::to_owned);
                }
            }
            _ => {}
        }
    }

    fn convert(&mut self, number: u64, record: &Value, out: &mut Assembler) {
        let Some(role) = text(record, "role") else {
            return out.skip(Left::Bookkeeping, number);
        };
        out.at(created(record));
        let for_model = flag(record, "agentVisible") != Some(false);
        let for_user = flag(record, "userVisible") != Some(false);
        if for_model && !for_user {
            return self.only_for_model(number, record, out);
        }
        self.hidden |= !for_model;
        let mut prompt = Vec::new();
        for part in items(record, "content") {
            match (text(part, "type").unwrap_or_default(), role) {
                ("toolRequest" | "frontendToolRequest", _) => request(number, part, out),
                ("toolResponse", _) => response(number, part, out),
                (_, "assistant") => reply(number, part, out),
                _ => prompt.extend(block(number, part, out)),
            }
        }
        out.prompt(number, prompt);
    }
}

impl Goose {
    fn only_for_model(&mut self, number: u64, record: &Value, out: &mut Assembler) {
        let is_context = flag(record, "turnContext") == Some(true);
        let parts = items(record, "content").iter();
        let words: Vec<&str> = parts.filter_map(|part| text(part, "text")).collect();
        if is_context || !self.hidden || words.is_empty() {
            return out.skip(Left::ProgramContext, number);
        }
        self.hidden = false;
        out.summary(&words.join("\n"));
    }
}

fn scan_session(record: &Value, info: &mut SessionInfo) {
    let own = |key| text(record, key).filter(|text| !text.is_empty());
    info.id = own("id").map(str::to_owned);
    info.cwd = own("working_dir").map(str::to_owned);
    if let Some(title) = own("name").or_else(|| own("description")) {
        info.titled(title);
    }
    info.provider = own("provider_name").map(str::to_owned);
    let model = record.pointer("/model_config/model_name");
    info.model = model.and_then(Value::as_str).map(str::to_owned);
    info.seen_at(own("created_at").and_then(time));
    info.is_subagent = matches!(
        own("session_type"),
        Some("sub_agent" | "subagent" | "hidden")
    );
}

/// The id of the reply: all parts of a record belong to one.
fn reply_id(number: u64) -> String {
    format!("record {number}")
}

fn reply(number: u64, part: &Value, out: &mut Assembler) {
    let id = reply_id(number);
    match text(part, "type").unwrap_or_default() {
        "thinking" | "reasoning" => {
            let words = text(part, "thinking").or_else(|| text(part, "text"));
            out.reply(number, Some(&id), thinking(words.unwrap_or_default()));
        }
        "redactedThinking" => out.skip(Left::SealedThinking, number),
        "systemNotification"
        | "toolConfirmationRequest"
        | "actionRequired"
        | "summarizationRequested"
        | "contextLengthExceeded" => out.skip(Left::Bookkeeping, number),
        _ => {
            if let Some(block) = block(number, part, out) {
                out.reply(number, Some(&id), block);
            }
        }
    }
}

fn block(number: u64, part: &Value, out: &mut Assembler) -> Option<Block> {
    match text(part, "type") {
        Some("text") => text(part, "text").map(Block::text),
        Some("image") => {
            let image = image(text(part, "mimeType"), text(part, "data"));
            if image.is_none() {
                out.skip(Left::Image, number);
            }
            image
        }
        _ => {
            out.skip(Left::Unknown, number);
            None
        }
    }
}

fn request(number: u64, part: &Value, out: &mut Assembler) {
    let id = text(part, "id").unwrap_or_default();
    let value = part.pointer("/toolCall/value").unwrap_or(&Value::Null);
    let reply = reply_id(number);
    let block = match text(value, "name") {
        Some(name) => call(id, name, value.get("arguments").unwrap_or(&Value::Null)),
        // What the model wrote was not a call.
        None => {
            let error = part.pointer("/toolCall/error").unwrap_or(&Value::Null);
            call(id, "", &Value::Array(vec![error.clone()]))
        }
    };
    out.reply(number, Some(&reply), block);
}

fn response(number: u64, part: &Value, out: &mut Assembler) {
    let call = text(part, "id").unwrap_or_default();
    let result = part.get("toolResult").unwrap_or(&Value::Null);
    if text(result, "status") == Some("error") {
        let error = string_or_json(result.get("error").unwrap_or(&Value::Null));
        return out.result(number, call, CallOutcome::Error, vec![Block::text(error)]);
    }
    let value = result.get("value").unwrap_or(&Value::Null);
    // Older versions have the list itself.
    let content = match value {
        Value::Array(content) => content.as_slice(),
        value => items(value, "content"),
    };
    let blocks = content.iter().filter_map(|item| {
        let block = of_mcp(item);
        if block.is_none() {
            out.skip(Left::Unknown, number);
        }
        block
    });
    let blocks = blocks.collect();
    let outcome = match is_true(value, "isError") {
        true => CallOutcome::Error,
        false => CallOutcome::Ok,
    };
    out.result(number, call, outcome, blocks);
}
