//! Carries out what core decides about an agent's process: it is started when there is work, ended when the agent is
//! idle, restarted when it dies, and not started while the agent is stopped.

#[cfg(test)]
pub(crate) mod tests;
mod watch;

use crate::daemon::{AgentGuard, KnownLimits, Process, Supervise, disk};
use crate::hooks::{observe, session};
use crate::lifecycle::{auto_reset, files, reset, run_command, subagents, tidy};
use crate::runtimes::Runtimes;
use crate::spawn::spawn;
use agentd_core::event::{Event, Kind};
use agentd_core::link::Order;
use agentd_core::supervise::{self, Action, Situation};
use agentd_process::Identity;
use std::sync::Arc;
use std::time::Duration;
use watch::{start, watch_on};

pub struct Supervisor {
    runtimes: Arc<dyn Runtimes>,
}

impl Supervisor {
    pub const fn new(runtimes: Arc<dyn Runtimes>) -> Self {
        Self { runtimes }
    }

    fn carry_out(&self, guard: &mut AgentGuard<'_>, action: Action) {
        let handle = guard.handle;
        match action {
            Action::DropRequest => guard.wanted = false,
            Action::CarryOutReset => {
                guard.resetting = true;
                let reset = reset::carry_on(handle.clone());
                handle.work_on("reset", reset, |guard| guard.resetting = false);
            }
            Action::CompleteRestore => {
                guard.restoring = true;
                let restore = files::carry_on(handle.clone());
                handle.work_on("restore of files", restore, |guard| guard.restoring = false);
            }
            Action::ResetAutomatically => {
                guard.resetting_automatically = true;
                let reset = auto_reset::due(handle.clone());
                handle.work_on("automatic reset", reset, |guard| {
                    guard.resetting_automatically = false;
                });
            }
            Action::Report => {
                guard.reporting = true;
                let report = subagents::report(handle.clone());
                handle.work_on("report", report, |guard| guard.reporting = false);
            }
            Action::StartIdleTimer(idle) => start_idle_timer(guard, idle),
            Action::StopIdleTimer => {
                if let Some(timer) = guard.idle_timer.take() {
                    timer.abort();
                }
            }
            Action::ReplaceProcess => {
                guard.wanted = true;
                guard.end_process();
            }
            Action::StartProcess => {
                guard.wanted = false;
                guard.tidied = false;
                guard.process = Some(Process::starting());
                let start = start(Arc::clone(&self.runtimes), handle.clone());
                handle.work_on("runtime start", start, |guard| {
                    guard.process.take_if(|it| it.identity.is_none());
                });
            }
            Action::BeginTurns => {
                if let Some(connection) = &mut guard.down {
                    connection.holds_turns = false;
                }
                guard.order(Order::BeginTurns);
            }
            Action::EndProcess => guard.end_process(),
        }
    }
}

impl Supervise for Supervisor {
    fn reconcile(&self, guard: &mut AgentGuard<'_>) {
        let daemon = &guard.handle.daemon;
        daemon.admission.track(&guard.state);
        if daemon.is_read_only() {
            return;
        }
        daemon.transcripts.touched(guard.handle.id);
        let noticed = std::mem::take(&mut guard.noticed);
        if !guard.state.is_held() {
            observe::written(guard, &noticed);
            wake_ancestors(guard, &noticed);
            if !daemon.is_ending() {
                run_command::watch_all(guard);
                session::begins_late(guard);
            }
            if guard.state.spec.auto_reset.idle_ms.is_some() {
                daemon.silences.notify_one();
            }
            if !guard.state.schedules.is_empty() {
                daemon.schedules.notify_one();
            }
        }
        loop {
            let known = guard.situation(daemon.is_ending());
            let situation = Situation {
                is_held_back: daemon.admission.waits(guard.handle.id).is_some(),
                has_new_env: known.has_new_env || has_new_servers(guard),
                ..known
            };
            let Some(action) = supervise::next(&guard.state, &situation) else {
                tidy::check(guard);
                return;
            };
            let may_begin_turn = matches!(action, Action::StartProcess | Action::BeginTurns);
            if may_begin_turn && !situation.is_held_back && is_held_back(guard) {
                continue;
            }
            self.carry_out(guard, action);
            if action == Action::EndProcess {
                return;
            }
        }
    }

    fn adopt(&self, guard: &mut AgentGuard<'_>, process: Identity) {
        let known = guard.process.as_ref().and_then(|known| known.identity);
        if known != Some(process) {
            guard.process = Some(Process::adopted(process));
            watch_on(&self.runtimes, guard.handle, process, None);
        }
    }

    fn terminate(&self, process: Identity) {
        self.runtimes.terminate(process);
    }
}

/// Whether the process would only begin a turn that has to wait. What such a turn may cost is asked when it begins,
/// because the answer needs the store.
fn is_held_back(guard: &AgentGuard<'_>) -> bool {
    let begins_turn = guard.state.turn.is_none() && guard.state.needs_process();
    if !begins_turn || guard.wanted {
        return false;
    }
    let daemon = &guard.handle.daemon;
    let known = KnownLimits {
        spent_today: None,
        disk: disk(daemon.layout.home()),
    };
    let rules = daemon.settings().rules;
    let why = daemon.admission.ask(&rules, &guard.state, known);
    if let Some(why) = why {
        tracing::info!(agent = %guard.handle.id, %why, "turn waits");
        guard.changed();
    }
    why.is_some()
}

/// Ends the process after some time, if the agent is still idle then.
fn start_idle_timer(guard: &mut AgentGuard<'_>, idle: Duration) {
    let asleep = guard.handle.clone();
    let sleep = async move {
        tokio::time::sleep(idle).await;
        let mut guard = asleep.lock().await;
        guard.idle_timer = None;
        let is_ending = asleep.daemon.is_ending();
        if supervise::is_idle(&guard.state, &guard.situation(is_ending)) {
            guard.wanted = false;
            guard.end_process();
        }
    };
    let timer = guard
        .handle
        .work_on("idle timer", sleep, |guard| guard.idle_timer = None);
    guard.idle_timer = Some(timer);
}

/// If the agent has begun to wait for the user, wakes the clients that watch its ancestors: the phase that they see may
/// have changed.
fn wake_ancestors(guard: &AgentGuard<'_>, noticed: &[Event]) {
    let needs_user =
        |event: &Event| matches!(event.kind(), Kind::ApprovalRequested | Kind::TurnPaused);
    if guard.state.parent_link.is_none() || !noticed.iter().any(needs_user) {
        return;
    }
    let mut at = guard.handle.clone();
    spawn("wake ancestors", async move {
        loop {
            let parent = {
                let guard = at.lock().await;
                guard.state.parent_link.as_ref().map(|link| link.parent)
            };
            let Some(parent) = parent else { return };
            let Ok(handle) = at.daemon.handle(parent).await else {
                return;
            };
            handle.changed();
            at = handle;
        }
    });
}

/// Whether clients lend other MCP servers than the newest process has.
fn has_new_servers(guard: &AgentGuard<'_>) -> bool {
    guard.given_lent != guard.handle.daemon.lent.digest(guard.handle.id)
}
