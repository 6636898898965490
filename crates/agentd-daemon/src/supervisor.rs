//! The agents' processes: started when there is work, ended when the agent is idle, restarted when they die, and not
//! started while the agent is stopped.

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

/// Delay before a process that died is started again; doubled each time.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The process that runs an agent.
#[derive(Debug)]
pub struct Process {
    /// None while it is being started.
    pub identity: Option<Identity>,
    /// An earlier daemon started it.
    pub is_adopted: bool,
    /// It was told to end.
    pub is_stopping: bool,
}

/// The recent starts of an agent's process, for the back-off and for giving up.
#[derive(Debug, Default)]
pub struct Starts {
    /// Consecutive deaths. Cleared by a good end, a long life, or a start by the user.
    deaths: u32,
    /// When the last process was started.
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

    /// Whether the last process died, and no later one has lived long enough to clear that.
    pub const fn has_died(&self) -> bool {
        self.deaths > 0
    }

    pub const fn forgive(&mut self) {
        self.deaths = 0;
    }
}

impl Daemon {
    /// Compares the agent's state with its process and starts, ends or schedules what is needed.
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
            self.work_on(handle, "reset", reset, |guard| guard.resetting = false);
        }
        if guard.state.owes_report() && !guard.reporting {
            guard.reporting = true;
            let report = lifecycle::subagents::report(Arc::clone(self), Arc::clone(handle));
            self.work_on(handle, "report", report, |guard| guard.reporting = false);
        }
        if guard.state.reset_due().is_some() {
            let (daemon, handle) = (Arc::clone(self), Arc::clone(handle));
            spawn("automatic reset", async move {
                lifecycle::auto_reset::make(&daemon, &handle).await;
            });
        }
        if guard.state.spec.auto_reset.idle_ms.is_some() {
            self.silences.notify_one();
        }
        Self::reconcile_env(guard);
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
                self.work_on(handle, "runtime start", start, |guard| {
                    guard.process.take_if(|it| it.identity.is_none());
                });
            }
            Some(_) if is_done => end_process(guard),
            _ => {}
        }
        self.reconcile_sleep(handle, guard);
    }

    /// Adds the variables that a caller sent, for the agent's next process.
    pub fn merge_env(&self, guard: &mut AgentGuard<'_>, brought: &Env) {
        self.envs.merge(guard.state.id, brought);
        guard.env = self.envs.of(guard.state.id);
    }

    /// A process gets the callers' variables only at its start. When they change, a process between two turns is
    /// replaced, and an agent that waits for its key gets a new process.
    fn reconcile_env(guard: &mut AgentGuard<'_>) {
        let is_other = guard.given.as_ref() != Some(&guard.env);
        let (lacks_key, is_between_turns) = match &guard.state.turn {
            Some(turn) => (turn.paused == Some(PauseReason::MissingKey), false),
            None => (false, true),
        };
        // A process that has not connected yet gets the variables when it does.
        let is_there = guard.down.is_some();
        let is_coming = guard.process.is_some() && !is_there;
        if is_other && ((lacks_key && !is_coming) || (is_between_turns && is_there)) {
            guard.wanted = true;
            end_process(guard);
        }
    }

    fn reconcile_sleep(self: &Arc<Self>, handle: &Arc<AgentHandle>, guard: &mut AgentGuard<'_>) {
        if !is_idle(guard) {
            if let Some(sleeper) = guard.sleeper.take() {
                sleeper.abort();
            }
        } else if guard.sleeper.is_none() {
            let idle = match guard.state.mode {
                Mode::Persistent => Duration::from_millis(guard.state.spec.idle_ms),
                // A one-shot agent has nothing more to do.
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
            let sleeper = self.work_on(handle, "idle timer", sleep, |guard| guard.sleeper = None);
            guard.sleeper = Some(sleeper);
        }
    }

    /// A runtime has connected: the one that this daemon started, or one that an earlier daemon started.
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

/// Whether an agent without work gets a new process after its process died.
fn keeps_process(guard: &AgentGuard<'_>) -> bool {
    let may_restart = guard.state.spec.restart != Restart::Never && guard.starts.deaths < DEATHS;
    may_restart && guard.state.keeps_process()
}

fn is_idle(guard: &AgentGuard<'_>) -> bool {
    let is_up = guard.down.is_some() && guard.process.as_ref().is_some_and(|it| !it.is_stopping);
    let is_busy = guard.state.needs_process() || guard.resetting;
    is_up && !is_busy && guard.state.tasks.running().len() == 0
}

/// Tells the process to finish its current step and to end.
pub fn end_process(guard: &mut AgentGuard<'_>) {
    let is_connected = guard.down.is_some();
    if let Some(process) = &mut guard.process {
        let identity = process.identity;
        if std::mem::replace(&mut process.is_stopping, true) && is_connected {
            return;
        }
        match identity {
            _ if is_connected => guard.order(Order::Stop),
            // Without a connection only a signal reaches it. It may have exited already.
            Some(identity) => drop(signal(identity, Signal::TERM)),
            None => {}
        }
    }
}

/// Tells the process to end without waiting for the model, even if it is already ending.
pub fn leave_process(guard: &mut AgentGuard<'_>) {
    if guard.down.is_some() && guard.process.is_some() {
        guard.order(Order::Leave);
    }
    end_process(guard);
}
