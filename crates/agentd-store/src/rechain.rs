//! Rewrites a journal for another agent id: the same events, with a new checksum chain.

use crate::chain::{self, GENESIS, Hash};
use crate::error::{Error, Result};
use crate::export::Item;
use crate::stored::StoredEvent;
use agentd_core::event::{Body, Compacted, Kind, Summary};
use agentd_core::id::AgentId;
use sha2::{Digest as _, Sha256};

/// Gives the exported agent the id `to`. The file was verified when it was read.
///
/// Events that refer to the agent itself then refer to the new id. Its subagents and its parent belong to the old
/// agent, and the new one must not act on them: they get ids that no agent has. An import into another home has the
/// same effect, because these agents do not exist there.
pub struct Rechain {
    from: AgentId,
    pub to: AgentId,
    /// The checksum of the last event, inside the journal that is rewritten.
    chain: Option<Hash>,
}

impl Rechain {
    pub const fn new(from: AgentId, to: AgentId) -> Self {
        let chain = None;
        Self { from, to, chain }
    }

    /// The next entry of the file, rewritten.
    pub fn item(&mut self, item: Item) -> Result<Item> {
        let (from, to) = (self.from, self.to);
        Ok(match (item, &mut self.chain) {
            (Item::Journal(agent), chain) => {
                *chain = (agent == from).then_some(GENESIS);
                Item::Journal(if agent == from { to } else { agent })
            }
            (Item::Event(mut row), Some(chain)) => {
                relink(&mut row, chain, from, to)?;
                Item::Event(row)
            }
            (other, _) => other,
        })
    }
}

fn relink(row: &mut StoredEvent, chain: &mut Hash, from: AgentId, to: AgentId) -> Result<()> {
    let body = row.body.as_ref().filter(|_| names_agents(&row.kind));
    if let (Some(body), Some(salt)) = (body, &row.salt) {
        let mut body = Body::from_json(&row.kind, row.version, body)
            .map_err(|error| Error::BadExport(error.to_string()))?;
        replace(&mut body, from, to);
        row.version = body.kind().version();
        row.body = body.to_json().map_err(Error::Encode)?;
        let text = row.body.as_deref().unwrap_or_default();
        row.digest = chain::digest(salt, text, row.apart.as_deref());
    }
    *chain = chain::link(chain, &row.header(to), &row.digest);
    row.chain = *chain;
    Ok(())
}

/// Whether events of this kind contain agent ids. What is stored separately of a summary is its text, which stays.
fn names_agents(kind: &str) -> bool {
    let kinds = [
        Kind::ConversationBegan,
        Kind::SubagentStarted,
        Kind::SubagentEnded,
        Kind::SubagentOf,
        Kind::Compacted,
        Kind::Summary,
    ];
    kinds.iter().any(|known| known.name() == kind)
}

fn replace(body: &mut Body, from: AgentId, to: AgentId) {
    match body {
        Body::ConversationBegan(began) => {
            if let Some(origin) = began.from.as_mut().filter(|origin| origin.agent == from) {
                origin.agent = to;
            }
        }
        Body::Compacted(Compacted { through }) | Body::Summary(Summary { through, .. })
            if through.agent == from =>
        {
            through.agent = to;
        }
        Body::SubagentStarted(started) => started.agent = stranger(started.agent, to),
        Body::SubagentEnded(ended) => ended.agent = stranger(ended.agent, to),
        Body::SubagentOf(of) => of.parent = stranger(of.parent, to),
        _ => {}
    }
}

/// An id that no agent has: a UUID of version 8, derived from the two ids.
fn stranger(other: AgentId, to: AgentId) -> AgentId {
    let hash: Hash = Sha256::new()
        .chain_update(to.as_bytes())
        .chain_update(other.as_bytes())
        .finalize()
        .into();
    let mut bytes = [0; 16];
    for (byte, hashed) in bytes.iter_mut().zip(hash) {
        *byte = hashed;
    }
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    AgentId::from_bytes(bytes)
}
