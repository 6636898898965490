//! What the driver found out about the world after a crash.

use crate::draft::Reply;
use crate::event::After;
use crate::id::{CallId, Incarnation};
use crate::turn::Finished;
use crate::usage::Price;
use std::collections::BTreeMap;

/// What the driver found out about the world.
#[derive(Clone, Debug)]
pub struct Facts {
    pub incarnation: Incarnation,
    pub after: After,
    /// What had been streamed of the request in flight.
    pub draft: Reply,
    /// What became of each call that was started. One that is not listed is unknown.
    pub calls: BTreeMap<CallId, CallFact>,
    pub price: Option<Price>,
    /// Tools run without a sandbox.
    pub full_access: bool,
}

/// What became of a started call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallFact {
    /// Its process still runs: wait for it.
    Running,
    /// It ended, and its result was kept.
    Ended(Finished),
    /// It never began, and now never will.
    NotStarted,
    /// Nobody can tell.
    Unknown,
}
