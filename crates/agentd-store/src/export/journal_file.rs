//! Writes an export file of an agent that was never in a store: the events of a history that is converted.

use super::Writer;
use crate::apart;
use crate::chain::{self, GENESIS, Hash, Salt};
use crate::error::{Error, Result};
use crate::stored::StoredEvent;
use agentd_core::event::Event;
use agentd_core::id::AgentId;
use sha2::{Digest as _, Sha256};
use std::io::Write;

/// An export file with one journal. Events are written as they come, in order.
pub struct JournalFile<W: Write> {
    writer: Writer<W>,
    seed: [u8; 32],
    chain: Hash,
}

impl<W: Write> JournalFile<W> {
    /// `seed` is a digest of everything that is converted, and is not stored. Salts are derived from it: the same history
    /// gives the same file, and after a purge no text can be guessed without the rest of the history.
    pub fn new(out: W, agent: AgentId, seed: [u8; 32]) -> Result<Self> {
        let mut writer = Writer::new(out, agent)?;
        writer.journal(agent)?;
        Ok(Self {
            writer,
            seed,
            chain: GENESIS,
        })
    }

    pub fn event(&mut self, event: &Event) -> Result<()> {
        let kind = event.body.kind();
        let text = event.body.to_json().map_err(Error::Encode)?;
        let split = apart::split(text.ok_or(Error::WithoutWords)?)?;
        let salt = self.salt(event);
        let digest = chain::digest(&salt, &split.body, split.apart.as_deref());
        let mut row = StoredEvent {
            seq: event.seq,
            at: event.at,
            conversation: event.conversation,
            turn: event.turn,
            kind: kind.name().to_owned(),
            version: kind.version(),
            body: Some(split.body),
            apart: split.apart,
            salt: Some(salt),
            digest,
            chain: GENESIS,
        };
        row.chain = chain::link(&self.chain, &row.header(event.agent), &digest);
        self.chain = row.chain;
        for text in split.texts {
            self.writer.blob(text.hash, text.text)?;
        }
        self.writer.event(row)
    }

    fn salt(&self, event: &Event) -> Salt {
        let hash = Sha256::new()
            .chain_update(self.seed)
            .chain_update(event.seq.0.to_le_bytes())
            .finalize();
        let mut salt = Salt::default();
        for (byte, hashed) in salt.iter_mut().zip(hash) {
            *byte = hashed;
        }
        salt
    }

    /// The number of events.
    pub fn finish(self) -> Result<u64> {
        self.writer.finish()
    }
}
