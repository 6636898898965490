//! The second fold: what the model sees of one conversation's lineage.
//!
//! It is fed with the events of the lineage's segments in order ([`crate::state::Tree::lineage`]). Like the first
//! fold, it is total and never looks back.

mod commands;
mod environment;
mod instructions;
mod mcp;
mod plan;
mod seen_files;
mod skeleton;
mod unanswered;

pub use seen_files::SeenFiles;
pub use skeleton::{MissingEvent, Skeleton};

use crate::event::{
    Body, CallRevised, CommandOutput, Context, Event, InstructionsChanged, McpListed,
    MessageStatus, Position, Tool,
};
use crate::id::{CallId, PromptId, TurnId};
use crate::message::{Arguments, Block, ToolCall, ToolResult};
use plan::KnownPlan;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One item of the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// The event that placed it there.
    pub placed: Position,
    /// The event that contains its text; for a prompt, an earlier event.
    pub source: Position,
    pub turn: Option<TurnId>,
    /// The items before it have changed since it was written, or another model is used now. Some providers accept
    /// thinking only after the same messages that led to it.
    #[serde(default)]
    pub is_moved: bool,
    pub entry: Entry,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    Prompt(Vec<Block>),
    Reply {
        status: MessageStatus,
        blocks: Vec<Block>,
    },
    Result(ToolResult),
    Notice(String),
    Summary(String),
}

/// A value with the event it came from, so that a skeleton can name that event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Located<T> {
    source: Position,
    value: T,
}

impl<T> Located<T> {
    const fn at(event: &Event, value: T) -> Self {
        let source = event.position();
        Self { source, value }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    items: Vec<Item>,
    /// Prompts that were accepted and are not in the window yet.
    pending: BTreeMap<PromptId, Located<Vec<Block>>>,
    context: Option<Located<Context>>,
    /// The newest tools that the model had, for a history with calls when there are no tools any more.
    tools: Option<Located<Vec<Tool>>>,
    /// The user's instruction for the next summary.
    #[serde(default)]
    instruction: Option<Located<String>>,
    /// Changes of instruction files that the model was told, by path.
    #[serde(default)]
    told: BTreeMap<String, Located<InstructionsChanged>>,
    /// The user's commands that have ended and that the model does not see yet.
    #[serde(default)]
    commands: Vec<Located<CommandOutput>>,
    awaits: bool,
    /// Calls of the newest reply that have no result yet.
    open: Vec<CallId>,
    /// The open calls that run with other arguments than the model gave.
    revised: BTreeMap<CallId, Located<ToolCall>>,
    /// The running turn and the turns that it resumes. A summary does not replace their prompts. A limited turn stays
    /// here, because it can be continued.
    #[serde(default)]
    open_turns: Vec<TurnId>,
    #[serde(default)]
    seen: SeenFiles,
    /// What the model was told last about its tools' environment.
    #[serde(default)]
    environment: Option<Located<String>>,
    #[serde(default)]
    plan: Option<KnownPlan>,
    /// What MCP servers offer, by server.
    #[serde(default)]
    mcp_lists: BTreeMap<String, Located<McpListed>>,
    /// Servers that cannot be used, since their newest list.
    #[serde(default)]
    mcp_problems: BTreeMap<String, Located<McpListed>>,
}

impl Window {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Whether a prompt, a result or a notice has arrived since the model's last reply.
    pub const fn awaits_answer(&self) -> bool {
        self.awaits
    }

    /// Whether the last item is an incomplete reply.
    pub fn is_cut_off(&self) -> bool {
        let last = self.items.last().map(|item| &item.entry);
        matches!(last, Some(Entry::Reply { status, .. }) if *status == MessageStatus::Interrupted)
    }

    pub fn context(&self) -> Option<&Context> {
        self.context.as_ref().map(|context| &context.value)
    }

    /// The newest tool list that was not empty.
    pub fn last_tools(&self) -> &[Tool] {
        self.tools.as_ref().map_or(&[], |tools| &tools.value)
    }

