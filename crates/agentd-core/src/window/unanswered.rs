//! What the model has not finished answering. A summary never replaces it.

use super::{Entry, Item, Window};
use crate::event::{TurnEnded, TurnStarted, TurnStatus};
use crate::id::TurnId;

impl Window {
    /// How many items from the start a summary may cover. It excludes the items since the model's last reply, and
    /// that reply itself if the model has not seen the results of its calls.
    pub fn coverable(&self) -> usize {
        let is_reply = |item: &Item| matches!(item.entry, Entry::Reply { .. });
        let Some(last_reply) = self.items.iter().rposition(is_reply) else {
            // The model has seen a summary that has no reply after it.
            let is_summary = |item: &&Item| matches!(item.entry, Entry::Summary(_));
            return self.items.iter().take_while(is_summary).count();
        };
        let after_it = self.items.get(last_reply + 1..).unwrap_or_default();
        let is_result = |item: &Item| matches!(item.entry, Entry::Result(_));
        match self.has_open_calls() || after_it.iter().any(is_result) {
            true => last_reply,
            false => last_reply + 1,
        }
    }

    /// Whether it is a prompt of the running turn, or of a turn that may be continued.
    pub fn is_open_prompt(&self, item: &Item) -> bool {
        let in_open_turn = item
            .turn
            .is_some_and(|turn| self.open_turns.contains(&turn));
        in_open_turn && matches!(item.entry, Entry::Prompt(_))
    }

    pub(super) fn turn_started(&mut self, turn: Option<TurnId>, body: &TurnStarted) {
        if body.compacts.is_some() {
            // It answers no prompt, and a limited turn can be continued after it.
            return;
        }
        match body.resumes {
            Some(resumed) if self.open_turns.contains(&resumed) => {}
            Some(resumed) => self.open_turns = vec![resumed],
            None => self.open_turns.clear(),
        }
        self.open_turns.extend(turn);
    }

    pub(super) fn turn_ended(&mut self, body: &TurnEnded) {
        if !body.compacts && body.status != TurnStatus::Limited {
            self.open_turns.clear();
        }
    }
}
