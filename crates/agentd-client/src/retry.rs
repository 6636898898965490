//! What happens when the daemon is not there, or goes away before it has answered.
//!
//! A question can always be asked again. A change carries an op, and so can be sent again: the daemon makes it once,
//! and answers as it did before.

use crate::error::{Error, Problem};
use agentd_core::id::OpId;
use futures_util::future::BoxFuture;
use std::time::Instant;

/// A request that was not answered.
#[derive(Debug)]
pub struct Unanswered {
    pub error: Error,
    /// The op of a change; none for a question.
    pub op: Option<OpId>,
    /// When the first of the tries in a row failed.
    pub since: Instant,
}

/// Decides whether a request that was not answered is sent again. The program that has the client knows how to
/// start a daemon; the client does not.
pub trait Retry: Send + Sync {
    /// Returns when it is time for the next try, or with the reason why there is none.
    fn again<'a>(&'a self, unanswered: &'a Unanswered) -> BoxFuture<'a, Result<(), Problem>>;
}
