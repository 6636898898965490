//! What is appended to an imported journal: where it comes from, and its new name.

use super::Entry;
use crate::chain::{self, Header};
use crate::error::{Error, Result};
use crate::sqlite::row::{IdParam, sql_seq};
use crate::store::ImportAs;
use agentd_core::event::{AgentImported, AgentRenamed, AgentStopped, Body, NewEvent};
use rusqlite::{Connection, params};

/// `origin` is there where the journal got another id.
pub fn adopt(
    journal: &Connection,
    entry: &mut Entry,
    under: &ImportAs,
    origin: Option<AgentImported>,
) -> Result<()> {
    let is_copy = origin.is_some();
    let mut bodies: Vec<Body> = origin.map(Body::from).into_iter().collect();
    if entry.state.name != under.name {
        let name = under.name.clone();
        bodies.push(AgentRenamed { name }.into());
    }
    // The agent that it is a copy of may be at work on the same turn and the same prompts.
    if is_copy && (entry.state.turn.is_some() || entry.state.inbox.waiting().len() > 0) {
        bodies.push(AgentStopped {}.into());
    }
    for body in bodies {
        append(journal, entry, under, body)?;
    }
    Ok(())
}

fn append(journal: &Connection, entry: &mut Entry, under: &ImportAs, body: Body) -> Result<()> {
    let Some(conversation) = entry.state.tree.current() else {
        return Err(Error::BadExport(
            "an agent without a conversation".to_owned(),
        ));
    };
    let kind = body.kind();
    let text = body.to_json().map_err(Error::Encode)?;
    let text = text.ok_or(Error::WithoutWords)?;
    let salt = chain::salt().map_err(Error::NoRandomness)?;
    let digest = chain::digest(&salt, &text, None);
    let event = NewEvent {
        at: under.at,
        conversation,
        turn: None,
        body,
    };
    let event = event.placed(entry.state.id, entry.state.head.next());
    let header = Header {
        agent: event.agent,
        seq: event.seq,
        at: event.at,
        conversation,
        turn: None,
        kind: kind.name(),
        version: kind.version(),
    };
    entry.chain = chain::link(&entry.chain, &header, &digest);
    journal
        .prepare_cached(
            "INSERT INTO event (agent, seq, at, conversation, kind, version, body, salt, digest, chain)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            entry.num,
            sql_seq(event.seq),
            event.at.as_millis(),
            IdParam(conversation.as_bytes()),
            kind.name(),
            kind.version(),
            text,
            salt,
            digest,
            entry.chain,
        ])?;
    entry.state.apply(&event);
    Ok(())
}
