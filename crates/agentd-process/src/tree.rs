//! Ending a process with all its descendants.

use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::shim_protocol::is_shim;
use crate::signal::{Signal, signal};
use crate::snapshot::Snapshot;
use crate::stat::Stat;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// How long killed processes may take to end.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);

/// Ends a process and all its processes: SIGTERM first, SIGKILL after `grace`.
///
/// Its processes are its descendants and, if it leads a group or a session, the members of that group or session. Shims
/// and their descendants are spared, because tasks are ended through [`task`](crate::task); if the process is itself a
/// shim, nothing is ended. Blocks until none is left; a zombie does not count, because its parent reaps it. A process
/// that has already left its parents, group and session is not found.
pub fn kill_tree(root: Identity, grace: Duration) -> Result<()> {
    let mut hunt = Hunt::new([root], |snapshot| {
        // The id of a group or a session is the pid of its leader: if that was reused, the members are unrelated.
        if snapshot.holder(root.pid) != Some(root) || is_shim(root.pid) {
            return Vec::new();
        }
        let related = |stat: &Stat| stat.group == root.pid || stat.session == root.pid;
        snapshot.all_that(related).collect()
    });
    hunt.stop_at_shims = true;
    hunt.end(grace)
}

/// All living descendants of this process: complete if it adopts orphans.
pub fn descendants() -> Result<Vec<Identity>> {
    Hunt::new([], children).look()
}

/// Kills all descendants of this process, including tasks and their shims. Blocks until none is left.
pub fn kill_descendants() -> Result<()> {
    Hunt::new([], children).end(Duration::ZERO)
}

/// The oldest living child of a process.
pub(crate) fn first_child(parent: Identity) -> Result<Option<Identity>> {
    let snapshot = Snapshot::take()?;
    if snapshot.holder(parent.pid) != Some(parent) {
        return Ok(None);
    }
    let children = snapshot.all_that(|stat| stat.parent == parent.pid && !stat.has_ended());
    Ok(children.min_by_key(|child| (child.start_ticks, child.pid)))
}

fn children(snapshot: &Snapshot) -> Vec<Identity> {
    let me = std::process::id();
    snapshot.all_that(|stat| stat.parent == me).collect()
}

/// Searches repeatedly for the processes of a tree until none is left.
pub struct Hunt<F> {
    /// A process that was seen once stays known, even if its parent changes.
    known: HashSet<Identity>,
    /// Finds further roots, again at every search.
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

    /// All living processes of the tree.
    fn look(&mut self) -> Result<Vec<Identity>> {
        let snapshot = Snapshot::take()?;
        let me = std::process::id();
        let mut roots: Vec<Identity> = self.known.iter().copied().collect();
        roots.extend((self.more)(&snapshot));
        let spared = |pid| pid <= 1 || pid == me || (self.stop_at_shims && is_shim(pid));
        self.known = snapshot.trees(roots, spared);
        self.known.retain(|one| snapshot.is_alive(*one));
        Ok(self.known.iter().copied().collect())
    }

    pub fn end(mut self, grace: Duration) -> Result<()> {
        let begin = Instant::now();
        let mut asked = HashSet::new();
        let mut was_empty = false;
        loop {
            let alive = self.look()?;
            match (alive.is_empty(), was_empty) {
                (true, true) => return Ok(()),
                // A process whose parent ended during the search could have been missed: search once more.
                (true, false) => {
                    was_empty = true;
                    continue;
                }
                (false, _) => was_empty = false,
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
            // tidy: polls until none is left
            std::thread::sleep(PAUSE);
        }
    }
}

/// Sends SIGTERM, and SIGCONT so that a stopped process receives it. Errors are ignored: the caller kills what is left.
pub fn ask(one: Identity) {
    drop(signal(one, Signal::TERM));
    drop(signal(one, Signal::CONT));
}

/// Kills a process. Errors are ignored: the caller kills what is left at its next search.
pub fn kill(one: Identity) {
    drop(signal(one, Signal::KILL));
}
