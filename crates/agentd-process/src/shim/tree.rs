//! Ending everything below a shim: asked to at first, then killed, over and over until nobody is left.

use crate::cgroup::Cgroup;
use crate::error::Result;
use crate::identity::Identity;
use crate::signal::kill_group_of;
use crate::snapshot::Snapshot;
use crate::tree::{ask, kill};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// How long to wait before the next look for somebody new, while they are asked and while they are
/// killed. It grows for those that cannot be killed just now.
const ASKING: Duration = Duration::from_millis(20);
const KILLING: Duration = Duration::from_millis(1);
const MOST: Duration = Duration::from_millis(100);

/// Who is asked to end. All are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    All,
    /// The shim's own children, which hand it on.
    Children,
}

pub struct Ending<'a> {
    who: Asked,
    cgroup: Option<&'a Cgroup>,
    /// From when on they are killed; none is never, as far as a clock goes.
    kill_from: Option<Instant>,
    next: Instant,
    pause: Duration,
    asked: HashSet<Identity>,
    killed: HashSet<Identity>,
}

/// Whether somebody was there who had not been killed yet.
enum News {
    Somebody,
    Nobody,
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

    /// No more grace.
    pub fn hurry(&mut self) {
        let now = Instant::now();
        self.kill_from = Some(self.kill_from.map_or(now, |from| from.min(now)));
        self.next = self.next.min(now);
    }

    /// Does what is due, and says when to come again.
    pub fn step(&mut self, now: Instant) -> Instant {
        if now < self.next {
            return self.next;
        }
        // Where they cannot be looked for just now, they are the next time.
        let below = Below::look().unwrap_or_default();
        if self.kill_from.is_none_or(|from| now < from) {
            self.ask(&below);
            let next = now + ASKING;
            self.next = self.kill_from.map_or(next, |from| from.min(next));
        } else {
            let news = self.kill(&below);
            self.pause = match news {
                News::Somebody => KILLING,
                News::Nobody => (self.pause * 2).min(MOST),
            };
            self.next = Instant::now() + self.pause;
        }
        self.next
    }

    /// Each of them once.
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

    /// All of them every time: one that could not be killed may be by now.
    fn kill(&mut self, below: &Below) -> News {
        if let Some(cgroup) = self.cgroup {
            cgroup.kill();
        }
        // Whole groups at once, so that none of them is quick enough to start another one.
        for child in &below.children {
            drop(kill_group_of(*child));
        }
        let mut news = News::Nobody;
        for one in &below.all {
            kill(*one);
            if self.killed.insert(*one) {
                news = News::Somebody;
            }
        }
        news
    }
}

/// Everybody below this process who has not ended.
#[derive(Default)]
struct Below {
    all: Vec<Identity>,
    /// Its own children among them, one for each of their groups.
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
