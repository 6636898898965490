//! Ending a process with everything below it.

use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::shim;
use crate::signal::{Signal, signal};
use crate::snapshot::Snapshot;
use crate::stat::Stat;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// How long the killed may take to go away.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);

/// Ends a process and all that it started: asked to at first, killed after `grace`.
///
/// That is its descendants and, where it leads a group or a session, whoever is in that. It stops at
/// shims: a task has its own life, and [`task`](crate::task) its own way to end it; of a shim itself
/// nothing is ended. Blocks until nobody is left; a zombie is nobody, and is left to its parent to
/// reap. What has left its parents, group and session before is not found.
pub fn kill_tree(root: Identity, grace: Duration) -> Result<()> {
    let mut hunt = Hunt::new([root], |snapshot| {
        // A group and a session are known by who they are named after alone.
        if snapshot.holder(root.pid) != Some(root) || shim::is_shim(root.pid) {
            return Vec::new();
        }
        let related = |stat: &Stat| stat.group == root.pid || stat.session == root.pid;
        snapshot.all_that(related).collect()
    });
    hunt.stop_at_shims = true;
    hunt.end(grace)
}

/// Everybody alive below this process: complete where orphans come to it.
pub fn descendants() -> Result<Vec<Identity>> {
    Hunt::new([], children).look()
}

/// Kills everybody below this process, tasks and what looks after them too. Blocks until nobody is left.
pub fn kill_descendants() -> Result<()> {
    Hunt::new([], children).end(Duration::ZERO)
}

fn children(snapshot: &Snapshot) -> Vec<Identity> {
    let me = std::process::id();
    snapshot.all_that(|stat| stat.parent == me).collect()
}

/// The search for everybody who belongs to a tree, over and over until nobody is left.
pub struct Hunt<F> {
    /// Once seen they stay known, whoever their parent becomes.
    known: HashSet<Identity>,
    /// Whom else to look below, every time.
    more: F,
    pub stop_at_shims: bool,
}

impl<F: Fn(&Snapshot) -> Vec<Identity>> Hunt<F> {
    pub fn new(known: impl IntoIterator<Item = Identity>, more: F) -> Self {
        Self {
            known: known.into_iter().collect(),
            more,
            stop_at_shims: false,
        }
    }

    /// Everybody alive now.
    fn look(&mut self) -> Result<Vec<Identity>> {
        let snapshot = Snapshot::take()?;
        let me = std::process::id();
        let mut roots: Vec<Identity> = self.known.iter().copied().collect();
        roots.extend((self.more)(&snapshot));
        let spared = |pid| pid <= 1 || pid == me || (self.stop_at_shims && shim::is_shim(pid));
        self.known = snapshot.trees(roots, spared);
        self.known.retain(|one| snapshot.is_alive(*one));
        Ok(self.known.iter().copied().collect())
    }

    pub fn end(mut self, grace: Duration) -> Result<()> {
        let begin = Instant::now();
        let mut asked = HashSet::new();
        let mut nobody = false;
        loop {
            let alive = self.look()?;
            match (alive.is_empty(), nobody) {
                (true, true) => return Ok(()),
                // Somebody whose parent ended while we looked could have been missed: once more.
                (true, false) => {
                    nobody = true;
                    continue;
                }
                (false, _) => nobody = false,
            }
            let spent = begin.elapsed();
            if spent > grace.saturating_add(PATIENCE) {
                return Err(Error::CannotEnd { left: alive });
            }
            for one in alive {
                if spent >= grace {
                    kill(one);
                } else if asked.insert(one) {
                    ask(one);
                }
            }
            // tidy: polls until nobody is left
            std::thread::sleep(PAUSE);
        }
    }
}

/// Asks a process to end, and wakes it up to hear it. One that we may not signal is seen again.
pub fn ask(one: Identity) {
    drop(signal(one, Signal::TERM));
    drop(signal(one, Signal::CONT));
}

/// Kills a process. One that we may not signal is seen again.
pub fn kill(one: Identity) {
    drop(signal(one, Signal::KILL));
}
