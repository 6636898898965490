//! An event as it is stored: its header, its body as JSON, and its checksums.

use crate::apart;
use crate::chain::{self, Hash, Header, Salt};
use crate::damage::Unreadable;
use crate::error::Result;
use agentd_core::event::{Body, Event};
use agentd_core::id::{AgentId, ConversationId, Seq, TurnId};
use agentd_core::time::Timestamp;

#[derive(Clone, Debug)]
pub struct StoredEvent {
    pub seq: Seq,
    pub at: Timestamp,
    pub conversation: ConversationId,
    pub turn: Option<TurnId>,
    pub kind: String,
    pub version: u32,
    /// None if it was purged.
    pub body: Option<String>,
    pub apart: Option<String>,
    pub salt: Option<Salt>,
    pub digest: Hash,
    pub chain: Hash,
}

impl StoredEvent {
    /// Whether this event follows `prev`. The body is checked when it is decoded.
    pub fn check(&self, agent: AgentId, seq: Seq, prev: &Hash) -> Result<(), Unreadable> {
        if self.seq != seq {
            return Err(Unreadable::Gap);
        }
        if chain::link(prev, &self.header(agent), &self.digest) != self.chain {
            return Err(Unreadable::BrokenChain);
        }
        Ok(())
    }

    /// Whether the body matches its checksum. A purged event has neither body nor salt.
    pub fn is_unchanged(&self) -> bool {
        match (&self.body, &self.salt) {
            (Some(body), Some(salt)) => {
                chain::digest(salt, body, self.apart.as_deref()) == self.digest
            }
            (None, None) => true,
            _ => false,
        }
    }

    pub fn header(&self, agent: AgentId) -> Header<'_> {
        Header {
            agent,
            seq: self.seq,
            at: self.at,
            conversation: self.conversation,
            turn: self.turn,
            kind: &self.kind,
            version: self.version,
        }
    }

    /// The event, with its separately stored strings put back; `find` looks one up. The outer error is the backend's,
    /// the inner one concerns the event.
    pub fn decode(
        self,
        agent: AgentId,
        find: impl FnMut(&Hash) -> Result<Option<String>>,
    ) -> Result<Result<Event, Unreadable>> {
        if !self.is_unchanged() {
            return Ok(Err(Unreadable::BodyChanged));
        }
        let body = match (&self.body, &self.apart) {
            (None, _) => Body::purged(&self.kind, self.version),
            (Some(json), None) => Body::from_json(&self.kind, self.version, json),
            (Some(json), Some(apart)) => match apart::put_back(json, apart, find)? {
                Some(value) => Body::from_value(&self.kind, self.version, value),
                None => return Ok(Err(Unreadable::BlobMissing)),
            },
        };
        Ok(match body {
            Ok(body) => Ok(Event {
                agent,
                seq: self.seq,
                at: self.at,
                conversation: self.conversation,
                turn: self.turn,
                body,
            }),
            Err(reason) => Err(Unreadable::Undecodable(reason)),
        })
    }
}
