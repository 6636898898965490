//! The text that the model must see at some position of a journal, and the text of a request.
//!
//! Not the request's exact format, which the strict server checks, but its text: every prompt, reply,
//! result and notice of the conversation, and none of another one.

use super::evidence::{Event, Journal};
use serde_json::Value;

/// The text blocks in a list of blocks.
pub fn texts(blocks: &Value) -> Vec<String> {
    let blocks = blocks.as_array().into_iter().flatten();
    let texts = blocks.filter(|block| matches!(block["type"].as_str(), Some("text" | "annotated")));
    let texts = texts.filter_map(|block| block["text"].as_str());
    let texts = texts.map(|text| text.trim().to_owned());
    texts.filter(|text| !text.is_empty()).collect()
}

/// The files that are attached to a prompt: the name and the content of each, text as it is and all else in base64.
pub fn files(blocks: &Value) -> Vec<(String, String)> {
    let blocks = blocks.as_array().into_iter().flatten();
    let files = blocks.filter(|block| block["type"] == "attachment");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let files = files.map(|file| {
        let content = match &file["data"] {
            Value::Null => &file["text"],
            data => data,
        };
        (text(&file["name"]), text(content))
    });
    files.collect()
}

/// Everything of a prompt that the model must see.
pub fn shown(blocks: &Value) -> Vec<String> {
    let mut words = texts(blocks);
    words.extend(files(blocks).into_iter().map(|(_, content)| content));
    words
}

/// Keys whose strings are not text.
const NO_WORDS: &[&str] = &[
    "role",
    "type",
    "id",
    "tool_use_id",
    "tool_call_id",
    "call_id",
    "name",
    "media_type",
    "data",
    "mimeType",
    "signature",
    "thoughtSignature",
    "cache_control",
    "thinking",
    "arguments",
    "args",
    "encrypted_content",
    "status",
    "input",
];

/// All text of a request's messages, in order, and the data of its files; notices without their markers.
pub fn of_request(body: &Value) -> Vec<String> {
    let mut words = Vec::new();
    strings(messages(body), &mut words);
    words
}

/// The messages of a request in any format.
pub fn messages(body: &Value) -> &Value {
    let keys = ["messages", "input", "contents"];
    let found = keys
        .iter()
        .map(|key| &body[*key])
        .find(|list| list.is_array());
    found.unwrap_or(&Value::Null)
}

fn strings(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let text = text.trim();
            let inner = text.strip_prefix("<notice>");
            let inner = inner.and_then(|rest| rest.strip_suffix("</notice>"));
            let text = inner.unwrap_or(text).trim();
            if !text.is_empty() {
                words.push(text.to_owned());
            }
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, words)),
        // An image or a document, which is not text but must be there as well.
        Value::Object(map) if map.contains_key("media_type") => {
            words.extend(map.get("data").and_then(Value::as_str).map(str::to_owned));
        }
        Value::Object(map) => {
            let items = map
                .iter()
                .filter(|(key, _)| !NO_WORDS.contains(&key.as_str()));
            items.for_each(|(_, item)| strings(item, words));
        }
        _ => {}
    }
}

/// One item that the model sees.
struct Item {
    agent: String,
    seq: u64,
    /// The turn that answers it, if it is a prompt.
    asks: Option<String>,
    words: Vec<String>,
}

