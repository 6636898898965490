//! The parts of the next request and their sizes, for users who want to know what fills the context.

use super::{estimate_bytes, tokens};
use crate::event::Tool;
use crate::window::{Entry, Window};
use serde::{Deserialize, Serialize};

/// A kind of item in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    System,
    Tools,
    Summaries,
    Prompts,
    Replies,
    Results,
    Notices,
}

const KINDS: [PartKind; 7] = [
    PartKind::System,
    PartKind::Tools,
    PartKind::Summaries,
    PartKind::Prompts,
    PartKind::Replies,
    PartKind::Results,
    PartKind::Notices,
];

/// How many there are of a kind, and about how many tokens they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub kind: PartKind,
    pub count: u64,
    pub tokens: u64,
}

/// All kinds, in the order of a request.
pub fn parts(window: &Window) -> Vec<Part> {
    let part = |kind| {
        let (count, bytes) = measure(window, kind);
        Part {
            kind,
            count,
            tokens: tokens(bytes),
        }
    };
    KINDS.into_iter().map(part).collect()
}

fn measure(window: &Window, kind: PartKind) -> (u64, usize) {
    let context = window.context();
    match kind {
        PartKind::System => {
            let bytes = context.map_or(0, |context| context.system.len());
            (u64::from(bytes > 0), bytes)
        }
        PartKind::Tools => {
            let tools = context.map_or(&[][..], |context| &context.tools);
            (tools.len() as u64, tools.iter().map(tool_bytes).sum())
        }
        kind => {
            let items = window.items().iter();
            let sizes = items.filter(|item| kind_of(&item.entry) == kind);
            let sizes = sizes.map(|item| entry_bytes(&item.entry));
            sizes.fold((0, 0), |(count, bytes), size| (count + 1, bytes + size))
        }
    }
}

const fn kind_of(entry: &Entry) -> PartKind {
    match entry {
        Entry::Prompt(_) => PartKind::Prompts,
        Entry::Reply { .. } => PartKind::Replies,
        Entry::Result(_) => PartKind::Results,
        Entry::Notice(_) => PartKind::Notices,
        Entry::Summary(_) => PartKind::Summaries,
    }
}

/// The approximate size of an item in tokens.
pub(crate) fn entry_tokens(entry: &Entry) -> u64 {
    tokens(entry_bytes(entry))
}

fn entry_bytes(entry: &Entry) -> usize {
    match entry {
        Entry::Prompt(blocks) | Entry::Reply { blocks, .. } => {
            blocks.iter().map(estimate_bytes).sum()
        }
        Entry::Result(result) => result.blocks.iter().map(estimate_bytes).sum(),
        Entry::Notice(text) | Entry::Summary(text) => text.len(),
    }
}

/// The size of a tool's declaration.
pub fn tool_bytes(tool: &Tool) -> usize {
    tool.name.len() + tool.description.len() + tool.parameters.to_string().len() + 16
}
