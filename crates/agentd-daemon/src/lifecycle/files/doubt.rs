//! What a difference says about a change that something else than the agent may have made.

use agentd_client::api::FileDiff;
use agentd_core::event::ScannedChange;
use agentd_core::files::{Change, ChangedBy};

/// A deletion that is not certainly one of a command.
const DELETED_BEFORE: &str = "it may have been deleted before the turn";
/// Another change that is not certainly one of a command.
const MAYBE_OTHER: &str =
    "only background commands ran when it was changed: something else may have done it";

/// Adds what is not certain about the changes of a path to what is said about it already.
pub fn add(file: &mut FileDiff, changes: &[&Change]) {
    let unsure = changes.iter().rev().find(|change| change.unsure);
    let Some(unsure) = unsure else { return };
    let doubt = match unsure.by {
        ChangedBy::Command(ScannedChange::Deleted) => DELETED_BEFORE,
        _ => MAYBE_OTHER,
    };
    file.note = Some(match file.note.take() {
        Some(note) => format!("{note}; {doubt}"),
        None => doubt.to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_client::api::{ChangeBy, DiffChange};
    use agentd_core::event::Position;
    use agentd_core::files::{Earlier, History, IsDone, Left};
    use agentd_core::id::{AgentId, ConversationId, Seq};
    use agentd_core::time::Timestamp;

    #[derive(Clone, Copy)]
    enum Is {
        Sure,
        Unsure,
    }

    fn change(change: ScannedChange, is: Is) -> Change {
        let seq = Seq(1);
        Change {
            order: History::default().own(seq),
            event: Position {
                agent: AgentId::from_bytes([1; 16]),
                seq,
            },
            turn: None,
            conversation: ConversationId::from_bytes([2; 16]),
            at: Timestamp::default(),
            path: "/home/user/project/a".to_owned(),
            by: ChangedBy::Command(change),
            before: Earlier::Git(Vec::new()),
            mode_before: None,
            after: Left::Unknown,
            done: IsDone::Yes,
            unsure: matches!(is, Is::Unsure),
            git_before: None,
        }
    }

    fn note(before: Option<&str>, changes: &[(ScannedChange, Is)]) -> Option<String> {
        let (path, name) = ("/home/user/project/a".to_owned(), "a".to_owned());
        let mut file = FileDiff::new(path, name, ChangeBy::Command, DiffChange::Deleted);
        file.note = before.map(str::to_owned);
        let changes: Vec<Change> = changes.iter().map(|(it, is)| change(*it, *is)).collect();
        add(&mut file, &changes.iter().collect::<Vec<_>>());
        file.note
    }

    #[test]
    fn the_reason_why_there_are_no_lines_stays() {
        let unsure = [(ScannedChange::Modified, Is::Unsure)];
        let expected = format!("binary content; {MAYBE_OTHER}");
        assert_eq!(note(Some("binary content"), &unsure), Some(expected));
        assert_eq!(note(None, &unsure).as_deref(), Some(MAYBE_OTHER));
        let sure = [(ScannedChange::Modified, Is::Sure)];
        let binary = note(Some("binary content"), &sure);
        assert_eq!(binary.as_deref(), Some("binary content"));
        assert_eq!(note(None, &sure), None);
    }

    #[test]
    fn only_a_deletion_that_is_not_certain_may_be_older_than_the_turn() {
        let edit = |is| (ScannedChange::Modified, is);
        let deletion = |is| (ScannedChange::Deleted, is);
        for (changes, expected) in [
            ([edit(Is::Unsure), deletion(Is::Sure)], MAYBE_OTHER),
            ([edit(Is::Sure), deletion(Is::Unsure)], DELETED_BEFORE),
            ([edit(Is::Unsure), deletion(Is::Unsure)], DELETED_BEFORE),
        ] {
            assert_eq!(note(None, &changes).as_deref(), Some(expected));
        }
    }
}
