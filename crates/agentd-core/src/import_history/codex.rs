//! codex: one file of JSON lines per session (a rollout), in `~/.codex/sessions/`.

use super::content::{call, image_of_url, thinking};
use super::record::{items, string_or_json, text, time};
use super::{Assembler, Format, Left, SessionInfo};
use crate::message::{Block, CallOutcome};
use serde_json::{Value, json};
use std::ops::Range;

#[derive(Default)]
pub(super) struct Codex {
    /// The records at which prompts begin that were not rolled back.
    prompts: Vec<u64>,
    /// Records that were rolled back: ranges in order, none of which overlap.
    reverted: Vec<Range<u64>>,
    /// Whether the newest record of the first pass was a prompt.
    after_prompt: bool,
}

/// What a record contains: old files have the item itself, new ones wrap it.
enum Content<'a> {
    Meta(&'a Value),
    Context(&'a Value),
    Item(&'a Value),
    Event(&'a Value),
    Compacted(&'a Value),
    Other,
}

fn content(record: &Value) -> Content<'_> {
    let kind = text(record, "type");
    match (kind, record.get("payload")) {
        (Some("session_meta"), Some(payload)) => Content::Meta(payload),
        (Some("turn_context"), Some(payload)) => Content::Context(payload),
        (Some("response_item"), Some(payload)) => Content::Item(payload),
        (Some("event_msg"), Some(payload)) => Content::Event(payload),
        (Some("compacted"), Some(payload)) => Content::Compacted(payload),
        (Some(_), Some(_)) => Content::Other,
        (Some(_), None) => Content::Item(record),
        (None, _) if record.get("id").is_some() && record.get("timestamp").is_some() => {
            Content::Meta(record)
        }
        (None, _) => Content::Other,
    }
}

impl Format for Codex {
    fn scan(&mut self, number: u64, record: &Value, info: &mut SessionInfo) {
        let was_prompt = std::mem::take(&mut self.after_prompt);
        match content(record) {
            Content::Meta(meta) => scan_meta(meta, info),
            Content::Context(context) => {
                if let Some(model) = text(context, "model") {
                    info.model = Some(model.to_owned());
                }
            }
            Content::Item(item) => match (text(item, "type"), text(item, "role")) {
                (Some("message"), Some("user")) => {
                    if let Some(words) = prompt_words(item) {
                        info.seen_at(text(record, "timestamp").and_then(time));
                        info.prompted(&words);
                        if !was_prompt {
                            self.prompts.push(number);
                        }
                        self.after_prompt = true;
                    }
                }
                (Some("message"), Some("assistant")) => {
                    info.seen_at(text(record, "timestamp").and_then(time));
                    info.replies += 1;
                }
                _ => {}
            },
            Content::Event(event) => match text(event, "type") {
                Some("thread_rolled_back") => {
                    let turns = event.get("num_turns").and_then(Value::as_u64);
                    self.roll_back(turns.unwrap_or(0), number);
                }
                Some("thread_name_updated") => {
                    info.titled(text(event, "thread_name").unwrap_or_default());
                }
                _ => {}
            },
            Content::Compacted(_) | Content::Other => {}
        }
    }

    fn convert(&mut self, number: u64, record: &Value, out: &mut Assembler) {
        let content = content(record);
        if self.is_reverted(number) {
            if let Content::Item(_) = content {
                out.skip(Left::Reverted, number);
            }
            return;
        }
        out.at(text(record, "timestamp").and_then(time));
        match content {
            Content::Item(item) => convert_item(number, item, out),
            Content::Compacted(compacted) => out.summary(&summary(compacted)),
            Content::Event(event) => {
                if text(event, "type") == Some("turn_aborted") {
                    out.interrupted();
                }
                out.skip(Left::Bookkeeping, number);
            }
            Content::Meta(_) | Content::Context(_) => out.skip(Left::Bookkeeping, number),
            Content::Other => {
                let is_record =
                    record.get("payload").is_some() || record.get("record_type").is_some();
                let left = if is_record {
                    Left::Bookkeeping
                } else {
                    Left::Unknown
                };
                out.skip(left, number);
            }
        }
    }
}

impl Codex {
    fn roll_back(&mut self, turns: u64, number: u64) {
        let keep = self
            .prompts
            .len()
            .saturating_sub(turns.try_into().unwrap_or(usize::MAX));
        let first = self.prompts.get(keep).copied();
        self.prompts.truncate(keep);
        let Some(first) = first else {
            return;
        };
        // The new range contains those that begin after it. A range before it ended before this prompt began.
        while self.reverted.pop_if(|range| range.start >= first).is_some() {}
        self.reverted.push(first..number);
    }

    fn is_reverted(&self, number: u64) -> bool {
        let next = self.reverted.partition_point(|range| range.end <= number);
        let range = self.reverted.get(next);
        range.is_some_and(|range| range.contains(&number))
    }
}

fn scan_meta(meta: &Value, info: &mut SessionInfo) {
    // A fork contains the meta record of its origin too; the first one is its own.
    if info.id.is_some() {
        return;
    }
    info.id = text(meta, "id").map(str::to_owned);
    info.cwd = text(meta, "cwd").map(str::to_owned);
    info.provider = text(meta, "model_provider").map(str::to_owned);
    info.seen_at(text(meta, "timestamp").and_then(time));
    let source = meta.get("source");
    info.is_subagent = source.is_some_and(|source| source.get("subagent").is_some())
        || text(meta, "thread_source") == Some("subagent");
}

/// The text of a prompt; none if the program wrote the message.
fn prompt_words(item: &Value) -> Option<String> {
    const CONTEXT: [&str; 9] = [
        "<environment_context>",
        "<user_instructions>",
        "# AGENTS.md instructions",
        "<INSTRUCTIONS>",
        "<skill>",
        "<turn_aborted>",
        "<user_shell_command>",
        "<subagent_notification>",
        "<permissions instructions>",
    ];
    let parts = items(item, "content");
    let texts: Vec<&str> = parts.iter().filter_map(|part| text(part, "text")).collect();
    let words = texts.join("\n");
    let is_context = |begin: &&str| words.trim_start().starts_with(*begin);
    let provenance = item.pointer(
        "/internal_chat_message_metadata_passthrough/content_item_metadata/0/provenance/type",
    );
    let is_harness = provenance.and_then(Value::as_str) == Some("harness");
    (!is_harness && !CONTEXT.iter().any(is_context)).then_some(words)
}

fn convert_item(number: u64, item: &Value, out: &mut Assembler) {
    let id = text(item, "call_id").or_else(|| text(item, "id"));
    let name = text(item, "name").unwrap_or_default();
    match text(item, "type").unwrap_or_default() {
        "message" => message(number, item, out),
        "reasoning" => reasoning(number, item, out),
        "function_call" => {
            let arguments = item.get("arguments").unwrap_or(&Value::Null);
            out.reply(number, None, call(id.unwrap_or_default(), name, arguments));
        }
        "custom_tool_call" => {
            let input = json!({"input": item.get("input").unwrap_or(&Value::Null)});
            out.reply(number, None, call(id.unwrap_or_default(), name, &input));
        }
        "local_shell_call" => {
            let action = item.get("action").unwrap_or(&Value::Null);
            out.reply(
                number,
                None,
                call(id.unwrap_or_default(), "local_shell", action),
            );
        }
        "function_call_output" | "custom_tool_call_output" => output(number, item, out),
        "web_search_call" | "image_generation_call" | "tool_search_call" => {
            out.skip(Left::ProviderTool, number);
        }
        "ghost_snapshot" | "state" => out.skip(Left::Bookkeeping, number),
        "compaction" | "compaction_summary" => out.skip(Left::SealedThinking, number),
        _ => out.skip(Left::Unknown, number),
    }
}

fn message(number: u64, item: &Value, out: &mut Assembler) {
    match text(item, "role") {
        Some("assistant") => {
            for part in items(item, "content") {
                let words = text(part, "text").or_else(|| text(part, "refusal"));
                out.reply(number, None, Block::text(words.unwrap_or_default()));
            }
        }
        Some("user") if prompt_words(item).is_some() => {
            let parts = items(item, "content").iter();
            let blocks = parts.filter_map(|part| block(number, part, out)).collect();
            out.prompt(number, blocks);
        }
        Some(_) => out.skip(Left::ProgramContext, number),
        None => out.skip(Left::Unknown, number),
    }
}

fn block(number: u64, part: &Value, out: &mut Assembler) -> Option<Block> {
    match text(part, "type") {
        Some("input_text" | "output_text" | "text") => text(part, "text").map(Block::text),
        Some("input_image") => {
            let image = text(part, "image_url").and_then(image_of_url);
            if image.is_none() {
                out.skip(Left::Image, number);
            }
            image
        }
        Some("input_file") => {
            out.skip(Left::File, number);
            None
        }
        _ => {
            out.skip(Left::Unknown, number);
            None
        }
    }
}

fn reasoning(number: u64, item: &Value, out: &mut Assembler) {
    let summary = items(item, "summary").iter().chain(items(item, "content"));
    let words: Vec<&str> = summary.filter_map(|part| text(part, "text")).collect();
    match words.is_empty() {
        true => out.skip(Left::SealedThinking, number),
        false => out.reply(number, None, thinking(&words.join("\n\n"))),
    }
}

fn output(number: u64, item: &Value, out: &mut Assembler) {
    let call = text(item, "call_id").unwrap_or_default();
    let output = item.get("output").unwrap_or(&Value::Null);
    let failed = output.get("success").and_then(Value::as_bool) == Some(false);
    let content = output.get("content").unwrap_or(output);
    let blocks = match content {
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| block(number, part, out))
            .collect(),
        other => vec![Block::text(string_or_json(other))],
    };
    let outcome = if failed {
        CallOutcome::Error
    } else {
        CallOutcome::Ok
    };
    out.result(number, call, outcome, blocks);
}

/// The text of a compaction: its own, or what it puts in place of the history.
fn summary(compacted: &Value) -> String {
    match text(compacted, "message") {
        Some(message) if !message.is_empty() => message.to_owned(),
        _ => {
            let replaced = items(compacted, "replacement_history").iter();
            let replaced = replaced.filter(|item| {
                text(item, "role") == Some("assistant") || prompt_words(item).is_some()
            });
            let parts = replaced.flat_map(|item| items(item, "content"));
            let texts: Vec<&str> = parts.filter_map(|part| text(part, "text")).collect();
            texts.join("\n\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reverted(codex: &Codex) -> Vec<(u64, u64)> {
        let ranges = codex.reverted.iter();
        ranges.map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn records_that_were_rolled_back_are_ranges_in_order() {
        let mut codex = Codex {
            prompts: vec![1, 10, 20, 30],
            ..Codex::default()
        };
        codex.roll_back(1, 35);
        codex.roll_back(1, 36);
        codex.roll_back(0, 37);
        assert_eq!(reverted(&codex), [(20, 36)]);
        codex.prompts.push(40);
        codex.roll_back(1, 45);
        assert_eq!(reverted(&codex), [(20, 36), (40, 45)]);
        let numbers = (0..60).filter(|number| codex.is_reverted(*number));
        assert!(numbers.eq((20..36).chain(40..45)));
        codex.roll_back(1, 50);
        assert_eq!(reverted(&codex), [(10, 50)]);
        let numbers = (0..60).filter(|number| codex.is_reverted(*number));
        assert!(numbers.eq(10..50));
    }

    /// The second pass looks each record up.
    #[test]
    fn one_rollback_after_the_other_is_one_range() {
        let mut codex = Codex {
            prompts: (0..1000).collect(),
            ..Codex::default()
        };
        for number in 1000..2000 {
            codex.roll_back(1, number);
        }
        assert_eq!(reverted(&codex), [(0, 1999)]);
    }
}
