//! The agents' processes: started when there is something to do, put to sleep when there is not, started
//! again when they die, and left alone when they were told to stop.

mod program;

use crate::daemon::Daemon;
use crate::desk::{Desk, Guard};
use crate::hooks::{observe, session};
use crate::lifecycle;
use crate::spawn::spawn;
use agentd_client::api::Env;
use agentd_core::event::{AgentFailed, Body, FailCause, Mode, Note, PauseReason};
use agentd_core::link::Order;
use agentd_core::spec::Restart;
use agentd_process::{Child, Exit, Identity, Signal, failpoint, signal};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two starts of a process that dies; doubled each time.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Deaths in a row, each soon after the start, until it is left at that.
const DEATHS: u32 = 6;
/// One that has lived so long did not die of its start.
const LONG_LIFE: Duration = Duration::from_secs(10);
/// Between two tries to watch a process.
const BREATH: Duration = Duration::from_millis(500);
/// Exit codes of a runtime that ends the same way each time it is started: usage (its spec, its
/// configuration or its directory is wrong; 64 is usage inside a hook), refused, not found.
const CANNOT: [i32; 4] = [2, 3, 7, 64];

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
    pub fn mind(self: &Arc<Self>, desk: &Arc<Desk>, guard: &mut Guard<'_>) {
        if self.is_read_only() {
            return;
        }
        self.transcripts.touched(desk.id);
        let noticed = std::mem::take(&mut guard.noticed);
        if guard.state.is_held() {
            // No hook, no reset, no report, no process.
            guard.wanted = false;
            end_process(guard);
            return;
        }
        observe::written(self, desk, guard, &noticed);
        if self.is_ending() {
            return;
        }
        session::begins_late(self, desk, guard);
        if guard.state.resets.under_way().is_some() && !guard.resetting {
            guard.resetting = true;
            let reset = lifecycle::reset::carry_on(Arc::clone(self), Arc::clone(desk));
            self.work_on(desk, "a reset", reset, |guard| guard.resetting = false);
        }
        if guard.state.owes_report() && !guard.reporting {
            guard.reporting = true;
            let report = lifecycle::subagents::report(Arc::clone(self), Arc::clone(desk));
            self.work_on(desk, "a report", report, |guard| guard.reporting = false);
        }
        if guard.state.reset_due().is_some() {
            let (daemon, desk) = (Arc::clone(self), Arc::clone(desk));
            spawn("a reset that is due", async move {
                lifecycle::auto_reset::make(&daemon, &desk).await;
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
                let start = start(Arc::clone(self), Arc::clone(desk));
                self.work_on(desk, "a start", start, |guard| {
                    guard.process.take_if(|it| it.identity.is_none());
                });
            }
            Some(_) if is_done => end_process(guard),
            _ => {}
        }
        self.mind_sleep(desk, guard);
    }

    /// Takes in what a caller brought, for the agent's next process.
    pub fn supply(&self, guard: &mut Guard<'_>, brought: &Env) {
        self.envs.bring(guard.state.id, brought);
        guard.env = self.envs.of(guard.state.id);
    }

    /// A process gets what callers brought at its start. So one that has nothing in hand makes room for
    /// another when there is something new, and an agent that waits for its key is tried again.
    fn mind_env(guard: &mut Guard<'_>) {
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

    fn mind_sleep(self: &Arc<Self>, desk: &Arc<Desk>, guard: &mut Guard<'_>) {
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
            let asleep = Arc::clone(desk);
            let sleep = async move {
                tokio::time::sleep(idle).await;
                let mut guard = asleep.lock().await;
                guard.sleeper = None;
                if is_idle(&guard) {
                    guard.wanted = false;
                    end_process(&mut guard);
                }
            };
            let sleeper = self.work_on(desk, "sleep", sleep, |guard| guard.sleeper = None);
            guard.sleeper = Some(sleeper);
        }
    }

    /// A runtime has come: the one that was started here, or one of an earlier daemon's.
    pub fn greeted(
        self: &Arc<Self>,
        desk: &Arc<Desk>,
        guard: &mut Guard<'_>,
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
        watch_on(self, desk, peer, None);
    }
}

/// Whether an agent without work gets another process in the place of one that died.
fn keeps_process(guard: &Guard<'_>) -> bool {
    let may_restart = guard.state.spec.restart != Restart::Never && guard.starts.deaths < DEATHS;
    may_restart && guard.state.keeps_process()
}

fn is_idle(guard: &Guard<'_>) -> bool {
    let is_up = guard.down.is_some() && guard.process.as_ref().is_some_and(|it| !it.is_stopping);
    let is_busy = guard.state.needs_process() || guard.resetting;
    is_up && !is_busy && guard.state.tasks.running().len() == 0
}

