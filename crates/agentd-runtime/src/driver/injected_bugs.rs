//! Injected bugs of the driver: mistakes that it makes on purpose, only in the lab, to show that the lab detects them.

use agentd_core::event::{Body, Event, NewEvent};
use agentd_failpoint as failpoint;
use std::sync::{Mutex, PoisonError};

/// What was not appended with the start of its call.
static LATE: Mutex<Vec<NewEvent>> = Mutex::new(Vec::new());

/// The events to append, and the events that are dropped on purpose.
pub(super) fn of(mut events: Vec<NewEvent>) -> (Vec<NewEvent>, Vec<NewEvent>) {
    if failpoint::injected_bug("notice_twice") {
        let notices = events
            .iter()
            .position(|event| matches!(event.body, Body::Notice(_)));
        if let Some(at) = notices {
            events.insert(at, events[at].clone());
        }
    }
    if failpoint::injected_bug("kept_after_start") {
        return keep_late(events);
    }
    if failpoint::injected_bug("result_not_kept") {
        return events
            .into_iter()
            .partition(|event| !matches!(event.body, Body::ResultAdded(_)));
    }
    (events, Vec::new())
}

/// Puts what files were before a call into the append after the one that starts the call.
fn keep_late(mut events: Vec<NewEvent>) -> (Vec<NewEvent>, Vec<NewEvent>) {
    let mut late = LATE.lock().unwrap_or_else(PoisonError::into_inner);
    let is_kept = |event: &NewEvent| matches!(event.body, Body::FileKept(_));
    let kept: Vec<NewEvent> = events.extract_if(.., |event| is_kept(event)).collect();
    events.splice(0..0, std::mem::replace(&mut *late, kept));
    (events, Vec::new())
}

/// Adds the dropped events, as if they had been appended.
pub(super) fn pretend(events: &mut Vec<Event>, unkept: Vec<NewEvent>) {
    if let Some(last) = events.last().map(|event| (event.agent, event.seq)) {
        let unkept = unkept.into_iter().map(|event| event.placed(last.0, last.1));
        events.extend(unkept);
    }
}
