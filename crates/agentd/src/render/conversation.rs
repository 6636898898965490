//! One conversation as an aligned list: where it comes from, its labels, its turns.

use crate::render::{count, table, time, usage, word};
use agentd_client::api::{OneConversation, Usage};
use agentd_core::time::Timestamp;

pub fn list(one: &OneConversation, now: Timestamp) -> Vec<String> {
    let known = &one.conversation;
    let at = |at: Timestamp| format!("{} ({})", time::clock(at), time::ago(at, now));
    let from = known.from.map(|from| {
        let (seq, conversation) = (from.seq, from.conversation);
        format!("event {seq} of conversation {conversation}")
    });
    let state = match (one.current, known.purged, known.sealed) {
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
            format!(
                "{number}  {id}  {status}  {}",
                time::ago(turn.ended_at, now)
            )
        })
        .collect();
    let listed = |items: Vec<String>| (!items.is_empty()).then(|| items.join("\n"));
    let used = known.spent.usage;
    let used = Usage {
        input_tokens: used.input_tokens + used.cache_read_tokens + used.cache_write_tokens,
        output_tokens: used.output_tokens,
        cost_usd: (known.spent.unpriced == 0).then_some(known.spent.cost.0 as f64 / 1e6),
    };
    table::pairs(&[
        (
            "conversation",
            Some(format!("{}, {}", known.ordinal, known.id)),
        ),
        ("title", one.title.clone()),
        ("state", Some(state)),
        (
            "began",
            Some(format!("{}, by {}", at(known.began_at), word(known.source))),
        ),
        ("after", known.parent.map(|parent| parent.to_string())),
        ("from", from),
        (
            "compacted",
            (known.compactions > 0).then(|| count(known.compactions.into(), "time")),
        ),
        ("used", Some(usage::all(&used))),
        ("labels", listed(labels)),
        ("turns", listed(turns)),
    ])
}
