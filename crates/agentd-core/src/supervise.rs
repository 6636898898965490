//! Supervision: what the daemon does next about an agent's process, and what it does when the process has exited.
//!
//! [`next`] compares an agent's folded state with what the daemon knows about its process, and names one action. The
//! daemon carries it out and asks again, until there is nothing left to do.

#[cfg(test)]
mod tests;

use crate::event::{FailCause, Mode, PauseReason};
use crate::spec::Restart;
use crate::state::AgentState;
use std::time::Duration;

/// Delay before a process that died is started again; doubled each time.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Consecutive deaths, each soon after the start, after which the agent fails.
const DEATHS: u32 = 6;
/// A process that lived this long did not die of its start.
const LONG_LIFE: Duration = Duration::from_secs(10);
/// Exit codes of a runtime that ends the same way each time it is started: usage (its spec, its configuration or its
/// directory is wrong; 64 is usage inside a hook), refused, not found.
const CANNOT: [i32; 4] = [2, 3, 7, 64];

/// The process that runs an agent, as far as the daemon knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Process {
    #[default]
    Absent,
    /// It is being started, or waits for its back-off.
    Starting,
    Running,
    /// It was told to end.
    Stopping,
}

/// What the daemon knows about an agent besides its journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Situation {
    pub process: Process,
    /// The process has a connection to the daemon.
    pub is_connected: bool,
    /// A verb wants a process even if the state does not need one.
    pub wanted: bool,
    /// SessionStart hooks are running: no process is started before they have ended.
    pub awaits_hooks: bool,
    /// The variables for the next process differ from those of the newest one.
    pub has_new_env: bool,
    /// A task carries out the reset in progress.
    pub resetting: bool,
    /// A task makes an automatic reset.
    pub resetting_automatically: bool,
    /// A task completes the restore of files in progress.
    pub restoring: bool,
    /// A task reports the agent's end to its parent.
    pub reporting: bool,
    /// A timer runs that ends the process of an idle agent.
    pub has_idle_timer: bool,
    /// The daemon is shutting down: it begins nothing.
    pub is_ending: bool,
    /// No new turn may begin now: the limits of the home are reached.
    pub is_held_back: bool,
    /// The process was told to begin no turn.
    pub holds_turns: bool,
    /// The process runs another build of the program. It is replaced between two turns.
    pub is_outdated: bool,
    pub starts: Starts,
}

/// What the daemon does about an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Drops the request of a verb for a process.
    DropRequest,
    /// Carries out the reset in progress, in a task of its own.
    CarryOutReset,
    /// Completes the restore of files in progress, in a task of its own.
    CompleteRestore,
    /// Makes the automatic reset that is due, in a task of its own.
    ResetAutomatically,
    /// Reports the agent's end to its parent, in a task of its own.
    Report,
    /// Ends the process after this time, unless the agent gets work.
    StartIdleTimer(Duration),
    StopIdleTimer,
    /// Ends the process and wants another one.
    ReplaceProcess,
    StartProcess,
    /// Tells a process that holds turns back that they may begin.
    BeginTurns,
    /// Tells the process to finish its current step and to end. Nothing follows before it has ended.
    EndProcess,
}

/// The next action; none if there is nothing to do.
pub fn next(state: &AgentState, known: &Situation) -> Option<Action> {
    if state.is_held() {
        // No hook, no reset, no report, no process.
        return match known.wanted {
            true => Some(Action::DropRequest),
            false => ends(known),
        };
    }
    if known.is_ending {
        return None;
    }
    if state.resets.under_way().is_some() && !known.resetting {
        return Some(Action::CarryOutReset);
    }
    if state.files.restoring.is_some() && !known.restoring {
        return Some(Action::CompleteRestore);
    }
    if state.owes_report() && !known.reporting {
        return Some(Action::Report);
    }
    if state.reset_due().is_some() && !known.resetting_automatically {
        return Some(Action::ResetAutomatically);
    }
    match (is_idle(state, known), known.has_idle_timer) {
        (true, false) => return Some(Action::StartIdleTimer(idle_time(state))),
        (false, true) => return Some(Action::StopIdleTimer),
        _ => {}
    }
    if is_replaced(state, known) {
        return Some(Action::ReplaceProcess);
    }
    let is_between_turns = state.turn.is_none() && state.tasks.running().len() == 0;
    if known.is_outdated && known.is_connected && is_between_turns {
        return ends(known);
    }
    if known.holds_turns && known.is_connected && !known.is_held_back {
        return Some(Action::BeginTurns);
    }
    let is_done = state.stopped && state.turn.is_none();
    match known.process {
        Process::Absent if is_started(state, known) => Some(Action::StartProcess),
        Process::Absent => None,
        _ if is_done => ends(known),
        _ => None,
    }
}

/// A process that was told to end over its connection is not told again. One without a connection may have missed it.
fn ends(known: &Situation) -> Option<Action> {
    match known.process {
        Process::Absent => None,
        Process::Stopping if known.is_connected => None,
        _ => Some(Action::EndProcess),
    }
}

