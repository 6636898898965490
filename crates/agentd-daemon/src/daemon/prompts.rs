//! The positions at which recent prompts were accepted, so that an answer is not searched for from the beginning of the
//! journal.

use agentd_core::id::{PromptId, Seq};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// How many positions are remembered. For an older prompt, the journal is searched from its beginning.
const REMEMBERED: usize = 16_384;

#[derive(Default)]
pub struct Prompts(Mutex<Positions>);

#[derive(Default)]
struct Positions {
    known: HashMap<PromptId, Seq>,
    order: VecDeque<PromptId>,
}

impl Prompts {
    pub fn remember(&self, prompt: PromptId, seq: Seq) {
        let mut positions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if positions.known.insert(prompt, seq).is_none() {
            positions.order.push_back(prompt);
        }
        if positions.order.len() > REMEMBERED
            && let Some(oldest) = positions.order.pop_front()
        {
            positions.known.remove(&oldest);
        }
    }

    /// The position where a prompt was accepted, or the beginning of the journal if it is not remembered.
    pub fn position(&self, prompt: PromptId) -> Seq {
        let positions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        positions.known.get(&prompt).copied().unwrap_or(Seq::ZERO)
    }
}
