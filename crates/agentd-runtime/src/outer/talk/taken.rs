//! What of a child's words is taken: how much one turn may have, and what is left of it when the child has ended.

use super::queue::PIECE;
use super::{Bounds, Pushed, State, is_question};
use agentd_core::outer::{ChildEvent, Over, json_bytes, size};
use agentd_core::usage::Usage;

/// How much text of one turn is recorded, in bytes of JSON: a reply is in memory several times while it becomes a message.
/// What exceeds it is dropped, and the answer says so.
pub(super) const MOST_TEXT: usize = 4 * 1024 * 1024;
/// How many reports a call may have on average.
pub(super) const REPORTS_PER_CALL: usize = 8;
/// How many reports of calls are recorded after the child has ended. Each takes several commits: thousands of them would hold
/// the turn, and the next prompt, for minutes.
pub(super) const MOST_LATE: usize = 100;
pub(super) const CUT: &str =
    "\n[agentd: the rest of the answer was dropped, because it is too long]\n";

impl State {
    pub(super) fn push(&mut self, said: ChildEvent, bounds: Bounds) -> Pushed {
        match said {
            ChildEvent::Text(text) => self.grow(&text, ChildEvent::Text),
            ChildEvent::Thinking(text) => self.grow(&text, ChildEvent::Thinking),
            ChildEvent::Spent { usage, cost } => {
                let (mut used, mut paid) = self.spent.unwrap_or_default();
                if usage != Usage::default() {
                    used = usage;
                }
                if let Some(cost) = cost {
                    paid = Some(paid.unwrap_or_default().saturating_add(cost));
                }
                self.spent = Some((used, paid));
            }
            ChildEvent::Over(over) => {
                self.in_turn = false;
                if let (Over::Failed(why), Some(gone)) = (&over, &self.gone) {
                    // The driver may have ended.
                    let _ended = gone.send(why.clone());
                }
                if matches!(over, Over::Failed(_)) {
                    self.shorten();
                }
                self.said.push(ChildEvent::Over(over));
            }
            about_call => {
                self.reports += 1;
                self.calls += usize::from(is_call(&about_call));
                self.reported += size(&about_call);
                let is_too_often = self.reports > bounds.calls.saturating_mul(REPORTS_PER_CALL);
                if is_too_often || self.calls > bounds.calls || self.exceeds(bounds) {
                    return Pushed::TooMuch;
                }
                self.keep(about_call);
            }
        }
        match self.exceeds(bounds) {
            true => Pushed::TooMuch,
            false => Pushed::Fits,
        }
    }

    fn exceeds(&self, bounds: Bounds) -> bool {
        self.reported.saturating_add(self.text) > bounds.bytes
    }

    /// What a child says after its turn was cancelled is dropped when it is too much: it is not made to wait, so that it can
    /// confirm the end.
    fn keep(&mut self, said: ChildEvent) {
        if self.turn > self.unwanted || !self.said.is_full() {
            self.said.push(said);
        }
    }

    /// The child has ended: of the reports that were not handled yet, only the first ones are recorded, and what ends the call
    /// that the turn waits for.
    fn shorten(&mut self) {
        let (mut reports, mut dropped) = (0, 0);
        let call = self.call.clone();
        self.said.retain(|said| {
            let ends_call =
                matches!(said, ChildEvent::CallEnded { id, .. } if Some(id) == call.as_ref());
            let is_text = matches!(said, ChildEvent::Text(_) | ChildEvent::Thinking(_));
            reports += usize::from(!is_text && !ends_call);
            let is_kept = is_text || ends_call || reports <= MOST_LATE;
            dropped += usize::from(!is_kept);
            is_kept
        });
        if dropped > 0 {
            let text = format!(
                "\n[agentd: {dropped} reports of calls were not recorded, because the program ended before]\n"
            );
            self.said.push(ChildEvent::Text(text));
        }
    }

    /// Adds text, as much as fits into the turn.
    fn grow(&mut self, text: &str, kind: impl Fn(String) -> ChildEvent) {
        self.text = self.text.saturating_add(text.len());
        let mut rest = text;
        while !rest.is_empty() && self.recorded_text <= MOST_TEXT {
            let (piece, more) = rest.split_at(rest.floor_char_boundary(PIECE));
            rest = more;
            self.recorded_text += json_bytes(piece);
            if self.recorded_text > MOST_TEXT {
                return self.keep(ChildEvent::Text(CUT.to_owned()));
            }
            self.keep(kind(piece.to_owned()));
        }
    }
}

/// Whether a report may be the first one of a call.
fn is_call(said: &ChildEvent) -> bool {
    matches!(said, ChildEvent::Call { .. }) || is_question(said)
}
