//! Leaving the sandbox for one call, after the user has approved it.

use super::context::Escalation;

/// The description of the argument, for the model.
pub(super) const ESCALATE: &str = "Set only if the call failed, or will fail, because of the sandbox: the reason why \
     it must write outside the working directory or use the network. The user is asked to approve it.";

/// From the argument of a call that runs: its approval was checked before.
pub(super) const fn escalation(reason: Option<&str>) -> Escalation {
    match reason {
        None => Escalation::None,
        Some(_) => Escalation::Approved,
    }
}
