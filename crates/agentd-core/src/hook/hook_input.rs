//! The input of a handler: what happened, as JSON.

use super::event::HookEvent;
use super::patched;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The version of the input format.
const SCHEMA: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HookInput {
    pub event: HookEvent,
    /// The fields that are specific to the event.
    pub fields: Map<String, Value>,
}

/// The context in which it happened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setting {
    pub session_id: Option<String>,
    pub transcript_path: Option<String>,
    pub cwd: String,
    /// The agent's rules as a permission mode; see [`crate::permission::mode`].
    pub permission_mode: Option<String>,
    /// The agent's name and id.
    pub agent: Option<(String, String)>,
    pub generation: Option<u64>,
    pub turn: Option<String>,
    pub op: Option<String>,
    /// The conversation's title; present when it begins or continues.
    pub session_title: Option<String>,
    /// Present if the event has a field for them.
    pub background_tasks: Vec<Value>,
}

/// A call of a tool, as a handler is told it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldCall {
    /// The tool's name as the matcher spells it.
    pub name: String,
    /// One file of a patch, for handlers of tools that change one file.
    pub file: Option<Map<String, Value>>,
}

impl HookInput {
    /// Null fields are omitted.
    pub fn new(event: HookEvent, fields: Value) -> Self {
        let mut fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        fields.retain(|_, value| !value.is_null());
        Self { event, fields }
    }

    /// The value that a matcher is compared with.
    pub fn subject(&self) -> Option<&str> {
        self.fields.get(self.event.subject()?)?.as_str()
    }

    /// The source, if the event begins a conversation.
    pub fn source(&self) -> Option<&str> {
        self.fields.get("source")?.as_str()
    }

    /// The complete input of a handler.
    pub fn input(&self, setting: &Setting, call: Option<&ToldCall>) -> Value {
        let mut input = Map::new();
        let mut put = |key: &str, value: Value| {
            if !value.is_null() {
                input.insert(key.to_owned(), value);
            }
        };
        put("session_id", json!(setting.session_id));
        put("transcript_path", json!(setting.transcript_path));
        put("cwd", json!(setting.cwd));
        put("hook_event_name", json!(self.event.name()));
        put("permission_mode", json!(setting.permission_mode));
        let tells_tasks = matches!(
            self.event,
            HookEvent::SessionStart | HookEvent::Stop | HookEvent::SubagentStop
        );
        if self.event == HookEvent::SessionStart {
            put("session_title", json!(setting.session_title));
        }
        if tells_tasks {
            put("background_tasks", json!(setting.background_tasks));
        }
        let (name, id) = setting.agent.clone().unzip();
        let own = json!({
            "schema": SCHEMA,
            "agent": name,
            "agent_id": id,
            "generation": setting.generation,
            "turn": setting.turn,
            "op": setting.op,
        });
        put("agentd", own);
        if self.event == HookEvent::PreReset {
            put("op", json!(setting.op));
        }
        for (key, value) in &self.fields {
            put(key, value.clone());
        }
        if let Some(call) = call {
            put("tool_name", json!(call.name));
            if let Some(file) = &call.file {
                put("tool_input", json!(patched::at(&setting.cwd, file)));
            }
        }
        Value::Object(input)
    }
}
