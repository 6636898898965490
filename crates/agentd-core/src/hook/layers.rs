//! The layers of hooks files, and which of their handlers run.

use super::config::{Config, Handler, OnFailure};
use super::event::HookEvent;
use super::hook_input::HookInput;
use crate::digest::digest;
use serde::{Deserialize, Serialize};

/// Where a handler comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    User,
    Spec,
    Project,
}

/// A handler that was selected to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    pub layer: Layer,
    pub handler: Handler,
    /// An identifier that reveals nothing of the handler's contents.
    pub digest: String,
    /// The tool's name as the matcher spells it.
    pub tool_name: Option<String>,
}

impl Chosen {
    pub fn time_limit_ms(&self, event: HookEvent) -> u64 {
        self.handler.timeout_ms.unwrap_or(event.time_limit_ms())
    }

    pub const fn blocks_on_failure(&self) -> bool {
        matches!(self.handler.on_failure, OnFailure::Block)
    }
}

/// The handlers that match a hook input, each once, in the order of the layers.
pub fn chosen(layers: &[(Layer, Config)], hook_input: &HookInput) -> Vec<Chosen> {
    let mut chosen: Vec<Chosen> = Vec::new();
    for (layer, config) in layers {
        let groups = config.groups.iter();
        for group in groups.filter(|group| group.event == hook_input.event) {
            let subject = hook_input.subject();
            let name = match subject {
                Some(tool) if hook_input.event.is_about_a_tool() => group.matcher.name_of(tool),
                Some(subject) => group.matcher.matches(subject).then_some(subject),
                None => Some(""),
            };
            let Some(name) = name else { continue };
            for handler in &group.handlers {
                if chosen.iter().any(|known| known.handler.run == handler.run) {
                    continue;
                }
                chosen.push(Chosen {
                    layer: *layer,
                    digest: name_of(handler),
                    handler: handler.clone(),
                    tool_name: hook_input.event.is_about_a_tool().then(|| name.to_owned()),
                });
            }
        }
    }
    chosen
}

fn name_of(handler: &Handler) -> String {
    // A handler consists of strings and numbers, so it can always be serialized.
    let text = serde_json::to_string(&handler.run).unwrap_or_default();
    digest(&[text.as_bytes()]).chars().take(12).collect()
}
