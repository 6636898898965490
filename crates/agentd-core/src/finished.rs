//! The result of a tool call, before it is in the journal.

use crate::event::{Body, FileSeen, TaskStarted};
use crate::message::{Block, CallOutcome};

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    pub outcome: CallOutcome,
    pub blocks: Vec<Block>,
    /// The task that it leaves running.
    pub background: Option<TaskStarted>,
    /// Other events to append with its result.
    pub also: Vec<Body>,
    /// The files whose content the model knows now.
    pub seen: Vec<FileSeen>,
}

impl Finished {
    /// A result that leaves nothing running.
    pub const fn new(outcome: CallOutcome, blocks: Vec<Block>) -> Self {
        Self {
            outcome,
            blocks,
            background: None,
            also: Vec::new(),
            seen: Vec::new(),
        }
    }
}
