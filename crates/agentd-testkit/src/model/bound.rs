//! From Claude 5.5 on, thinking is bound to its model and to the messages before it. The fake model computes its
//! signatures from both, and refuses a signature at any other position.

use crate::oracle::anthropic::binds_thinking;
use crate::oracle::{Verdict, Violation};
use serde_json::Value;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

const UNBOUND: &str = "c2lnbmF0dXJl";

/// The signature of thinking in the answer to this request.
pub fn signature(body: &Value) -> String {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    match body["model"].as_str() {
        Some(model) if binds_thinking(model) => {
            let mut before = Before::new(model);
            messages.iter().for_each(|message| before.add(message));
            before.signature()
        }
        _ => UNBOUND.to_owned(),
    }
}

pub fn check(body: &Value) -> Verdict {
    let model = body["model"].as_str().unwrap_or_default();
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    if !binds_thinking(model) {
        return Ok(());
    }
    let mut found = Vec::new();
    let mut before = Before::new(model);
    for (index, message) in messages.iter().enumerate() {
        let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        let expected = before.signature();
        before.add(message);
        for (place, block) in blocks.iter().enumerate() {
            if block["type"] == "thinking" && block["signature"] != expected.as_str() {
                found.push(Violation {
                    rule: "thinking_from_elsewhere",
                    path: format!("messages[{index}].content[{place}]"),
                    detail: "the messages before it, or the model, are not those that led to it"
                        .to_owned(),
                });
            }
        }
    }
    match found.is_empty() {
        true => Ok(()),
        false => Err(found),
    }
}

/// A model and the messages before a reply.
struct Before(DefaultHasher);

impl Before {
    fn new(model: &str) -> Self {
        let mut hash = DefaultHasher::new();
        model.hash(&mut hash);
        Self(hash)
    }

    fn add(&mut self, message: &Value) {
        let mut message = message.clone();
        strip(&mut message);
        message.to_string().hash(&mut self.0);
    }

    fn signature(&self) -> String {
        format!("{:016x}", self.0.finish())
    }
}

/// Removes cache markers, which may move.
fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            // `remove` would change the order of the other keys.
            map.retain(|key, _| key != "cache_control");
            map.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
