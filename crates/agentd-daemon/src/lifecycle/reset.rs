//! Switches to another conversation: reset, undo, redo and rewind. Core decides the next step, and each step is
//! recorded before the next one, so a reset continues after a crash where it was.

mod hooks;

use super::{
    GRACE, branch_point, check_generation, end_background, files, kill, stretch, wait_idle,
};
use crate::clock;
use crate::daemon::{AgentGuard, AgentHandle};
use crate::error::{Error, Kind, Result};
use agentd_client::api::{Receipt, Reset};
use agentd_core::branch_point::BranchPoint;
use agentd_core::event::{
    Body, Direction, Mode, Note, ResetBegan, ResetRefusal, ResetSource, ResetStep, ResetTo,
};
use agentd_core::id::{ConversationId, OpId, Seq};
use agentd_core::reset::{self, Begin, Next};
use agentd_core::state::Outcome;
use agentd_core::window::Window;
use agentd_failpoint as failpoint;
use std::time::Duration;

/// How long a forced reset waits until the killed turn is recovered and ended.
const FORCED: Duration = Duration::from_secs(60);

pub async fn reset(handle: &AgentHandle, ask: Reset) -> Result<Receipt> {
    let to = match ask.step {
        None => ResetTo::Fresh,
        Some(Direction::Undo) => ResetTo::Undo,
        Some(Direction::Redo) => ResetTo::Redo,
    };
    let guard = handle.lock().await;
    ordered(handle, guard, (to, ResetSource::User), ask).await
}

