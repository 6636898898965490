//! Retries of requests when the daemon is not running or dies before it has answered.
//!
//! A request that only reads can always be sent again. A change carries an op and so can be sent again: the daemon
//! makes it once and gives the same answer.

use crate::error::{Error, Problem};
use agentd_core::id::OpId;
use futures_util::future::BoxFuture;
use std::time::Instant;

/// A request that was not answered.
#[derive(Debug)]
pub struct Unanswered {
    pub error: Error,
    /// The op of a change; none for a request that only reads.
    pub op: Option<OpId>,
    /// When the first of these attempts failed.
    pub since: Instant,
}

/// Decides whether a request that was not answered is sent again. The program implements it, because it knows how to
/// start a daemon and the client does not.
pub trait Retry: Send + Sync {
    /// Returns when it is time for the next attempt, or with the reason why there is none.
    fn again<'a>(&'a self, unanswered: &'a Unanswered) -> BoxFuture<'a, Result<(), Problem>>;
}
