//! Switches to another conversation: reset, undo, redo. Core decides the next step, and each step is recorded before
//! the next one, so a reset continues after a crash where it was.

mod hooks;

use super::{
    GRACE, branch_point, check_generation, end_background, held, kill, stretch, wait_idle,
};
use crate::agent_handle::{AgentGuard, AgentHandle};
use crate::clock;
use crate::daemon::Daemon;
use crate::problem::{Result, of_refusal, of_store};
use agentd_client::api::{Receipt, Reset};
use agentd_client::{Kind, Problem};
use agentd_core::branch_point::BranchPoint;
use agentd_core::event::{
    Direction, Mode, Note, ResetBegan, ResetRefusal, ResetSource, ResetStep, ResetTo,
};
use agentd_core::id::{ConversationId, OpId, Seq};
use agentd_core::reset::{self, Begin, Next};
use agentd_core::state::Outcome;
use agentd_core::window::Window;
use agentd_failpoint as failpoint;
use std::sync::Arc;
use std::time::Duration;

/// How long a forced reset waits until the killed turn is recovered and ended.
const FORCED: Duration = Duration::from_secs(60);

pub async fn reset(daemon: &Arc<Daemon>, handle: &Arc<AgentHandle>, ask: Reset) -> Result<Receipt> {
    let to = match ask.step {
        None => ResetTo::Fresh,
        Some(Direction::Undo) => ResetTo::Undo,
        Some(Direction::Redo) => ResetTo::Redo,
    };
    let guard = handle.lock().await;
    ordered(daemon, handle, guard, (to, ResetSource::User), ask).await
}

/// Begins a reset, unless a reset with this op has begun before, and waits for its end. Every switch of the current
/// conversation goes through here.
pub async fn ordered(
    daemon: &Arc<Daemon>,
    handle: &Arc<AgentHandle>,
    mut guard: AgentGuard<'_>,
    (to, source): (ResetTo, ResetSource),
    ask: Reset,
) -> Result<Receipt> {
    let op = ask.op.unwrap_or_else(|| OpId::new(clock::new_id()));
    held::check_released(&guard.state)?;
    if guard.state.mode == Mode::Oneshot {
        let what = "reset is only for persistent agents";
        return Err(Problem::new(Kind::Refused, what));
    }
    let order = ResetBegan {
        op,
        to,
        force: ask.force,
        kill_background: ask.kill_background,
        keep_queue: ask.keep_queue,
        clear_log: ask.clear_log,
        skip_hooks: ask.skip_hooks,
        grace_ms: ask.grace_ms.unwrap_or(GRACE.as_millis() as u64),
        was_awake: guard.process.is_some(),
        source,
    };
    let begun = reset::begin(&guard.state, order).map_err(|refused| of_refusal(&refused))?;
    if let Begin::Append((conversation, body)) = begun {
        check_generation(&guard, ask.if_generation)?;
        let mut lines = vec![(conversation, body)];
        if let Some(text) = ask.reason {
            let about = None;
            lines.push((conversation, Note { about, text }.into()));
        }
        guard.append(lines).await?;
    }
    daemon.reconcile(handle, &mut guard);
    drop(guard);
    over(daemon, handle, op).await
}

/// Waits for the end of a reset that has begun.
pub async fn over(daemon: &Daemon, handle: &AgentHandle, op: OpId) -> Result<Receipt> {
    let outcome = handle.until(|guard| guard.state.resets.outcome(op)).await;
    match outcome {
        Outcome::Ended { began, ended, .. } => receipt(daemon, handle, op, (began, ended)).await,
        Outcome::Withdrawn { why, began, ended } => {
            let reason = hooks::reason(daemon, handle, began, ended).await;
            Err(withdrawn(handle, why, reason).await)
        }
    }
}

async fn withdrawn(handle: &AgentHandle, why: ResetRefusal, reason: Option<String>) -> Problem {
    let name = handle.lock().await.state.name.clone();
    match why {
        ResetRefusal::StillActive => {
            let what = format!("{name} is still active");
            let problem = Problem::new(Kind::Unavailable, what);
            problem.next("try again in a moment, or use --force")
        }
        ResetRefusal::Hook => {
            let problem = Problem::new(Kind::Refused, "a hook refused the reset");
            let problem = problem.next("use --skip-hooks to reset without asking it");
            match reason {
                Some(reason) => problem.because(reason),
                None => problem,
            }
        }
        ResetRefusal::NoTarget => {
            Problem::new(Kind::Conflict, "the target conversation no longer exists")
        }
    }
}

