//! Keeps the window of an imported conversation small enough for a model and for memory: when it gets too large, its
//! beginning is replaced by a sentence. The history keeps everything.

use crate::event::ResultAdded;
use crate::id::Seq;
use crate::message::{Arguments, Block};
use std::collections::VecDeque;

/// How much of the end stays when the beginning is cut, in bytes of text.
const KEEP: u64 = 400 * 1024;
/// When the beginning is cut.
const MOST: u64 = 2 * KEEP;
/// The positions at which it may be cut are at least this far apart.
const STEP: u64 = KEEP / 64;
/// The bytes of an image that count as one byte of text.
const IMAGE: u64 = 32;

/// The size of the window so far, and where it may be cut.
#[derive(Default)]
pub(super) struct Bound {
    /// The size of everything since the beginning.
    total: u64,
    /// The size of what the newest summary replaced.
    covered: u64,
    marks: VecDeque<(Seq, u64)>,
}

impl Bound {
    pub(super) fn add(&mut self, blocks: &[Block]) {
        self.total += blocks.iter().map(weight).sum::<u64>();
    }

    pub(super) fn add_result(&mut self, result: &ResultAdded) {
        self.add(&result.blocks);
    }

    /// Nothing is open after this event.
    pub(super) fn mark(&mut self, seq: Seq) {
        let last = self.marks.back().map_or(self.covered, |(_, size)| *size);
        if self.total >= last + STEP {
            self.marks.push_back((seq, self.total));
        }
    }

    /// The event through which a summary must replace the window now.
    pub(super) fn cut(&mut self) -> Option<Seq> {
        if self.total - self.covered <= MOST {
            return None;
        }
        let mut through = None;
        while let Some((seq, size)) = self.marks.front().copied() {
            if size + KEEP > self.total && through.is_some() {
                break;
            }
            self.marks.pop_front();
            self.covered = size;
            through = Some(seq);
        }
        through
    }

    /// A summary replaces everything so far.
    pub(super) fn summarised(&mut self) {
        self.covered = self.total;
        self.marks.clear();
    }
}

fn weight(block: &Block) -> u64 {
    let bytes = match block {
        Block::Text { text } | Block::Thinking { text, .. } => text.len(),
        Block::ToolCall(call) => match &call.arguments {
            Arguments::Object(map) => serde_json::to_string(map).map_or(0, |text| text.len()),
            Arguments::Malformed(raw) => raw.len(),
        },
        Block::Image { data, .. } => return 1 + data.len() as u64 / IMAGE,
        _ => 0,
    };
    1 + bytes as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_stays_and_the_size_has_a_limit() {
        let mut bound = Bound::default();
        let mut cuts = Vec::new();
        for n in 1..=4000 {
            bound.add(&[Block::text("x".repeat(1000))]);
            bound.mark(Seq(n));
            if let Some(through) = bound.cut() {
                assert!(through < Seq(n), "the end was cut too");
                cuts.push(through);
                assert!(bound.total - bound.covered >= KEEP);
            }
            assert!(bound.total - bound.covered <= MOST + 1001);
            assert!(bound.marks.len() < 200);
        }
        assert!(cuts.len() > 5 && cuts.is_sorted(), "{cuts:?}");
    }

    #[test]
    fn a_single_item_that_is_too_large_is_cut_when_it_has_ended() {
        let mut bound = Bound::default();
        bound.add(&[Block::text("x".repeat(MOST as usize + 1))]);
        assert_eq!(bound.cut(), None);
        bound.mark(Seq(7));
        assert_eq!(bound.cut(), Some(Seq(7)));
        assert_eq!(bound.cut(), None);
    }
}
