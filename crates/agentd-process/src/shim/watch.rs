//! Watching a running task: reading its output and reaping its processes, until none is left.

use super::leader::Leader;
use super::owner::Owner;
use super::pump::Pump;
use super::signals::Signals;
use super::tree::{Asked, Ending};
use crate::cgroup::Cgroup;
use crate::error::{Error, Result};
use crate::task::{Exit, Order};
use agentd_failpoint as failpoint;
use agentd_sandbox::{Ended, Started};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{WaitOptions, WaitStatus, wait};
use std::time::{Duration, Instant};

pub struct Watch<'a> {
    pub order: &'a Order,
    pub signals: &'a mut Signals,
    pub leader: Leader,
    pub cgroup: Option<&'a Cgroup>,
    pub begin: Instant,
    /// An attached task ends with this process.
    pub owner: Option<Owner>,
}

/// Whether the shim has any child. It adopts orphans, so every process that is left of a task is its descendant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Some,
    None,
}

impl Watch<'_> {
    /// Returns when all processes of the task have ended.
    pub fn until_the_end(mut self) -> Result<Exit> {
        let mut exit = Exit::default();
        let mut status = None;
        let mut ending: Option<Ending<'_>> = None;
        let mut stops = 0;
        let deadline = self
            .order
            .time_limit()
            .and_then(|limit| self.begin.checked_add(limit));
        loop {
            // Read before reaping: if a process ends after this line, its SIGCHLD ends the next poll.
            let heard = self.signals.take();
            if self.reap(&mut status)? == Left::None {
                break;
            }
            if status.is_some() {
                self.leader.gate = None;
            }
            if status.is_some() && failpoint::injected_bug("kill_misses_group") {
                break;
            }
            let now = Instant::now();
            let leftovers = self.order.foreground && status.is_some();
            let late = deadline.is_some_and(|deadline| now >= deadline);
            stops += heard.stops;
            let left_alone = self.owner.take_if(|owner| owner.is_gone()).is_some();
            let asked = left_alone || heard.stops + heard.kills > 0;
            if ending.is_none() && (leftovers || late || asked) {
                exit.timed_out = !leftovers && late;
                exit.stopped = !leftovers && !late;
                let asked = match self.leader.sandbox {
                    // The init of the sandbox passes the signal on.
                    Some(_) => Asked::Children,
                    None => Asked::All,
                };
                ending = Some(Ending::new(now, self.order.grace(), asked, self.cgroup));
            }
            let mut until = deadline;
            if let Some(ending) = &mut ending {
                if heard.kills > 0 || (heard.stops > 0 && stops > 1) {
                    ending.hurry();
                }
                until = Some(ending.step(now));
            }
            self.wait(until)?;
            for pump in &mut self.leader.pumps {
                pump.some();
            }
        }
        exit.duration_ms = millis(self.begin.elapsed());
        let sandbox = self.leader.sandbox.as_ref();
        let leader_ended = sandbox.and_then(Started::leader_ended);
        if let Some(sandbox) = sandbox {
            exit.refused = sandbox.settle();
        }
        for (n, pump) in self.leader.pumps.into_iter().enumerate() {
            let (kept, dropped) = pump.finish();
            exit.dropped_bytes += dropped;
            if n == 0 {
                exit.output_bytes = kept;
            }
        }
        match (leader_ended, status) {
            (Some(Ended::Exited(code)), _) => exit.code = Some(code),
            (Some(Ended::Killed { signal }), _) => exit.signal = Some(signal),
            (None, Some(status)) => {
                exit.code = status.exit_status();
                exit.signal = status.terminating_signal();
            }
            (None, None) => {}
        }
        Ok(exit)
    }

    fn reap(&self, leader: &mut Option<WaitStatus>) -> Result<Left> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    // The pid can be reused from now on, so only the first match is the leader.
                    let is_leader =
                        pid.as_raw_nonzero().get().unsigned_abs() == self.leader.identity.pid;
                    if is_leader && leader.is_none() {
                        *leader = Some(status);
                    }
                }
                Ok(None) => return Ok(Left::Some),
                Err(Errno::CHILD) => return Ok(Left::None),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(cannot_watch(errno)),
            }
        }
    }

    /// Waits for the next event or the deadline.
    fn wait(&self, until: Option<Instant>) -> Result<()> {
        let outputs = self.leader.pumps.iter().filter_map(Pump::source);
        let owner = self.owner.as_ref().map(Owner::source);
        let sources = self.signals.sources().into_iter().chain(outputs);
        let sources = sources.chain(owner);
        let mut sources: Vec<PollFd<'_>> = sources
            .map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN))
            .collect();
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut sources, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(cannot_watch(errno)),
        }
    }
}

pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn cannot_watch(errno: Errno) -> Error {
    Error::CannotSetUp {
        what: "cannot watch the task",
        source: errno.into(),
    }
}
