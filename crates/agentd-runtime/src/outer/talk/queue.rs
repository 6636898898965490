//! What a child has said and the driver has not taken yet. Its size is known, so that the child can be made to wait.

use agentd_core::outer::{ChildEvent, size};
use std::collections::VecDeque;

/// How much waits before the child is not read any more.
const MOST_WAITING: usize = 1024 * 1024;
/// The longest text that is handled at once. A flood of smaller ones costs no more than their text.
pub const PIECE: usize = 64 * 1024;

#[derive(Default)]
pub struct Queue {
    said: VecDeque<ChildEvent>,
    /// About how much memory it uses.
    bytes: usize,
}

impl Queue {
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The child must wait, and what is there must be handled.
    pub const fn is_full(&self) -> bool {
        self.bytes >= MOST_WAITING
    }

    pub fn iter(&self) -> impl Iterator<Item = &ChildEvent> {
        self.said.iter()
    }

    pub fn push(&mut self, said: ChildEvent) {
        if let Some(last) = self.said.back_mut() {
            match (last, &said) {
                (ChildEvent::Text(last), ChildEvent::Text(more))
                | (ChildEvent::Thinking(last), ChildEvent::Thinking(more))
                    if last.len() + more.len() <= PIECE =>
                {
                    last.push_str(more);
                    self.bytes += more.len();
                    return;
                }
                (last, said) if is_newer(last, said) => drop(self.said.pop_back().map(|old| {
                    self.bytes = self.bytes.saturating_sub(size(&old));
                })),
                _ => {}
            }
        }
        self.bytes += size(&said);
        self.said.push_back(said);
    }

    pub fn pop(&mut self) -> Option<ChildEvent> {
        let said = self.said.pop_front()?;
        self.bytes = self.bytes.saturating_sub(size(&said));
        Some(said)
    }

    /// Takes the first event for which this is true.
    pub fn take(&mut self, is_it: impl Fn(&ChildEvent) -> bool) -> Option<ChildEvent> {
        let at = self.said.iter().position(is_it)?;
        let said = self.said.remove(at)?;
        self.bytes = self.bytes.saturating_sub(size(&said));
        Some(said)
    }

    pub fn retain(&mut self, is_kept: impl FnMut(&ChildEvent) -> bool) {
        self.said.retain(is_kept);
        self.bytes = self.said.iter().map(size).sum();
    }
}

/// Whether the second event says everything that the first one says.
fn is_newer(first: &ChildEvent, second: &ChildEvent) -> bool {
    match (first, second) {
        (ChildEvent::CallBegan { id: first }, ChildEvent::CallBegan { id: second })
        | (ChildEvent::CallChanged { id: first, .. }, ChildEvent::CallChanged { id: second, .. }) => {
            first == second
        }
        _ => false,
    }
}
