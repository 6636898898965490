//! A reply in each provider's format: the events of a stream, or the single body of a plain answer.

mod anthropic;
mod gemini;
mod openai_chat;
mod openai_responses;

use super::Format;
use super::script::Item;
use serde_json::Value;
use std::time::Duration;

/// One server-sent event.
#[derive(Clone, Debug)]
pub struct Event {
    pub name: Option<&'static str>,
    pub data: String,
    /// How long to wait before it.
    pub pause: Duration,
}

impl Event {
    fn named(name: &'static str, data: &Value) -> Self {
        Self {
            name: Some(name),
            data: data.to_string(),
            pause: Duration::ZERO,
        }
    }

    fn plain(data: &Value) -> Self {
        Self {
            name: None,
            data: data.to_string(),
            pause: Duration::ZERO,
        }
    }

    fn after(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Its text in the body of the response.
    pub fn text(&self) -> String {
        let name = self.name.map(|name| format!("event: {name}\n"));
        format!("{}data: {}\n\n", name.unwrap_or_default(), self.data)
    }
}

/// Where the search of the fake model finds everything.
const SOURCE: &str = "https://found.example/page";

/// What a reply contains besides its items.
pub struct Reply<'a> {
    pub model: &'a str,
    pub items: &'a [Item],
    /// Different for each reply of a server, for ids.
    pub number: u64,
    pub input_tokens: u64,
    /// The signature of its thinking, if the format has one.
    pub signature: String,
}

impl Reply<'_> {
    fn calls(&self) -> bool {
        let is_call = |item: &Item| matches!(item, Item::Call { .. });
        self.items.iter().any(is_call)
    }

    /// About a token for every four characters.
    fn output_tokens(&self) -> u64 {
        let size = |item: &Item| match item {
            Item::Text { text, .. } | Item::Thinking(text) | Item::Cited(text) => {
                text.len() as u64 / 4 + 1
            }
            Item::Call { arguments, .. } => arguments.to_string().len() as u64 / 4 + 1,
            Item::Native | Item::Search(_) | Item::Found | Item::Pause => 1,
        };
        self.items.iter().map(size).sum()
    }
}

pub fn stream(format: Format, reply: &Reply<'_>) -> Vec<Event> {
    match format {
        Format::Anthropic => anthropic::stream(reply),
        Format::OpenaiChat => openai_chat::stream(reply),
        Format::OpenaiResponses => openai_responses::stream(reply),
        Format::Gemini => gemini::stream(reply),
    }
}

/// The same without streaming.
pub fn whole(format: Format, reply: &Reply<'_>) -> Value {
    match format {
        Format::Anthropic => anthropic::whole(reply),
        Format::OpenaiChat => openai_chat::whole(reply),
        Format::OpenaiResponses => openai_responses::whole(reply),
        Format::Gemini => gemini::whole(reply),
    }
}

/// An error in the provider's format.
pub fn error(format: Format, status: u16, kind: &str, message: &str) -> Value {
    use serde_json::json;
    match format {
        Format::Anthropic => json!({
            "type": "error",
            "error": {"type": kind, "message": message},
            "request_id": "req_fake",
        }),
        Format::OpenaiChat | Format::OpenaiResponses => {
            let code = (kind == "context_length_exceeded").then_some(kind);
            json!({"error": {"message": message, "type": "invalid_request_error",
                             "param": null, "code": code}})
        }
        Format::Gemini => {
            let name = match status {
                400 => "INVALID_ARGUMENT",
                401 => "UNAUTHENTICATED",
                429 => "RESOURCE_EXHAUSTED",
                _ => "UNAVAILABLE",
            };
            json!({"error": {"code": status, "message": message, "status": name}})
        }
    }
}
