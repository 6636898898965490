//! Mistakes that the driver makes on purpose, in the lab alone, for the lab to find.

use agentd_core::event::{Body, Event, NewEvent};
use agentd_process::failpoint;

/// What is appended, and what is not though it should be.
pub(super) fn of(mut events: Vec<NewEvent>) -> (Vec<NewEvent>, Vec<NewEvent>) {
    if failpoint::injected_bug("notice_twice") {
        let notices = events
            .iter()
            .position(|event| matches!(event.body, Body::Notice(_)));
        if let Some(at) = notices {
            events.insert(at, events[at].clone());
        }
    }
    if failpoint::injected_bug("result_not_kept") {
        return events
            .into_iter()
            .partition(|event| !matches!(event.body, Body::ResultAdded(_)));
    }
    (events, Vec::new())
}

/// Acts as if it had been.
pub(super) fn pretend(events: &mut Vec<Event>, unkept: Vec<NewEvent>) {
    if let Some(last) = events.last().map(|event| (event.agent, event.seq)) {
        let unkept = unkept.into_iter().map(|event| event.placed(last.0, last.1));
        events.extend(unkept);
    }
}
