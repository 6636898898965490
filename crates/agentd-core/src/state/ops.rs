//! The latest changes that clients requested under an op. A change that is requested again is not applied again.

use super::AgentState;
use crate::event::{Event, OpVerb, Operation};
use crate::id::{ConversationId, Incarnation, OpId, Seq};
use crate::refused::Refused;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How many changes are remembered. An older one that is requested again counts as new.
const KEPT: usize = 256;

/// A change that was applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    pub operation: Operation,
    pub seq: Seq,
    pub conversation: ConversationId,
    /// The agent's newest incarnation at that time. A restart is complete when there is a newer one.
    pub incarnation: Incarnation,
    /// A turn has begun, continued or ended since. A `continue` is complete then.
    pub has_gone_on: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ops {
    made: VecDeque<Made>,
}

impl Ops {
    pub fn get(&self, op: OpId) -> Option<&Made> {
        let mut made = self.made.iter().rev();
        made.find(|made| made.operation.op == op)
    }

    pub(super) fn record(&mut self, event: &Event, body: &Operation, incarnation: Incarnation) {
        self.made.push_back(Made {
            operation: body.clone(),
            seq: event.seq,
            conversation: event.conversation,
            incarnation,
            has_gone_on: false,
        });
        while self.made.len() > KEPT {
            self.made.pop_front();
        }
    }

    pub(super) fn turn_continued(&mut self) {
        let made = self.made.iter_mut();
        for made in made.filter(|made| made.operation.verb == OpVerb::Continue) {
            made.has_gone_on = true;
        }
    }
}

impl AgentState {
    /// The change that was applied under this op. A repeated op must request the same change; anything else is
    /// refused.
    pub fn made(&self, op: OpId, verb: OpVerb, digest: &str) -> Result<Option<&Made>, Refused> {
        let is_other = self.resets.asked_for(op).is_some() || self.compactions.is_known(op);
        match self.ops.get(op) {
            Some(made) if made.operation.verb == verb && made.operation.digest == digest => {
                Ok(Some(made))
            }
            None if !is_other => Ok(None),
            _ => Err(Refused::OtherOp(Box::new(op))),
        }
    }
}
