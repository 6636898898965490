//! Leaving the sandbox for one call, which the user is asked about.

use super::context::Escalation;

/// The description of the argument, for the model.
pub(super) const ESCALATE: &str = "Only if the call failed, or will fail, because of the sandbox: why it must write \
     outside of the working directory or use the network. The user is asked to approve it.";

/// By the argument of a call that runs: it asked for approval before.
pub(super) const fn escalation(reason: Option<&str>) -> Escalation {
    match reason {
        None => Escalation::None,
        Some(_) => Escalation::Approved,
    }
}