    /// The calls of the newest reply that have no result yet, in order, with the arguments that they run with.
    pub fn open_calls(&self) -> impl Iterator<Item = &ToolCall> {
        let open = self.said_calls();
        open.map(|call| match self.revised.get(&call.id) {
            Some(revised) => &revised.value,
            None => call,
        })
    }

    /// The same calls with the model's own arguments.
    fn said_calls(&self) -> impl Iterator<Item = &ToolCall> {
        let reply = self.newest_reply().into_iter().flatten();
        let calls = reply.filter_map(Block::as_call);
        calls.filter(|call| self.open.contains(&call.id))
    }

    fn revise(&mut self, source: Position, body: &CallRevised) {
        let said = self.said_calls().find(|call| call.id == body.call);
        let Some(mut call) = said.cloned() else {
            return;
        };
        call.arguments = Arguments::Object(body.arguments.clone());
        let located = Located {
            source,
            value: call,
        };
        self.revised.insert(body.call.clone(), located);
    }

    pub fn has_open_calls(&self) -> bool {
        !self.open.is_empty()
    }

    /// The text of the newest reply.
    pub fn last_text(&self) -> String {
        let texts = self.newest_reply().into_iter().flatten();
        let texts = texts.filter_map(|block| match block {
            Block::Text { text } | Block::Annotated { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Every call id in the window.
    pub fn call_ids(&self) -> impl Iterator<Item = &CallId> {
        self.items
            .iter()
            .filter_map(|item| match &item.entry {
                Entry::Reply { blocks, .. } => Some(blocks),
                _ => None,
            })
            .flatten()
            .filter_map(Block::as_call)
            .map(|call| &call.id)
    }

    /// The files whose content the model knows. A summary does not change them, and a branch shares them.
    pub const fn seen_files(&self) -> &SeenFiles {
        &self.seen
    }

    /// The text of a prompt that was accepted and not taken yet.
    pub fn pending(&self, prompt: PromptId) -> Option<&[Block]> {
        let pending = self.pending.get(&prompt)?;
        Some(&pending.value)
    }

    /// The prompts that were accepted and not taken yet.
    pub fn all_pending(&self) -> impl Iterator<Item = &[Block]> {
        self.pending.values().map(|pending| &pending.value[..])
    }

    /// The instruction for the compaction that was requested last.
    pub fn instruction(&self) -> Option<&str> {
        let instruction = self.instruction.as_ref()?;
        Some(&instruction.value)
    }

    fn newest_reply(&self) -> Option<&[Block]> {
        self.items.iter().rev().find_map(|item| match &item.entry {
            Entry::Reply { blocks, .. } => Some(blocks.as_slice()),
            _ => None,
        })
    }

    /// Folds one more event of the lineage.
    pub fn apply(&mut self, event: &Event) {
        match &event.body {
            // A branch shares what its parent's model saw, but not its parent's queue.
            Body::ConversationBegan(_) => {
                self.pending.clear();
                self.instruction = None;
                self.open_turns.clear();
            }
            Body::TurnStarted(body) => self.turn_started(event.turn, body),
            Body::TurnEnded(body) => self.turn_ended(body),
            Body::Prompt(body) => {
                let located = Located::at(event, body.blocks.clone());
                self.pending.insert(body.prompt, located);
            }
            Body::PromptsTaken(body) => {
                for prompt in &body.prompts {
                    if let Some(words) = self.pending.remove(prompt) {
                        self.push(event, words.source, Entry::Prompt(words.value));
                        self.awaits = true;
                    }
                }
            }
            Body::PromptBlocked(body) => {
                self.pending.remove(&body.prompt);
            }
            Body::PromptsRemoved(body) => {
                self.pending
                    .retain(|prompt, _| !body.prompts.contains(prompt));
            }
            Body::MessageAdded(body) => {
                if body.status == MessageStatus::Superseded {
                    return;
                }
                self.awaits = false;
                let entry = Entry::Reply {
                    status: body.status,
                    blocks: body.blocks.clone(),
                };
                self.push(event, event.position(), entry);
            }
            Body::ToolEnded(body) => self.seen.extend(&body.seen),
            Body::ResultAdded(body) => {
                self.awaits = true;
                let entry = Entry::Result(ToolResult {
                    call: body.call.clone(),
                    outcome: body.outcome,
                    blocks: body.blocks.clone(),
                });
                self.push(event, event.position(), entry);
            }
            Body::Notice(body) => {
                self.awaits = true;
                self.push(event, event.position(), Entry::Notice(body.text.clone()));
                self.told_environment(event.position(), body);
                self.reminded_of_plan(event.position(), body);
            }
            Body::InstructionsChanged(body) => {
                self.awaits = true;
                self.push(event, event.position(), Entry::Notice(body.text.clone()));
                let located = Located::at(event, body.clone());
                self.told.insert(body.path.clone(), located);
            }
            Body::McpListed(body) => self.mcp_listed(event, body),
            Body::PlanSet(body) => self.set_plan(event, body),
            Body::CommandOutput(body) => self.command_ended(event.position(), body),
            Body::CommandsTaken(body) => self.take_commands(event, &body.commands),
            Body::CallRevised(body) => self.revise(event.position(), body),
            Body::FilesRestored(body) => self.seen.forget(&body.files),
            Body::CompactionAsked(_) => self.instruction = None,
            Body::Instruction(body) => {
                self.instruction = Some(Located::at(event, body.text.clone()));
            }
            Body::Summary(body) => self.compact(event, body.through, &body.text),
            Body::Context(body) => {
                if self.context().is_some_and(|known| known.differs(body)) {
                    self.items.iter_mut().for_each(|item| item.is_moved = true);
                }
                if !body.tools.is_empty() {
                    self.tools = Some(Located::at(event, body.tools.clone()));
                }
                self.context = Some(Located::at(event, body.clone()));
            }
            _ => {}
        }
    }

    fn push(&mut self, event: &Event, source: Position, entry: Entry) {
        match &entry {
            Entry::Reply { blocks, .. } => {
                self.open = blocks
                    .iter()
                    .filter_map(Block::as_call)
                    .map(|call| call.id.clone())
                    .collect();
                self.revised.clear();
            }
            Entry::Result(result) => {
                if let Some(index) = self.open.iter().position(|id| *id == result.call) {
                    self.open.remove(index);
                }
                self.revised.remove(&result.call);
            }
            _ => {}
        }
        self.items.push(Item {
            placed: event.position(),
            source,
            turn: event.turn,
            is_moved: false,
            entry,
        });
    }

    /// The part of the window that a summary up to `through` replaces.
    pub fn up_to(&self, through: Position) -> Self {
        Self {
            items: self.covered_items(through).to_vec(),
            context: self.context.clone(),
            tools: self.tools.clone(),
            ..Self::default()
        }
    }

    pub fn covered_items(&self, through: Position) -> &[Item] {
        self.items.get(..self.covered(through)).unwrap_or_default()
    }

    /// How many items are at or before `through`.
    fn covered(&self, through: Position) -> usize {
        self.items
            .iter()
            .rposition(|item| item.placed.agent == through.agent && item.placed.seq <= through.seq)
            .map_or(0, |last| last + 1)
    }

    /// The summary replaces everything up to `through` that the model has answered. What it has not finished
    /// answering stays unchanged, whatever `through` is.
    fn compact(&mut self, event: &Event, through: Position, text: &str) {
        let covered = self.covered(through).min(self.coverable());
        let kept = self.items.split_off(covered);
        let mut covered = std::mem::take(&mut self.items);
        covered.retain(|item| self.is_open_prompt(item));
        self.items.push(Item {
            placed: event.position(),
            source: event.position(),
            turn: event.turn,
            is_moved: false,
            entry: Entry::Summary(text.to_owned()),
        });
        self.items.extend(covered);
        self.items.extend(kept);
        self.items.iter_mut().for_each(|item| item.is_moved = true);
        let still_there: Vec<CallId> = self.call_ids().cloned().collect();
        self.open.retain(|id| still_there.contains(id));
        self.revised.retain(|id, _| still_there.contains(id));
    }
}

#[cfg(test)]
mod tests;
