//! Which pieces of a draft are kept.

use crate::error::{Error, Result};
use crate::store::DraftChunk;
use agentd_core::draft::{MAX_DRAFT, MAX_PIECE};
use agentd_core::id::TryId;

pub fn check_size(chunk: &DraftChunk) -> Result<()> {
    let size = chunk.bytes.len();
    if size > MAX_PIECE {
        return Err(Error::TooLarge {
            what: "a piece of a draft",
            size,
            unit: "bytes",
            limit: MAX_PIECE,
        });
    }
    let whole = chunk.offset.saturating_add(size as u64);
    if whole > MAX_DRAFT as u64 {
        return Err(Error::TooLarge {
            what: "a draft",
            size: usize::try_from(whole).unwrap_or(usize::MAX),
            unit: "bytes",
            limit: MAX_DRAFT,
        });
    }
    Ok(())
}

/// What is done with a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Keep,
    /// It has no bytes: there is nothing to store, and the sender gets the same answer as for `Keep`.
    Empty,
    /// The try has ended, or the offset is not where the draft stops.
    Drop,
}

/// `draft` is the newest draft and its length, `ended` the newest try whose draft has ended.
pub fn judge(chunk: &DraftChunk, draft: Option<(TryId, u64)>, ended: TryId) -> Verdict {
    let request = chunk.request;
    let expected = match draft {
        Some((of, stops_at)) if of == request => stops_at,
        // A newer try replaces an older one that never ended. An older try never replaces a newer one.
        Some((of, _)) if of > request => return Verdict::Drop,
        _ => 0,
    };
    if request <= ended || chunk.offset != expected {
        return Verdict::Drop;
    }
    if chunk.bytes.is_empty() {
        return Verdict::Empty;
    }
    Verdict::Keep
}
