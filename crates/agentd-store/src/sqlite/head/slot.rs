//! The bytes of the journal's head: two slots, written alternately, each with its own checksum.
//!
//! The newest intact slot stays valid, however a write of the other one ends.

use crate::chain::{Hash, content_hash};
use agentd_core::id::{AgentId, Seq};

/// Bytes of one slot: one page on all common file systems.
pub const SLOT: usize = 4096;
pub const SLOTS: usize = 2;
/// Agents that one slot lists, newest first.
pub const TIPS: usize = (SLOT - HEADER - SUM) / TIP;

const MAGIC: &[u8; 8] = b"agentdH1";
const HEADER: usize = 32;
const TIP: usize = 64;
const SUM: usize = 32;

/// The last committed event of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tip {
    pub agent: AgentId,
    pub seq: Seq,
    /// Its position in the order of all commits.
    pub position: u64,
    pub chain: Hash,
}

/// The contents of a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// Counts writes; the slot with the higher number is the newer one.
    pub generation: u64,
    /// The agents that were written to most recently, newest first. Empty: the journal has no event.
    pub tips: Vec<Tip>,
}

impl Slot {
    pub fn encode(&self) -> Vec<u8> {
        let tips = self.tips.get(..TIPS).unwrap_or(&self.tips);
        let mut bytes = Vec::with_capacity(HEADER + tips.len() * TIP + SUM);
        bytes.extend(MAGIC);
        bytes.extend(self.generation.to_le_bytes());
        bytes.extend((tips.len() as u64).to_le_bytes());
        bytes.resize(HEADER, 0);
        for tip in tips {
            bytes.extend(tip.agent.as_bytes());
            bytes.extend(tip.seq.0.to_le_bytes());
            bytes.extend(tip.position.to_le_bytes());
            bytes.extend(tip.chain);
        }
        let sum = content_hash(&bytes);
        bytes.extend(sum);
        bytes
    }

    /// None if these bytes are not an intact slot.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.get(..8)? != MAGIC {
            return None;
        }
        let generation = number(bytes, 8)?;
        let count = usize::try_from(number(bytes, 16)?).ok()?;
        if count > TIPS {
            return None;
        }
        let end = HEADER + count * TIP;
        if content_hash(bytes.get(..end)?) != *bytes.get(end..end + SUM)? {
            return None;
        }
        let tips = (0..count).map(|index| {
            let at = HEADER + index * TIP;
            Some(Tip {
                agent: AgentId::from_bytes(bytes.get(at..at + 16)?.try_into().ok()?),
                seq: Seq(number(bytes, at + 16)?),
                position: number(bytes, at + 24)?,
                chain: bytes.get(at + 32..at + 64)?.try_into().ok()?,
            })
        });
        Some(Self {
            generation,
            tips: tips.collect::<Option<_>>()?,
        })
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(tips: usize) -> Slot {
        let tip = |n: usize| Tip {
            agent: AgentId::from_bytes([n as u8; 16]),
            seq: Seq(n as u64 + 1),
            position: 1000 - n as u64,
            chain: [n as u8; 32],
        };
        Slot {
            generation: 7,
            tips: (0..tips).map(tip).collect(),
        }
    }

    #[test]
    fn a_slot_is_read_as_it_was_written() {
        for tips in [0, 1, TIPS] {
            let bytes = slot(tips).encode();
            assert!(bytes.len() <= SLOT);
            assert_eq!(Slot::decode(&bytes), Some(slot(tips)));
        }
        // More than fit: the newest are kept.
        let kept = Slot::decode(&slot(TIPS + 1).encode()).unwrap();
        assert_eq!(kept.tips, slot(TIPS).tips);
    }

    #[test]
    fn a_slot_that_was_changed_or_cut_is_no_slot() {
        let bytes = slot(3).encode();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Slot::decode(&flipped), None, "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert_eq!(Slot::decode(&bytes[..len]), None, "{len} bytes");
        }
        assert_eq!(Slot::decode(&[0; SLOT]), None);
    }
}
