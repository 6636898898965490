//! Which kept contents of files are the oldest, and the event that records their deletion.

use crate::store::KeepFiles;
use agentd_core::event::{FilesPurged, NewEvent, Purged};
use agentd_core::id::{ConversationId, Seq};
use agentd_core::state::AgentState;
use agentd_core::time::Timestamp;

/// A `file_kept` event that has its body.
#[derive(Clone, Copy, Debug)]
pub struct KeptRow {
    pub seq: Seq,
    pub is_first_part: bool,
    pub counted_bytes: u64,
}

/// Finds the oldest kept files. The rows are added from the newest to the oldest.
#[derive(Debug)]
pub struct Oldest {
    keep: KeepFiles,
    /// What stays.
    left_bytes: u64,
    /// The last part of the file whose first part has not come yet.
    last_part: Option<Seq>,
    through: Option<Seq>,
}

impl Oldest {
    pub const fn new(keep: KeepFiles) -> Self {
        Self {
            keep,
            left_bytes: 0,
            last_part: None,
            through: None,
        }
    }

    pub fn add(&mut self, row: KeptRow) {
        let last_part = *self.last_part.get_or_insert(row.seq);
        if !row.is_first_part {
            return;
        }
        self.last_part = None;
        if self.through.is_some() {
            return;
        }
        let with_it = self.left_bytes.saturating_add(row.counted_bytes);
        // The newest content may be larger than what is to be left, unless the limit was lowered below it: then the purge
        // would be tried again after each append. A file that did not exist costs nothing.
        let most = match self.left_bytes {
            0 => self.keep.largest.max(self.keep.bytes),
            _ => self.keep.bytes,
        };
        if with_it > most && row.counted_bytes > 0 {
            self.through = Some(last_part);
            return;
        }
        self.left_bytes = with_it;
    }

    /// The last event that loses its body.
    pub const fn through(&self) -> Option<Seq> {
        self.through
    }

    /// The event that records the deletion of `events` bodies; `None` if nothing changes. It also corrects a count that
    /// does not match what is kept.
    pub fn record(&self, state: &AgentState, events: u64, at: Timestamp) -> Option<NewEvent> {
        let conversation: ConversationId = state.tree.current()?;
        let files = FilesPurged {
            through: self.through.unwrap_or(state.files.purged_through),
            bytes: state.files.kept_bytes.saturating_sub(self.left_bytes),
        };
        if files.bytes == 0 && self.through.is_none() {
            return None;
        }
        Some(NewEvent {
            at,
            conversation,
            turn: None,
            body: Purged {
                conversation,
                events,
                kept_bytes: 0,
                files: Some(files),
            }
            .into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the oldest: sequence number, part, counted bytes.
    fn through(keep_bytes: u64, rows: &[(u64, u32, u64)]) -> (Option<u64>, u64) {
        let keep = KeepFiles {
            bytes: keep_bytes,
            largest: 10,
        };
        let mut oldest = Oldest::new(keep);
        for (seq, part, counted_bytes) in rows.iter().rev() {
            oldest.add(KeptRow {
                seq: Seq(*seq),
                is_first_part: *part == 0,
                counted_bytes: *counted_bytes,
            });
        }
        (oldest.through().map(|seq| seq.0), oldest.left_bytes)
    }

    #[test]
    fn the_oldest_files_go_until_the_rest_fits() {
        let rows = [(3, 0, 10), (7, 0, 10), (9, 0, 0), (12, 0, 10)];
        assert_eq!(through(30, &rows), (None, 30));
        assert_eq!(through(29, &rows), (Some(3), 20));
        assert_eq!(through(19, &rows), (Some(7), 10));
        assert_eq!(through(0, &rows), (Some(7), 10), "the newest stays");
        let rows = [(3, 0, 10), (7, 0, 11), (9, 0, 0)];
        assert_eq!(through(9, &rows), (Some(7), 0), "it is beyond the limit");
        let rows = [(3, 0, 10), (7, 0, 10), (9, 0, 0)];
        assert_eq!(through(9, &rows), (Some(3), 10));
    }

    #[test]
    fn a_file_in_parts_goes_whole_or_stays_whole() {
        let rows = [(3, 0, 20), (4, 1, 0), (5, 2, 0), (8, 0, 5), (9, 1, 0)];
        assert_eq!(through(24, &rows), (Some(5), 5));
        assert_eq!(through(25, &rows), (None, 25));
    }
}
