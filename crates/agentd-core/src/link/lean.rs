//! Events as a runtime gets them.

use crate::event::{Body, Event, Kind};

/// The events without kept contents of files, which can be large and which a runtime does not need.
pub fn without_files(events: &[Event]) -> Vec<Event> {
    let lean = |event: &Event| match event.kind() {
        kind @ Kind::FileKept => Event {
            agent: event.agent,
            seq: event.seq,
            at: event.at,
            conversation: event.conversation,
            turn: event.turn,
            body: Body::Gone(kind),
        },
        _ => event.clone(),
    };
    events.iter().map(lean).collect()
}

#[cfg(test)]
mod tests {
    use super::without_files;
    use crate::event::{Body, FileBefore, FileKept, KeptBy, Kind, TurnStatus};
    use crate::fixture::Journal;
    use crate::id::CallId;

    #[test]
    fn a_runtime_gets_every_position_and_no_content_of_a_file() {
        let mut journal = Journal::new();
        journal.start_turn(1);
        journal.push(FileKept {
            by: KeptBy::Call {
                call: CallId::new("call"),
            },
            path: "/src/a".to_owned(),
            before: FileBefore::Absent,
            part: 0,
            parts: 1,
        });
        journal.end_turn(TurnStatus::Completed);
        let lean = without_files(&journal.events);
        assert_eq!(lean.len(), journal.events.len());
        for (lean, event) in lean.iter().zip(&journal.events) {
            match &event.body {
                Body::FileKept(_) => {
                    assert_eq!(lean.body, Body::Gone(Kind::FileKept));
                    assert_eq!(lean.seq, event.seq);
                }
                _ => assert_eq!(lean, event),
            }
        }
    }
}
