//! What the commands of a turn changed: it is found after the turn, before the next one begins.

use super::plan::Move;
use super::{Effect, Machine, Moment};
use crate::event::{FilesScanned, Scan, ScanProblem};
use crate::id::TurnId;

/// A scan that comes later finds changes that others may have made since, so it is not made.
const LATEST_MS: u64 = 10_000;

impl Machine {
    /// What comes before the next turn; `None` if there is nothing to scan, or not here.
    pub(super) fn scan_first(&mut self, moment: &Moment<'_>) -> Option<Move> {
        let unscanned = self.agent.files.unscanned?;
        let resets = self.agent.resets.under_way().is_some() || self.agent.reset_due().is_some();
        let is_restoring = self.agent.files.restoring.is_some();
        if self.live.scanning.is_some() {
            return Some(Move::Wait);
        }
        if self.live.process.leaving || self.agent.is_held() || resets || is_restoring {
            return None;
        }
        if moment.at.since(unscanned.ended) > LATEST_MS {
            let why = ScanProblem::Timeout;
            self.push_scan(unscanned.turn, Scan::Unknown { why });
            return Some(Move::Append);
        }
        self.live.scanning = Some(unscanned.turn);
        Some(Move::Do(vec![Effect::ScanFiles {
            turn: unscanned.turn,
            since: unscanned.since,
        }]))
    }

    pub(super) fn scanned(&mut self, turn: TurnId, found: Scan) {
        if self.live.scanning.take_if(|it| *it == turn).is_some() {
            self.push_scan(turn, found);
        }
    }

    /// Whether a scan is waited for before the process ends.
    pub(super) const fn is_scanning(&self) -> bool {
        self.live.scanning.is_some() && !self.live.process.leaving
    }

    fn push_scan(&mut self, turn: TurnId, found: Scan) {
        let scanned = FilesScanned { turn, found };
        self.live.outbox.backlog.push(scanned.into());
    }
}
