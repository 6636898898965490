//! Which turns are running, and which wait because the limits of the home are reached.

use agentd_core::admission::{Disk, Now, Rules, Wait, Whose, wait};
use agentd_core::id::AgentId;
use agentd_core::state::{AgentState, Phase};
use agentd_core::usage::MicroUsd;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long a turn that was admitted may take to begin, before another one may take its place.
const RESERVED: Duration = Duration::from_secs(30);

/// What is not known here, and is not known at all if it cannot be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// None also if there is no limit.
    pub spent_today: Option<MicroUsd>,
    pub disk: Option<Disk>,
}

#[derive(Default)]
pub struct Admission {
    inner: Mutex<Inner>,
    /// Notified when a turn has ended, and when the limits have changed: a turn that waits may be able to begin.
    pub opened: Notify,
}

#[derive(Default)]
struct Inner {
    is_draining: bool,
    running: HashSet<AgentId>,
    /// Turns that were admitted and have not begun: they count as running, for a while.
    admitted: HashMap<AgentId, Instant>,
    /// Why an agent's next turn waits. The number gives the order in which they began to wait.
    waiting: BTreeMap<AgentId, (u64, Wait)>,
    last: u64,
}

impl Inner {
    /// Why the agent's next turn must wait; none if it may begin. Turns that have waited longer come first.
    fn why(&self, rules: &Rules, state: &AgentState, known: Known) -> Option<Wait> {
        let whose = match state.parent_link {
            Some(_) => Whose::Subagent,
            None => Whose::User,
        };
        let now = self.now(state.id, known);
        let behind = Now {
            turns: now.turns.saturating_add(self.earlier(state.id)),
            ..now
        };
        wait(rules, &now, whose).or_else(|| wait(rules, &behind, whose))
    }

    /// How many other agents' turns have waited longer. A turn that was admitted keeps its place.
    fn earlier(&self, agent: AgentId) -> u64 {
        let admitted = self.admitted.get(&agent);
        if admitted.is_some_and(|since| since.elapsed() < RESERVED) {
            return 0;
        }
        let own = self.waiting.get(&agent);
        let own = own.map_or(u64::MAX, |(order, _)| *order);
        let earlier = self.waiting.values().filter(|(order, _)| *order < own);
        earlier.count() as u64
    }

    fn admit(&mut self, agent: AgentId) {
        self.waiting.remove(&agent);
        self.admitted.insert(agent, Instant::now());
    }

    fn now(&self, but: AgentId, known: Known) -> Now {
        let is_fresh = |since: &Instant| since.elapsed() < RESERVED;
        let admitted = self.admitted.iter().filter(|(_, since)| is_fresh(since));
        let all = self.running.iter().chain(admitted.map(|(agent, _)| agent));
        let others: HashSet<_> = all.filter(|agent| **agent != but).collect();
        Now {
            is_draining: self.is_draining,
            turns: others.len() as u64,
            spent_today: known.spent_today,
            disk: known.disk,
        }
    }
}

impl Admission {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets no new turn begin.
    pub fn drain(&self) {
        self.inner().is_draining = true;
    }

    /// Lets turns begin again.
    pub fn end_drain(&self) {
        self.inner().is_draining = false;
        self.opened.notify_one();
    }

    pub fn is_draining(&self) -> bool {
        self.inner().is_draining
    }

    /// How many turns are running, and how many wait to begin.
    pub fn counts(&self) -> (u64, u64) {
        let inner = self.inner();
        (inner.running.len() as u64, inner.waiting.len() as u64)
    }

    /// Why the agent's next turn waits.
    pub fn waits(&self, agent: AgentId) -> Option<Wait> {
        let inner = self.inner();
        inner.waiting.get(&agent).map(|(_, wait)| *wait)
    }

    /// The agents whose turns wait, the longest first.
    pub fn waiting(&self) -> Vec<AgentId> {
        let inner = self.inner();
        let mut waiting: Vec<_> = inner.waiting.iter().collect();
        waiting.sort_by_key(|(_, (order, _))| *order);
        waiting.into_iter().map(|(agent, _)| *agent).collect()
    }

    /// Admits the agent's next turn, or lets it wait.
    pub fn ask(&self, rules: &Rules, state: &AgentState, known: Known) -> Option<Wait> {
        let mut inner = self.inner();
        let Some(why) = inner.why(rules, state, known) else {
            inner.admit(state.id);
            return None;
        };
        inner.admitted.remove(&state.id);
        let next = inner.last + 1;
        let entry = inner.waiting.entry(state.id).or_insert((next, why));
        entry.1 = why;
        inner.last = next;
        Some(why)
    }

