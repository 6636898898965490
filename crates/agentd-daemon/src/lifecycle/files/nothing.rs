//! Requests that have nothing to write: what is answered, and when an undo is over nevertheless.

use agentd_client::api::{CannotRestore, NotRestored};

/// Whether an undo that writes nothing has taken its restore back. It has not if a file could be written after
/// something else has changed: then the user may try again.
pub fn is_over(not_restored: &[NotRestored]) -> bool {
    !not_restored.iter().any(|it| may_change(it.why))
}

/// Whether the reason is something that may be different later: what is at the path now, or the sandbox.
const fn may_change(why: CannotRestore) -> bool {
    matches!(
        why,
        CannotRestore::NotAFile
            | CannotRestore::OutOfReach
            | CannotRestore::CurrentUnreadable
            | CannotRestore::CurrentTooLarge
            | CannotRestore::CurrentSecret
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn not_restored(path: Option<&str>, why: CannotRestore) -> NotRestored {
        NotRestored {
            path: path.map(str::to_owned),
            turn: None,
            why,
        }
    }

    #[test]
    fn an_undo_is_over_unless_a_file_may_be_written_later() {
        let purged = not_restored(Some("/a"), CannotRestore::NoLongerKept);
        let planted = not_restored(Some("/b"), CannotRestore::NotAFile);
        assert!(is_over(&[]));
        assert!(is_over(std::slice::from_ref(&purged)));
        assert!(!is_over(&[purged, planted]));
    }
}