/// Begins a reset, unless a reset with this op has begun before, and waits for its end. Every switch of the current
/// conversation goes through here.
pub async fn ordered(
    handle: &AgentHandle,
    mut guard: AgentGuard<'_>,
    (to, source): (ResetTo, ResetSource),
    ask: Reset,
) -> Result<Receipt> {
    let op = ask.op.unwrap_or_else(|| OpId::new(clock::new_id()));
    guard.check_released()?;
    if guard.state.mode == Mode::Oneshot {
        let what = "reset is only for persistent agents";
        return Err(Error::new(Kind::Refused, what));
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
    let begun = reset::begin(&guard.state, order)?;
    if let Begin::Append((conversation, body)) = begun {
        check_generation(&guard, ask.if_generation)?;
        let mut lines = vec![(conversation, body)];
        if let Some(text) = ask.reason {
            let about = None;
            lines.push((conversation, Note { about, text }.into()));
        }
        guard.append(lines).await?;
    }
    guard.reconcile();
    drop(guard);
    over(handle, op).await
}

/// Waits for the end of a reset that has begun.
pub async fn over(handle: &AgentHandle, op: OpId) -> Result<Receipt> {
    let outcome = handle.until(|guard| guard.state.resets.outcome(op)).await;
    match outcome {
        Outcome::Ended { began, ended, .. } => receipt(handle, op, (began, ended)).await,
        Outcome::Withdrawn { why, began, ended } => {
            let reason = hooks::reason(handle, began, ended).await;
            Err(withdrawn(handle, why, reason).await)
        }
    }
}

async fn withdrawn(handle: &AgentHandle, why: ResetRefusal, reason: Option<String>) -> Error {
    let name = handle.lock().await.state.name.clone();
    match why {
        ResetRefusal::StillActive => {
            let what = format!("{name} is still active");
            let error = Error::new(Kind::Unavailable, what);
            error.next("try again in a moment, or use --force")
        }
        ResetRefusal::Hook => {
            let error = Error::new(Kind::Refused, "a hook refused the reset");
            let error = error.next("use --skip-hooks to reset without asking it");
            match reason {
                Some(reason) => error.because(reason),
                None => error,
            }
        }
        ResetRefusal::NoTarget => {
            Error::new(Kind::Conflict, "the target conversation no longer exists")
        }
        ResetRefusal::HomeRestored => {
            let what = "the home was restored from a backup that was made during the reset";
            Error::new(Kind::Conflict, what).next("reset it again")
        }
    }
}

async fn receipt(handle: &AgentHandle, op: OpId, (began, ended): (Seq, Seq)) -> Result<Receipt> {
    let before = Seq(began.0.saturating_sub(1));
    let events = stretch(&handle.daemon, handle.id, (before, ended)).await?;
    let guard = handle.lock().await;
    reset::receipt(&guard.state, op, &events).ok_or_else(|| {
        Error::new(
            Kind::Internal,
            "the reset has ended, but its receipt is missing",
        )
    })
}

/// Carries out the remaining steps of the reset in progress.
pub async fn carry_on(handle: AgentHandle) {
    if let Err(error) = carry_out(&handle).await {
        // The reset stays recorded and is tried again after a delay: the disk may be full for a while.
        tracing::error!(agent = %handle.id, %error, "reset step failed: retrying");
        handle.look_again();
    }
    let mut guard = handle.lock().await;
    guard.resetting = false;
    if guard.state.resets.under_way().is_none() {
        guard.reconcile();
    }
}

async fn carry_out(handle: &AgentHandle) -> Result<()> {
    loop {
        let mut guard = handle.lock().await;
        match reset::next(&guard.state) {
            Next::Nothing => return Ok(()),
            Next::Hooks(step) => {
                drop(guard);
                hooks::step(handle, step).await?;
            }
            Next::Stop => {
                drop(guard);
                stop(handle).await?;
            }
            Next::Switch => {
                drop(guard);
                switch(handle).await?;
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

/// The step `Stop`: ends the turn and the process, and with `kill_background` the tasks and subagents.
async fn stop(handle: &AgentHandle) -> Result<()> {
    let order = {
        let guard = handle.lock().await;
        let reset = guard.state.resets.under_way();
        reset.map(|reset| reset.order.clone())
    };
    let Some(order) = order else { return Ok(()) };
    let grace = Duration::from_millis(order.grace_ms);
    if wait_idle(handle, grace).await.is_err() {
        if !order.force {
            return withdraw(handle, ResetRefusal::StillActive).await;
        }
        kill(handle).await;
        if wait_idle(handle, FORCED).await.is_err() {
            return withdraw(handle, ResetRefusal::StillActive).await;
        }
    }
    if order.kill_background {
        end_background(handle).await?;
    }
    step_done(&mut handle.lock().await, ResetStep::Stop).await
}

/// What the model of the conversation that becomes the current one again is told: files may have been restored since.
async fn told(guard: &AgentGuard<'_>, target: ConversationId) -> Result<Option<Body>> {
    let Some(known) = guard.state.tree.get(target) else {
        return Ok(None);
    };
    let (daemon, agent) = (&guard.handle.daemon, guard.state.id);
    files::told::meanwhile(daemon, agent, target, known.head).await
}

/// The step `Switch`: makes the target conversation the current one, in one transaction.
async fn switch(handle: &AgentHandle) -> Result<()> {
    let mut guard = handle.lock().await;
    // The window is needed only for queued prompts: loading it costs time in proportion to the conversation.
    let window = match guard.state.inbox.waiting().len() {
        0 => Window::default(),
        _ => {
            let loaded = handle.daemon.store.load(handle.id).await;
            loaded?.window
        }
    };
    let to = guard.state.resets.under_way().map(|reset| reset.order.to);
    let seen = match (to, guard.state.tree.current()) {
        (Some(ResetTo::Rewind { at, conversation }), Some(current)) => {
            let conversation = conversation.unwrap_or(current);
            branch_point::seen(
                &handle.daemon,
                &guard.state,
                BranchPoint { conversation, at },
            )
            .await?
        }
        _ => Window::default(),
    };
    let new = reset::target(&guard.state);
    let new = new.unwrap_or_else(|| ConversationId::new(clock::new_id()));
    let told = told(&guard, new).await?;
    let lines = reset::switch(&guard.state, &window, &seen, new);
    let lines = lines.map(|mut lines| {
        lines.extend(told.map(|notice| (new, notice)));
        lines
    });
    match lines {
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
