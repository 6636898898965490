//! What the driver determined about the outside world after a crash.

use crate::draft::Reply;
use crate::event::After;
use crate::finished::Finished;
use crate::id::{CallId, Incarnation};
use crate::usage::Price;
use std::collections::BTreeMap;

/// What the driver determined about the outside world.
#[derive(Clone, Debug)]
pub struct Facts {
    pub incarnation: Incarnation,
    pub after: After,
    /// The part of the reply in flight that had been streamed.
    pub draft: Reply,
    /// What happened to each call that was started. A call that is not listed is unknown.
    pub calls: BTreeMap<CallId, CallFact>,
    pub price: Option<Price>,
    /// Tools run without a sandbox.
    pub full_access: bool,
}

/// What happened to a started call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallFact {
    /// Its process is still running: wait for it.
    Running,
    /// It ended, and its result was recorded.
    Ended(Finished),
    /// It never started, and never will.
    NotStarted,
    /// It cannot be determined.
    Unknown,
}
