//! What agents have spent: by agent, model, day or conversation.

use super::respond::{Answer, JsonBody, Query};
use crate::daemon::Daemon;
use crate::error::Result;
use crate::view;
use agentd_client::api::{AgentRef, UsageBy, UsageQuery, UsageReport, UsageRow, time};
use agentd_core::id::{AgentId, ConversationId};
use agentd_core::time::Timestamp;
use agentd_core::usage::Spent;
use agentd_store::{AgentQuery, SpendingQuery};
use axum::extract::State;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Lines of the list that are read at once.
const PAGE: usize = 1000;
const DAY_MS: i64 = 86_400_000;

/// A row of the report without its sum.
type Named = (UsageRow, Spent);

pub async fn usage(
    State(daemon): State<Arc<Daemon>>,
    Query(query): Query<UsageQuery>,
) -> Answer<UsageReport> {
    let agent = match &query.agent {
        Some(name) => Some(daemon.find_any(name).await?),
        None => None,
    };
    let rows = match (query.by, agent, query.since) {
        // The sums of agents and of conversations are folded with every event.
        (UsageBy::Agent, None, None) => all_agents(&daemon).await?,
        (UsageBy::Agent, Some(agent), None) => one_agent(&daemon, agent).await?,
        (UsageBy::Conversation, Some(agent), None) => conversations(&daemon, agent).await?,
        (by, agent, since) => requests(&daemon, by, SpendingQuery { agent, since }).await?,
    };
    let mut total = Spent::default();
    for (_, spent) in &rows {
        total.merge(spent);
    }
    Ok(JsonBody(UsageReport {
        by: query.by,
        rows: rows
            .into_iter()
            .map(|(row, spent)| summed(row, &spent))
            .collect(),
        total: summed(UsageRow::default(), &total),
    }))
}

fn summed(row: UsageRow, spent: &Spent) -> UsageRow {
    UsageRow {
        requests: spent.requests,
        unpriced: spent.unpriced,
        usage: view::usage(spent),
        priced_usd: spent.cost.0 as f64 / 1e6,
        ..row
    }
}

/// The most expensive first; agents that have spent nothing are left out.
fn by_cost(mut rows: Vec<Named>) -> Vec<Named> {
    rows.retain(|(_, spent)| spent.requests > 0);
    rows.sort_by_key(|(_, spent)| std::cmp::Reverse((spent.cost, spent.usage.total())));
    rows
}

async fn all_agents(daemon: &Daemon) -> Result<Vec<Named>> {
    let mut rows = Vec::new();
    for archived in [false, true] {
        let mut query = AgentQuery {
            archived,
            limit: PAGE,
            ..AgentQuery::default()
        };
        loop {
            let page = daemon.store.agents(query.clone()).await?;
            rows.extend(page.agents.into_iter().map(|row| {
                let (id, name) = (row.id, Some(row.name));
                (of_agent(AgentRef { id, name }), row.spent)
            }));
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
    }
    Ok(by_cost(rows))
}

async fn one_agent(daemon: &Arc<Daemon>, agent: AgentId) -> Result<Vec<Named>> {
    let spent = daemon.store.usage(Some(agent)).await?;
    let agent = daemon.reference(agent).await;
    Ok(by_cost(vec![(of_agent(agent), spent)]))
}

async fn conversations(daemon: &Arc<Daemon>, agent: AgentId) -> Result<Vec<Named>> {
    let handle = daemon.handle(agent).await?;
    let guard = handle.lock().await;
    let reference = AgentRef {
        id: agent,
        name: Some(guard.state.name.clone()),
    };
    let mut known: Vec<_> = guard.state.tree.iter().collect();
    known.sort_by_key(|known| known.ordinal);
    let rows = known.into_iter().map(|known| {
        let row = UsageRow {
            conversation: Some(known.id),
            ordinal: Some(known.ordinal),
            ..of_agent(reference.clone())
        };
        (row, known.spent)
    });
    Ok(rows.filter(|(_, spent)| spent.requests > 0).collect())
}

/// The number of a conversation; none if the agent's journal is damaged.
async fn ordinal(
    daemon: &Arc<Daemon>,
    agent: AgentId,
    conversation: ConversationId,
) -> Result<Option<u32>> {
    let Some(handle) = daemon.readable(agent).await? else {
        return Ok(None);
    };
    let guard = handle.lock().await;
    let known = guard.state.tree.get(conversation);
    Ok(known.map(|known| known.ordinal))
}

fn of_agent(agent: AgentRef) -> UsageRow {
    UsageRow {
        agent: Some(agent),
        ..UsageRow::default()
    }
}

/// Adds up the requests themselves.
async fn requests(daemon: &Arc<Daemon>, by: UsageBy, query: SpendingQuery) -> Result<Vec<Named>> {
    let mut sums = BTreeMap::<_, Spent>::new();
    for row in daemon.store.spending(query).await? {
        let is = |wanted: UsageBy| by == wanted;
        let key = (
            is(UsageBy::Day).then_some(row.day),
            (is(UsageBy::Agent) || is(UsageBy::Conversation)).then_some(row.agent),
            is(UsageBy::Conversation).then_some(row.conversation),
            row.model.filter(|_| is(UsageBy::Model)),
        );
        sums.entry(key).or_default().merge(&row.spent);
    }
    let mut rows = Vec::new();
    for ((day, agent, conversation, model), spent) in sums {
        let ordinal = match (agent, conversation) {
            (Some(agent), Some(conversation)) => ordinal(daemon, agent, conversation).await?,
            _ => None,
        };
        let row = UsageRow {
            agent: match agent {
                Some(agent) => Some(daemon.reference(agent).await),
                None => None,
            },
            model,
            day: day.map(date),
            conversation,
            ordinal,
            ..UsageRow::default()
        };
        rows.push((row, spent));
    }
    Ok(match by {
        UsageBy::Day => rows,
        _ => by_cost(rows),
    })
}

/// `2026-01-31`.
fn date(day: i64) -> String {
    let midnight = Timestamp::from_millis(day.saturating_mul(DAY_MS));
    let text = time::rfc3339(midnight);
    text.split('T').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_a_date() {
        let day = |ms: i64| date(Timestamp::from_millis(ms).day());
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(1_700_000_000_000), "2023-11-14");
    }
}
