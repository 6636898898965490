//! All processes at about one moment, and their parent relations.

use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::stat::{self, Stat};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

const PROC: &str = "/proc";

/// The processes are read one by one. One that was started, or whose parent ended, in the meantime may be missing: a
/// caller that must not miss any takes another snapshot.
pub struct Snapshot {
    all: HashMap<u32, Stat>,
}

impl Snapshot {
    pub fn take() -> Result<Self> {
        let cannot = |source| Error::CannotUse {
            path: PathBuf::from(PROC),
            source,
        };
        let mut all = HashMap::new();
        for entry in std::fs::read_dir(PROC).map_err(cannot)? {
            let name = entry.map_err(cannot)?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // A process that we may not read is not ours.
            if let Ok(Some(stat)) = stat::read(pid) {
                all.insert(pid, stat);
            }
        }
        Ok(Self { all })
    }

    pub fn stat(&self, one: Identity) -> Option<&Stat> {
        let stat = self.all.get(&one.pid);
        stat.filter(|stat| stat.start_ticks == one.start_ticks)
    }

    /// The process with the pid.
    pub fn holder(&self, pid: u32) -> Option<Identity> {
        self.all.get(&pid).map(|stat| identity(pid, stat))
    }

    /// The processes that match, ended or not.
    pub fn all_that(&self, is_so: impl Fn(&Stat) -> bool) -> impl Iterator<Item = Identity> {
        self.all
            .iter()
            .filter(move |(_, stat)| is_so(stat))
            .map(|(pid, stat)| identity(*pid, stat))
    }

    /// The roots that exist and all their descendants, except a `spared` process and its descendants. Some may have
    /// ended.
    pub fn trees(
        &self,
        roots: impl IntoIterator<Item = Identity>,
        spared: impl Fn(u32) -> bool,
    ) -> HashSet<Identity> {
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for (pid, stat) in &self.all {
            children.entry(stat.parent).or_default().push(*pid);
        }
        let mut found = HashSet::new();
        let mut next: Vec<Identity> = roots
            .into_iter()
            .filter(|root| self.holder(root.pid) == Some(*root))
            .collect();
        while let Some(one) = next.pop() {
            if found.contains(&one) || spared(one.pid) {
                continue;
            }
            found.insert(one);
            for pid in children.get(&one.pid).into_iter().flatten() {
                // A child is never older than its parent: if it is, the parent's pid was reused.
                let child = self.holder(*pid);
                next.extend(child.filter(|child| child.start_ticks >= one.start_ticks));
            }
        }
        found
    }

    /// Whether it had not ended when the snapshot was taken.
    pub fn is_alive(&self, one: Identity) -> bool {
        self.stat(one).is_some_and(|stat| !stat.has_ended())
    }
}

const fn identity(pid: u32, stat: &Stat) -> Identity {
    Identity {
        pid,
        start_ticks: stat.start_ticks,
    }
}
