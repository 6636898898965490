//! The checksum chain: `chain(n) = H(chain(n-1), header(n), H(salt, body))`, the body being its text
//! and the hashes of the parts that are stored separately.
//!
//! A purge deletes body and salt and keeps the inner hash, so the chain stays whole. Without the salt, the body
//! cannot be guessed by hashing candidates.

use agentd_core::id::{AgentId, ConversationId, Seq, TurnId};
use agentd_core::time::Timestamp;
use sha2::{Digest as _, Sha256};

pub type Hash = [u8; 32];
pub type Salt = [u8; 16];

/// The chain value before an agent's first event.
pub const GENESIS: Hash = [0; 32];

/// Everything about an event except its body.
pub struct Header<'a> {
    pub agent: AgentId,
    pub seq: Seq,
    pub at: Timestamp,
    pub conversation: ConversationId,
    pub turn: Option<TurnId>,
    pub kind: &'a str,
    pub version: u32,
}

pub fn digest(salt: &Salt, body: &str, apart: Option<&str>) -> Hash {
    Sha256::new()
        .chain_update(salt)
        .chain_update((body.len() as u64).to_le_bytes())
        .chain_update(body)
        .chain_update(apart.unwrap_or_default())
        .finalize()
        .into()
}

/// A new salt.
pub fn salt() -> std::io::Result<Salt> {
    let mut salt = Salt::default();
    getrandom::fill(&mut salt)?;
    Ok(salt)
}

pub fn link(prev: &Hash, header: &Header<'_>, digest: &Hash) -> Hash {
    let turn = header.turn.map(|turn| *turn.as_bytes()).unwrap_or_default();
    Sha256::new()
        .chain_update(prev)
        .chain_update(header.agent.as_bytes())
        .chain_update(header.seq.0.to_le_bytes())
        .chain_update(header.at.as_millis().to_le_bytes())
        .chain_update(header.conversation.as_bytes())
        .chain_update([u8::from(header.turn.is_some())])
        .chain_update(turn)
        .chain_update((header.kind.len() as u64).to_le_bytes())
        .chain_update(header.kind)
        .chain_update(header.version.to_le_bytes())
        .chain_update(digest)
        .finalize()
        .into()
}

/// The hash under which content is stored, so that equal content is stored once.
pub fn content_hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != N * 2 || !text.is_ascii() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}
