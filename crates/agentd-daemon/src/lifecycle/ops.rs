//! A change with an op is made once. The op is in the commit of the change or, if a change takes several steps, in the
//! commit before the first step: a repeated request completes the remaining steps.

use crate::error::{Error, Kind, Result};
use agentd_core::event::{Body, OpReceipt, OpVerb, Operation};
use agentd_core::hook::digest;
use agentd_core::id::OpId;
use agentd_core::state::{AgentState, Made};
use agentd_failpoint as failpoint;
use serde::Serialize;

/// A requested change and its op.
#[derive(Clone, Debug)]
pub struct Asked {
    op: Option<OpId>,
    verb: OpVerb,
    digest: String,
}

impl Asked {
    /// `about` is the request without texts and keys: a digest of it is recorded in the journal.
    pub fn new(op: Option<OpId>, verb: OpVerb, about: &impl Serialize) -> Result<Self> {
        let about = serde_json::to_vec(about).map_err(|error| {
            Error::new(Kind::Internal, "the request cannot be digested").because(error)
        })?;
        let digest = digest(&[about.as_slice()]);
        Ok(Self { op, verb, digest })
    }

    /// A change by the daemon itself, without an op.
    pub const fn by_daemon(verb: OpVerb) -> Self {
        Self {
            op: None,
            verb,
            digest: String::new(),
        }
    }

    pub const fn op(&self) -> Option<OpId> {
        self.op
    }

    /// The change that was made with this op before; a conflict if that was a different change.
    pub fn made<'a>(&self, state: &'a AgentState) -> Result<Option<&'a Made>> {
        let Some(op) = self.op else { return Ok(None) };
        if failpoint::injected_bug("op_forgotten") {
            // An injected bug: the change is made a second time.
            return Ok(None);
        }
        Ok(state.made(op, self.verb, &self.digest)?)
    }

    pub fn is_made(&self, state: &AgentState) -> Result<bool> {
        Ok(self.made(state)?.is_some())
    }

    /// The record of the op, to be appended with the change.
    pub fn line(&self) -> Option<Body> {
        self.with(OpReceipt::None)
    }

    /// The same with a receipt, from which a repeated request is answered.
    pub fn with(&self, receipt: OpReceipt) -> Option<Body> {
        let operation = self.operation()?;
        Some(
            Operation {
                receipt,
                ..operation
            }
            .into(),
        )
    }

    /// The record for a change that the store makes.
    pub fn operation(&self) -> Option<Operation> {
        Some(Operation {
            op: self.op?,
            verb: self.verb,
            digest: self.digest.clone(),
            receipt: OpReceipt::None,
        })
    }
}