    /// Admits a turn that begins now or not at all: if it may not begin, it does not wait.
    pub fn ask_now(&self, rules: &Rules, state: &AgentState, known: Known) -> Option<Wait> {
        let mut inner = self.inner();
        let why = inner.why(rules, state, known);
        if why.is_none() {
            inner.admit(state.id);
        }
        why
    }

    /// Counts the agent's turn, after a change of its state.
    pub fn track(&self, state: &AgentState) {
        let mut inner = self.inner();
        let is_running = state.turn.is_some() && state.phase() == Phase::Running;
        if state.turn.is_some() {
            inner.admitted.remove(&state.id);
        }
        if state.turn.is_some() || !state.needs_process() {
            inner.waiting.remove(&state.id);
        }
        match is_running {
            true => {
                inner.running.insert(state.id);
            }
            false => {
                if inner.running.remove(&state.id) {
                    self.opened.notify_one();
                }
            }
        }
    }

    /// The agent was deleted.
    pub fn forget(&self, agent: AgentId) {
        let mut inner = self.inner();
        inner.running.remove(&agent);
        inner.admitted.remove(&agent);
        inner.waiting.remove(&agent);
        self.opened.notify_one();
    }
}

/// The file system of a directory. None if it cannot be read.
pub fn disk(dir: &Path) -> Option<Disk> {
    let found = rustix::fs::statvfs(dir).ok()?;
    Some(Disk {
        free: found.f_bavail.saturating_mul(found.f_frsize),
        total: found.f_blocks.saturating_mul(found.f_frsize),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn state(n: u128) -> AgentState {
        AgentState::new(AgentId::new(Uuid::from_u128(n)))
    }

    fn ask(admission: &Admission, state: &AgentState) -> Option<Wait> {
        let rules = Rules {
            max_turns: Some(1),
            ..Rules::default()
        };
        admission.ask(&rules, state, Known::default())
    }

    #[test]
    fn of_two_turns_one_begins_and_the_other_waits() {
        let admission = Admission::default();
        let (first, second) = (state(1), state(2));
        assert_eq!(ask(&admission, &first), None);
        assert_eq!(ask(&admission, &second), Some(Wait::Turns { limit: 1 }));
        // A turn that is asked for again, after a restart of its process, does not wait for itself.
        assert_eq!(ask(&admission, &first), None);
        assert_eq!(admission.waiting(), [second.id]);
        admission.forget(first.id);
        assert_eq!(ask(&admission, &second), None);
        assert_eq!(admission.waits(second.id), None);
    }

    /// Regression: the next prompt of an agent whose turn had just ended overtook those that waited.
    #[test]
    fn the_turn_that_has_waited_longest_begins_first() {
        let admission = Admission::default();
        let [first, second, third] = [1, 2, 3].map(state);
        assert_eq!(ask(&admission, &first), None);
        for later in [&second, &third] {
            assert_eq!(ask(&admission, later), Some(Wait::Turns { limit: 1 }));
        }
        // Its turn ends, and its next one wants to begin.
        admission.forget(first.id);
        for later in [&first, &third] {
            assert_eq!(ask(&admission, later), Some(Wait::Turns { limit: 1 }));
        }
        assert_eq!(ask(&admission, &second), None);
        assert_eq!(admission.waiting(), [third.id, first.id]);
    }

    #[test]
    fn a_turn_that_begins_now_or_not_at_all_does_not_wait() {
        let admission = Admission::default();
        let (first, second) = (state(1), state(2));
        let rules = Rules {
            max_turns: Some(1),
            ..Rules::default()
        };
        let ask_now = |state: &AgentState| admission.ask_now(&rules, state, Known::default());
        assert_eq!(ask_now(&first), None);
        assert_eq!(ask_now(&second), Some(Wait::Turns { limit: 1 }));
        assert_eq!(admission.counts(), (0, 0));
        admission.forget(first.id);
        assert_eq!(ask(&admission, &second), None);
    }

    #[test]
    fn those_that_wait_keep_their_order() {
        let admission = Admission::default();
        admission.drain();
        for n in [3, 1, 2, 3] {
            ask(&admission, &state(n));
        }
        let order: Vec<_> = [3, 1, 2].map(|n| state(n).id).to_vec();
        assert_eq!(admission.waiting(), order);
        assert_eq!(admission.counts(), (0, 3));
    }
}
