//! Where to cut the window when it gets too large for the model. Calls stay together with their results, and nothing
//! that the model has not finished answering is covered ([`Window::coverable`]).

use crate::event::Position;
use crate::id::CallId;
use crate::message::Block;
use crate::request::entry_tokens;
use crate::window::{Entry, Item, Window};

/// Whether a request of this size is close enough to the model's window to compact.
pub fn is_due(estimated_tokens: u64, model_window: u64, compact_at: f64) -> bool {
    estimated_tokens as f64 >= model_window as f64 * compact_at
}

/// The approximate size of the window in tokens.
pub fn size(window: &Window) -> u64 {
    window
        .items()
        .iter()
        .map(|item| entry_tokens(&item.entry))
        .sum()
}

/// The position up to which a summary may replace the window, so that at most about `keep_tokens` stay unchanged.
/// `None` if a summary would save nothing.
pub fn cut(window: &Window, keep_tokens: u64) -> Option<Position> {
    let (items, coverable) = (window.items(), window.coverable());
    let mut open: Vec<&CallId> = Vec::new();
    // For each item: whether the summary may end right after it.
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
    // Walk back from the end to find the earliest cut that keeps few enough tokens; if there is none, use the last
    // cut.
    let mut kept = 0;
    let mut covered = None;
    for (index, item) in items.iter().enumerate().rev() {
        if may_cut.get(index) == Some(&true) && (kept <= keep_tokens || covered.is_none()) {
            covered = Some(index);
        }
        kept += entry_tokens(&item.entry);
        if kept > keep_tokens && covered.is_some() {
            break;
        }
    }
    let covered = items.get(..=covered?)?;
    let mut replaced = covered.iter().filter(|item| is_replaced(window, item));
    let gains = replaced.any(|item| !matches!(item.entry, Entry::Summary(_)));
    covered.last().filter(|_| gains).map(|item| item.placed)
}

/// About how many tokens a summary up to `through` would replace.
pub fn replaced_tokens(window: &Window, through: Position) -> u64 {
    let covered = window.covered_items(through).iter();
    let replaced = covered.filter(|item| is_replaced(window, item));
    replaced.map(|item| entry_tokens(&item.entry)).sum()
}

/// Whether the summary replaces a covered item. A prompt that is still being worked on stays after the summary.
fn is_replaced(window: &Window, item: &Item) -> bool {
    !window.is_open_prompt(item)
}

#[cfg(test)]
mod tests;
