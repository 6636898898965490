//! The agents' processes: started when there is something to do, put to sleep when there is not, started
//! again when they die, and left alone when they were told to stop.

mod program;
mod watch;

use watch::{DEATHS, start, watch_on};

use crate::agent_handle::{AgentGuard, AgentHandle};
use crate::daemon::Daemon;
use crate::hooks::{observe, session};
use crate::lifecycle;
use crate::spawn::spawn;
use agentd_client::api::Env;
use agentd_core::event::{Mode, PauseReason};
use agentd_core::link::Order;
use agentd_core::spec::Restart;
use agentd_process::{Identity, Signal, signal};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two starts of a process that dies; doubled each time.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Who runs an agent.
#[derive(Debug)]
pub struct Process {
    /// None while it is being started.
    pub identity: Option<Identity>,
    /// An earlier daemon started it.
    pub is_adopted: bool,
    /// It was told to end.
    pub is_stopping: bool,
}

/// How starting it has gone lately.
#[derive(Debug, Default)]
pub struct Starts {
    deaths: u32,
    at: Option<Instant>,
}

impl Starts {
    fn pause(&self) -> Duration {
        match self.deaths {
            0 => Duration::ZERO,
            n => PAUSE
                .saturating_mul(1 << (n - 1).min(16))
                .min(LONGEST_PAUSE),
        }
    }

    /// The last one died, and the next one has not lived long enough to say that it does not.
    pub const fn has_died(&self) -> bool {
        self.deaths > 0
    }

    pub const fn forgive(&mut self) {
        self.deaths = 0;
    }
}

impl Daemon {
    /// Does what the agent's state calls for.
    pub fn reconcile(self: &Arc<Self>, handle: &Arc<AgentHandle>, guard: &mut AgentGuard<'_>) {
        if self.is_read_only() {
            return;
        }
        self.transcripts.touched(handle.id);
        let noticed = std::mem::take(&mut guard.noticed);
        if guard.state.is_held() {
            // No hook, no reset, no report, no process.
            guard.wanted = false;
            end_process(guard);
            return;
        }
        observe::written(self, handle, guard, &noticed);
        if self.is_ending() {
            return;
        }
        session::begins_late(self, handle, guard);
        if guard.state.resets.under_way().is_some() && !guard.resetting {
            guard.resetting = true;
            let reset = lifecycle::reset::carry_on(Arc::clone(self), Arc::clone(handle));
            self.work_on(handle, "a reset", reset, |guard| guard.resetting = false);
        }
        if guard.state.owes_report() && !guard.reporting {
            guard.reporting = true;
            let report = lifecycle::subagents::report(Arc::clone(self), Arc::clone(handle));
            self.work_on(handle, "a report", report, |guard| guard.reporting = false);
        }
        if guard.state.reset_due().is_some() {
            let (daemon, handle) = (Arc::clone(self), Arc::clone(handle));
            spawn("a reset that is due", async move {
                lifecycle::auto_reset::make(&daemon, &handle).await;
            });
        }
        if guard.state.spec.auto_reset.idle_ms.is_some() {
            self.silences.notify_one();
        }
        Self::mind_env(guard);
        let is_wanted = guard.wanted && !guard.state.stopped && !guard.resetting;
        let may = guard.awaiting_hooks == 0 || guard.state.ends_turn();
        let needs = (guard.state.needs_process() || is_wanted || keeps_process(guard)) && may;
        let is_done = guard.state.stopped && guard.state.turn.is_none();
        match &guard.process {
            None if needs && !guard.state.archived => {
                guard.wanted = false;
                guard.process = Some(Process {
                    identity: None,
                    is_adopted: false,
                    is_stopping: false,
                });
                let start = start(Arc::clone(self), Arc::clone(handle));
                self.work_on(handle, "a start", start, |guard| {
                    guard.process.take_if(|it| it.identity.is_none());
                });
            }
            Some(_) if is_done => end_process(guard),
            _ => {}
        }
        self.mind_sleep(handle, guard);
    }

