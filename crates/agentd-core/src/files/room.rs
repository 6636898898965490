//! How much the undo of one restore may keep.

use crate::spec::Limits;

/// The most that one restore keeps, whatever the limit of the agent is: it is one commit.
pub const MAX_RESTORE_BYTES: u64 = 512 * 1024 * 1024;

/// What is left for the contents that a restore replaces. Beyond it, the limit of the agent would delete some of them when
/// the restore ends, and its undo would be partial.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    largest: u64,
    most: u64,
    used: u64,
}

impl Room {
    pub fn of(limits: &Limits) -> Self {
        Self {
            largest: limits.file_history_bytes().min(MAX_RESTORE_BYTES),
            most: limits.file_history_left().min(MAX_RESTORE_BYTES),
            used: 0,
        }
    }

    /// Whether a content of this size can be kept in addition. One alone may use the whole limit.
    #[must_use]
    pub const fn take(&mut self, size: u64) -> bool {
        let used = self.used.saturating_add(size);
        let most = match self.used {
            0 => self.largest,
            _ => self.most,
        };
        let fits = size == 0 || used <= most;
        if fits {
            self.used = used;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::Room;
    use crate::spec::Limits;

    #[test]
    fn a_restore_keeps_no_more_than_what_its_end_leaves() {
        let limits = Limits {
            file_history_bytes: Some(100),
            ..Limits::default()
        };
        let mut room = Room::of(&limits);
        let taken = [60, 31, 0, 30, 1, 0].map(|size| room.take(size));
        assert_eq!(taken, [true, false, true, true, false, true]);
        let mut room = Room::of(&limits);
        let taken = [101, 100, 1, 0].map(|size| room.take(size));
        assert_eq!(taken, [false, true, false, true]);
    }
}
