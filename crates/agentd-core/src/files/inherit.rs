//! The history of a fork begins with that of the agent from which it was forked, up to the branch point. No event is
//! copied: the journals are read one after the other, the oldest first.

use super::change::{Gap, Order};
use super::history::History;
use crate::event::{Body, CannotRestore, Event, Position};
use crate::id::{AgentId, Seq};

impl History {
    /// The order of an event, which may be in a journal that is shared. What follows the branch point there has none.
    pub fn order(&self, at: Position) -> Option<Order> {
        self.inherited.order(at)
    }

    /// Whether an event after the branch point may tell how something ended that began before it.
    pub fn is_open(&self) -> bool {
        let is_unscanned = |gap: &Gap| gap.why == CannotRestore::NotScanned;
        !self.running.is_empty() || self.gaps.iter().any(is_unscanned)
    }

    /// An event after the branch point in a journal that is shared. What commands of a turn changed is recorded after the
    /// end of the turn, but belongs to it.
    pub fn apply_late(&mut self, event: &Event) {
        match &event.body {
            Body::FilesScanned(scanned) if self.ends.contains_key(&scanned.turn) => {
                self.scanned(event, scanned);
            }
            Body::ToolEnded(ended) => self.tool_ended(ended),
            _ => {}
        }
    }

    /// The journal that was read is that of another agent, which shares its events up to `through`. The next events are
    /// those of its fork.
    pub fn end_inherited(&mut self, agent: AgentId, through: Seq) {
        // Calls that were running there have ended for the fork.
        self.kept.clear();
        self.running.clear();
        if let Some((turn, _)) = self.commands.last()
            && !self.ends.contains_key(turn)
        {
            self.gaps.push(Gap {
                order: self.own(through),
                turn: *turn,
                why: CannotRestore::NotScanned,
                more: 0,
            });
        }
        self.inherited.end(agent, through);
    }
}
