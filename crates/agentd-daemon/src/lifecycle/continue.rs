//! Continues a turn that a limit ended, or that waits after a crash or for a key. If the turn runs and is blocked by a
//! subagent whose turn waits, the subagent's turn is continued.

use super::ops::Asked;
use super::{GRACE, admission};
use crate::daemon::AgentHandle;
use crate::error::{Error, Kind, Result};
use crate::view::subagents;
use agentd_client::api::Start;
use agentd_core::admission::Wait;
use agentd_core::event::{OpVerb, PauseReason, TurnStatus};
use agentd_core::id::TurnId;
use agentd_core::link::Order;
use agentd_core::state::{AgentState, Phase};

pub async fn continue_turn(handle: &AgentHandle, start: Start, asked: &Asked) -> Result<()> {
    // If the agent's own turn waits, that one is continued.
    let is_running = handle.lock().await.state.phase() == Phase::Running;
    let held_up = match is_running {
        true => subagents::held_up(handle).await,
        false => None,
    };
    match held_up.filter(|held_up| held_up.phase == Phase::Waiting) {
        Some(held_up) => {
            let mut guard = handle.lock().await;
            if !asked.is_made(&guard.state)? {
                guard.note(asked.line()).await?;
            }
            guard.merge_env(&start.env);
            drop(guard);
            let of_child = Asked::by_daemon(OpVerb::Continue);
            this(&held_up.handle, start, &of_child).await
        }
        None => this(handle, start, asked).await,
    }
}

async fn this(handle: &AgentHandle, start: Start, asked: &Asked) -> Result<()> {
    let turns_before = {
        let mut guard = handle.lock().await;
        guard.check_released()?;
        let made = asked.made(&guard.state)?.map(|made| made.has_gone_on);
        let paused = guard.state.turn.as_ref().and_then(|turn| turn.paused);
        let last = guard.state.last_turn_here().map(|turn| turn.status);
        let is_limited = guard.state.turn.is_none() && last == Some(TurnStatus::Limited);
        let is_waiting = paused.is_some() || is_limited;
        if made == Some(true) || (made.is_some() && !is_waiting) {
            return Ok(());
        }
        if !is_waiting {
            // After a restart of the daemon the turn may be about to pause for one of the keys.
            guard.merge_env(&start.env);
            guard.reconcile();
            return Err(nothing_to_continue(&guard.state, last));
        }
        if guard.state.stopped {
            let what = format!("`{}` is stopped", guard.state.name);
            let next = format!("agentd start {}", guard.state.name);
            return Err(Error::new(Kind::Conflict, what).next(next));
        }
        // The request is not in the journal, so it cannot wait as a prompt does.
        if is_limited && let Some(why) = admission::ask_now(&guard).await {
            return Err(not_now(&guard.state.name, why));
        }
        if made.is_none() {
            guard.note(asked.line()).await?;
        }
        guard.merge_env(&start.env);
        if paused == Some(PauseReason::MissingKey) && guard.down.is_some() {
            // A process gets keys only when it connects, so one that is already connected is replaced.
            guard.end_process();
        }
        guard.wanted = true;
        guard.reconcile();
        turns(&guard.state)
    };
    let mut told = None;
    let over = handle.within(GRACE, |guard| {
        let is_running = (guard.state.turn.as_ref()).is_some_and(|turn| turn.paused.is_none());
        // It may have ended, or wait again, before this task sees it running.
        let made = asked.made(&guard.state).ok().flatten();
        let has_gone_on = made.is_some_and(|made| made.has_gone_on);
        let continues = is_running || has_gone_on || turns(&guard.state) != turns_before;
        let is_stopping = guard.process.as_ref().is_some_and(|it| it.is_stopping);
        let connection = guard.down.as_ref().map(|it| it.number);
        if !continues && !is_stopping && connection.is_some() && told != connection {
            guard.order(Order::Continue);
            told = connection;
        }
        // A limit may have been reached since it was asked for.
        let waits = handle.daemon.admission.waits(handle.id);
        match (continues, waits.filter(|_| guard.state.turn.is_none())) {
            (true, _) => Some(Ok(())),
            (false, Some(why)) => Some(Err(not_now(&guard.state.name, why))),
            (false, None) => None,
        }
    });
    over.await.unwrap_or_else(|| {
        let what = "the turn has not continued";
        let error = Error::new(Kind::Unavailable, what);
        Err(error.next("`agentd status` shows what it is waiting for"))
    })
}

/// An interrupted turn is over: its prompt was answered with that. A new prompt goes on in the same conversation.
fn nothing_to_continue(state: &AgentState, last: Option<TurnStatus>) -> Error {
    let name = &state.name;
    let what = format!("`{name}` has no turn to continue");
    let error = Error::new(Kind::Conflict, what);
    match last {
        Some(TurnStatus::Interrupted) if state.turn.is_none() => {
            error.because("its last turn was interrupted").next(format!(
                "`agentd send {name} 'go on'` goes on in the same conversation"
            ))
        }
        _ => error.next(format!("`agentd show {name}` shows what it is doing")),
    }
}

fn not_now(name: &str, why: Wait) -> Error {
    let error = Error::new(Kind::Conflict, "the turn cannot continue now");
    error
        .because(why)
        .next(format!("`agentd continue {name}` when it may"))
}

/// The turn in progress, and the last one that has ended.
fn turns(state: &AgentState) -> (Option<TurnId>, Option<TurnId>) {
    let running = state.turn.as_ref().map(|turn| turn.id);
    (running, state.last_turn_here().map(|turn| turn.id))
}