    /// Takes in what a caller brought, for the agent's next process.
    pub fn merge_env(&self, guard: &mut AgentGuard<'_>, brought: &Env) {
        self.envs.merge(guard.state.id, brought);
        guard.env = self.envs.of(guard.state.id);
    }

    /// A process gets what callers brought at its start. So one that has nothing in hand makes room for
    /// another when there is something new, and an agent that waits for its key is tried again.
    fn mind_env(guard: &mut AgentGuard<'_>) {
        let is_other = guard.given.as_ref() != Some(&guard.env);
        let (lacks_key, is_between_turns) = match &guard.state.turn {
            Some(turn) => (turn.paused == Some(PauseReason::MissingKey), false),
            None => (false, true),
        };
        // One that is only about to come gets what there is then.
        let is_there = guard.down.is_some();
        let is_coming = guard.process.is_some() && !is_there;
        if is_other && ((lacks_key && !is_coming) || (is_between_turns && is_there)) {
            guard.wanted = true;
            end_process(guard);
        }
    }

    fn mind_sleep(self: &Arc<Self>, handle: &Arc<AgentHandle>, guard: &mut AgentGuard<'_>) {
        if !is_idle(guard) {
            if let Some(sleeper) = guard.sleeper.take() {
                sleeper.abort();
            }
        } else if guard.sleeper.is_none() {
            let idle = match guard.state.mode {
                Mode::Persistent => Duration::from_millis(guard.state.spec.idle_ms),
                // It has done what it was for.
                Mode::Oneshot => Duration::ZERO,
            };
            let asleep = Arc::clone(handle);
            let sleep = async move {
                tokio::time::sleep(idle).await;
                let mut guard = asleep.lock().await;
                guard.sleeper = None;
                if is_idle(&guard) {
                    guard.wanted = false;
                    end_process(&mut guard);
                }
            };
            let sleeper = self.work_on(handle, "sleep", sleep, |guard| guard.sleeper = None);
            guard.sleeper = Some(sleeper);
        }
    }

    /// A runtime has come: the one that was started here, or one of an earlier daemon's.
    pub fn greeted(
        self: &Arc<Self>,
        handle: &Arc<AgentHandle>,
        guard: &mut AgentGuard<'_>,
        peer: Option<Identity>,
    ) {
        let known = guard.process.as_ref().and_then(|process| process.identity);
        if known.is_some() && known == peer {
            return;
        }
        let Some(peer) = peer else { return };
        guard.process = Some(Process {
            identity: Some(peer),
            is_adopted: true,
            is_stopping: false,
        });
        watch_on(self, handle, peer, None);
    }
}

/// Whether an agent without work gets another process in the place of one that died.
fn keeps_process(guard: &AgentGuard<'_>) -> bool {
    let may_restart = guard.state.spec.restart != Restart::Never && guard.starts.deaths < DEATHS;
    may_restart && guard.state.keeps_process()
}

fn is_idle(guard: &AgentGuard<'_>) -> bool {
    let is_up = guard.down.is_some() && guard.process.as_ref().is_some_and(|it| !it.is_stopping);
    let is_busy = guard.state.needs_process() || guard.resetting;
    is_up && !is_busy && guard.state.tasks.running().len() == 0
}

/// Tells the process to finish what it has in hand and to end.
pub fn end_process(guard: &mut AgentGuard<'_>) {
    let is_connected = guard.down.is_some();
    if let Some(process) = &mut guard.process {
        let identity = process.identity;
        if std::mem::replace(&mut process.is_stopping, true) && is_connected {
            return;
        }
        match identity {
            _ if is_connected => guard.order(Order::Stop),
            // It cannot be told otherwise; it may have gone.
            Some(identity) => drop(signal(identity, Signal::TERM)),
            None => {}
        }
    }
}

/// Tells the process to end and not to wait for the model, whatever it was told before.
pub fn leave_process(guard: &mut AgentGuard<'_>) {
    if guard.down.is_some() && guard.process.is_some() {
        guard.order(Order::Leave);
    }
    end_process(guard);
}
