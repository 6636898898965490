//! Finds where the last lines of a log begin, from its end backwards, so that a long log is not read from its beginning.

use super::lines::Lines;
use crate::connect::Connection;
use crate::error::Error;
use agentd_client::api::EventQuery;

/// Events that are looked at in one step. A step that finds too few lines is followed by an earlier one.
const STEP: u64 = 500;

/// The position after which the last `wanted` lines come, of those after `query.after` and up to `until`.
pub async fn begin(
    connection: &mut Connection,
    name: &str,
    query: &EventQuery,
    (wanted, until): (usize, Option<u64>),
    lines: &Lines<'_>,
) -> Result<u64, Error> {
    let agent = connection.client.agent(name).await?;
    let mut through = until.map_or(agent.head.0, |until| until.min(agent.head.0));
    let mut left = wanted;
    if left == 0 {
        return Ok(through);
    }
    while through > query.after {
        let after = through.saturating_sub(STEP).max(query.after);
        let shown = shown(connection, name, query, (after, through), lines).await?;
        match shown.len().checked_sub(left).and_then(|n| shown.get(n)) {
            Some(first) => return Ok(first - 1),
            None => left -= shown.len(),
        }
        through = after;
    }
    Ok(query.after)
}

/// The numbers of the events in a range that are printed.
async fn shown(
    connection: &mut Connection,
    name: &str,
    query: &EventQuery,
    (after, through): (u64, u64),
    lines: &Lines<'_>,
) -> Result<Vec<u64>, Error> {
    let mut query = EventQuery {
        after,
        ..query.clone()
    };
    let mut shown = Vec::new();
    loop {
        let page = connection.client.page(name, &query).await;
        let Some((events, next)) = connection.or_again(page).await? else {
            continue;
        };
        let within = events.iter().filter(|event| event.seq.0 <= through);
        let printed = within.filter(|event| lines.is_shown(event));
        shown.extend(printed.map(|event| event.seq.0));
        match next {
            Some(next) if next.0 > query.after && next.0 < through => query.after = next.0,
            _ => return Ok(shown),
        }
    }
}
