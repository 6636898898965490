//! The events that are appended to an imported journal: its origin, its new name, the op, and the hold.

use super::Entry;
use crate::chain::{self, Header};
use crate::error::{Error, Result};
use crate::sqlite::row::{IdParam, sql_seq};
use crate::store::Import;
use agentd_core::event::{AgentHeld, AgentImported, AgentRenamed, Body, HoldReason, NewEvent};
use agentd_core::time::Timestamp;
use rusqlite::{Connection, params};

/// `origin` is set if the journal got another id. The hold comes after all events of the file, so that they cannot
/// end it, and before the op, which is the user's.
pub fn adopt(
    journal: &Connection,
    entry: &mut Entry,
    order: Import,
    origin: Option<AgentImported>,
) -> Result<()> {
    let name = order.under.map(|under| under.name);
    let name = name.filter(|name| *name != entry.state.name);
    let reason = HoldReason::Imported;
    let bodies = origin.map(Body::from).into_iter();
    let bodies = bodies
        .chain(name.map(|name| AgentRenamed { name }.into()))
        .chain([AgentHeld { reason }.into()])
        .chain(order.operation.map(Body::from));
    for body in bodies {
        append(journal, entry, order.at, body)?;
    }
    Ok(())
}

fn append(journal: &Connection, entry: &mut Entry, at: Timestamp, body: Body) -> Result<()> {
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
        at,
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