/// Tells the process to finish what it has in hand and to end.
pub fn end_process(guard: &mut Guard<'_>) {
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
pub fn leave_process(guard: &mut Guard<'_>) {
    if guard.down.is_some() && guard.process.is_some() {
        guard.order(Order::Leave);
    }
    end_process(guard);
}

async fn start(daemon: Arc<Daemon>, desk: Arc<Desk>) {
    let pause = desk.lock().await.starts.pause();
    // One that dies again and again is started more and more rarely.
    tokio::time::sleep(pause).await;
    let mut guard = desk.lock().await;
    if guard
        .process
        .as_ref()
        .is_some_and(|it| it.identity.is_some())
    {
        // One of an earlier daemon's has come meanwhile.
        return;
    }
    let is_still_needed = guard.state.needs_process() || !guard.state.stopped;
    if !is_still_needed || guard.state.is_held() || daemon.is_ending() {
        guard.process = None;
        guard.changed();
        return;
    }
    if guard.starts.deaths > 0 {
        let deaths = guard.starts.deaths;
        observe::restarts(&daemon, &desk, "crash", deaths);
    }
    failpoint::hit("before", "spawn");
    let mut proof = None;
    let spawned = program::spawn(&daemon, &desk, &mut proof);
    if proof.is_some() {
        guard.proof = proof;
    }
    failpoint::hit("after", "spawn");
    match spawned {
        Ok((identity, child)) => {
            let is_adopted = child.is_none();
            guard.process = Some(Process {
                identity: Some(identity),
                is_adopted,
                is_stopping: false,
            });
            guard.starts.at = Some(Instant::now());
            guard.changed();
            drop(guard);
            watch_on(&daemon, &desk, identity, child);
        }
        Err(error) => {
            tracing::error!(agent = %desk.id, %error, "no process can be started");
            guard.process = None;
            guard.starts.deaths += 1;
            guard.changed();
            bury(&daemon, &desk, &mut guard, &error.to_string()).await;
        }
    }
}

/// Watches a process for as long as it lives. If the watch dies, another one takes its place.
fn watch_on(daemon: &Arc<Daemon>, desk: &Arc<Desk>, identity: Identity, child: Option<Child>) {
    let watched = watch(Arc::clone(daemon), Arc::clone(desk), identity, child);
    let (again, agent) = (Arc::clone(daemon), Arc::clone(desk));
    daemon.work_on(desk, "a watch", watched, move |guard| {
        let process = guard.process.as_ref();
        if process.is_some_and(|it| it.identity == Some(identity)) {
            watch_on(&again, &agent, identity, None);
        }
    });
}

/// Waits for the end of a process, whoever started it, and sees to what comes then.
async fn watch(daemon: Arc<Daemon>, desk: Arc<Desk>, identity: Identity, child: Option<Child>) {
    while let Err(error) = agentd_process::ended(identity).await {
        tracing::error!(agent = %desk.id, %error, "a process cannot be watched");
        // tidy: polls until there are descriptors again
        tokio::time::sleep(BREATH).await;
    }
    let exit = child.and_then(|mut child| child.wait().ok());
    let mark = desk.id.to_string();
    let killed =
        tokio::task::spawn_blocking(move || agentd_process::kill_orphans(program::MARK, &mark));
    if let Ok(Err(error)) = killed.await {
        tracing::error!(agent = %desk.id, %error, "what a process left behind cannot be killed");
    }
    let mut guard = desk.lock().await;
    let process = guard
        .process
        .take_if(|process| process.identity == Some(identity));
    let Some(process) = process else { return };
    guard.down = None;
    guard.link.gone();
    let ended_well = match exit {
        Some(exit) => exit == Exit::Code(0),
        None => guard.state.at_rest,
    };
    let reason = match (process.is_stopping, ended_well) {
        (true, _) => "stopped",
        (_, true) => "ended",
        _ => "crashed",
    };
    observe::exited(&daemon, &desk, reason, exit);
    let lived = guard.starts.at.is_none_or(|at| at.elapsed() > LONG_LIFE);
    if ended_well || lived {
        guard.starts.deaths = 0;
    }
    if !ended_well {
        guard.starts.deaths += 1;
        tracing::warn!(agent = %desk.id, ?exit, "a process died");
        let words = program::last_words(&daemon, &desk);
        let words = daemon.secrets_of(&guard).redact(&words);
        if matches!(exit, Some(Exit::Code(code)) if CANNOT.contains(&code)) {
            give_up(&daemon, &desk, &mut guard, FailCause::CannotRun, &words).await;
        } else {
            bury(&daemon, &desk, &mut guard, &words).await;
        }
    }
    guard.changed();
    daemon.mind(&desk, &mut guard);
}

/// After a death: whether there is another try.
async fn bury(daemon: &Arc<Daemon>, desk: &Arc<Desk>, guard: &mut Guard<'_>, words: &str) {
    if !guard.state.needs_process() {
        return;
    }
    let cause = match guard.state.spec.restart {
        Restart::Never => Some(FailCause::NotRestarted),
        _ if guard.starts.deaths >= DEATHS => Some(FailCause::CrashLoop),
        _ => None,
    };
    match cause {
        Some(cause) => give_up(daemon, desk, guard, cause, words).await,
        None => daemon.mind(desk, guard),
    }
}

async fn give_up(
    daemon: &Arc<Daemon>,
    desk: &Arc<Desk>,
    guard: &mut Guard<'_>,
    cause: FailCause,
    words: &str,
) {
    let text = match words.trim() {
        "" => "its process ended again and again, and did not say why".to_owned(),
        words => words.to_owned(),
    };
    let about = None;
    let bodies: [Body; 2] = [Note { about, text }.into(), AgentFailed { cause }.into()];
    if let Err(error) = guard.note(bodies).await {
        tracing::error!(agent = %desk.id, %error, "that it failed cannot be written");
        // Nothing says that it failed: it is tried again once the journal can be written.
        daemon.look_again(desk);
    }
}
