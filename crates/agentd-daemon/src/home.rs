//! The home: the state directory that a daemon works in. Which one it is, and whether it is still there.
//!
//! - `identity`: what a home knows itself by, so that a copy is not taken for it.
//! - `presence`: whether the directory is still the one that was opened.

mod identity;
mod presence;

pub use identity::{HomeIdentity, Suspicion, adopt, boot_of, look};

use crate::layout::Layout;
use agentd_process::failpoint;
use presence::Presence;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// A home that a daemon has opened.
#[derive(Debug)]
pub struct Home {
    pub identity: HomeIdentity,
    /// Why it is taken for a copy. Then it is only read: the original may be in use at this very moment.
    pub suspicion: Option<Suspicion>,
    presence: Presence,
    /// It was gone at some time; whatever is there now is something else.
    is_lost: AtomicBool,
}

impl Home {
    /// To be called once the store is open.
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

    /// Whether what is written now is in the directory that its path names. Once it is not, it never is again.
    pub fn is_there(&self) -> bool {
        if failpoint::injected_bug("loss_unnoticed") {
            return true;
        }
        if !self.is_lost.load(Ordering::Relaxed) && !self.presence.holds() {
            self.is_lost.store(true, Ordering::Relaxed);
        }
        !self.is_lost.load(Ordering::Relaxed)
    }

    /// Whether it was seen to be gone.
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }
}
