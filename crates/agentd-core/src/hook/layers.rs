//! The layers of hooks files, and which of their handlers run.

use super::condition;
use super::config::{Config, Handler, OnFailure};
use super::event::HookEvent;
use super::hook_input::{HookInput, ToldCall};
use super::matcher::Matcher;
use super::patched;
use crate::digest::digest;
use crate::patch;
use serde::{Deserialize, Serialize};
use std::path::Path;

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
    /// The call, if the event is about one.
    pub call: Option<ToldCall>,
}

impl Chosen {
    pub fn time_limit_ms(&self, event: HookEvent) -> u64 {
        self.handler.timeout_ms.unwrap_or(event.time_limit_ms())
    }

    pub const fn blocks_on_failure(&self) -> bool {
        matches!(self.handler.on_failure, OnFailure::Block)
    }
}

/// The handlers that match a hook input in this directory, each once, in the order of the layers. A handler that matches a patch by the name
/// of a tool that changes one file runs once for each file of the patch.
pub fn chosen(layers: &[(Layer, Config)], hook_input: &HookInput, cwd: &Path) -> Vec<Chosen> {
    let mut chosen: Vec<Chosen> = Vec::new();
    for (layer, config) in layers {
        let groups = config.groups.iter();
        for group in groups.filter(|group| group.event == hook_input.event) {
            let Some(calls) = told(&group.matcher, hook_input) else {
                continue;
            };
            for handler in &group.handlers {
                let is_meant = |call: &&Option<ToldCall>| {
                    let condition = handler.condition.as_ref();
                    condition
                        .is_none_or(|rule| condition::holds(rule, hook_input, call.as_ref(), cwd))
                };
                for call in calls.iter().filter(is_meant) {
                    let is_same = |known: &Chosen| {
                        let of_call = |call: &Option<ToldCall>| call.as_ref()?.file.clone();
                        known.handler.run == handler.run && of_call(&known.call) == of_call(call)
                    };
                    if !chosen.iter().any(is_same) {
                        chosen.push(Chosen {
                            layer: *layer,
                            digest: handler.digest(),
                            handler: handler.clone(),
                            call: call.clone(),
                        });
                    }
                }
            }
        }
    }
    chosen
}

/// The calls that the handlers of a group are told about, one after the other; `None` for an event that is not about a
/// call. Nothing if the group does not match.
fn told(matcher: &Matcher, hook_input: &HookInput) -> Option<Vec<Option<ToldCall>>> {
    let Some(subject) = hook_input.subject() else {
        return Some(vec![None]);
    };
    if !hook_input.event.is_about_a_tool() {
        return matcher.matches(subject).then(|| vec![None]);
    }
    let name = matcher.name_of(subject)?;
    let told = |name: &str, file| {
        let name = name.to_owned();
        Some(ToldCall { name, file })
    };
    if subject != patch::TOOL || name == patch::TOOL {
        return Some(vec![told(name, None)]);
    }
    let arguments = hook_input.fields.get("tool_input");
    let input = arguments.and_then(|it| it.get("input")?.as_str());
    let Some(files) = input.and_then(patched::files) else {
        // Not a patch: the call will fail.
        return Some(vec![told(subject, None)]);
    };
    let calls = files.into_iter().map(|(change, file)| {
        let mut usual = patched::usual_names(change).into_iter();
        let usual = usual.find(|name| matcher.matches(name));
        told(usual.unwrap_or(name), Some(file))
    });
    Some(calls.collect())
}

impl Handler {
    /// An identifier of what it runs, which reveals nothing of its contents.
    pub fn digest(&self) -> String {
        // A handler consists of strings and numbers, so it can always be serialized.
        let text = serde_json::to_string(&self.run).unwrap_or_default();
        digest(&[text.as_bytes()]).chars().take(12).collect()
    }
}
