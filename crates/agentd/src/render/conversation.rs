//! One conversation as an aligned list: its origin, labels and turns.

use crate::render::{count, named, table, time, usage, word};
use agentd_client::api::{Conversations, OneConversation};
use agentd_core::id::ConversationId;
use agentd_core::time::Timestamp;

/// `all` has the numbers of the conversations that this one refers to.
pub fn list(one: &OneConversation, all: &Conversations, now: Timestamp) -> Vec<String> {
    let number = |id: ConversationId| {
        let mut known = all.conversations.iter();
        let known = known.find(|known| known.id == id);
        known.map_or_else(|| id.to_string(), |known| known.ordinal.to_string())
    };
    let known = &one.conversation;
    let at = |at: Timestamp| format!("{} ({})", time::clock(at), time::ago(at, now));
    let from = known.from.as_ref().map(|from| {
        let (seq, conversation) = (from.seq, number(from.conversation));
        let is_own = all
            .conversations
            .iter()
            .any(|own| own.id == from.conversation);
        match is_own {
            true => format!("event {seq} of conversation {conversation}"),
            false => format!("event {seq} of {}", named(&from.agent)),
        }
    });
    let state = match (known.current, known.purged, known.sealed) {
        (_, true, _) => "purged".to_owned(),
        (true, ..) => "current".to_owned(),
        (_, _, Some(reason)) => format!("sealed by {}", word(reason)),
        _ => "left".to_owned(),
    };
    let labels: Vec<String> = known
        .labels
        .iter()
        .map(|(label, at)| format!("{label} (event {at})"))
        .collect();
    let turns: Vec<String> = one
        .ended
        .iter()
        .map(|turn| {
            let (number, id) = (turn.number, turn.id);
            let status = match turn.compacts {
                true => format!("compaction, {}", word(turn.status)),
                false => word(turn.status),
            };
            let ago = time::ago(turn.ended_at, now);
            let prompt = turn.prompt.as_ref();
            let prompt = prompt.map(|words| format!("  “{words}”"));
            let prompt = prompt.unwrap_or_default();
            let files = turn.files.filter(|files| *files > 0);
            let files = files.map(|files| format!("  {}", count(files, "file")));
            let unknown = turn
                .files_unknown
                .then_some("  changes by commands not known");
            let files = files.unwrap_or_default() + unknown.unwrap_or_default();
            format!("{number}  {id}  {status}  {ago}{files}{prompt}")
        })
        .collect();
    let listed = |items: Vec<String>| (!items.is_empty()).then(|| items.join("\n"));
    table::pairs(&[
        ("conversation", Some(known.ordinal.to_string())),
        ("title", known.title.clone()),
        ("state", Some(state)),
        (
            "began",
            Some(format!("{}, by {}", at(known.began_at), word(known.source))),
        ),
        ("after", known.parent.map(number)),
        ("from", from),
        (
            "compacted",
            (known.compactions > 0).then(|| count(known.compactions.into(), "time")),
        ),
        ("used", Some(usage::all(&known.usage))),
        ("labels", listed(labels)),
        ("turns", listed(turns)),
    ])
}