fn is_started(state: &AgentState, known: &Situation) -> bool {
    let is_wanted = known.wanted && !state.stopped && !known.resetting;
    let may_start = !known.awaits_hooks || state.ends_turn();
    // A turn that has to wait needs no process; background tasks need one meanwhile.
    let has_work = state.needs_process() && !(known.is_held_back && state.turn.is_none());
    let needs = has_work || is_wanted || keeps_process(state, known.starts);
    needs && may_start && !state.archived
}

/// Whether an agent without work gets a new process after its process died.
fn keeps_process(state: &AgentState, starts: Starts) -> bool {
    let may_restart = state.spec.restart != Restart::Never && starts.deaths < DEATHS;
    may_restart && state.keeps_process()
}

/// A process gets the callers' variables only at its start. When they change, a process between two turns is replaced,
/// and an agent that waits for its key gets a new process.
fn is_replaced(state: &AgentState, known: &Situation) -> bool {
    let (lacks_key, is_between_turns) = match &state.turn {
        Some(turn) => (turn.paused == Some(PauseReason::MissingKey), false),
        None => (false, true),
    };
    // A process that has not connected yet gets the variables when it does.
    let is_coming = known.process != Process::Absent && !known.is_connected;
    let helps = (lacks_key && !is_coming) || (is_between_turns && known.is_connected);
    let is_under_way = match known.process {
        Process::Absent | Process::Stopping => known.wanted,
        Process::Starting | Process::Running => false,
    };
    let may_start = known.process != Process::Absent || known.starts.deaths < DEATHS;
    known.has_new_env && helps && may_start && !is_under_way
}

/// Whether the process has nothing to do.
pub fn is_idle(state: &AgentState, known: &Situation) -> bool {
    let is_up = known.is_connected && matches!(known.process, Process::Starting | Process::Running);
    let is_busy = state.needs_process() || known.resetting || known.restoring;
    is_up && !is_busy && state.tasks.running().len() == 0
}

fn idle_time(state: &AgentState) -> Duration {
    match state.mode {
        Mode::Persistent => Duration::from_millis(state.spec.idle_ms),
        // A one-shot agent has nothing more to do.
        Mode::Oneshot => Duration::ZERO,
    }
}

/// Whether a process that was to be started after a pause is still to be started.
pub fn is_still_needed(state: &AgentState, is_ending: bool) -> bool {
    let is_needed = state.needs_process() || !state.stopped;
    is_needed && !state.is_held() && !is_ending
}

/// The recent starts of an agent's process, for the back-off and for giving up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Starts {
    /// Consecutive deaths. Cleared by a good end, a long life, or a start by the user.
    deaths: u32,
}

impl Starts {
    /// How long the next start waits.
    pub fn pause(self) -> Duration {
        match self.deaths {
            0 => Duration::ZERO,
            n => PAUSE
                .saturating_mul(1 << (n - 1).min(16))
                .min(LONGEST_PAUSE),
        }
    }

    /// Consecutive deaths of its processes.
    pub const fn deaths(self) -> u32 {
        self.deaths
    }

    /// Whether the last process died, and no later one has lived long enough to clear that.
    pub const fn has_died(self) -> bool {
        self.deaths > 0
    }

    pub const fn forgive(&mut self) {
        self.deaths = 0;
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    /// A signal killed it.
    Signal,
    /// An earlier daemon started it, so only its parent, which is gone, could know.
    Unknown,
    /// It could not be started.
    NotStarted,
}

/// What follows the exit of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterExit {
    /// It ended as it should.
    Nothing,
    /// It died. [`next`] says whether another one is started.
    Restart,
    /// The agent fails.
    GiveUp(FailCause),
}

/// Counts the exit of a process, and decides what follows. `lived` is its age, if this daemon started it.
pub fn exited(
    state: &AgentState,
    starts: &mut Starts,
    exit: Exit,
    lived: Option<Duration>,
) -> AfterExit {
    let ended_well = match exit {
        Exit::Code(code) => code == 0,
        Exit::Signal | Exit::NotStarted => false,
        Exit::Unknown => state.at_rest,
    };
    let is_old = exit != Exit::NotStarted && lived.is_none_or(|lived| lived > LONG_LIFE);
    if ended_well || is_old {
        starts.deaths = 0;
    }
    if ended_well {
        return AfterExit::Nothing;
    }
    starts.deaths += 1;
    if matches!(exit, Exit::Code(code) if CANNOT.contains(&code)) {
        return AfterExit::GiveUp(FailCause::CannotRun);
    }
    match state.spec.restart {
        _ if !state.needs_process() => AfterExit::Restart,
        Restart::Never => AfterExit::GiveUp(FailCause::NotRestarted),
        _ if starts.deaths >= DEATHS => AfterExit::GiveUp(FailCause::CrashLoop),
        _ => AfterExit::Restart,
    }
}