async fn receipt(
    daemon: &Daemon,
    handle: &AgentHandle,
    op: OpId,
    (began, ended): (Seq, Seq),
) -> Result<Receipt> {
    let before = Seq(began.0.saturating_sub(1));
    let events = stretch(daemon, handle.id, (before, ended)).await?;
    let guard = handle.lock().await;
    reset::receipt(&guard.state, op, &events).ok_or_else(|| {
        Problem::new(
            Kind::Internal,
            "the reset has ended, but its receipt is missing",
        )
    })
}

/// Carries out the remaining steps of the reset in progress.
pub async fn carry_on(daemon: Arc<Daemon>, handle: Arc<AgentHandle>) {
    if let Err(problem) = carry_out(&daemon, &handle).await {
        // The reset stays recorded and is tried again after a delay: the disk may be full for a while.
        tracing::error!(agent = %handle.id, %problem, "reset step failed: retrying");
        daemon.look_again(&handle);
    }
    let mut guard = handle.lock().await;
    guard.resetting = false;
    if guard.state.resets.under_way().is_none() {
        daemon.reconcile(&handle, &mut guard);
    }
}

async fn carry_out(daemon: &Arc<Daemon>, handle: &Arc<AgentHandle>) -> Result<()> {
    loop {
        let mut guard = handle.lock().await;
        match reset::next(&guard.state) {
            Next::Nothing => return Ok(()),
            Next::Hooks(step) => {
                drop(guard);
                hooks::step(daemon, handle, step).await?;
            }
            Next::Stop => {
                drop(guard);
                stop(daemon, handle).await?;
            }
            Next::Switch => {
                drop(guard);
                switch(daemon, handle).await?;
            }
            Next::End => {
                let was_awake = guard.state.resets.under_way();
                let was_awake = was_awake.is_some_and(|reset| reset.order.was_awake);
                let line = reset::end(&guard.state);
                guard.append(line.into_iter().collect()).await?;
                guard.wanted = was_awake;
            }
        }
    }
}

pub async fn step_done(guard: &mut AgentGuard<'_>, step: ResetStep) -> Result<()> {
    let line = reset::stepped(&guard.state, step);
    guard.append(line.into_iter().collect()).await.map(drop)
}

pub async fn withdraw(handle: &AgentHandle, why: ResetRefusal) -> Result<()> {
    let mut guard = handle.lock().await;
    let line = reset::withdraw(&guard.state, why);
    guard.append(line.into_iter().collect()).await.map(drop)
}

/// Step 2: ends the turn and the process, and with `kill_background` the tasks and subagents.
async fn stop(daemon: &Arc<Daemon>, handle: &Arc<AgentHandle>) -> Result<()> {
    let order = {
        let guard = handle.lock().await;
        let reset = guard.state.resets.under_way();
        reset.map(|reset| reset.order.clone())
    };
    let Some(order) = order else { return Ok(()) };
    let grace = Duration::from_millis(order.grace_ms);
    if wait_idle(daemon, handle, grace).await.is_err() {
        if !order.force {
            return withdraw(handle, ResetRefusal::StillActive).await;
        }
        kill(handle).await;
        if wait_idle(daemon, handle, FORCED).await.is_err() {
            return withdraw(handle, ResetRefusal::StillActive).await;
        }
    }
    if order.kill_background {
        end_background(daemon, handle).await?;
    }
    step_done(&mut handle.lock().await, ResetStep::Stop).await
}

/// Step 4: one transaction.
async fn switch(daemon: &Arc<Daemon>, handle: &Arc<AgentHandle>) -> Result<()> {
    let mut guard = handle.lock().await;
    // Only needed for queued prompts: loading it costs time in proportion to the conversation.
    let window = match guard.state.inbox.waiting().len() {
        0 => Window::default(),
        _ => {
            let loaded = daemon.store.load(handle.id).await;
            loaded.map_err(|error| of_store(&error))?.window
        }
    };
    let to = guard.state.resets.under_way().map(|reset| reset.order.to);
    let seen = match (to, guard.state.tree.current()) {
        (Some(ResetTo::Rewind { at, conversation }), Some(current)) => {
            let conversation = conversation.unwrap_or(current);
            branch_point::seen(daemon, &guard.state, BranchPoint { conversation, at }).await?
        }
        _ => Window::default(),
    };
    let new = reset::target(&guard.state);
    let new = new.unwrap_or_else(|| ConversationId::new(clock::new_id()));
    match reset::switch(&guard.state, &window, &seen, new) {
        Ok(lines) if failpoint::injected_bug("reset_in_two") => {
            // An injected bug: one transaction for each event instead of one for all.
            for line in lines {
                guard.append(vec![line]).await?;
            }
            Ok(())
        }
        Ok(lines) => guard.append(lines).await.map(drop),
        Err(refused) => {
            tracing::error!(agent = %handle.id, %refused, "reset withdrawn: no target");
            drop(guard);
            withdraw(handle, ResetRefusal::NoTarget).await
        }
    }
}
