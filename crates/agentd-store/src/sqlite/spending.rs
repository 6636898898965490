//! What agents have spent by conversation, model and day: the ends of their requests, found by an index.

use super::row::{BEHIND, COLUMNS, EventRow, IdParam, agent_num, existing_agent_num};
use crate::error::Result;
use crate::store::{SpendingQuery, SpendingRow};
use agentd_core::event::{Body, Kind, Origin};
use agentd_core::id::{AgentId, ConversationId, Seq};
use agentd_core::usage::Spent;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use std::collections::BTreeMap;

type Sums = BTreeMap<(ConversationId, Option<String>, i64), Spent>;

pub fn spending(journal: &Connection, query: &SpendingQuery) -> Result<Vec<SpendingRow>> {
    // One transaction, so that all sums are of the same moment.
    let moment = journal.unchecked_transaction()?;
    let mut rows = Vec::new();
    for (num, agent) in agents(journal, query.agent)? {
        let sums = sums(journal, num, agent, query)?.into_iter();
        rows.extend(sums.map(|((conversation, model, day), spent)| SpendingRow {
            agent,
            conversation,
            model,
            day,
            spent,
        }));
    }
    moment.commit()?;
    Ok(rows)
}

fn agents(journal: &Connection, only: Option<AgentId>) -> Result<Vec<(i64, AgentId)>> {
    if let Some(agent) = only {
        return Ok(vec![(existing_agent_num(journal, agent)?, agent)]);
    }
    let sql = "SELECT num, id FROM agent WHERE listed IN (1, 2)";
    let mut statement = journal.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        Ok((row.get(0)?, AgentId::from_bytes(row.get(1)?)))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The models of an agent's requests, as its journal tells them.
#[derive(Default)]
struct Models {
    /// What the requests of a conversation were sent with, and from which event on; the newest last.
    sent: BTreeMap<ConversationId, Vec<(Seq, String)>>,
    /// The agent's setting.
    set: Option<String>,
}

impl Models {
    /// `model` and `origin` are those of the event: a context or settings, and the beginning of a conversation. The
    /// `model` of a beginning is that of the other agent from which it was forked.
    fn learn(&mut self, row: &EventRow, model: Option<String>, origin: Option<Origin>) {
        let (conversation, seq) = (row.event.conversation, row.event.seq);
        let shown = match Kind::parse(&row.event.kind) {
            Some(Kind::SpecSet) => {
                self.set = model;
                None
            }
            Some(Kind::Context) => model,
            // A branch shows the context of the conversation that it branched off.
            _ => model.or_else(|| {
                let origin = origin?;
                self.at(origin.conversation, origin.seq).cloned()
            }),
        };
        if let Some(model) = shown {
            self.sent
                .entry(conversation)
                .or_default()
                .push((seq, model));
        }
    }

    /// The model of a conversation's requests after this event.
    fn at(&self, conversation: ConversationId, seq: Seq) -> Option<&String> {
        let mut sent = self.sent.get(&conversation)?.iter().rev();
        let newest = sent.find(|(from, _)| *from <= seq)?;
        Some(&newest.1)
    }

    fn of(&self, conversation: ConversationId, seq: Seq) -> Option<String> {
        self.at(conversation, seq).or(self.set.as_ref()).cloned()
    }
}

/// Forks of forks that are followed to the context that the first one was given.
const FORKS: usize = 64;

/// The model that another agent's requests had at the event from which a fork continues.
fn of_origin(journal: &Connection, mut origin: Origin) -> Result<Option<String>> {
    const CONTEXT: &str = "SELECT json_extract(body, '$.model') FROM event
         WHERE agent = ?1 AND kind = 'context' AND conversation = ?2 AND seq <= ?3 AND json_valid(body)
         ORDER BY seq DESC LIMIT 1";
    const BEGAN: &str = "SELECT json_extract(body, '$.from') FROM event
         WHERE agent = ?1 AND kind = 'conversation_began' AND conversation = ?2 AND json_valid(body)";
    for _ in 0..FORKS {
        let Some(num) = agent_num(journal, origin.agent)? else {
            return Ok(None);
        };
        let conversation = IdParam(origin.conversation.as_bytes());
        let text = |row: &Row<'_>| Ok(row.get::<_, Option<String>>(0).ok().flatten());
        let mut statement = journal.prepare_cached(CONTEXT)?;
        let seq = i64::try_from(origin.seq.0).unwrap_or(i64::MAX);
        let model = statement.query_row(params![num, conversation, seq], text);
        if let Some(model) = model.optional()?.flatten() {
            return Ok(Some(model));
        }
        let mut statement = journal.prepare_cached(BEGAN)?;
        let from = statement.query_row(params![num, conversation], text);
        let from = from.optional()?.flatten();
        match from.and_then(|json| serde_json::from_str(&json).ok()) {
            Some(before) => origin = before,
            None => return Ok(None),
        }
    }
    Ok(None)
}

fn sums(journal: &Connection, num: i64, agent: AgentId, query: &SpendingQuery) -> Result<Sums> {
    // The condition on the kind is that of the index.
    let sql = format!(
        "SELECT {COLUMNS},
             CASE WHEN json_valid(body) THEN coalesce(json_extract(body, '$.model'),
                 json_extract(body, '$.spec.model')) END,
             CASE WHEN json_valid(body) THEN json_extract(body, '$.from') END
         FROM event INDEXED BY event_spending WHERE agent = ?1
             AND kind IN ('context', 'conversation_began', 'request_ended', 'spec_set')
         ORDER BY seq"
    );
    let mut statement = journal.prepare_cached(&sql)?;
    let mut rows = statement.query(params![num])?;
    let mut models = Models::default();
    let mut sums = Sums::new();
    while let Some(row) = rows.next()? {
        let stored = EventRow::read_of(row, agent)?;
        if stored.event.kind != Kind::RequestEnded.name() {
            // A value of another type says nothing about a model; `verify` reports it.
            let text = |n: usize| row.get::<_, Option<String>>(n).ok().flatten();
            let (model, origin) = (text(BEHIND), text(BEHIND + 1));
            let origin: Option<Origin> = origin.and_then(|json| serde_json::from_str(&json).ok());
            let model = match origin {
                Some(origin) if origin.agent != agent => of_origin(journal, origin)?,
                _ => model,
            };
            models.learn(&stored, model, origin);
            continue;
        }
        let event = stored.decode(journal, agent)?;
        if query.since.is_some_and(|since| event.at < since) {
            continue;
        }
        if let Body::RequestEnded(ended) = &event.body {
            let model = models.of(event.conversation, event.seq);
            let sum = sums.entry((event.conversation, model, event.at.day()));
            sum.or_default().add(ended.usage, ended.cost);
        }
    }
    Ok(sums)
}
