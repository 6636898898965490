//! Digests of byte strings, and the UUIDs that are derived from them.

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// A UUID that is derived from these parts.
pub(crate) fn uuid_of(parts: &[&[u8]]) -> Uuid {
    let hash = hash(parts);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// The SHA-256 of these bytes, in hex.
pub fn sha256(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A digest of these parts, in hex.
pub fn digest(parts: &[&[u8]]) -> String {
    let hash = hash(parts);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