/// All text that the model must see of a conversation right before event `seq`.
pub fn of_window(journal: &Journal, conversation: &str, seq: u64) -> Vec<String> {
    let mut items: Vec<Item> = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    for (agent, events, conversation, through) in lineage(journal, conversation, seq) {
        let mut pending: Vec<(&str, Vec<String>)> = Vec::new();
        let mut outputs: Vec<(&str, Vec<String>)> = Vec::new();
        let own = events.iter().take_while(|event| event.seq <= through);
        for event in own.filter(|event| event.conversation == conversation) {
            open_turns(&mut open, event);
            let is_prompt = event.is("prompts_taken");
            let asks = event.turn.clone().filter(|_| is_prompt);
            let mut push = |words| {
                items.push(Item {
                    agent: agent.clone(),
                    seq: event.seq,
                    asks: asks.clone(),
                    words,
                })
            };
            match event.kind.as_str() {
                "prompt" => pending.push((event.text("prompt"), shown(&event.body["blocks"]))),
                "prompts_removed" => {
                    let removed = event.list("prompts");
                    pending.retain(|(known, _)| !removed.contains(known));
                }
                "prompts_taken" => {
                    for prompt in event.list("prompts") {
                        if let Some(at) = pending.iter().rposition(|(known, _)| *known == prompt) {
                            push(pending.remove(at).1);
                        }
                    }
                }
                "command_output" => {
                    let output = event.text("output").trim();
                    let output = Some(output.to_owned()).filter(|it| !it.is_empty());
                    outputs.push((event.text("command"), output.into_iter().collect()));
                }
                "commands_taken" => {
                    for command in event.list("commands") {
                        if let Some(at) = outputs.iter().position(|(known, _)| *known == command) {
                            push(outputs.remove(at).1);
                        }
                    }
                }
                "message" if event.text("status") != "superseded" => {
                    push(texts(&event.body["blocks"]));
                }
                "result" => push(texts(&event.body["blocks"])),
                "notice" => push(vec![event.text("text").trim().to_owned()]),
                "summary" => compact(&mut items, &agent, event, &open),
                _ => {}
            }
        }
    }
    items.into_iter().flat_map(|item| item.words).collect()
}

/// The turns whose prompts are not answered yet: the running one with those that it resumes, and one that stopped at a
/// limit, because it can be continued.
fn open_turns<'a>(open: &mut Vec<&'a str>, event: &'a Event) {
    let is_compaction = !matches!(event.body["compacts"], Value::Null | Value::Bool(false));
    match event.kind.as_str() {
        _ if is_compaction => {}
        "conversation_began" => open.clear(),
        "turn_started" => {
            let resumed = event.body["resumes"].as_str();
            if resumed.is_none_or(|resumed| !open.contains(&resumed)) {
                *open = resumed.into_iter().collect();
            }
            open.extend(event.turn.as_deref());
        }
        "turn_ended" if event.text("status") != "limited" => open.clear(),
        _ => {}
    }
}

/// A summary replaces everything up to and including `through`, except the prompts of open turns.
fn compact(items: &mut Vec<Item>, agent: &str, event: &Event, open: &[&str]) {
    let through = &event.body["through"];
    let (of, seq) = (through["agent"].as_str(), through["seq"].as_u64());
    let covered = items
        .iter()
        .rposition(|item| Some(item.agent.as_str()) == of && Some(item.seq) <= seq)
        .map_or(0, |last| last + 1);
    let summary = Item {
        agent: agent.to_owned(),
        seq: event.seq,
        asks: None,
        words: vec![event.text("text").trim().to_owned()],
    };
    let later = items.split_off(covered);
    items.retain(|item| {
        item.asks
            .as_deref()
            .is_some_and(|turn| open.contains(&turn))
    });
    items.insert(0, summary);
    items.extend(later);
}

type Segment<'a> = (String, &'a [Event], String, u64);

/// The parts of a window, oldest first: a conversation, and before it what it branched from.
fn lineage<'a>(journal: &'a Journal, conversation: &str, before: u64) -> Vec<Segment<'a>> {
    let mut segments: Vec<Segment<'a>> = Vec::new();
    let mut next = Some((
        journal.agent.clone(),
        conversation.to_owned(),
        before.saturating_sub(1),
    ));
    while let Some((agent, conversation, through)) = next {
        // A journal with a cycle is a violation, and must not hang the checker.
        if segments.len() > 1000 {
            break;
        }
        let events: &[Event] = match journal.others.get(&agent) {
            Some(events) => events,
            None => &journal.events,
        };
        let mut began = events.iter().filter(|event| event.is("conversation_began"));
        let began = began.find(|event| event.conversation == conversation);
        let from = began.map(|event| &event.body["from"]);
        let of = |key: &str| Some(from?[key].as_str()?.to_owned());
        let seq = from.and_then(|from| from["seq"].as_u64());
        segments.push((agent, events, conversation, through));
        next = match (of("agent"), of("conversation"), seq) {
            (Some(agent), Some(conversation), Some(seq)) => Some((agent, conversation, seq)),
            _ => None,
        };
    }
    segments.reverse();
    segments
}
