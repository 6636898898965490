//! Leaving the sandbox for one call, after the user has approved what it needs.

use super::failure::Failure;
use agentd_core::needs::{FORM, Invalid, Need};
use agentd_failpoint as failpoint;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The description of the argument, for the model.
pub(super) const ESCALATE: &str = "Set only if the call failed, or will fail, because of the sandbox: the reason. The user is asked to approve it.";

/// The same for `needs`.
pub(super) const NEEDS: &str = "With `escalate`: what the call needs beyond the sandbox, as narrow as possible: \
     \"write:PATH\", \"read:PATH\", \"service:NAME\" (ssh-agent, gpg-agent, docker, kube, gh), \"host:NAME\", \
     \"git-config\", \"everything\".";

/// What a call asks for beyond its sandbox, as the model wrote it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked<'a> {
    pub reason: Option<&'a str>,
    pub needs: Option<&'a [String]>,
    /// It would keep what it gets after its call has ended: the user is asked about each such call, whatever the rules allow.
    pub in_background: bool,
}

impl<'a> Asked<'a> {
    pub fn new(reason: &'a Option<String>, needs: &'a Option<Vec<String>>) -> Self {
        Self {
            reason: reason.as_deref(),
            needs: needs.as_deref(),
            in_background: false,
        }
    }

    pub const fn in_background(self, in_background: bool) -> Self {
        Self {
            in_background,
            ..self
        }
    }
}

/// Whether a call runs with more rights than the sandbox gives. A call that asks for that runs only after the user, or a
/// rule of the user, has approved it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Escalation {
    None,
    /// Exactly this in addition.
    Needs(Arc<[Need]>),
    /// The user approved the call when calls did not say yet what they need: it keeps the wider sandbox that the user
    /// was told of. No call that is made now gets it.
    Unnamed,
}

impl Escalation {
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }

    pub fn is_everything(&self) -> bool {
        matches!(self, Self::Needs(needs) if needs.contains(&Need::Everything))
    }

    /// Refuses a call that does not say what it needs, unless the user has approved it as it is.
    pub fn check_named(&self) -> Result<(), Failure> {
        match self {
            Self::Unnamed if failpoint::injected_bug("needs_unchecked") => Ok(()),
            Self::Unnamed => Err(refused(&Invalid::Missing)),
            Self::None | Self::Needs(_) => Ok(()),
        }
    }
}

/// For the model, with the form of the entries.
pub(super) fn refused(error: &Invalid) -> Failure {
    Failure::new(format!("Nothing was run: {error}. {FORM}"))
}

#[cfg(test)]
mod tests;
