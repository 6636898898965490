//! A reply that is being put together, with the results of its calls.

use super::Left;
use super::fit::{CUT, Room};
use crate::event::ResultAdded;
use crate::id::CallId;
use crate::message::{Block, CallOutcome};
use crate::time::Timestamp;

/// How many calls of one reply may wait for their results. Each result is looked up among them.
const OPEN_CALLS: usize = 1024;

pub(super) struct Reply {
    /// The provider's id. Parts with the same id belong together, whatever comes in between.
    pub(super) id: Option<String>,
    pub(super) at: Timestamp,
    /// The record that it begins with.
    pub(super) record: u64,
    pub(super) blocks: Vec<Block>,
    pub(super) results: Vec<(Timestamp, ResultAdded)>,
    pub(super) is_interrupted: bool,
    /// Calls without a result: the id in the file, and here.
    open: Vec<(String, CallId)>,
    room: Room,
    result_room: Room,
}

impl Reply {
    pub(super) const fn new(id: Option<String>, at: Timestamp, record: u64) -> Self {
        Self {
            id,
            at,
            record,
            blocks: Vec::new(),
            results: Vec::new(),
            is_interrupted: false,
            open: Vec::new(),
            room: Room::new(),
            result_room: Room::new(),
        }
    }

    /// Whether a part with this id belongs to it.
    pub(super) fn continues_with(&self, id: Option<&str>) -> bool {
        match (&self.id, id) {
            (Some(own), Some(id)) => own == id,
            (None, None) => self.results.is_empty(),
            _ => false,
        }
    }

    /// Adds a part. A call gets its id here from `new_call`.
    pub(super) fn add(
        &mut self,
        block: Block,
        new_call: &mut dyn FnMut() -> CallId,
    ) -> Option<Left> {
        if block.as_call().is_some() && self.open.len() >= OPEN_CALLS {
            return Some(Left::Cut);
        }
        let (block, left) = self.room.fit(block);
        let Some(mut block) = block else {
            return left;
        };
        if let Block::ToolCall(call) = &mut block {
            let id = new_call();
            self.open.push((call.id.0.clone(), id.clone()));
            call.id = id;
        }
        self.blocks.push(block);
        left
    }

    pub(super) fn awaits(&self, call: &str) -> bool {
        self.open.iter().any(|(id, _)| id == call)
    }

    pub(super) const fn is_complete(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn calls(&self) -> usize {
        let calls = self.blocks.iter().filter(|block| block.as_call().is_some());
        calls.count()
    }

    /// Adds the result of a call that it awaits. Returns what was lost of it.
    pub(super) fn answer(
        &mut self,
        call: &str,
        at: Timestamp,
        outcome: CallOutcome,
        blocks: Vec<Block>,
    ) -> Vec<Left> {
        let mut lost = Vec::new();
        let Some(index) = self.open.iter().position(|(id, _)| id == call) else {
            return lost;
        };
        let (_, call) = self.open.remove(index);
        let mut kept = Vec::new();
        for block in blocks {
            let (block, left) = self.result_room.fit(block);
            kept.extend(block.filter(|block| !block.is_blank()));
            lost.extend(left);
        }
        if kept.is_empty() && lost.contains(&Left::Cut) {
            kept.push(Block::text(CUT.trim_start()));
        }
        let result = ResultAdded {
            call,
            outcome,
            blocks: kept,
        };
        self.results.push((at, result));
        lost
    }

    /// Gives the calls that have no result one that says so. Returns how many there are.
    pub(super) fn close(&mut self) -> usize {
        let open = std::mem::take(&mut self.open);
        let count = open.len();
        for (_, call) in open {
            let outcome = CallOutcome::Unknown;
            let text = "Outcome unknown: the imported history has no result of this call.";
            let blocks = vec![Block::text(text)];
            let result = ResultAdded {
                call,
                outcome,
                blocks,
            };
            self.results.push((self.at, result));
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::super::content::call;
    use super::*;
    use serde_json::json;

    fn add(reply: &mut Reply, id: &str) -> Option<Left> {
        let mut new_call = || CallId::new(format!("new {id}"));
        reply.add(call(id, "shell", &json!({})), &mut new_call)
    }

    #[test]
    fn the_calls_that_wait_for_results_have_a_limit() {
        let mut reply = Reply::new(None, Timestamp(1), 1);
        for n in 0..OPEN_CALLS {
            assert_eq!(add(&mut reply, &n.to_string()), None);
        }
        assert_eq!(add(&mut reply, "more"), Some(Left::Cut));
        assert!(!reply.awaits("more"));
        let blocks = vec![Block::text("done")];
        let lost = reply.answer("7", Timestamp(2), CallOutcome::Ok, blocks);
        assert!(lost.is_empty());
        assert_eq!(add(&mut reply, "more"), None);
        assert!(reply.awaits("more") && !reply.awaits("7"));
        assert_eq!(reply.calls(), OPEN_CALLS + 1);
    }

    #[test]
    fn a_result_without_room_says_that_it_was_cut() {
        let mut reply = Reply::new(None, Timestamp(1), 1);
        for id in ["1", "2"] {
            assert_eq!(add(&mut reply, id), None);
        }
        let large = || Block::text("x".repeat(4 * 1024 * 1024));
        let blocks = vec![large(), large(), large()];
        reply.answer("1", Timestamp(2), CallOutcome::Ok, blocks);
        let blocks = vec![Block::text("more")];
        let lost = reply.answer("2", Timestamp(2), CallOutcome::Ok, blocks);
        assert_eq!(lost, [Left::Cut]);
        let (_, result) = reply.results.last().unwrap();
        assert_eq!(result.blocks, [Block::text(CUT.trim_start())]);
    }
}
