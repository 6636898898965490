//! The parts of a request that determine the answer, independent of the format.

use super::{Format, Scenario, script};
use serde_json::Value;

/// A request as the fake model sees it.
pub struct View {
    /// The newest text of the user that is a script or matches the scenario, or else the newest text.
    pub prompt: String,
    /// Replies of the model since that prompt.
    pub replies: usize,
}

enum Spoken {
    User(String),
    Model,
    Other,
}

pub fn view(format: Format, body: &Value, scenario: &Scenario) -> View {
    let spoken = match format {
        Format::Anthropic | Format::OpenaiChat => list(body, "messages", |m| message(m, "content")),
        Format::OpenaiResponses => responses(body),
        Format::Gemini => list(body, "contents", |m| message(m, "parts")),
    };
    let is_known = |text: &str| script::is_script(text) || scenario.names(text);
    let newest = |wanted: &dyn Fn(&str) -> bool| {
        spoken
            .iter()
            .rposition(|spoken| matches!(spoken, Spoken::User(text) if wanted(text)))
    };
    // Results come in the user's role too, and have no words of the user's.
    let at = newest(&is_known).or_else(|| newest(&|text| !text.trim().is_empty()));
    let prompt = match at.and_then(|at| spoken.get(at)) {
        Some(Spoken::User(text)) => text.clone(),
        _ => String::new(),
    };
    let since = spoken.iter().skip(at.map_or(0, |at| at + 1));
    View {
        prompt,
        replies: since
            .filter(|spoken| matches!(spoken, Spoken::Model))
            .count(),
    }
}

fn list(body: &Value, key: &str, each: impl Fn(&Value) -> Spoken) -> Vec<Spoken> {
    let messages = body.get(key).and_then(Value::as_array);
    messages.into_iter().flatten().map(each).collect()
}

fn message(message: &Value, content: &str) -> Spoken {
    match message["role"].as_str() {
        Some("assistant" | "model") => Spoken::Model,
        Some("user") => Spoken::User(words(&message[content])),
        _ => Spoken::Other,
    }
}

/// In this format a reply is a sequence of items, not one message.
fn responses(body: &Value) -> Vec<Spoken> {
    let mut spoken = Vec::new();
    let mut in_reply = false;
    for item in body["input"].as_array().into_iter().flatten() {
        let by_model = item["role"] == "assistant"
            || matches!(
                item["type"].as_str(),
                Some("function_call" | "reasoning" | "web_search_call")
            );
        if by_model {
            if !in_reply {
                spoken.push(Spoken::Model);
            }
        } else if item["role"] == "user" {
            spoken.push(Spoken::User(words(&item["content"])));
        }
        in_reply = by_model;
    }
    spoken
}

/// What agentd adds to the user's text.
const ADDED: [&str; 3] = ["<notice>", "<attached_file ", "[attached: "];

/// The user's text in a message, without results, notices and attached files.
fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            let texts = texts.filter(|text| !ADDED.iter().any(|added| text.starts_with(added)));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}
