//! The home: the state directory of a daemon, its identity, and whether it still exists.
//!
//! - `identity`: the identity of a home, by which a copy is recognized.
//! - `presence`: whether the directory is still the one that was opened.

mod identity;
mod presence;

pub use identity::{HomeIdentity, Suspicion, adopt, adopt_copy_of, boot_of, look};

use crate::layout::Layout;
use agentd_failpoint as failpoint;
use presence::Presence;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// A home that a daemon has opened.
#[derive(Debug)]
pub struct Home {
    pub identity: HomeIdentity,
    /// Why it is suspected to be a copy. Then it is only read, because the original may be in use.
    pub suspicion: Option<Suspicion>,
    presence: Presence,
    /// Set once the directory was found missing or replaced, and never cleared: what is there now is another directory.
    is_lost: AtomicBool,
}

impl Home {
    /// Called after the store is open, because the journal must exist.
    pub fn new(
        layout: &Layout,
        identity: HomeIdentity,
        suspicion: Option<Suspicion>,
    ) -> io::Result<Self> {
        let suspicion = suspicion.filter(|_| !failpoint::injected_bug("copy_unnoticed"));
        Ok(Self {
            identity,
            suspicion,
            presence: Presence::of(layout)?,
            is_lost: AtomicBool::new(false),
        })
    }

    /// Whether the path still names the directory that was opened. Once false, always false.
    pub fn is_there(&self) -> bool {
        if failpoint::injected_bug("loss_unnoticed") {
            return true;
        }
        if !self.is_lost.load(Ordering::Relaxed) && !self.presence.holds() {
            self.is_lost.store(true, Ordering::Relaxed);
        }
        !self.is_lost.load(Ordering::Relaxed)
    }

    /// Whether a check has found it missing or replaced.
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }
}
