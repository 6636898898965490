//! Where to cut when the window gets too small: calls and their results stay together, and what the
//! model has not finished answering is never covered ([`Window::coverable`]).

use crate::event::Position;
use crate::id::CallId;
use crate::message::Block;
use crate::request::estimate_bytes;
use crate::window::{Entry, Item, Window};

/// Whether a request of this size is near enough to the model's window.
pub fn is_due(estimated_tokens: u64, model_window: u64, compact_at: f64) -> bool {
    estimated_tokens as f64 >= model_window as f64 * compact_at
}

/// About how many tokens the window's words are.
pub fn size(window: &Window) -> u64 {
    window.items().iter().map(|item| tokens(&item.entry)).sum()
}

/// The place up to which a summary may stand for the window, so that at most about `keep_tokens`
/// stay as they are. None where nothing would be gained.
pub fn cut(window: &Window, keep_tokens: u64) -> Option<Position> {
    let (items, coverable) = (window.items(), window.coverable());
    let mut open: Vec<&CallId> = Vec::new();
    // For each item: may the summary end right behind it?
    let mut may_cut = Vec::with_capacity(items.len());
    for item in items {
        match &item.entry {
            Entry::Reply { blocks, .. } => {
                open.extend(
                    blocks
                        .iter()
                        .filter_map(Block::as_call)
                        .map(|call| &call.id),
                );
            }
            Entry::Result(result) => open.retain(|id| **id != result.call),
            _ => {}
        }
        may_cut.push(open.is_empty() && may_cut.len() < coverable);
    }
    // Walk back from the end for the earliest cut that leaves little enough; failing that, the last
    // one there is.
    let mut kept = 0;
    let mut covered = None;
    for (index, item) in items.iter().enumerate().rev() {
        if may_cut.get(index) == Some(&true) && (kept <= keep_tokens || covered.is_none()) {
            covered = Some(index);
        }
        kept += tokens(&item.entry);
        if kept > keep_tokens && covered.is_some() {
            break;
        }
    }
    let covered = items.get(..=covered?)?;
    let mut replaced = covered.iter().filter(|item| is_replaced(window, item));
    let gains = replaced.any(|item| !matches!(item.entry, Entry::Summary(_)));
    covered.last().filter(|_| gains).map(|item| item.placed)
}

/// About how many tokens a summary up to `through` would take the place of.
pub fn replaced_tokens(window: &Window, through: Position) -> u64 {
    let covered = window.covered_items(through).iter();
    let replaced = covered.filter(|item| is_replaced(window, item));
    replaced.map(|item| tokens(&item.entry)).sum()
}

/// Whether a covered item goes away. A prompt that is still worked on stays behind the summary.
fn is_replaced(window: &Window, item: &Item) -> bool {
    !window.is_open_prompt(item)
}

fn tokens(entry: &Entry) -> u64 {
    let bytes = match entry {
        Entry::Prompt(blocks) | Entry::Reply { blocks, .. } => {
            blocks.iter().map(estimate_bytes).sum()
        }
        Entry::Result(result) => result.blocks.iter().map(estimate_bytes).sum(),
        Entry::Notice(text) | Entry::Summary(text) => text.len(),
    };
    bytes.div_ceil(3) as u64
}

#[cfg(test)]
mod tests;
