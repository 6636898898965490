//! Requests that have nothing to write: what is answered, and when an undo is over nevertheless.

use agentd_client::api::{FilesOutcome, NotRestored};
use agentd_core::event::{FilesRestoreEnded, RestoreOutcome};

/// The outcome of a request that finds nothing to write.
pub fn outcome(not_restored: &[NotRestored]) -> FilesOutcome {
    match not_restored.iter().any(NotRestored::is_left) {
        true => FilesOutcome::Failed,
        false => FilesOutcome::Unchanged,
    }
}

/// The outcome of a request whose restore has ended, as it is recorded: the list of files may have been purged.
pub fn recorded(ended: Option<&FilesRestoreEnded>, not_restored: &[NotRestored]) -> FilesOutcome {
    match ended.map(|ended| (ended.outcome, ended.restored)) {
        Some((RestoreOutcome::Done, 0)) => outcome(not_restored),
        Some((RestoreOutcome::Done, _)) => FilesOutcome::Done,
        Some((RestoreOutcome::Conflict | RestoreOutcome::Failed, _)) | None => FilesOutcome::Failed,
    }
}

/// Whether an undo that writes nothing has taken its restore back. It has not if a file could be written after
/// something else has changed: then the user may try again.
pub fn is_over(not_restored: &[NotRestored]) -> bool {
    !not_restored.iter().any(|it| it.why.may_change())
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_client::api::CannotRestore;
    use agentd_core::id::OpId;

    fn not_restored(path: Option<&str>, why: CannotRestore) -> NotRestored {
        NotRestored::new(path.map(str::to_owned), None, why)
    }

    #[test]
    fn if_nothing_could_be_restored_the_request_has_failed() {
        let unknown = not_restored(None, CannotRestore::NoGit);
        let named = not_restored(Some("/a"), CannotRestore::CurrentUnreadable);
        assert_eq!(outcome(&[]), FilesOutcome::Unchanged);
        assert_eq!(
            outcome(std::slice::from_ref(&unknown)),
            FilesOutcome::Unchanged
        );
        let unchecked = not_restored(Some("/b"), CannotRestore::NotChecked);
        assert_eq!(
            outcome(std::slice::from_ref(&unchecked)),
            FilesOutcome::Unchanged
        );
        assert_eq!(outcome(&[unknown, unchecked, named]), FilesOutcome::Failed);
    }

    #[test]
    fn the_recorded_outcome_counts_and_not_the_list_of_files() {
        let ended = |outcome, restored| FilesRestoreEnded {
            op: OpId::from_bytes([1; 16]),
            outcome,
            restored,
            failed: 0,
        };
        for (ended, expected) in [
            (Some(ended(RestoreOutcome::Done, 2)), FilesOutcome::Done),
            (
                Some(ended(RestoreOutcome::Done, 0)),
                FilesOutcome::Unchanged,
            ),
            // The plan was purged: no file is listed.
            (Some(ended(RestoreOutcome::Failed, 0)), FilesOutcome::Failed),
            (None, FilesOutcome::Failed),
        ] {
            assert_eq!(recorded(ended.as_ref(), &[]), expected, "{ended:?}");
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
