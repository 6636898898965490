//! Ending all descendants of a shim: SIGTERM first, then SIGKILL, repeated until none is left.

use crate::cgroup::Cgroup;
use crate::error::Result;
use crate::identity::Identity;
use crate::signal::kill_group_of;
use crate::snapshot::Snapshot;
use crate::tree::{ask, kill};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// The pause before the next search for new processes, during the grace period.
const ASKING: Duration = Duration::from_millis(20);
/// The same after the grace period. It doubles, up to `MOST`, for as long as a search finds no new process.
const KILLING: Duration = Duration::from_millis(1);
const MOST: Duration = Duration::from_millis(100);

/// Which processes get SIGTERM. All get SIGKILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    All,
    /// The shim's own children, which pass it on.
    Children,
}

pub struct Ending<'a> {
    who: Asked,
    cgroup: Option<&'a Cgroup>,
    /// When SIGKILL begins; `None` if that is later than the clock can represent.
    kill_from: Option<Instant>,
    next: Instant,
    pause: Duration,
    asked: HashSet<Identity>,
    killed: HashSet<Identity>,
}

/// Whether the search found a process that had not been killed before.
enum News {
    New,
    None,
}

impl<'a> Ending<'a> {
    pub fn new(now: Instant, grace: Duration, who: Asked, cgroup: Option<&'a Cgroup>) -> Self {
        Self {
            who,
            cgroup,
            kill_from: now.checked_add(grace),
            next: now,
            pause: KILLING,
            asked: HashSet::new(),
            killed: HashSet::new(),
        }
    }

    /// Ends the grace period.
    pub fn hurry(&mut self) {
        let now = Instant::now();
        self.kill_from = Some(self.kill_from.map_or(now, |from| from.min(now)));
        self.next = self.next.min(now);
    }

    /// Does what is due, and returns when to call again.
    pub fn step(&mut self, now: Instant) -> Instant {
        if now < self.next {
            return self.next;
        }
        // If the search fails, the next call repeats it.
        let below = Below::look().unwrap_or_default();
        if self.kill_from.is_none_or(|from| now < from) {
            self.ask(&below);
            let next = now + ASKING;
            self.next = self.kill_from.map_or(next, |from| from.min(next));
        } else {
            let news = self.kill(&below);
            self.pause = match news {
                News::New => KILLING,
                News::None => (self.pause * 2).min(MOST),
            };
            self.next = Instant::now() + self.pause;
        }
        self.next
    }

    /// Sends SIGTERM to each process once.
    fn ask(&mut self, below: &Below) {
        let asked = match self.who {
            Asked::All => &below.all,
            Asked::Children => &below.children,
        };
        for one in asked {
            if self.asked.insert(*one) {
                ask(*one);
            }
        }
    }

    /// Sends SIGKILL to all processes at every call: one that could not be killed before may be killed now.
    fn kill(&mut self, below: &Below) -> News {
        if let Some(cgroup) = self.cgroup {
            cgroup.kill();
        }
        // Whole groups at once, so that no member can fork in between.
        for child in &below.children {
            drop(kill_group_of(*child));
        }
        let mut news = News::None;
        for one in &below.all {
            kill(*one);
            if self.killed.insert(*one) {
                news = News::New;
            }
        }
        news
    }
}

/// All living descendants of this process.
#[derive(Default)]
struct Below {
    all: Vec<Identity>,
    /// Its own children among them, one per process group.
    children: Vec<Identity>,
}

impl Below {
    fn look() -> Result<Self> {
        let us = Identity::current()?;
        let snapshot = Snapshot::take()?;
        let mut groups = HashSet::new();
        let mut below = Self::default();
        for one in snapshot.trees([us], |_| false) {
            let Some(stat) = snapshot.stat(one).filter(|stat| !stat.has_ended()) else {
                continue;
            };
            if one == us {
                continue;
            }
            below.all.push(one);
            if stat.parent == us.pid && groups.insert(stat.group) {
                below.children.push(one);
            }
        }
        Ok(below)
    }
}
