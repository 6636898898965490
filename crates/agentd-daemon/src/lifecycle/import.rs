//! Takes an agent from a portable file, under its own name or another one.

use crate::clock;
use crate::daemon::Daemon;
use crate::lifecycle::create::checked_name;
use crate::problem::{Result, of_store};
use agentd_client::api::Import;
use agentd_core::id::{AgentId, OpId};
use agentd_store::{ImportAs, Imported};
use bytes::Bytes;
use std::io::Cursor;

/// A copy has an id that follows from its op: asked for again, it is made once.
pub async fn import(
    daemon: &Daemon,
    ask: Import,
    op: Option<OpId>,
    file: Bytes,
) -> Result<Imported> {
    let copy = op.map(AgentId::of_op);
    if let (Some(copy), Some(_)) = (copy, &ask.name)
        && daemon.desk(copy).await.is_ok()
    {
        return Ok(Imported {
            agent: copy,
            events: 0,
            displaced: None,
        });
    }
    let input = Box::new(Cursor::new(file));
    let imported = match ask.name {
        Some(name) => {
            let under = ImportAs {
                name: checked_name(&name)?,
                id: copy.unwrap_or_else(|| AgentId::new(clock::new_id())),
                at: clock::now(),
            };
            daemon.store.import_as(input, under).await
        }
        None => daemon.store.import(input).await,
    };
    imported.map_err(|error| of_store(&error))
}
